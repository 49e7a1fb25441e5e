// hopper_bulk.cu: to = from, through shared memory, by hopper_bulk.h. `wrong` plants a mistake.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include "hopper_bulk.h"

using torch::stable::Tensor;

enum { kNothing, kNoWait, kMisaligned };
constexpr int kBytes = 512;

__global__ void copy_kernel(float* to, const float* from, int wrong) {
  __shared__ __align__(16) float piece[kBytes / 4 + 4];
  __shared__ hopper::Barrier full;
  if (threadIdx.x == 0) {
    hopper::init(full, 1);
    hopper::fence_init();
    hopper::arrive_and_expect(full, kBytes);
    hopper::load_bytes(piece + (wrong == kMisaligned), from, kBytes, full);
  }
  __syncthreads();
  if (wrong != kNoWait) hopper::wait(full, 0);
  to[threadIdx.x] = piece[threadIdx.x];
}

// to, from: 128 floats.
void copy(const Tensor& to, const Tensor& from, int64_t wrong) {
  copy_kernel<<<1, kBytes / 4>>>(static_cast<float*>(to.data_ptr()), static_cast<const float*>(from.data_ptr()), wrong);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) { m.def("copy(Tensor(a!) to, Tensor from, int wrong) -> ()"); }
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) { m.impl("copy", TORCH_BOX(&copy)); }
