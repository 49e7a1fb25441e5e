// register_mutation.cu: Say what is written. Exercise 1 of lesson 12, about 5 minutes.
//
// The operator adds `factor * y` to `x` in place and returns nothing. Its schema says
// that x and y are only read. So `torch.compile` assumes that the call has no effect
// and drops it, and autograd does not know that x has changed. Write the schema that is
// true, and that claims no more than what is true.
//
// Check this file with: python -m helpers check register_mutation
//
// [hints]
// - An argument that is written to has the type Tensor(a!): the letter names the
//   memory, the ! says that it changes.
// - The letter without the ! says only that a result may be a view of the argument.
//   Here there is no result.
// - y is only read. If it were declared as written, PyTorch would copy it, or refuse
//   it, for no reason.
// [end]

#include <torch/csrc/stable/library.h>

#include "launch.h"

using torch::stable::Tensor;

constexpr int kThreads = 256;  // per block

// -------------------------------------------------------------------------------------
// Kernel and launcher

__global__ void add_scaled_kernel(float* x, const float* y, float factor, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) x[i] += factor * y[i];
}

void register_mutation(Tensor x, const Tensor& y, double factor) {
  ladder::check_input(x, "x", torch::headeronly::ScalarType::Float);
  ladder::check_input(y, "y", torch::headeronly::ScalarType::Float);
  ladder::check_same(x, "x", y, "y");
  auto guard = ladder::on_device_of(x);
  int64_t n = x.numel();
  if (n == 0) return;
  add_scaled_kernel<<<ladder::ceil_div(n, kThreads), kThreads, 0,
                      ladder::current_stream(x)>>>(
      x.mutable_data_ptr<float>(), y.const_data_ptr<float>(), float(factor), n);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

// -------------------------------------------------------------------------------------
// Registration

// [cell]
// The schema: what the operator promises to do with its arguments.
STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  // Not true.
  const char* schema = "register_mutation(Tensor x, Tensor y, float factor) -> ()";
  // [solution: about 1 line]
  schema = "register_mutation(Tensor(a!) x, Tensor y, float factor) -> ()";
  // [end]
  m.def(schema);
}
// [end]

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("register_mutation", TORCH_BOX(&register_mutation));
}
