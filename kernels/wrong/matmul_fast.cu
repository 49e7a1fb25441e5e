// wrong/matmul_fast.cu: two kernels for lesson 09, which copy elements through shared
// memory. Do not use.
//
//   copy_no_wait       reads shared memory before cp.async has written it
//   copy_by_matrices   reads matrices with ldmatrix from rows of 128 bytes: swizzled,
//                      or, for comparison, not swizzled, so that the 8 rows of a matrix
//                      are in the same banks
//
// Each moves 4 bytes in and 4 out for each float32, or 2 and 2 for each float16.

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include "async_copy.h"
#include "launch.h"
#include "mma_sync.h"

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

constexpr int kThreads = 128;

// -------------------------------------------------------------------------------------
// Kernels

// n floats. Each thread copies one, and writes its neighbour's.
__global__ void copy_no_wait_kernel(const float* from, float* to, int64_t n) {
  __shared__ float tile[kThreads];
  ladder::AsyncCopies copies;
  int64_t first = int64_t(blockIdx.x) * kThreads, i = first + threadIdx.x;
  copies.start<4>(&tile[threadIdx.x], from + i, i < n);
  copies.commit();
  __syncthreads();
  int64_t j = first + (threadIdx.x ^ 1);
  if (j < n) to[j] = tile[threadIdx.x ^ 1];
}

// One warp, 16 rows of 64 halves. The lanes read 4 matrices of 8 x 8 at a time.
template <bool swizzle>
__global__ void copy_by_matrices_kernel(const uint4* from, uint32_t* to) {
  __shared__ uint4 tile[16][8];  // 16 rows of 8 pieces of 16 bytes
  int lane = threadIdx.x;
  for (int i = lane; i < 16 * 8; i += 32)
    tile[i / 8][swizzle ? i % 8 ^ i / 8 % 8 : i % 8] = from[i];
  __syncwarp();
  int row = lane % 16;
  for (int piece = 0; piece < 8; piece += 2) {
    int p = piece + lane / 16;
    uint32_t matrices[4];
    ladder::load_matrices(matrices, &tile[row][swizzle ? p ^ row % 8 : p]);
    for (int m = 0; m < 4; ++m) {
      to[(lane / 4 + m % 2 * 8) * 32 + (piece + m / 2) * 4 + lane % 4] = matrices[m];
    }
  }
}

// -------------------------------------------------------------------------------------
// Launchers

Tensor copy_no_wait(const Tensor& x) {
  ladder::check_input(x, "x", ScalarType::Float);
  auto guard = ladder::on_device_of(x);
  Tensor out = torch::stable::empty_like(x);
  if (x.numel() == 0) return out;
  copy_no_wait_kernel<<<ladder::ceil_div(x.numel(), kThreads), kThreads, 0,
                        ladder::current_stream(x)>>>(
      x.const_data_ptr<float>(), out.mutable_data_ptr<float>(), x.numel());
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

Tensor copy_by_matrices(const Tensor& x, bool swizzle) {
  ladder::check_input(x, "x", ScalarType::Half);
  STD_TORCH_CHECK(ladder::shape_of(x) == "[16, 64]",
                  "x must be of shape [16, 64], got ", ladder::shape_of(x));
  STD_TORCH_CHECK(ladder::aligned_to_16(x.data_ptr()),
                  "x must begin at a multiple of 16 bytes; pass x.clone()");
  auto guard = ladder::on_device_of(x);
  Tensor out = torch::stable::empty_like(x);
  auto kernel =
      swizzle ? copy_by_matrices_kernel<true> : copy_by_matrices_kernel<false>;
  kernel<<<1, 32, 0, ladder::current_stream(x)>>>(
      static_cast<const uint4*>(x.data_ptr()), static_cast<uint32_t*>(out.data_ptr()));
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

// -------------------------------------------------------------------------------------
// Registration

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("copy_no_wait(Tensor x) -> Tensor");
  m.def("copy_by_matrices(Tensor x, bool swizzle) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("copy_no_wait", TORCH_BOX(&copy_no_wait));
  m.impl("copy_by_matrices", TORCH_BOX(&copy_by_matrices));
}
