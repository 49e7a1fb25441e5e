// launch.cu: launches in every form that a tutorial writes, and the indices that the threads see.
#include "case.h"

// ------------------------------------------------------------------------------------------------------------------
// Indices

// One row of twelve numbers per thread: threadIdx, blockIdx, blockDim, gridDim.
__global__ void indices_kernel(int* out) {
  const int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  int* row = out + 12 * (block * int(blockDim.x * blockDim.y * blockDim.z) + thread);
  const uint3 t = threadIdx, b = blockIdx;
  const dim3 bd = blockDim, gd = gridDim;
  store_all(row, t.x, t.y, t.z, b.x, b.y, b.z, bd.x, bd.y, bd.z, gd.x, gd.y, gd.z);
}

CASE(indices) {
  const auto n = [&](int i) { return unsigned(call.number(i)); };
  indices_kernel<<<dim3(n(0), n(1), n(2)), dim3(n(3), n(4), n(5))>>>(call.data<int>(0));
}

// ------------------------------------------------------------------------------------------------------------------
// Forms of a launch. Each adds a different number to a different cell.

__global__ void add_kernel(int* out, int value) { atomicAdd(out, value); }

template <typename T, int N>
__global__ void template_kernel(T* out, T value) {
  if (threadIdx.x < N) atomicAdd(out, value);
}

namespace outer {
namespace inner {
__global__ void namespaced_kernel(int* out, int value) { atomicAdd(out, value); }
}  // namespace inner
}  // namespace outer

template <typename T>
void launch_from_template(T* out, T value) {
  template_kernel<T, 3><<<1, 32>>>(out, value);
}

// clang-format off: the odd layouts here are what is tested
#define LAUNCH(kernel, grid, block, ...) kernel<<<(grid), (block)>>>(__VA_ARGS__)
#define LAUNCH_LONG(kernel, ...)      \
  do {                                \
    kernel<<<1,                       \
             2>>>(__VA_ARGS__);       \
  } while (0)

__global__ void no_argument_kernel() {}

struct Limits {
  int low, high = 9;
};
__global__ void limits_kernel(int* out, Limits limits, dim3 more) {
  out[0] = limits.low;
  out[1] = limits.high;
  out[2] = more.x + more.y + more.z;
}
template <typename T>
__global__ void limits_template_kernel(T* out, Limits limits) {
  out[0] = limits.low + limits.high;
}

static int* pointer_of(int* base, int i) { return base + i; }

CASE(forms) {
  int* out = call.data<int>(0);
  // add_kernel<<<1, 1>>>(out, 1000) in a comment launches nothing; /* nor does add_kernel<<<1, 1>>>(out, 1) */
  const std::string text = "add_kernel<<<1, 1>>>(out, 1000);";
  const std::string raw = R"x(add_kernel<<<1, 1>>>(out, ")");)x";
  EXPECT(text.find("<<<1, 1>>>(") != std::string::npos && raw.size() == 31);

  add_kernel<<<1, 1>>>(out + 0, 1);
  add_kernel<<<2, 3>>>(out + 1, 1);
  template_kernel<int, 3><<<dim3(2, 2), dim3(4, 2, 1)>>>(out + 2, 1);
  outer::inner::namespaced_kernel<<<1, 4>>>(out + 3, 2);
  launch_from_template<int>(out + 4, 7);
  LAUNCH(add_kernel, 3, 2, out + 5, 4);
  LAUNCH_LONG(add_kernel, out + 6, 5);
  add_kernel<<<
      dim3(2, 1),  // blocks, with a comma, and a bracket ) in this comment
      dim3(3),
      0,
      nullptr
  >>>(
      pointer_of(out, 7),
      (1 + (2 * (3)))  // nested
  );
  auto lambda = [&](int blocks) { add_kernel<<<blocks, 2>>>(out + 8, 1); };
  lambda(5);
  void (*pointer)(int*, int) = add_kernel;
  pointer<<<1, 6>>>(out + 9, 1);
  auto instance = template_kernel<int, 2>;
  instance<<<1, 8>>>(out + 10, 3);
  const int n = 16;
  add_kernel<<<(n >> 2), (n >> 3)>>>(out + 11, n >> 4);
  if (n > 3) add_kernel<<<n > 8 ? 1 : 2, 1>>>(out + 12, 9);
  else add_kernel<<<1, 1>>>(out + 12, 100);
  for (int i = 0; i < 3; ++i) add_kernel<<<1, 1>>>(out + 13, i);
  const dim3 grid{2, 2, 2}, block{1, 2};
  add_kernel<<<grid, block>>>(&out[14], 1); add_kernel<<<1, 1>>>(&out[15], 2);
  const char quote = '"'; add_kernel /* between */ <<<1, 1>>> /* and */ (out + 16, int(quote));
  const int big = 1'000'000;
  add_kernel<<<1, 1>>>(out + 17, big);
  no_argument_kernel<<<1, 1>>>();
  outer::inner::namespaced_kernel<<<
