// lanes.cu: Warps and lanes of a block. Exercise 1 of lesson 00, about 5 minutes.
//
// Each thread owns element `blockIdx.x * blockDim.x + threadIdx.x`, if there is one.
// There it writes two numbers: to `warp[i]` the number of its warp within its block, to
// `lane[i]` its number within that warp. The hardware cuts each block into warps of 32
// threads in the order of `threadIdx.x`, so the last warp of a block may be incomplete.
// The caller chooses the number of threads per block.
//
// Check this file with: python -m helpers check lanes
//
// [hints]
// - Integer division gives the number of full groups before a thread, the remainder its
//   place in its own group: 70 / 32 is 2, and 70 % 32 is 6.
// - A block begins with a new warp, so count from threadIdx.x. The element's index i
//   gives the same lanes only if blockDim.x is a multiple of 32.
// - There are more threads than elements: compare i with n before you write.
// [end]

#include <torch/csrc/stable/library.h>

#include "launch.h"

using torch::stable::Tensor;

// -------------------------------------------------------------------------------------
// Kernel

// [cell]
// warp, lane: n ints each. Thread t of block b owns element b * blockDim.x + t.
__global__ void lanes_kernel(int* warp, int* lane, int64_t n) {
  // [solution: about 4 lines]
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  warp[i] = threadIdx.x / 32;
  lane[i] = threadIdx.x % 32;
  // [end]
}
// [end]

// -------------------------------------------------------------------------------------
// Launcher

// n: the number of elements of warp and lane. threads: per block, 1 to 1,024.
void lanes(int64_t n, int64_t threads, Tensor warp, Tensor lane) {
  ladder::check_input(warp, "warp", torch::headeronly::ScalarType::Int);
  ladder::check_input(lane, "lane", torch::headeronly::ScalarType::Int);
  ladder::check_same(warp, "warp", lane, "lane");
  STD_TORCH_CHECK(n == warp.numel(), "n must be the number of elements of warp, ",
                  warp.numel(), ", got ", n);
  STD_TORCH_CHECK(threads >= 1 && threads <= 1024, "threads must be 1 to 1,024, got ",
                  threads);
  auto guard = ladder::on_device_of(warp);
  if (n == 0) return;
  lanes_kernel<<<ladder::ceil_div(n, threads), threads, 0,
                 ladder::current_stream(warp)>>>(warp.mutable_data_ptr<int>(),
                                                 lane.mutable_data_ptr<int>(), n);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("lanes(int n, int threads, Tensor(a!) warp, Tensor(b!) lane) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("lanes", TORCH_BOX(&lanes));
}
