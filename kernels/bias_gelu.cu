// bias_gelu.cu: out = gelu_tanh(x + bias), and its gradients, one element at a time,
// for float64, float32, float16 and bfloat16.
//
// x has M rows and N columns of s bytes; bias, N elements, is added to each row.
// PyTorch's gelu(x + bias) runs two kernels, which read x, write the sum, read it and
// write the result: 4sMN bytes. One kernel moves 2sMN + sN. Backward in PyTorch reads
// grad and the sum, writes grad_x, and reads it again for grad_bias, the sum over its
// rows: 4sMN. One pass that keeps the sums in registers moves 3sMN, plus 8PN for P rows
// of partial sums, written and read.
//
//   bias_gelu_simple            one thread per element
//   bias_gelu_backward_simple   a block per band of rows and strip of 32 columns; then
//                               a block per 32 sums
//
// What limits it: with one element per access, too few bytes are in flight.
// bias_gelu_float4.cu moves 16 bytes per access, and is the one to use.

#include <torch/csrc/stable/library.h>

#include <tuple>

#include "bias_gelu.h"

using ladder::ceil_div;
using ladder::Wide;
using torch::stable::Tensor;

constexpr int kThreads = 256;  // per block, forward
// Per block, backward: a warp per row, a lane per column.
constexpr int kColumns = 32, kRows = 8;
constexpr int64_t kBlocks = 2112;  // wanted, backward: 16 for each of an H200's 132 SMs

// -------------------------------------------------------------------------------------
// Kernels. x, grad, out, grad_x: n = rows * columns elements, row by row; bias: columns
// elements.

template <typename T>
__global__ void bias_gelu_simple_kernel(const T* x, const T* bias, T* out, int64_t n,
                                        int64_t columns) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = T(ladder::gelu_tanh(Wide<T>(x[i]) + Wide<T>(bias[i % columns])));
  }
}

// Block (bx, by) owns columns 32 bx to 32 bx + 31 of rows by * band to (by + 1) * band
// - 1. parts: gridDim.y x columns; the block writes the sums over its rows to row by.
template <typename T>
__global__ void bias_gelu_backward_simple_kernel(const T* grad, const T* x,
                                                 const T* bias, T* grad_x,
                                                 Wide<T>* parts, int64_t rows,
                                                 int64_t columns, int64_t band) {
  __shared__ Wide<T> sums[kRows][kColumns];
  int64_t column = int64_t(blockIdx.x) * kColumns + threadIdx.x;
  int64_t first = int64_t(blockIdx.y) * band,
          end = first + band < rows ? first + band : rows;
  Wide<T> sum = 0;
  if (column < columns) {
    Wide<T> b = Wide<T>(bias[column]);  // serves all rows of the band
    for (int64_t row = first + threadIdx.y; row < end; row += kRows) {
      int64_t i = row * columns + column;
      Wide<T> g = Wide<T>(grad[i]) * ladder::gelu_tanh_slope(Wide<T>(x[i]) + b);
      grad_x[i] = T(g);
      sum += g;
    }
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();  // all partial sums are written
  if (threadIdx.y == 0 && column < columns) {
    for (int k = 1; k < kRows; ++k) sum += sums[k][threadIdx.x];
    parts[blockIdx.y * columns + column] = sum;
  }
}

// -------------------------------------------------------------------------------------
// Launchers

Tensor bias_gelu_simple(const Tensor& x, const Tensor& bias) {
  int64_t columns = ladder::check_x_and_bias(x, bias).columns, n = x.numel();
  auto guard = ladder::on_device_of(x);
  Tensor out = torch::stable::empty_like(x);
  if (n == 0) return out;  // a grid of 0 blocks is an error
  FOR_FLOATING_DTYPE(x.scalar_type(), [&] {
    bias_gelu_simple_kernel<<<ceil_div(n, kThreads), kThreads, 0,
                              ladder::current_stream(x)>>>(
        x.const_data_ptr<scalar_t>(), bias.const_data_ptr<scalar_t>(),
        out.mutable_data_ptr<scalar_t>(), n, columns);
  });
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

template <typename T>
void launch_backward(const Tensor& grad, const Tensor& x, const Tensor& bias,
                     Tensor& grad_x, Tensor& grad_bias, ladder::Matrix m) {
  int64_t strips = ceil_div(m.columns, kColumns);
  ladder::Bands bands = ladder::bands_for(m.rows, strips, kRows, kBlocks);
  Tensor parts = torch::stable::new_empty(x, {bands.count, m.columns},
                                          ladder::wide_dtype(x.scalar_type()));
  if (bands.count > 0) {
    bias_gelu_backward_simple_kernel<<<dim3(strips, bands.count), dim3(kColumns, kRows),
                                       0, ladder::current_stream(x)>>>(
        grad.const_data_ptr<T>(), x.const_data_ptr<T>(), bias.const_data_ptr<T>(),
        grad_x.mutable_data_ptr<T>(), parts.mutable_data_ptr<Wide<T>>(), m.rows,
        m.columns, bands.rows);
    STD_CUDA_KERNEL_LAUNCH_CHECK();
  }
  ladder::sum_parts<T>(parts, grad_bias, bands.count);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

std::tuple<Tensor, Tensor> bias_gelu_backward_simple(const Tensor& grad,
                                                     const Tensor& x,
                                                     const Tensor& bias) {
  ladder::Matrix matrix = ladder::check_backward(grad, x, bias);
  auto guard = ladder::on_device_of(x);
  Tensor grad_x = torch::stable::empty_like(x),
         grad_bias = torch::stable::empty_like(bias);
  if (matrix.columns == 0) return {grad_x, grad_bias};
  FOR_FLOATING_DTYPE(x.scalar_type(), [&] {
    launch_backward<scalar_t>(grad, x, bias, grad_x, grad_bias, matrix);
  });
  return {grad_x, grad_bias};
}

// -------------------------------------------------------------------------------------
// Registration: torch.ops.<name given to load>.bias_gelu_simple(x, bias), for CUDA
// tensors

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("bias_gelu_simple(Tensor x, Tensor bias) -> Tensor");
  m.def(
      "bias_gelu_backward_simple(Tensor grad, Tensor x, Tensor bias) -> (Tensor, "
      "Tensor)");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("bias_gelu_simple", TORCH_BOX(&bias_gelu_simple));
  m.impl("bias_gelu_backward_simple", TORCH_BOX(&bias_gelu_backward_simple));
}
