// fragments_by_hand.cu: Fragments by hand. Exercise 2 of lesson 10, about 20 minutes.
//
// `c[p] = a[p] @ b[p]` for many small products, one per warp, each with one `mma.sync`:
// `a[p]` has 16 x 16 halves, `b[p]` 16 x 8, `c[p]` 16 x 8 floats. Use neither shared
// memory nor `ldmatrix`: each lane reads the elements that the picture of the fragments
// gives it straight from global memory, and writes its elements of c. A register holds
// two elements, the one with the smaller index along k in its lower half. The check
// counts: a lane reads at most 24 times.
//
// Check this file with: python -m helpers check fragments_by_hand
//
// [hints]
// - With g = lane / 4 and t = lane % 4: of a, a lane has rows g and g + 8, and columns
//   2t, 2t + 1, 2t + 8 and 2t + 9.
// - of_a[0] is row g, columns 2t and 2t + 1; of_a[1] row g + 8, the same columns.
//   of_a[2] and of_a[3] are those 8 columns further on. Two neighbours of a row are 32
//   bits, which one access can read.
// - Of b, a lane has column g. of_b[0] holds rows 2t and 2t + 1, of_b[1] the rows 8
//   further down. They are 8 elements apart in memory, so read them one by one and use
//   packed.
// - sum[0] and sum[1] are c[g, 2t] and c[g, 2t + 1]; sum[2] and sum[3] the same columns
//   of row g + 8.
// [end]

#include <torch/csrc/stable/library.h>

#include "launch.h"
#include "mma_sync.h"

using ladder::ceil_div;
using torch::stable::Tensor;

constexpr int kThreads = 128;  // four warps

// The bits of two halves in 32, the first in the lower 16.
__device__ inline uint32_t packed(__half first, __half second) {
  return __half_as_ushort(first) | uint32_t(__half_as_ushort(second)) << 16;
}

// -------------------------------------------------------------------------------------
// Kernel

// [cell]
// count products, each of 16 x 16 by 16 x 8 elements, row by row, one after the other.
// Warp p computes product p. packed(x, y) makes a register of two halves, x in its
// lower half.
__global__ void fragments_by_hand_kernel(const __half* a, const __half* b, float* c,
                                         int64_t count) {
  int64_t product = (int64_t(blockIdx.x) * kThreads + threadIdx.x) / 32;
  int lane = threadIdx.x % 32;
  if (product >= count) return;  // all 32 lanes
  uint32_t of_a[4] = {}, of_b[2] = {};
  float sum[4] = {};
  // [solution: about 8 lines]
  int g = lane / 4, t = lane % 4;
  a += product * 256;
  b += product * 128;
  for (int i = 0; i < 4; ++i) {
    int row = g + i % 2 * 8, column = 2 * t + i / 2 * 8;
    of_a[i] = *reinterpret_cast<const uint32_t*>(&a[row * 16 + column]);
  }
  for (int i = 0; i < 2; ++i)
    of_b[i] = packed(b[(2 * t + 8 * i) * 8 + g], b[(2 * t + 8 * i + 1) * 8 + g]);
  // [end]
  ladder::multiply_add<__half>(sum, of_a, of_b[0], of_b[1]);  // sum += a @ b
  // [solution: about 2 lines]
  c += product * 128;
  for (int i = 0; i < 4; ++i) c[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = sum[i];
  // [end]
}
// [end]

// -------------------------------------------------------------------------------------
// Launcher

void fragments_by_hand(const Tensor& a, const Tensor& b, Tensor c) {
  ladder::check_input(a, "a", torch::headeronly::ScalarType::Half);
  ladder::check_input(b, "b", torch::headeronly::ScalarType::Half);
  ladder::check_input(c, "c", torch::headeronly::ScalarType::Float);
  STD_TORCH_CHECK(a.dim() == 3 && a.size(1) == 16 && a.size(2) == 16,
                  "a must have the shape [count, 16, 16], got ", ladder::shape_of(a));
  int64_t count = a.size(0);
  STD_TORCH_CHECK(
      b.dim() == 3 && b.size(0) == count && b.size(1) == 16 && b.size(2) == 8,
      "b must have the shape [count, 16, 8], got ", ladder::shape_of(b));
  STD_TORCH_CHECK(c.dim() == 3 && ladder::same_shape(b, c),
                  "c must have the shape of b, got ", ladder::shape_of(c));
  STD_TORCH_CHECK(ladder::aligned_to_16(a.const_data_ptr()),
                  "a must begin at a multiple of 16 bytes; pass a.clone()");
  auto guard = ladder::on_device_of(a);
  if (count == 0) return;
  fragments_by_hand_kernel<<<ceil_div(count * 32, kThreads), kThreads, 0,
                             ladder::current_stream(a)>>>(
      static_cast<const __half*>(a.const_data_ptr()),
      static_cast<const __half*>(b.const_data_ptr()), c.mutable_data_ptr<float>(),
      count);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("fragments_by_hand(Tensor a, Tensor b, Tensor(a!) c) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("fragments_by_hand", TORCH_BOX(&fragments_by_hand));
}
