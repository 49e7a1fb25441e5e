// blend.cu: Blend two tensors of any floating dtype. Exercise 1 of lesson 03, about 10 minutes.
//
// out = a + weight * (b - a), one thread per element, for float64, float32, float16 and bfloat16. Convert what you read
// to wide_t, compute in it, and round once, when you store: so float64 is computed in float64 (or gradcheck would
// fail), and the 16-bit types in float32. It moves 3 * sizeof(scalar_t) bytes per element, in one pass where a chain of
// PyTorch operators would take three.
//
// Check this file with: python -m helpers check blend

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

// a, b, out: n elements of scalar_t each.
template <typename scalar_t>
__global__ void blend_kernel(const scalar_t* a, const scalar_t* b, double weight, scalar_t* out, int64_t n) {
  using wide_t = typename Wide<scalar_t>::type;  // double for double, otherwise float
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  // YOUR CODE HERE: about 3 lines
}

// ---------------------------------------------------------------------------------------------------------------------
// Launcher

template <typename scalar_t>
void start(const Tensor& a, const Tensor& b, double weight, const Tensor& out) {
  int64_t n = a.numel();
  blend_kernel<scalar_t><<<ladder::ceil_div(n, kThreads), kThreads, 0, ladder::current_stream(a)>>>(
      a.const_data_ptr<scalar_t>(), b.const_data_ptr<scalar_t>(), weight, out.mutable_data_ptr<scalar_t>(), n);
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

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) { m.def("blend(Tensor a, Tensor b, float weight, Tensor(a!) out) -> ()"); }
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) { m.impl("blend", TORCH_BOX(&blend)); }
