// fft_plan.cpp: cuFFT's plans: which numbers of memory are transformed, and where the results go.
#include "cufft.h"

#include "simt/library_call.h"
#include "libraries/fft/fft.h"
#include "libraries/handle_table.h"

namespace simt::fft {
namespace {

constexpr int kRank = 3;

struct Layout {  // of the input or the output
  int extent[kRank] = {1, 1, 1}, embed[kRank] = {1, 1, 1};
  int64_t stride = 1, distance = 0;

  int64_t at(int64_t x, int64_t y, int64_t z) const { return ((x * embed[1] + y) * embed[2] + z) * stride; }
};

struct Plan {
  cufftType type = CUFFT_C2C;
  int batch = 0;  // 0: not made yet
  int n[kRank] = {1, 1, 1};
  Layout in, out;
  bool contiguous = true;  // the layouts are the default ones
  cudaStream_t stream = nullptr;
};

libraries::HandleTable<Plan>& plans() { return lasting<libraries::HandleTable<Plan>>(); }

Plan* find(cufftHandle handle) { return handle > 0 ? plans().find(static_cast<uintptr_t>(handle)) : nullptr; }

bool has_real_input(cufftType type) { return type == CUFFT_R2C || type == CUFFT_D2Z; }
bool has_real_output(cufftType type) { return type == CUFFT_C2R || type == CUFFT_Z2D; }
bool is_known(cufftType type) {
  return has_real_input(type) || has_real_output(type) || type == CUFFT_C2C || type == CUFFT_Z2Z;
}

void set_contiguous(Layout& layout) {
  for (int i = 0; i < kRank; ++i) layout.embed[i] = layout.extent[i];
  layout.stride = 1;
  layout.distance = int64_t{layout.embed[0]} * layout.embed[1] * layout.embed[2];
}

cufftResult make(cufftHandle handle, int rank, const int* n, const int* inembed, int istride, int idist,
                 const int* onembed, int ostride, int odist, cufftType type, int batch, size_t* work_bytes) {
  Plan* plan = find(handle);
  if (!plan || plan->batch != 0) return CUFFT_INVALID_PLAN;
  if (!is_known(type)) return CUFFT_INVALID_TYPE;
  if (rank < 1 || rank > kRank || !n || batch < 1) return CUFFT_INVALID_SIZE;
  Plan made;
  made.type = type;
  made.batch = batch;
  made.stream = plan->stream;
  for (int i = 0; i < rank; ++i) {
    if (n[i] < 1) return CUFFT_INVALID_SIZE;
    const int axis = kRank - rank + i;
    made.n[axis] = made.in.extent[axis] = made.out.extent[axis] = n[i];
  }
  const int half = made.n[kRank - 1] / 2 + 1;
  if (has_real_input(type)) made.out.extent[kRank - 1] = half;
  if (has_real_output(type)) made.in.extent[kRank - 1] = half;
  set_contiguous(made.in);
  set_contiguous(made.out);
  if (inembed && onembed) {
    made.contiguous = false;
    for (int i = 1; i < rank; ++i) {
      made.in.embed[kRank - rank + i] = inembed[i];
      made.out.embed[kRank - rank + i] = onembed[i];
      if (inembed[i] < made.in.extent[kRank - rank + i] || onembed[i] < made.out.extent[kRank - rank + i])
        return CUFFT_INVALID_SIZE;
    }
    made.in.stride = istride;
    made.in.distance = idist;
    made.out.stride = ostride;
    made.out.distance = odist;
    if (istride < 1 || ostride < 1 || (batch > 1 && (idist < 1 || odist < 1))) return CUFFT_INVALID_VALUE;
  }
  *plan = made;
  if (work_bytes) *work_bytes = 0;
  return CUFFT_SUCCESS;
}

// Creates a plan and makes it; on failure there is none.
template <typename... Arguments>
cufftResult create(cufftHandle* handle, Arguments... arguments) {
  if (const cufftResult result = cufftCreate(handle)) return result;
  const cufftResult result = make(*handle, arguments..., nullptr);
  if (result != CUFFT_SUCCESS) cufftDestroy(*handle);
  return result;
}

// A row of numbers in memory that are `step` apart, transformed in place.
void transform_line(Transform& transform, Complex* first, int64_t step, int64_t length, std::vector<Complex>& line) {
  for (int64_t i = 0; i < length; ++i) line[static_cast<size_t>(i)] = first[i * step];
  transform.forward(line.data());
  for (int64_t i = 0; i < length; ++i) first[i * step] = line[static_cast<size_t>(i)];
}

// Transforms an array of n[0] * n[1] * n[2] numbers along each dimension.
void transform_all(const int* n, Complex* x, Transform** transforms) {
  const int64_t total = int64_t{n[0]} * n[1] * n[2];
  int64_t step = total;
  for (int axis = 0; axis < kRank; ++axis) {
    const int64_t outer = step;
    step /= n[axis];
    if (n[axis] == 1) continue;
    std::vector<Complex> line(static_cast<size_t>(n[axis]));
    for (int64_t block = 0; block < total; block += outer)
      for (int64_t i = 0; i < step; ++i) transform_line(*transforms[axis], x + block + i, step, n[axis], line);
  }
}

template <typename T>
int64_t span(const Layout& layout, int batch) {  // bytes from the first number to the end of the last
  const int64_t last = layout.at(layout.extent[0] - 1, layout.extent[1] - 1, layout.extent[2] - 1);
  return (last + (batch - 1) * layout.distance + 1) * static_cast<int64_t>(sizeof(T));
}

Complex wide(float2 x) { return {x.x, x.y}; }
Complex wide(double2 x) { return {x.x, x.y}; }
Complex wide(float x) { return {x, 0}; }
Complex wide(double x) { return {x, 0}; }
void narrow(Complex x, float2& to) { to = {static_cast<float>(x.re), static_cast<float>(x.im)}; }
void narrow(Complex x, double2& to) { to = {x.re, x.im}; }
void narrow(Complex x, float& to) { to = static_cast<float>(x.re); }
void narrow(Complex x, double& to) { to = x.re; }

template <typename In, typename Out>
cufftResult execute(const char* function, cufftHandle handle, cufftType type, const In* in, Out* out, int direction) {
  begin_library_call(function);
  const Plan* plan = find(handle);
  if (!plan || plan->batch == 0) return CUFFT_INVALID_PLAN;
  if (plan->type != type) return CUFFT_INVALID_TYPE;
  if (direction != CUFFT_FORWARD && direction != CUFFT_INVERSE) return CUFFT_INVALID_VALUE;
  if (!stream_exists(plan->stream)) return CUFFT_EXEC_FAILED;
  Layout from = plan->in, to = plan->out;
  const bool in_place = static_cast<const void*>(in) == static_cast<void*>(out);
  if (in_place && plan->contiguous && type != CUFFT_C2C && type != CUFFT_Z2Z) {  // the rows of real numbers are padded
    Layout& real = has_real_input(type) ? from : to;
    real.embed[kRank - 1] = 2 * (plan->n[kRank - 1] / 2 + 1);
    real.distance = int64_t{real.embed[0]} * real.embed[1] * real.embed[2];
  }
  check_operand(function, "the input", in, static_cast<size_t>(span<In>(from, plan->batch)));
  check_operand(function, "the output", out, static_cast<size_t>(span<Out>(to, plan->batch)));

  const int* n = plan->n;
  std::vector<std::unique_ptr<Transform>> made;
  Transform* transforms[kRank] = {};
  for (int axis = 0; axis < kRank; ++axis) {
    for (int same = 0; same < axis; ++same)
      if (n[same] == n[axis]) transforms[axis] = transforms[same];
    if (!transforms[axis]) made.push_back(std::make_unique<Transform>(static_cast<size_t>(n[axis])));
    if (!transforms[axis]) transforms[axis] = made.back().get();
  }
  // In place, a result may lie where another transform's input is: all of the input is read first.
  const int64_t total = int64_t{n[0]} * n[1] * n[2], together = in_place ? plan->batch : 1;
  std::vector<Complex> work(static_cast<size_t>(total * together));
  const bool inverse = direction == CUFFT_INVERSE;
  for (int first = 0; first < plan->batch; first += static_cast<int>(together)) {
    for (int64_t b = 0; b < together; ++b) {
      const In* source = in + (first + b) * from.distance;
      Complex* x = work.data() + b * total;
      for (int i = 0; i < n[0]; ++i)
        for (int j = 0; j < n[1]; ++j)
          for (int k = 0; k < n[2]; ++k, ++x) {
            // The other half of a real signal's spectrum is the conjugate, at the negative frequencies.
            const bool stored = k < from.extent[2];
            *x = stored ? wide(source[from.at(i, j, k)])
                        : conjugate(wide(source[from.at((n[0] - i) % n[0], (n[1] - j) % n[1], n[2] - k)]));
            if (inverse) *x = conjugate(*x);
          }
    }
    for (int64_t b = 0; b < together; ++b) {
      Complex* x = work.data() + b * total;
      transform_all(n, x, transforms);
      Out* target = out + (first + b) * to.distance;
      for (int i = 0; i < n[0]; ++i)
        for (int j = 0; j < n[1]; ++j)
          for (int k = 0; k < n[2]; ++k, ++x)
            if (k < to.extent[2]) narrow(inverse ? conjugate(*x) : *x, target[to.at(i, j, k)]);
    }
  }
  return CUFFT_SUCCESS;
}

}  // namespace
}  // namespace simt::fft

