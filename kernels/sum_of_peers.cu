// sum_of_peers.cu: an all-reduce in one kernel. Each process has n floats that the
// others can read; each adds up all.
//
// With r processes a GPU reads 4rn bytes, 4(r - 1)n of them over the link between the
// GPUs, and writes 4n. A ring would move only 2(r - 1)/r as many over the link, but in
// 2(r - 1) steps, one after the other: for small tensors, where waiting costs more than
// bytes, this is faster.
//
// The addresses come from symmetric memory: helpers/ladder/pytorch/peers.py. All
// processes add in the same order, so all have the same bits. The caller makes sure
// that every buffer is written before, and none is written again until all are done.

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include "launch.h"

using ladder::ceil_div;
using torch::headeronly::ScalarType;
using torch::stable::Tensor;

constexpr int kThreads = 256;

// -------------------------------------------------------------------------------------
// Kernel. parts: `ranks` addresses of n floats each, on this GPU and on others; out: n
// floats.

__global__ void sum_of_peers_kernel(const float* const* parts, int64_t ranks,
                                    float* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0;
  for (int64_t r = 0; r < ranks; ++r) sum += parts[r][i];
  out[i] = sum;
}

// -------------------------------------------------------------------------------------
// Launcher

// mine: this process's buffer; addresses: those of all processes' buffers, which are as
// large, in the order of the ranks.
Tensor sum_of_peers(const Tensor& mine, const Tensor& addresses) {
  ladder::check_input(mine, "mine", ScalarType::Float);
  ladder::check_input(addresses, "addresses", ScalarType::Long);
  STD_TORCH_CHECK(addresses.dim() == 1, "addresses must have one dimension, got ",
                  ladder::shape_of(addresses));
  ladder::check_same_device(mine, "mine", addresses, "addresses");
  auto guard = ladder::on_device_of(mine);
  Tensor out = torch::stable::empty_like(mine);
  int64_t n = mine.numel();
  if (n == 0) return out;
  auto parts =
      reinterpret_cast<const float* const*>(addresses.const_data_ptr<int64_t>());
  sum_of_peers_kernel<<<ceil_div(n, kThreads), kThreads, 0,
                        ladder::current_stream(mine)>>>(
      parts, addresses.numel(), out.mutable_data_ptr<float>(), n);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

// -------------------------------------------------------------------------------------
// Registration: torch.ops.<name given to load>.sum_of_peers(mine, addresses), for CUDA
// tensors

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("sum_of_peers(Tensor mine, Tensor addresses) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("sum_of_peers", TORCH_BOX(&sum_of_peers));
}
