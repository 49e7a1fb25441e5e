// vector_add.cu: out = a + b for float32 tensors of one shape.
//
// For each element it reads 4 bytes of a and 4 of b and writes 4 of out: 12 bytes moved
// for one addition. By its data sheet an H200 could do 80 additions in the time that 12
// bytes take: what limits it is memory bandwidth.
//
//   1. vector_add_simple       one thread per element
//   2. vector_add_grid_stride  as many threads as the GPU can hold; each goes through
//      the elements in equal strides
//   3. vector_add              one thread per four elements: 16 bytes per access, so
//      fewer requests for the same bytes

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include "launch.h"

using ladder::ceil_div;
using torch::stable::Tensor;

// Per block: 8 warps; any multiple of 32 from 128 to 512 is about as fast.
constexpr int kThreads = 256;

// -------------------------------------------------------------------------------------
// Kernels. a, b, out: n floats each.

// 1. Thread i adds element i. The last block has threads past the end, which must do
//    nothing.
__global__ void vector_add_simple_kernel(const float* a, const float* b, float* out,
                                         int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = a[i] + b[i];
  }
}

// 2. Thread i adds elements i, i + stride, i + 2 * stride, ... The stride is the number
//    of threads: any grid is right.
__global__ void vector_add_grid_stride_kernel(const float* a, const float* b,
                                              float* out, int64_t n) {
  int64_t stride = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
    out[i] = a[i] + b[i];
  }
}

// 3. Thread i adds elements 4i to 4i + 3; the next threads add the n % 4 elements that
//    are left, one each. All three
// pointers must be multiples of 16 bytes. __restrict__ promises that out overlaps
// neither a nor b.
__global__ void vector_add_kernel(const float* __restrict__ a,
                                  const float* __restrict__ b, float* __restrict__ out,
                                  int64_t n) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  int64_t vectors = n / 4;
  if (i < vectors) {
    float4 x = reinterpret_cast<const float4*>(a)[i];
    float4 y = reinterpret_cast<const float4*>(b)[i];
    reinterpret_cast<float4*>(out)[i] =
        make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
  } else if (i < vectors + n % 4) {
    int64_t j = 4 * vectors + (i - vectors);
    out[j] = a[j] + b[j];
  }
}

// -------------------------------------------------------------------------------------
// Launchers

struct Operands {
  const float *a, *b;
  float* out;
  int64_t n;
};

// Checks the arguments, makes the output, and calls launch(operands, stream) unless
// there is nothing to do.
template <typename Launch>
Tensor checked_add(const Tensor& a, const Tensor& b, Launch launch) {
  ladder::check_input(a, "a", torch::headeronly::ScalarType::Float);
  ladder::check_input(b, "b", torch::headeronly::ScalarType::Float);
  ladder::check_same(a, "a", b, "b");
  auto guard = ladder::on_device_of(a);
  Tensor out = torch::stable::empty_like(a);
  if (a.numel() == 0) return out;  // a grid of 0 blocks is an error
  launch(Operands{a.const_data_ptr<float>(), b.const_data_ptr<float>(),
                  out.mutable_data_ptr<float>(), a.numel()},
         ladder::current_stream(a));
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

Tensor vector_add_simple(const Tensor& a, const Tensor& b) {
  return checked_add(a, b, [](Operands o, cudaStream_t stream) {
    vector_add_simple_kernel<<<ceil_div(o.n, kThreads), kThreads, 0, stream>>>(
        o.a, o.b, o.out, o.n);
  });
}

void launch_grid_stride(Operands o, cudaStream_t stream) {
  int device, sms;
  STD_CUDA_CHECK(cudaGetDevice(&device));
  STD_CUDA_CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
  // An SM holds 2,048 threads (1,536 on some GPUs).
  int64_t resident = int64_t(sms) * (2048 / kThreads);
  int64_t blocks =
      ceil_div(o.n, kThreads) < resident ? ceil_div(o.n, kThreads) : resident;
  vector_add_grid_stride_kernel<<<blocks, kThreads, 0, stream>>>(o.a, o.b, o.out, o.n);
}

Tensor vector_add_grid_stride(const Tensor& a, const Tensor& b) {
  return checked_add(a, b, launch_grid_stride);
}

Tensor vector_add(const Tensor& a, const Tensor& b) {
  return checked_add(a, b, [](Operands o, cudaStream_t stream) {
    bool aligned = ladder::aligned_to_16(o.a) && ladder::aligned_to_16(o.b) &&
                   ladder::aligned_to_16(o.out);
    // a slice such as x[1:] begins off a 16-byte boundary.
    if (!aligned) return launch_grid_stride(o, stream);
    vector_add_kernel<<<ceil_div(o.n / 4 + o.n % 4, kThreads), kThreads, 0, stream>>>(
        o.a, o.b, o.out, o.n);
  });
}

// -------------------------------------------------------------------------------------
// Registration: torch.ops.<name given to load>.vector_add(a, b), for CUDA tensors

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("vector_add_simple(Tensor a, Tensor b) -> Tensor");
  m.def("vector_add_grid_stride(Tensor a, Tensor b) -> Tensor");
  m.def("vector_add(Tensor a, Tensor b) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("vector_add_simple", TORCH_BOX(&vector_add_simple));
  m.impl("vector_add_grid_stride", TORCH_BOX(&vector_add_grid_stride));
  m.impl("vector_add", TORCH_BOX(&vector_add));
}
