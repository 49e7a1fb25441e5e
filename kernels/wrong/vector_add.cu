// wrong/vector_add.cu: vector adds with one fault each, for lesson 01. Do not use.
//
//   add_guard_off_by_one   the bounds check lets one thread past the end
//   add_capped             the number of blocks is capped, and no loop covers the rest
//   add_default_stream     launched on the default stream, not on PyTorch's current one
//   add_chunked            correct, but each thread takes a run of neighbours, so a
//                          warp's accesses are not coalesced
//
// Each writes a + b to out: 12 bytes moved per element.

#include <torch/csrc/stable/library.h>

#include "launch.h"

using ladder::ceil_div;
using torch::stable::Tensor;

constexpr int kThreads = 128;
constexpr int64_t kMaxBlocks = 4096;

// -------------------------------------------------------------------------------------
// Kernels. a, b, out: n floats each.

__global__ void add_guard_off_by_one_kernel(const float* a, const float* b, float* out,
                                            int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i <= n) {
    out[i] = a[i] + b[i];
  }
}

__global__ void add_kernel(const float* a, const float* b, float* out, int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = a[i] + b[i];
  }
}

__global__ void add_chunked_kernel(const float* a, const float* b, float* out,
                                   int64_t n) {
  int64_t chunk = ladder::ceil_div(n, int64_t(gridDim.x) * blockDim.x);
  int64_t first = (int64_t(blockIdx.x) * blockDim.x + threadIdx.x) * chunk;
  for (int64_t i = first; i < first + chunk && i < n; ++i) {
    out[i] = a[i] + b[i];
  }
}

// -------------------------------------------------------------------------------------
// Launchers. The caller passes out, so that a lesson can look at the memory around it.

struct Operands {
  const float *a, *b;
  float* out;
  int64_t n;
};

template <typename Launch>
void checked_add(const Tensor& a, const Tensor& b, Tensor& out, Launch launch) {
  ladder::check_input(a, "a", torch::headeronly::ScalarType::Float);
  ladder::check_input(b, "b", torch::headeronly::ScalarType::Float);
  ladder::check_input(out, "out", torch::headeronly::ScalarType::Float);
  ladder::check_same(a, "a", b, "b");
  ladder::check_same(a, "a", out, "out");
  auto guard = ladder::on_device_of(a);
  if (a.numel() == 0) return;
  launch(Operands{a.const_data_ptr<float>(), b.const_data_ptr<float>(),
                  out.mutable_data_ptr<float>(), a.numel()},
         ladder::current_stream(a));
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

void add_guard_off_by_one(const Tensor& a, const Tensor& b, Tensor out) {
  checked_add(a, b, out, [](Operands o, cudaStream_t stream) {
    add_guard_off_by_one_kernel<<<ceil_div(o.n, kThreads), kThreads, 0, stream>>>(
        o.a, o.b, o.out, o.n);
  });
}

void launch_capped(Operands o, cudaStream_t stream) {
  int64_t blocks = ceil_div(o.n, kThreads);
  if (blocks > kMaxBlocks) blocks = kMaxBlocks;
  add_kernel<<<blocks, kThreads, 0, stream>>>(o.a, o.b, o.out, o.n);
}

void add_capped(const Tensor& a, const Tensor& b, Tensor out) {
  checked_add(a, b, out, launch_capped);
}

void launch_on_default_stream(Operands o, cudaStream_t) {
  add_kernel<<<ceil_div(o.n, kThreads), kThreads>>>(o.a, o.b, o.out, o.n);
}

void add_default_stream(const Tensor& a, const Tensor& b, Tensor out) {
  checked_add(a, b, out, launch_on_default_stream);
}

void add_chunked(const Tensor& a, const Tensor& b, Tensor out) {
  checked_add(a, b, out, [](Operands o, cudaStream_t stream) {
    add_chunked_kernel<<<ceil_div(o.n, 16 * kThreads), kThreads, 0, stream>>>(
        o.a, o.b, o.out, o.n);
  });
}

// -------------------------------------------------------------------------------------
// Registration

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("add_guard_off_by_one(Tensor a, Tensor b, Tensor(c!) out) -> ()");
  m.def("add_capped(Tensor a, Tensor b, Tensor(c!) out) -> ()");
  m.def("add_default_stream(Tensor a, Tensor b, Tensor(c!) out) -> ()");
  m.def("add_chunked(Tensor a, Tensor b, Tensor(c!) out) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("add_guard_off_by_one", TORCH_BOX(&add_guard_off_by_one));
  m.impl("add_capped", TORCH_BOX(&add_capped));
  m.impl("add_default_stream", TORCH_BOX(&add_default_stream));
  m.impl("add_chunked", TORCH_BOX(&add_chunked));
}
