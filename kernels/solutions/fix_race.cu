// fix_race.cu: Counts that are too small. Exercise 2 of lesson 13, about 5 minutes.
//
// A histogram: `counts[d]` is how often the digit d, from 0 to 15, occurs among n
// digits. It is right for a few elements; for many, the counts are too small, and
// differ from run to run. Find the race, and fix it with as small a change as you can.
// Each thread still counts its own element: the check counts how many requests the
// digits take.
//
// Check this file with: python -m helpers check fix_race
//
// [hints]
// - 'counts[d] += 1' is three steps: read, add, write. What is lost if two threads read
//   before either writes?
// - A barrier does not help: the threads of all blocks add to the same 16 elements, and
//   no barrier waits for the whole grid.
// - atomicAdd(address, value) does the three steps as one.
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
__global__ void fix_race_kernel(const int* digits, int* counts, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int d = digits[i];
  // [broken]
  // counts[d] += 1;
  // [end]
  // [solution: about 1 line]
  atomicAdd(&counts[d], 1);
  // [end]
}
// [end]

// -------------------------------------------------------------------------------------
// Launcher

void fix_race(const Tensor& digits, Tensor counts) {
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
  fix_race_kernel<<<ladder::ceil_div(n, kThreads), kThreads, 0, stream>>>(
      digits.const_data_ptr<int>(), counts.mutable_data_ptr<int>(), n);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("fix_race(Tensor digits, Tensor(a!) counts) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("fix_race", TORCH_BOX(&fix_race));
}
