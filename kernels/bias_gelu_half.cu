// bias_gelu_half.cu: out = gelu_tanh(x + bias), two elements at a time: for 16-bit
// types a step towards 16 bytes.
//
// It moves the 2sMN + sN bytes of bias_gelu.cu, half as many for halves as for floats.
// But a warp that reads one half per lane requests 64 bytes, two sectors per load
// instruction, half of what it requests with floats: the number of requests limits it.
// Here a thread takes two neighbours, 4 bytes of halves, in one access. They are
// converted to float for the arithmetic and rounded once, when they are stored: store
// narrow, compute wide.
//
//   bias_gelu_pairs   one thread per two elements; pairs may cross the end of a row, so
//                     any number of columns is right

#include <torch/csrc/stable/library.h>

#include "bias_gelu.h"
#include "vector.h"

using ladder::ceil_div;
using ladder::Wide;
using torch::stable::Tensor;

constexpr int kThreads = 256;  // per block

// Two neighbours. Their address must be a multiple of their size.
template <typename T>
using Pair = ladder::Vector<T, 2 * sizeof(T)>;

// -------------------------------------------------------------------------------------
// Kernel

// Store narrow, compute wide: T is the type in memory, Wide<T> the type in registers.
template <typename T>
__device__ T bias_gelu(T x, T bias) {
  return T(ladder::gelu_tanh(Wide<T>(x) + Wide<T>(bias)));
}

// x, out: n elements, row by row; bias: columns elements. The first `pairs` threads
// take two elements each; the next threads take the elements that are left, one each:
// the last of an odd number, or all if x begins off a pair's boundary.
template <typename T>
__global__ void bias_gelu_pairs_kernel(const T* __restrict__ x,
                                       const T* __restrict__ bias, T* __restrict__ out,
                                       int64_t n, int64_t pairs, int64_t columns) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < pairs) {
    Pair<T> pair = Pair<T>::load(x, i);
    int64_t column = 2 * i % columns;
    pair.at[0] = bias_gelu(pair.at[0], bias[column]);
    // May be in the next row.
    pair.at[1] = bias_gelu(pair.at[1], bias[column + 1 < columns ? column + 1 : 0]);
    pair.store(out, i);
    return;
  }
  int64_t j = 2 * pairs + (i - pairs);
  if (j < n) {
    out[j] = bias_gelu(x[j], bias[j % columns]);
  }
}

// -------------------------------------------------------------------------------------
// Launcher

template <typename T>
void launch(const Tensor& x, const Tensor& bias, Tensor& out, int64_t columns) {
  const T* px = x.const_data_ptr<T>();
  T* po = out.mutable_data_ptr<T>();
  int64_t n = x.numel(),
          pairs = ladder::all_aligned_to(2 * sizeof(T), px, po) ? n / 2 : 0;
  bias_gelu_pairs_kernel<<<ceil_div(n - pairs, kThreads), kThreads, 0,
                           ladder::current_stream(x)>>>(px, bias.const_data_ptr<T>(),
                                                        po, n, pairs, columns);
}

Tensor bias_gelu_pairs(const Tensor& x, const Tensor& bias) {
  int64_t columns = ladder::check_x_and_bias(x, bias).columns;
  auto guard = ladder::on_device_of(x);
  Tensor out = torch::stable::empty_like(x);
  if (x.numel() == 0) return out;  // a grid of 0 blocks is an error
  FOR_FLOATING_DTYPE(x.scalar_type(), [&] { launch<scalar_t>(x, bias, out, columns); });
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

// -------------------------------------------------------------------------------------
// Registration: torch.ops.<name given to load>.bias_gelu_pairs(x, bias), for CUDA
// tensors

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("bias_gelu_pairs(Tensor x, Tensor bias) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("bias_gelu_pairs", TORCH_BOX(&bias_gelu_pairs));
}