using namespace simt::fft;

cufftResult cufftCreate(cufftHandle* plan) {
  simt::begin_library_call("cufftCreate");
  if (!plan) return CUFFT_INVALID_VALUE;
  *plan = static_cast<cufftHandle>(plans().add({}));
  return CUFFT_SUCCESS;
}
cufftResult cufftDestroy(cufftHandle plan) {
  return plan > 0 && plans().remove(static_cast<uintptr_t>(plan)) ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}
cufftResult cufftSetStream(cufftHandle handle, cudaStream_t stream) {
  Plan* plan = find(handle);
  if (!plan) return CUFFT_INVALID_PLAN;
  if (!simt::stream_exists(stream)) return CUFFT_INVALID_VALUE;
  plan->stream = stream;
  return CUFFT_SUCCESS;
}
cufftResult cufftGetSize(cufftHandle plan, size_t* work_bytes) {
  if (!find(plan)) return CUFFT_INVALID_PLAN;
  if (!work_bytes) return CUFFT_INVALID_VALUE;
  *work_bytes = 0;
  return CUFFT_SUCCESS;
}
cufftResult cufftSetWorkArea(cufftHandle plan, void*) { return find(plan) ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN; }
cufftResult cufftSetAutoAllocation(cufftHandle plan, int) { return find(plan) ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN; }
cufftResult cufftGetVersion(int* version) {
  if (!version) return CUFFT_INVALID_VALUE;
  *version = CUFFT_VERSION;
  return CUFFT_SUCCESS;
}
cufftResult cufftGetProperty(libraryPropertyType type, int* value) {
  if (!value || type < MAJOR_VERSION || type > PATCH_LEVEL) return CUFFT_INVALID_VALUE;
  *value = type == MAJOR_VERSION ? CUFFT_VERSION / 1000 : 0;
  return CUFFT_SUCCESS;
}

