// swiglu.cu: A gated layer, 16 bytes per access. Exercise 3 of lesson 06, about 20 minutes.
//
// Each row of `x` has 2 N elements: N gates, then N values. `out[r, c] = silu(x[r, c])
// * x[r, N + c]` has N columns, as in the feed-forward layer of many language models;
// `silu(g) = g / (1 + exp(-g))`. The types are float32, float16 and bfloat16; compute
// in float. A thread moves vectors of 16 bytes where rows and addresses allow it;
// otherwise the same code moves single elements.
//
// Check this file with: python -m helpers check swiglu
//
// [hints]
// - All indices count vectors: out has row_vectors of them in a row, x has 2 *
//   row_vectors. In which row is vector i of out, and where in that row? Divide, and
//   take the remainder.
// - V::load(p, k) reads vector k of p, v.at[j] is its element j, below V::size, and
//   v.store(p, k) writes it.
// - Two loads, a loop over j that computes in float, one store. The values may be
//   overwritten with the results.
// [end]

#include <torch/csrc/stable/library.h>

#include "launch.h"
#include "vector.h"

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

constexpr int kThreads = 256;  // per block

// -------------------------------------------------------------------------------------
// Kernel

// [cell]
// x: rows x 2 * row_vectors vectors, in each row the gates first; out: rows x
// row_vectors. Thread i owns vector i of out. A vector has `bytes` bytes: 16, or the
// size of one element.
template <typename T, int bytes>
__global__ void swiglu_kernel(const T* x, T* out, int64_t rows, int64_t row_vectors) {
  using V = ladder::Vector<T, bytes>;
  // [solution: about 9 lines]
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= rows * row_vectors) return;
  int64_t place = i / row_vectors * 2 * row_vectors + i % row_vectors;
  V gates = V::load(x, place), values = V::load(x, place + row_vectors);
  for (int j = 0; j < V::size; ++j) {
    float gate = float(gates.at[j]);
    values.at[j] = T(gate / (1 + expf(-gate)) * float(values.at[j]));
  }
  values.store(out, i);
  // [end]
}
// [end]

// -------------------------------------------------------------------------------------
// Launcher

template <typename T, int bytes>
void start(const T* x, T* out, int64_t rows, int64_t columns, cudaStream_t stream) {
  int64_t row_vectors = columns / ladder::Vector<T, bytes>::size;
  swiglu_kernel<T, bytes>
      <<<ladder::ceil_div(rows * row_vectors, kThreads), kThreads, 0, stream>>>(
          x, out, rows, row_vectors);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

template <typename T>
void start(const Tensor& x, const Tensor& out) {
  const T* px = x.const_data_ptr<T>();
  T* po = out.mutable_data_ptr<T>();
  int64_t rows = out.size(0), columns = out.size(1);
  bool whole =
      columns % ladder::Vector<T>::size == 0 && ladder::all_aligned_to(16, px, po);
  auto* go = whole ? &start<T, 16> : &start<T, sizeof(T)>;
  go(px, po, rows, columns, ladder::current_stream(x));
}

void swiglu(const Tensor& x, Tensor out) {
  ladder::check_input(x, "x", x.scalar_type());
  ladder::check_input(out, "out", x.scalar_type());
  STD_TORCH_CHECK(x.dim() == 2 && x.size(1) % 2 == 0,
                  "x must be a matrix with an even number of columns, got shape ",
                  ladder::shape_of(x));
  STD_TORCH_CHECK(
      out.dim() == 2 && out.size(0) == x.size(0) && 2 * out.size(1) == x.size(1),
      "out must have the rows and half of the columns of x, ", ladder::shape_of(x),
      ", got shape ", ladder::shape_of(out));
  auto guard = ladder::on_device_of(x);
  if (out.numel() == 0) return;
  switch (x.scalar_type()) {
    case ScalarType::Float:
      return start<float>(x, out);
    case ScalarType::Half:
      return start<torch::headeronly::Half>(x, out);
    case ScalarType::BFloat16:
      return start<torch::headeronly::BFloat16>(x, out);
    default:
      STD_TORCH_CHECK(false, "x must be float32, float16 or bfloat16, got ",
                      ladder::dtype_name(x.scalar_type()));
  }
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("swiglu(Tensor x, Tensor(a!) out) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("swiglu", TORCH_BOX(&swiglu));
}
