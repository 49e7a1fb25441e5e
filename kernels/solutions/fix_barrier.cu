// fix_barrier.cu: A sum that sometimes lacks a term. Exercise 4 of lesson 13, about 10 minutes.
//
// `out[b]` is the sum of the 256 elements of block b (fewer in the last block). The
// threads add pairs in shared memory: first 128 threads add an element 128 places
// further on, then 64 threads, and so on, until one sum is left. On most days the sums
// are right. Find the wait that is missing; change as little as you can.
//
// Check this file with: python -m helpers check fix_barrier
//
// [hints]
// - In the second round, thread 0 reads part[64]. Which thread wrote it, in which
//   round, and are the two in one warp?
// - Every thread of the block must reach a barrier, even one that adds nothing in this
//   round.
// - __syncwarp waits for one warp only; the first rounds exchange values between warps.
// [end]

#include <torch/csrc/stable/library.h>

#include "launch.h"

using ladder::ceil_div;
using torch::stable::Tensor;

constexpr int kThreads = 256;  // per block

// -------------------------------------------------------------------------------------
// Kernel

// [cell]
// x: n floats; out: one float per block of 256 elements. This kernel has a bug.
__global__ void fix_barrier_kernel(const float* x, float* out, int64_t n) {
  __shared__ float part[kThreads];
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  part[threadIdx.x] = i < n ? x[i] : 0;
  __syncthreads();
  for (int distance = kThreads / 2; distance > 0; distance /= 2) {
    if (threadIdx.x < distance) part[threadIdx.x] += part[threadIdx.x + distance];
    // [broken]
    // [end]
    // [solution: about 1 line]
    __syncthreads();  // the sums of this round are there
    // [end]
  }
  if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}
// [end]

// -------------------------------------------------------------------------------------
// Launcher

void fix_barrier(const Tensor& x, Tensor out) {
  ladder::check_input(x, "x", torch::headeronly::ScalarType::Float);
  ladder::check_input(out, "out", torch::headeronly::ScalarType::Float);
  int64_t n = x.numel(), blocks = ceil_div(n, kThreads);
  STD_TORCH_CHECK(out.dim() == 1 && out.size(0) == blocks, "out must have ", blocks,
                  " elements, got shape ", ladder::shape_of(out));
  auto guard = ladder::on_device_of(x);
  if (n == 0) return;
  fix_barrier_kernel<<<blocks, kThreads, 0, ladder::current_stream(x)>>>(
      x.const_data_ptr<float>(), out.mutable_data_ptr<float>(), n);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("fix_barrier(Tensor x, Tensor(a!) out) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("fix_barrier", TORCH_BOX(&fix_barrier));
}
