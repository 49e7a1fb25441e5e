// fft.cu: cuFFT's transforms of tensors.
#include <cufft.h>

#include "case.h"

namespace {

void expect_fft(cufftResult result, const char* what, int line) {
  if (result == CUFFT_SUCCESS) return;
  throw std::runtime_error(std::string(what) + " (line " + std::to_string(line) + ") returned " +
                           std::to_string(result));
}
#define EXPECT_FFT(call) expect_fft((call), #call, __LINE__)

void execute(cufftHandle plan, int64_t type, void* in, void* out, int direction) {
  auto c = [](void* p) { return static_cast<cufftComplex*>(p); };
  auto z = [](void* p) { return static_cast<cufftDoubleComplex*>(p); };
  auto r = [](void* p) { return static_cast<cufftReal*>(p); };
  auto d = [](void* p) { return static_cast<cufftDoubleReal*>(p); };
  if (type == CUFFT_C2C) EXPECT_FFT(cufftExecC2C(plan, c(in), c(out), direction));
  if (type == CUFFT_R2C) EXPECT_FFT(cufftExecR2C(plan, r(in), c(out)));
  if (type == CUFFT_C2R) EXPECT_FFT(cufftExecC2R(plan, c(in), r(out)));
  if (type == CUFFT_Z2Z) EXPECT_FFT(cufftExecZ2Z(plan, z(in), z(out), direction));
  if (type == CUFFT_D2Z) EXPECT_FFT(cufftExecD2Z(plan, d(in), z(out)));
  if (type == CUFFT_Z2D) EXPECT_FFT(cufftExecZ2D(plan, z(in), d(out)));
}

}  // namespace

CASE(transform) {  // type, direction, batch, sizes; in, out (maybe the same)
  const auto type = static_cast<cufftType>(call.number(0));
  const int direction = static_cast<int>(call.number(1)), batch = static_cast<int>(call.number(2));
  const int rank = static_cast<int>(call.numbers.size()) - 3;
  int n[3] = {};
  for (int i = 0; i < rank; ++i) n[i] = static_cast<int>(call.number(3 + i));
  cufftHandle plan;
  if (rank == 1) EXPECT_FFT(cufftPlan1d(&plan, n[0], type, batch));
  if (rank == 2) EXPECT_FFT(cufftPlan2d(&plan, n[0], n[1], type));
  if (rank == 3) EXPECT_FFT(cufftPlan3d(&plan, n[0], n[1], n[2], type));
  cudaStream_t stream;
  EXPECT_SUCCESS(cudaStreamCreate(&stream));
  EXPECT_FFT(cufftSetStream(plan, stream));
  execute(plan, type, call.data<void>(0), call.data<void>(1), direction);
  EXPECT_SUCCESS(cudaStreamSynchronize(stream));
  EXPECT_FFT(cufftDestroy(plan));
  EXPECT_SUCCESS(cudaStreamDestroy(stream));
}

CASE(many) {  // type, direction, batch, nx, ny, in: embed x, embed y, stride, distance, out: the same
  int n[2] = {static_cast<int>(call.number(3)), static_cast<int>(call.number(4))};
  int in[4], out[4];
  for (int i = 0; i < 4; ++i) {
    in[i] = static_cast<int>(call.number(5 + i));
    out[i] = static_cast<int>(call.number(9 + i));
  }
  const auto type = static_cast<cufftType>(call.number(0));
  cufftHandle plan;
  EXPECT_FFT(cufftPlanMany(&plan, 2, n, in, in[2], in[3], out, out[2], out[3], type, static_cast<int>(call.number(2))));
  execute(plan, type, call.data<void>(0), call.data<void>(1), static_cast<int>(call.number(1)));
  EXPECT_FFT(cufftDestroy(plan));
}

CASE(plans) {
  cufftHandle plan;
  size_t bytes = 1;
  EXPECT(cufftPlan1d(&plan, 0, CUFFT_C2C, 1) == CUFFT_INVALID_SIZE);
  EXPECT(cufftExecC2C(9999, call.data<cufftComplex>(0), call.data<cufftComplex>(0), CUFFT_FORWARD) ==
         CUFFT_INVALID_PLAN);
  EXPECT_FFT(cufftCreate(&plan));
  EXPECT_FFT(cufftMakePlan1d(plan, 4, CUFFT_C2C, 2, &bytes));
  EXPECT_FFT(cufftGetSize(plan, &bytes));
  EXPECT_FFT(cufftExecC2C(plan, call.data<cufftComplex>(0), call.data<cufftComplex>(0), CUFFT_FORWARD));
  EXPECT_FFT(cufftDestroy(plan));
  EXPECT(cufftDestroy(plan) == CUFFT_INVALID_PLAN);
  int version = 0;
  EXPECT_FFT(cufftGetVersion(&version));
  EXPECT(version >= 10000);
}

#ifdef __SIMT__
CASE(mistakes) {
  cufftHandle plan;
  cufftComplex* x;
  EXPECT_FFT(cufftPlan1d(&plan, 16, CUFFT_C2C, 2));
  EXPECT_SUCCESS(cudaMalloc(&x, 31 * sizeof(cufftComplex)));
  EXPECT(cufftExecR2C(plan, reinterpret_cast<float*>(x), x) == CUFFT_INVALID_TYPE);
  EXPECT(cufftExecC2C(plan, x, x, 0) == CUFFT_INVALID_VALUE);
  cufftExecC2C(plan, x, x, CUFFT_FORWARD);
}
#endif
