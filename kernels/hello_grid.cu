// hello_grid.cu: two kernels that compute nothing; they say who they are.
//
//   who_is_where   each thread of a 1-D grid writes its block and its thread index to the element that it owns
//   hello          each thread prints a line
//
// who_is_where writes 8 bytes per element; hello moves nothing worth counting.

#include <cstdio>

#include <torch/csrc/stable/library.h>

#include "launch.h"

using ladder::ceil_div;
using torch::stable::Tensor;

// ---------------------------------------------------------------------------------------------------------------------
// Kernels

// block, thread: n ints each. Thread t of block b owns element b * blockDim.x + t.
__global__ void who_is_where_kernel(int* block, int* thread, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) {
    block[i] = blockIdx.x;
    thread[i] = threadIdx.x;
  }
}

__global__ void hello_kernel() {
  printf("block %d of %d, thread %d of %d\n", int(blockIdx.x), int(gridDim.x), int(threadIdx.x), int(blockDim.x));
}

// ---------------------------------------------------------------------------------------------------------------------
// Launchers

// block, thread: int32 tensors of one shape, written. threads: per block, 1 to 1,024.
void who_is_where(Tensor block, Tensor thread, int64_t threads) {
  ladder::check_input(block, "block", torch::headeronly::ScalarType::Int);
  ladder::check_input(thread, "thread", torch::headeronly::ScalarType::Int);
  ladder::check_same(block, "block", thread, "thread");
  STD_TORCH_CHECK(threads >= 1, "threads must be 1 or more, got ", threads);
  auto guard = ladder::on_device_of(block);
  int64_t n = block.numel();
  if (n == 0) return;
  who_is_where_kernel<<<ceil_div(n, threads), threads, 0, ladder::current_stream(block)>>>(
      block.mutable_data_ptr<int>(), thread.mutable_data_ptr<int>(), n);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

// where: any tensor on the device that is to say hello; its values are not used.
void hello(const Tensor& where, int64_t blocks, int64_t threads) {
  STD_TORCH_CHECK(where.is_cuda(), "where must be a CUDA tensor; move it with where.cuda()");
  STD_TORCH_CHECK(blocks >= 1 && threads >= 1, "blocks and threads must be 1 or more, got ", blocks, " and ", threads);
  auto guard = ladder::on_device_of(where);
  cudaStream_t stream = ladder::current_stream(where);
  hello_kernel<<<blocks, threads, 0, stream>>>();
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  STD_CUDA_CHECK(cudaStreamSynchronize(stream));  // printf fills a buffer on the device; waiting flushes it
}

// ---------------------------------------------------------------------------------------------------------------------
// Registration

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("who_is_where(Tensor(a!) block, Tensor(b!) thread, int threads) -> ()");
  m.def("hello(Tensor where, int blocks, int threads) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("who_is_where", TORCH_BOX(&who_is_where));
  m.impl("hello", TORCH_BOX(&hello));
}
