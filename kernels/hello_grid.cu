// hello_grid.cu: three kernels that compute nothing; they show how a grid runs.
//
//   who_is_where   each thread of a 1-D grid writes its block and thread index to the
//                  element that it owns
//   hello          each thread prints a line
//   two_ways       every second group of threads takes the other branch
//
// who_is_where writes 8 bytes per element, two_ways reads 4 and writes 4: memory
// bandwidth limits them. hello moves next to nothing: the CPU waits for its text.

#include <cstdio>

#include <torch/csrc/stable/library.h>

#include "launch.h"

using ladder::ceil_div;
using torch::stable::Tensor;

// -------------------------------------------------------------------------------------
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
  printf("block %d of %d, thread %d of %d\n", int(blockIdx.x), int(gridDim.x),
         int(threadIdx.x), int(blockDim.x));
}

// values: n ints. Groups of `group` neighbours take the two branches alternately.
__global__ void two_ways_kernel(int* values, int64_t group, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  if (i / group % 2 == 0) {
    values[i] += 1;
  } else {
    values[i] *= 3;
  }
}

// -------------------------------------------------------------------------------------
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
  who_is_where_kernel<<<ceil_div(n, threads), threads, 0,
                        ladder::current_stream(block)>>>(
      block.mutable_data_ptr<int>(), thread.mutable_data_ptr<int>(), n);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

// where: any tensor; its device says hello, its values are not used.
void hello(const Tensor& where, int64_t blocks, int64_t threads) {
  STD_TORCH_CHECK(where.is_cuda(),
                  "where must be a CUDA tensor; move it with where.cuda()");
  STD_TORCH_CHECK(blocks >= 1 && threads >= 1,
                  "blocks and threads must be 1 or more, got ", blocks, " and ",
                  threads);
  auto guard = ladder::on_device_of(where);
  cudaStream_t stream = ladder::current_stream(where);
  hello_kernel<<<blocks, threads, 0, stream>>>();
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  // printf fills a buffer on the device; waiting flushes it.
  STD_CUDA_CHECK(cudaStreamSynchronize(stream));
}

// values: an int32 tensor, changed in place. group: how many neighbours take the same
// branch, 1 or more.
void two_ways(Tensor values, int64_t group) {
  ladder::check_input(values, "values", torch::headeronly::ScalarType::Int);
  STD_TORCH_CHECK(group >= 1, "group must be 1 or more, got ", group);
  auto guard = ladder::on_device_of(values);
  int64_t n = values.numel();
  if (n == 0) return;
  two_ways_kernel<<<ceil_div(n, 256), 256, 0, ladder::current_stream(values)>>>(
      values.mutable_data_ptr<int>(), group, n);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

// -------------------------------------------------------------------------------------
// Registration

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("who_is_where(Tensor(a!) block, Tensor(b!) thread, int threads) -> ()");
  m.def("hello(Tensor where, int blocks, int threads) -> ()");
  m.def("two_ways(Tensor(a!) values, int group) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("who_is_where", TORCH_BOX(&who_is_where));
  m.impl("hello", TORCH_BOX(&hello));
  m.impl("two_ways", TORCH_BOX(&two_ways));
}
