// blend.cu: Blend two tensors of any floating dtype. Exercise 1 of lesson 03, about 10 minutes.
//
// `out = a + weight * (b - a)`, one thread per element, for float64, float32, float16
// and bfloat16. Convert each value that you read to `Wide<T>`, compute in it, and round
// once, when you store: then float64 is computed in float64 (gradcheck needs that), and
// the 16-bit types in float32. The kernel moves `3 * sizeof(T)` bytes per element;
// PyTorch's three operators, one after the other, move 8 times `sizeof(T)`.
//
// Check this file with: python -m helpers check blend
//
// [hints]
// - Wide<T>(a[i]) converts a value after reading, T(value) before storing.
// - weight is a double. Used as it is, it turns the rest of the expression into double,
//   which a GPU computes slowly: convert it to Wide<T> too.
// - In float16, 60000 - (-60000) is inf: the largest finite value is 65504. Is b - a
//   computed from converted numbers?
// [end]

#include <torch/csrc/stable/library.h>

#include <type_traits>

#include "launch.h"

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

constexpr int kThreads = 256;  // per block

// The type to compute in: T itself, but float for the 16-bit types, which would round
// after every step.
template <typename T>
using Wide = std::conditional_t<(sizeof(T) < 4), float, T>;

// -------------------------------------------------------------------------------------
// Kernel

// [cell]
// a, b, out: n elements of T each. Wide<T> is float for the 16-bit types, otherwise T.
template <typename T>
__global__ void blend_kernel(const T* a, const T* b, double weight, T* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  // [solution: about 3 lines]
  Wide<T> from = Wide<T>(a[i]), to = Wide<T>(b[i]);
  Wide<T> value = from + Wide<T>(weight) * (to - from);
  out[i] = T(value);
  // [end]
}
// [end]

// -------------------------------------------------------------------------------------
// Launcher

template <typename T>
void start(const Tensor& a, const Tensor& b, double weight, const Tensor& out) {
  int64_t n = a.numel();
  blend_kernel<T>
      <<<ladder::ceil_div(n, kThreads), kThreads, 0, ladder::current_stream(a)>>>(
          a.const_data_ptr<T>(), b.const_data_ptr<T>(), weight,
          out.mutable_data_ptr<T>(), n);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

void blend(const Tensor& a, const Tensor& b, double weight, Tensor out) {
  ladder::check_input(a, "a", a.scalar_type());
  ladder::check_input(b, "b", a.scalar_type());
  ladder::check_input(out, "out", a.scalar_type());
  ladder::check_same(a, "a", b, "b");
  ladder::check_same(a, "a", out, "out");
  auto guard = ladder::on_device_of(a);
  if (a.numel() == 0) return;
  switch (a.scalar_type()) {
    case ScalarType::Double:
      return start<double>(a, b, weight, out);
    case ScalarType::Float:
      return start<float>(a, b, weight, out);
    case ScalarType::Half:
      return start<torch::headeronly::Half>(a, b, weight, out);
    case ScalarType::BFloat16:
      return start<torch::headeronly::BFloat16>(a, b, weight, out);
    default:
      STD_TORCH_CHECK(false, "a must be float64, float32, float16 or bfloat16, got ",
                      ladder::dtype_name(a.scalar_type()));
  }
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("blend(Tensor a, Tensor b, float weight, Tensor(a!) out) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("blend", TORCH_BOX(&blend));
}