cufftResult cufftMakePlanMany(cufftHandle plan, int rank, int* n, int* inembed, int istride, int idist, int* onembed,
                              int ostride, int odist, cufftType type, int batch, size_t* work_bytes) {
  return make(plan, rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch, work_bytes);
}
cufftResult cufftMakePlan1d(cufftHandle plan, int nx, cufftType type, int batch, size_t* work_bytes) {
  return make(plan, 1, &nx, nullptr, 1, 0, nullptr, 1, 0, type, batch, work_bytes);
}
cufftResult cufftMakePlan2d(cufftHandle plan, int nx, int ny, cufftType type, size_t* work_bytes) {
  const int n[] = {nx, ny};
  return make(plan, 2, n, nullptr, 1, 0, nullptr, 1, 0, type, 1, work_bytes);
}
cufftResult cufftMakePlan3d(cufftHandle plan, int nx, int ny, int nz, cufftType type, size_t* work_bytes) {
  const int n[] = {nx, ny, nz};
  return make(plan, 3, n, nullptr, 1, 0, nullptr, 1, 0, type, 1, work_bytes);
}
cufftResult cufftPlanMany(cufftHandle* plan, int rank, int* n, int* inembed, int istride, int idist, int* onembed,
                          int ostride, int odist, cufftType type, int batch) {
  return create(plan, rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch);
}
cufftResult cufftPlan1d(cufftHandle* plan, int nx, cufftType type, int batch) {
  return create(plan, 1, &nx, nullptr, 1, 0, nullptr, 1, 0, type, batch);
}
cufftResult cufftPlan2d(cufftHandle* plan, int nx, int ny, cufftType type) {
  const int n[] = {nx, ny};
  return create(plan, 2, n, nullptr, 1, 0, nullptr, 1, 0, type, 1);
}
cufftResult cufftPlan3d(cufftHandle* plan, int nx, int ny, int nz, cufftType type) {
  const int n[] = {nx, ny, nz};
  return create(plan, 3, n, nullptr, 1, 0, nullptr, 1, 0, type, 1);
}

cufftResult cufftExecC2C(cufftHandle plan, cufftComplex* in, cufftComplex* out, int direction) {
  return execute("cufftExecC2C", plan, CUFFT_C2C, in, out, direction);
}
cufftResult cufftExecZ2Z(cufftHandle plan, cufftDoubleComplex* in, cufftDoubleComplex* out, int direction) {
  return execute("cufftExecZ2Z", plan, CUFFT_Z2Z, in, out, direction);
}
cufftResult cufftExecR2C(cufftHandle plan, cufftReal* in, cufftComplex* out) {
  return execute("cufftExecR2C", plan, CUFFT_R2C, in, out, CUFFT_FORWARD);
}
cufftResult cufftExecD2Z(cufftHandle plan, cufftDoubleReal* in, cufftDoubleComplex* out) {
  return execute("cufftExecD2Z", plan, CUFFT_D2Z, in, out, CUFFT_FORWARD);
}
cufftResult cufftExecC2R(cufftHandle plan, cufftComplex* in, cufftReal* out) {
  return execute("cufftExecC2R", plan, CUFFT_C2R, in, out, CUFFT_INVERSE);
}
cufftResult cufftExecZ2D(cufftHandle plan, cufftDoubleComplex* in, cufftDoubleReal* out) {
  return execute("cufftExecZ2D", plan, CUFFT_Z2D, in, out, CUFFT_INVERSE);
}