#ifdef __CUDACC__
      1
#else
      7
#endif
      , 1>>>(out + 18, 1);
}
// clang-format on

// ------------------------------------------------------------------------------------------------------------------
// Arguments: copied at the launch, one copy for each thread; evaluated once, in the host.

struct Window {
  int* out;
  int first, last;
  __host__ __device__ bool holds(int i) const { return first <= i && i < last; }
};

__global__ void by_value_kernel(Window window, int counter) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  counter += i;  // this thread's own copy
  window.first += 1;
  if (window.holds(i)) window.out[i] = counter;
}

CASE(braces) {
  int* out = call.data<int>(0);
  limits_kernel<<<1, 1>>>(out, {3, 4}, {2});
  limits_kernel<<<1, 1>>>(out + 3, {}, {5, 6, 7});
  limits_kernel<<<dim3{1}, dim3{1}>>>(out + 6, Limits{8}, dim3(1));
  limits_template_kernel<int><<<1, 1>>>(out + 9, {10, 20});
}

CASE(by_value) {
  int evaluations = 0;
  const auto once = [&] { return Window{call.data<int>(0), 0, ++evaluations * call.size(0)}; };
  by_value_kernel<<<2, call.size(0) / 2>>>(once(), 10);
  EXPECT(evaluations == 1);
}

// A function object and an extended lambda as arguments of a kernel template.
template <typename Function>
__global__ void map_kernel(float* x, int n, Function function) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = function(x[i]);
}

struct Scale {
  float factor;
  __device__ float operator()(float v) const { return factor * v; }
};

CASE(functors) {
  float* x = call.data<float>(0);
  const int n = call.size(0);
  const float shift = 1.5f;
  map_kernel<<<(n + 63) / 64, 64>>>(x, n, Scale{3.0f});
  map_kernel<<<(n + 63) / 64, 64>>>(x, n, [=] __device__(float v) { return v + shift; });
  map_kernel<<<(n + 63) / 64, 64>>>(x, n, [=] __host__ __device__(float v) -> float {
    if (v < 0.0f) return -v;
    return v;
  });
}

// A launch on a created stream; the block's size as a template argument; a grid-stride loop; recursion.
__device__ int factorial(int n) { return n < 2 ? 1 : n * factorial(n - 1); }

template <int kThreads>
__global__ __launch_bounds__(kThreads, 2) void grid_stride_kernel(const float* __restrict__ in, float* __restrict__ out,
                                                                  int64_t n) {
#pragma unroll 4
  for (int64_t i = blockIdx.x * int64_t(kThreads) + threadIdx.x; i < n; i += int64_t(gridDim.x) * blockDim.x) {
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < 4; ++k) sum += in[i];
    out[i] = sum + float(factorial(4));
  }
}

CASE(stream_and_stride) {
  cudaStream_t stream;
  EXPECT_SUCCESS(cudaStreamCreate(&stream));
  grid_stride_kernel<128><<<3, 128, 0, stream>>>(call.data<float>(0), call.data<float>(1), call.size(0));
  EXPECT_SUCCESS(cudaGetLastError());
  EXPECT_SUCCESS(cudaStreamSynchronize(stream));
  EXPECT_SUCCESS(cudaStreamDestroy(stream));
}
