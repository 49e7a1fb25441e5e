// matmul_bias_gelu.cu: Bias and GELU in the epilogue. Exercise 3 of lesson 10, about 30 minutes.
//
// `y = gelu(a @ b + bias)` in one kernel. The kernel of `matmul/10_mma.cu` calls an
// epilogue with the sums of its tensor cores, in float registers, before it rounds and
// stores them. Write one: add the column's element of `bias`, then apply `gelu_tanh`.
// An element of bias serves all rows: read it once; `ladder::widened` makes it a float.
//
// Check this file with: python -m helpers check matmul_bias_gelu
//
// [hints]
// - The epilogue that changes nothing is Identity, in kernels/matmul/10_mma.cu. Yours
//   has three loops: over columns (s), rows (r) and i. Put the loop over s outside:
//   each s needs two elements of bias.
// - ladder::widened converts an element of bias to float.
// - A tile may reach past the last column. The kernel stores nothing outside y, but you
//   must guard the reads of bias.
// - Unroll the loops with #pragma unroll: the indices become constants, and only then
//   the array stays in registers.
// [end]

#include <torch/csrc/stable/library.h>

#include "gelu.h"

#define LADDER_NO_OPERATORS
#include "../matmul/10_mma.cu"

using ladder::gelu_tanh;
using torch::headeronly::BFloat16;
using torch::headeronly::Half;

// -------------------------------------------------------------------------------------
// Epilogue

// [cell]
// sum[r][s][2 * i + j] belongs to column + 8 * s + j of n, whatever r and i are; i and
// j are 0 or 1.
template <typename T>
struct BiasGelu {
  const T* bias;  // n elements

  template <int rows, int columns>
  __device__ void apply(float (&sum)[rows][columns][4], int column, int n) const {
    // [solution: about 13 lines]
#pragma unroll
    for (int s = 0; s < columns; ++s) {
      int at = column + 8 * s;
      float bias0 = at < n ? ladder::widened(bias[at]) : 0,
            bias1 = at + 1 < n ? ladder::widened(bias[at + 1]) : 0;
#pragma unroll
      for (int r = 0; r < rows; ++r) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          sum[r][s][2 * i] = gelu_tanh(sum[r][s][2 * i] + bias0);
          sum[r][s][2 * i + 1] = gelu_tanh(sum[r][s][2 * i + 1] + bias1);
        }
      }
    }
    // [end]
  }
};
// [end]

// -------------------------------------------------------------------------------------
// Launcher

Tensor matmul_bias_gelu(const Tensor& a, const Tensor& b, const Tensor& bias) {
  ladder::MatmulSizes size =
      ladder::check_matmul<Half, BFloat16>(a, b, ladder::Layout::row_major);
  ladder::check_input(bias, "bias", a.scalar_type());
  STD_TORCH_CHECK(bias.dim() == 1 && bias.size(0) == size.n,
                  "bias must have one element for each of the ", size.n,
                  " columns of b, got shape ", ladder::shape_of(bias));
  auto guard = ladder::on_device_of(a);
  ladder::check_tensor_cores();
  Tensor y = torch::stable::new_empty(a, {size.m, size.n});
  if (y.numel() == 0) return y;  // with k = 0 the sums are 0, but they exist
  auto run = [&](auto type) {
    using T = ladder::Device<decltype(type)>;
    auto launch = best_launcher<T, BiasGelu<T>>();
    auto elements = [](const Tensor& t) {
      return static_cast<const T*>(t.const_data_ptr());
    };
    launch(elements(a), elements(b), static_cast<T*>(y.mutable_data_ptr()), size,
           ladder::current_stream(a), {elements(bias)});
  };
  if (a.scalar_type() == ladder::kDtype<Half>) {
    run(Half());
  } else {
    run(BFloat16());
  }
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("matmul_bias_gelu(Tensor a, Tensor b, Tensor bias) -> Tensor");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("matmul_bias_gelu", TORCH_BOX(&matmul_bias_gelu));
}
