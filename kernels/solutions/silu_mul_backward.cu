// silu_mul_backward.cu: Fuse two gradients. Exercise 3 of lesson 03, about 30 minutes.
//
// `out = silu(a) * b` with `silu(a) = a * sigmoid(a)`. From `grad`, the gradient of
// `out`, compute both `grad_a` and `grad_b` in one pass, for float64, float32, float16
// and bfloat16. Compute in `Wide<T>` and round each result once. First derive the
// derivative of silu on paper, and count: how many times `sizeof(T)` must move per
// element?
//
// Check this file with: python -m helpers check silu_mul_backward
//
// [hints]
// - grad_b = grad * silu(a) and grad_a = grad * b * silu'(a): each factor's gradient
//   contains the other factor.
// - With s = sigmoid(a), the derivative of s is s * (1 - s). By the product rule
//   silu'(a) = s + a * s * (1 - s).
// - Read grad, a and b once each, convert them right away, and keep s: both gradients
//   need it. Three tensors are read and two are written, so 5 * sizeof(T) bytes must
//   move.
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
// grad, a, b are read, grad_a, grad_b are written: n elements of T each. Wide<T> is
// float for the 16-bit types, else T.
template <typename T>
__global__ void silu_mul_backward_kernel(const T* grad, const T* a, const T* b,
                                         T* grad_a, T* grad_b, int64_t n) {
  // [solution: about 8 lines]
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Wide<T> g = Wide<T>(grad[i]);
  Wide<T> x = Wide<T>(a[i]);
  Wide<T> y = Wide<T>(b[i]);
  Wide<T> s = 1 / (1 + exp(-x));
  grad_a[i] = T(g * y * s * (1 + x * (1 - s)));
  grad_b[i] = T(g * x * s);
  // [end]
}
// [end]

// -------------------------------------------------------------------------------------
// Launcher

template <typename T>
void start(const Tensor& grad, const Tensor& a, const Tensor& b, const Tensor& grad_a,
           const Tensor& grad_b) {
  int64_t n = a.numel();
  silu_mul_backward_kernel<T>
      <<<ladder::ceil_div(n, kThreads), kThreads, 0, ladder::current_stream(a)>>>(
          grad.const_data_ptr<T>(), a.const_data_ptr<T>(), b.const_data_ptr<T>(),
          grad_a.mutable_data_ptr<T>(), grad_b.mutable_data_ptr<T>(), n);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

void silu_mul_backward(const Tensor& grad, const Tensor& a, const Tensor& b,
                       Tensor grad_a, Tensor grad_b) {
  ladder::check_input(grad, "grad", a.scalar_type());
  ladder::check_input(a, "a", a.scalar_type());
  ladder::check_input(b, "b", a.scalar_type());
  ladder::check_input(grad_a, "grad_a", a.scalar_type());
  ladder::check_input(grad_b, "grad_b", a.scalar_type());
  ladder::check_same(grad, "grad", a, "a");
  ladder::check_same(b, "b", a, "a");
  ladder::check_same(grad_a, "grad_a", a, "a");
  ladder::check_same(grad_b, "grad_b", b, "b");
  auto guard = ladder::on_device_of(a);
  if (a.numel() == 0) return;
  switch (a.scalar_type()) {
    case ScalarType::Double:
      return start<double>(grad, a, b, grad_a, grad_b);
    case ScalarType::Float:
      return start<float>(grad, a, b, grad_a, grad_b);
    case ScalarType::Half:
      return start<torch::headeronly::Half>(grad, a, b, grad_a, grad_b);
    case ScalarType::BFloat16:
      return start<torch::headeronly::BFloat16>(grad, a, b, grad_a, grad_b);
    default:
      STD_TORCH_CHECK(false, "a must be float64, float32, float16 or bfloat16, got ",
                      ladder::dtype_name(a.scalar_type()));
  }
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def(
      "silu_mul_backward(Tensor grad, Tensor a, Tensor b, Tensor(a!) grad_a, "
      "Tensor(b!) grad_b) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("silu_mul_backward", TORCH_BOX(&silu_mul_backward));
}
