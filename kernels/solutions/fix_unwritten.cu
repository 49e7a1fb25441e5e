// fix_unwritten.cu: Right in a fresh process. Exercise 3 of lesson 13, about 10 minutes.
//
// Each block counts its 256 digits in shared memory and then adds its 16 counts to the
// result, so that the whole grid does fewer atomics on global memory. The test passes
// in a fresh process and fails after another kernel has run. Find what the block reads
// before it was written, and fix it. The launcher is right: it fills `counts` with
// zeros.
//
// Check this file with: python -m helpers check fix_unwritten
//
// [hints]
// - Shared memory begins with whatever the previous block left there; often that is 0,
//   but nothing promises it.
// - atomicAdd reads before it writes: what does the first one of a block add to?
// - Other threads write the zeros that a thread adds to. What must come between the
//   two?
// - A block has more threads than digits, so the first 16 threads can write one zero
//   each.
// [end]

#include <torch/csrc/stable/library.h>

#include "launch.h"

using torch::stable::Tensor;

constexpr int kThreads = 256;  // per block
constexpr int kDigits = 16;

// -------------------------------------------------------------------------------------
// Kernel

// [cell]
// digits: n ints from 0 to 15. counts: 16 ints, zeros before the launch. This kernel
// has a bug.
__global__ void fix_unwritten_kernel(const int* digits, int* counts, int64_t n) {
  __shared__ int of_block[kDigits];
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  // [broken]
  // [end]
  // [solution: about 2 lines]
  if (threadIdx.x < kDigits) of_block[threadIdx.x] = 0;
  __syncthreads();  // all zeros are there
  // [end]
  if (i < n) atomicAdd(&of_block[digits[i]], 1);
  __syncthreads();  // all digits of the block are counted
  if (threadIdx.x < kDigits) atomicAdd(&counts[threadIdx.x], of_block[threadIdx.x]);
}
// [end]

// -------------------------------------------------------------------------------------
// Launcher

void fix_unwritten(const Tensor& digits, Tensor counts) {
  ladder::check_input(digits, "digits", torch::headeronly::ScalarType::Int);
  ladder::check_input(counts, "counts", torch::headeronly::ScalarType::Int);
  STD_TORCH_CHECK(counts.dim() == 1 && counts.size(0) == kDigits, "counts must have ",
                  kDigits, " elements, got shape ", ladder::shape_of(counts));
  auto guard = ladder::on_device_of(digits);
  cudaStream_t stream = ladder::current_stream(digits);
  int64_t n = digits.numel();
  STD_CUDA_CHECK(cudaMemsetAsync(counts.mutable_data_ptr<int>(), 0,
                                 kDigits * sizeof(int), stream));
  if (n == 0) return;
  fix_unwritten_kernel<<<ladder::ceil_div(n, kThreads), kThreads, 0, stream>>>(
      digits.const_data_ptr<int>(), counts.mutable_data_ptr<int>(), n);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("fix_unwritten(Tensor digits, Tensor(a!) counts) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("fix_unwritten", TORCH_BOX(&fix_unwritten));
}
