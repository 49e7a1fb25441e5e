// silu_mul_backward.cu: Fuse its gradients. Exercise 3 of lesson 03, about 30 minutes.
//
// out = silu(a) * b with silu(a) = a * sigmoid(a). From grad, the gradient of out, compute both grad_a and grad_b in
// one pass, for float64, float32, float16 and bfloat16; in wide_t, each result rounded once. Derive silu'(a) on paper
// first. Before you start, count: how many times sizeof(scalar_t) must move per element?
//
// Check this file with: python -m helpers check silu_mul_backward

#include <torch/csrc/stable/library.h>

#include "launch.h"

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

constexpr int kThreads = 256;  // per block

// What to compute in: float for the 16-bit types, which would round after every step; otherwise the type itself.
template <typename scalar_t>
struct Wide {
  using type = float;
};
template <>
struct Wide<double> {
  using type = double;
};

// ---------------------------------------------------------------------------------------------------------------------
// Kernel

// grad, a, b, grad_a, grad_b: n elements of scalar_t each. The last two are to be written.
template <typename scalar_t>
__global__ void silu_mul_backward_kernel(const scalar_t* grad, const scalar_t* a, const scalar_t* b, scalar_t* grad_a,
                                         scalar_t* grad_b, int64_t n) {
  using wide_t = typename Wide<scalar_t>::type;  // double for double, otherwise float
  // YOUR CODE HERE: about 8 lines
}

// ---------------------------------------------------------------------------------------------------------------------
// Launcher

template <typename scalar_t>
void start(const Tensor& grad, const Tensor& a, const Tensor& b, const Tensor& grad_a, const Tensor& grad_b) {
  int64_t n = a.numel();
  silu_mul_backward_kernel<scalar_t><<<ladder::ceil_div(n, kThreads), kThreads, 0, ladder::current_stream(a)>>>(
      grad.const_data_ptr<scalar_t>(), a.const_data_ptr<scalar_t>(), b.const_data_ptr<scalar_t>(),
      grad_a.mutable_data_ptr<scalar_t>(), grad_b.mutable_data_ptr<scalar_t>(), n);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

void silu_mul_backward(const Tensor& grad, const Tensor& a, const Tensor& b, Tensor grad_a, Tensor grad_b) {
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
  m.def("silu_mul_backward(Tensor grad, Tensor a, Tensor b, Tensor(a!) grad_a, Tensor(b!) grad_b) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) { m.impl("silu_mul_backward", TORCH_BOX(&silu_mul_backward)); }
