// wrong/reductions.cu: softmaxes whose reductions have one fault each, for lesson 07.
// Do not use.
//
//   softmax_partial      shuffles among the lanes of a short row: their partners are
//                        not all among them
//   softmax_one_barrier  the sums of the warps overwrite their maxima, which other
//                        warps may still read
//   softmax_online       rescales the sum of a row that begins with -infinity by
//                        exp(-inf - -inf), which is NaN
//
// Each computes softmax over the last dimension of float32 rows: softmax_partial of at
// most 32 columns, softmax_one_barrier of at most 256, softmax_online of any number.
// They move 8 bytes per element, softmax_online 12.

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include <cmath>

#include "launch.h"

using torch::stable::Tensor;

constexpr unsigned kAll = 0xffffffffu;

// -------------------------------------------------------------------------------------
// Kernels: a block per row. x, out: gridDim.x rows of `columns` elements.

__device__ float sum_over_warp(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_xor_sync(kAll, value, offset);
  return value;
}

__device__ float max_over_warp(float value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value = fmaxf(value, __shfl_xor_sync(kAll, value, offset));
  return value;
}

// A block is a warp.
__global__ void softmax_partial_kernel(const float* x, float* out, int columns) {
  int64_t at = int64_t(blockIdx.x) * columns + threadIdx.x;
  unsigned of_row = __ballot_sync(kAll, threadIdx.x < columns);
  if (threadIdx.x >= columns) return;
  float power = expf(x[at]), sum = power;
  for (int offset = 16; offset > 0; offset /= 2)
    sum += __shfl_xor_sync(of_row, sum, offset);
  out[at] = power / sum;
}

// A block has 8 warps.
__global__ void softmax_one_barrier_kernel(const float* x, float* out, int columns) {
  __shared__ float of_warp[8];
  int64_t at = int64_t(blockIdx.x) * columns + threadIdx.x;
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  bool inside = threadIdx.x < columns;
  float value = inside ? x[at] : -INFINITY;
  float largest = max_over_warp(value);
  if (lane == 0) of_warp[warp] = largest;
  __syncthreads();  // the maxima are written
  largest = max_over_warp(lane < 8 ? of_warp[lane] : -INFINITY);
  float power = expf(value - largest), sum = sum_over_warp(power);
  if (lane == 0) of_warp[warp] = sum;
  __syncthreads();  // the sums are written
  sum = sum_over_warp(lane < 8 ? of_warp[lane] : 0);
  if (inside) out[at] = power / sum;
}

// A block is a warp.
__global__ void softmax_online_kernel(const float* x, float* out, int columns) {
  int64_t row = int64_t(blockIdx.x) * columns;
  float largest = -INFINITY, sum = 0;  // of the elements that this lane has seen
  for (int c = threadIdx.x; c < columns; c += 32) {
    float before = largest;
    largest = fmaxf(largest, x[row + c]);
    sum = sum * expf(before - largest) + expf(x[row + c] - largest);
  }
  float of_row = max_over_warp(largest);
  sum = sum_over_warp(sum * expf(largest - of_row));
  for (int c = threadIdx.x; c < columns; c += 32)
    out[row + c] = expf(x[row + c] - of_row) / sum;
}

// -------------------------------------------------------------------------------------
// Launchers

// Calls launch(x, out, rows, columns, stream) with pointers, for x of shape [rows,
// columns] with 1 to `most` columns.
template <typename Launch>
Tensor by_rows(const Tensor& x, int64_t most, Launch launch) {
  ladder::check_input(x, "x", torch::headeronly::ScalarType::Float);
  STD_TORCH_CHECK(x.dim() == 2 && x.size(1) >= 1 && x.size(1) <= most,
                  "x must be a matrix of 1 to ", most, " columns, got shape ",
                  ladder::shape_of(x));
  Tensor out = torch::stable::empty_like(x);
  auto guard = ladder::on_device_of(x);
  if (x.numel() == 0) return out;
  launch(x.const_data_ptr<float>(), out.mutable_data_ptr<float>(), x.size(0), x.size(1),
         ladder::current_stream(x));
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

Tensor softmax_partial(const Tensor& x) {
  return by_rows(x, 32, [](auto x, auto out, auto rows, auto columns, auto stream) {
    softmax_partial_kernel<<<rows, 32, 0, stream>>>(x, out, columns);
  });
}

Tensor softmax_one_barrier(const Tensor& x) {
  return by_rows(x, 256, [](auto x, auto out, auto rows, auto columns, auto stream) {
    softmax_one_barrier_kernel<<<rows, 256, 0, stream>>>(x, out, columns);
  });
}

Tensor softmax_online(const Tensor& x) {
  return by_rows(x, 1 << 30,
                 [](auto x, auto out, auto rows, auto columns, auto stream) {
                   softmax_online_kernel<<<rows, 32, 0, stream>>>(x, out, columns);
                 });
}

// -------------------------------------------------------------------------------------
// Registration

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("softmax_partial(Tensor x) -> Tensor");
  m.def("softmax_one_barrier(Tensor x) -> Tensor");
  m.def("softmax_online(Tensor x) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("softmax_partial", TORCH_BOX(&softmax_partial));
  m.impl("softmax_one_barrier", TORCH_BOX(&softmax_one_barrier));
  m.impl("softmax_online", TORCH_BOX(&softmax_online));
}
