// museum/bounds.cu: accesses outside a tensor or off their alignment; each bug has a
// fixed twin. Do not use.
//
//   guard_off_by_one    the guard is i <= n
//   vector_guard        the guard counts elements, the access takes four
//   load_before_guard   eight halves are loaded before the guard is tested
//   vector_misaligned   a slice that begins off a 16-byte boundary is read 16 bytes at
//                       a time
//   negative_index      an index of -1 is the last element in Python, but the one
//                       before the first here
//   int_overflow        row * columns is computed in 32 bits
//
// The arrow marks where a tool finds the bug, which need not be where the mistake is.

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include "exhibits.h"

using ladder::ceil_div;
using torch::headeronly::ScalarType;
using torch::stable::Tensor;

constexpr int kThreads = 128;

__device__ inline int64_t thread_index() {
  return int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
}

// -------------------------------------------------------------------------------------
// guard_off_by_one: out[i] = value, n floats, 4 bytes each

__global__ void guard_off_by_one_kernel(float* out, float value, int64_t n) {
  int64_t i = thread_index();
  if (i <= n) {
    out[i] = value;  // <- out-of-bounds
  }
}

__global__ void guard_off_by_one_fixed_kernel(float* out, float value, int64_t n) {
  int64_t i = thread_index();
  if (i < n) {
    out[i] = value;
  }
}

// -------------------------------------------------------------------------------------
// vector_guard, vector_misaligned: out[i] = 2 * a[i], n floats, 8 bytes moved per
// element

__device__ inline float4 twice(float4 v) {
  return make_float4(2 * v.x, 2 * v.y, 2 * v.z, 2 * v.w);
}

__global__ void vector_guard_kernel(const float* a, float* out, int64_t n) {
  int64_t i = 4 * thread_index();
  if (i < n) {
    float4 v = *reinterpret_cast<const float4*>(a + i);  // <- out-of-bounds
    *reinterpret_cast<float4*>(out + i) = twice(v);
  }
}

__global__ void vector_guard_fixed_kernel(const float* a, float* out, int64_t n) {
  int64_t i = 4 * thread_index();
  if (i + 4 <= n) {
    float4 v = *reinterpret_cast<const float4*>(a + i);
    *reinterpret_cast<float4*>(out + i) = twice(v);
  } else {
    for (; i < n; ++i) out[i] = 2 * a[i];
  }
}

__global__ void vector_misaligned_kernel(const float* a, float* out, int64_t n) {
  int64_t i = 4 * thread_index();
  if (i + 4 <= n) {
    float4 v = *reinterpret_cast<const float4*>(a + i);  // <- misaligned
    *reinterpret_cast<float4*>(out + i) = twice(v);
  } else {
    for (; i < n; ++i) out[i] = 2 * a[i];
  }
}

__global__ void vector_misaligned_fixed_kernel(const float* a, float* out, int64_t n,
                                               bool aligned) {
  int64_t i = 4 * thread_index();
  if (aligned && i + 4 <= n) {
    float4 v = *reinterpret_cast<const float4*>(a + i);
    *reinterpret_cast<float4*>(out + i) = twice(v);
  } else {
    for (int64_t end = i + 4 < n ? i + 4 : n; i < end; ++i) out[i] = 2 * a[i];
  }
}

// -------------------------------------------------------------------------------------
// load_before_guard: out = a for n / 8 vectors of eight halves, 16 bytes each; vectors
// of zeros are not written

__global__ void load_before_guard_kernel(const uint4* a, uint4* out, int64_t vectors) {
  int64_t i = thread_index();
  uint4 v = a[i];  // <- out-of-bounds
  if ((v.x | v.y | v.z | v.w) != 0 && i < vectors) {
    out[i] = v;
  }
}

__global__ void load_before_guard_fixed_kernel(const uint4* a, uint4* out,
                                               int64_t vectors) {
  int64_t i = thread_index();
  if (i < vectors) {
    uint4 v = a[i];
    if ((v.x | v.y | v.z | v.w) != 0) out[i] = v;
  }
}

// -------------------------------------------------------------------------------------
// negative_index: out[i] = a[index[i]], n indices from -size to size - 1

__global__ void negative_index_kernel(const float* a, const int64_t* index, float* out,
                                      int64_t n, int64_t) {
  int64_t i = thread_index();
  if (i < n) {
    out[i] = a[index[i]];  // <- out-of-bounds
  }
}

__global__ void negative_index_fixed_kernel(const float* a, const int64_t* index,
                                            float* out, int64_t n, int64_t size) {
  int64_t i = thread_index();
  if (i < n) {
    int64_t from = index[i] < 0 ? index[i] + size : index[i];
    out[i] = a[from];
  }
}

// -------------------------------------------------------------------------------------
// int_overflow: out[row] = a[row, column] for bytes, one block per row

__global__ void int_overflow_kernel(const uint8_t* a, uint8_t* out, int columns,
                                    int column) {
  int i = blockIdx.x * columns + column;  // 2 * 2^30 is more than an int holds
  out[blockIdx.x] = a[i];                 // <- out-of-bounds
}

__global__ void int_overflow_fixed_kernel(const uint8_t* a, uint8_t* out,
                                          int64_t columns, int64_t column) {
  int64_t i = blockIdx.x * columns + column;
  out[blockIdx.x] = a[i];
}

// -------------------------------------------------------------------------------------
// Launchers. Each helper checks its tensors and passes pointers, sizes and a stream to
// `launch`.

template <typename Launch>
void fill(Tensor& out, double value, Launch launch) {
  ladder::check_input(out, "out", ScalarType::Float);
  auto guard = ladder::on_device_of(out);
  launch(ceil_div(out.numel(), kThreads), ladder::current_stream(out),
         out.mutable_data_ptr<float>(), float(value), out.numel());
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

void guard_off_by_one(Tensor out, double value) {
  fill(out, value, LAUNCH(guard_off_by_one_kernel, blocks));
}
void guard_off_by_one_fixed(Tensor out, double value) {
  fill(out, value, LAUNCH(guard_off_by_one_fixed_kernel, blocks));
}

template <typename Launch>
Tensor by_fours(const Tensor& a, Launch launch) {
  ladder::check_input(a, "a", ScalarType::Float);
  auto guard = ladder::on_device_of(a);
  Tensor out = torch::stable::empty_like(a);
  launch(ceil_div(ceil_div(a.numel(), 4), kThreads), ladder::current_stream(a),
         a.const_data_ptr<float>(), out.mutable_data_ptr<float>(), a.numel());
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

Tensor vector_guard(const Tensor& a) {
  return by_fours(a, LAUNCH(vector_guard_kernel, blocks));
}
Tensor vector_guard_fixed(const Tensor& a) {
  return by_fours(a, LAUNCH(vector_guard_fixed_kernel, blocks));
}
Tensor vector_misaligned(const Tensor& a) {
  return by_fours(a, LAUNCH(vector_misaligned_kernel, blocks));
}
Tensor vector_misaligned_fixed(const Tensor& a) {
  bool aligned = ladder::aligned_to_16(a.data_ptr());
  return by_fours(a, [aligned](int64_t blocks, cudaStream_t stream, auto... arguments) {
    vector_misaligned_fixed_kernel<<<blocks, kThreads, 0, stream>>>(arguments...,
                                                                    aligned);
  });
}

template <typename Launch>
Tensor by_eights(const Tensor& a, Launch launch) {
  ladder::check_input(a, "a", ScalarType::Half);
  STD_TORCH_CHECK(a.numel() % 8 == 0, "a must have a multiple of 8 elements, got ",
                  a.numel());
  auto guard = ladder::on_device_of(a);
  Tensor out = torch::stable::new_zeros(a, a.sizes());
  int64_t vectors = a.numel() / 8;
  launch(ceil_div(vectors, kThreads), ladder::current_stream(a),
         static_cast<const uint4*>(a.data_ptr()), static_cast<uint4*>(out.data_ptr()),
         vectors);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

Tensor load_before_guard(const Tensor& a) {
  return by_eights(a, LAUNCH(load_before_guard_kernel, blocks));
}
Tensor load_before_guard_fixed(const Tensor& a) {
  return by_eights(a, LAUNCH(load_before_guard_fixed_kernel, blocks));
}

template <typename Launch>
Tensor gather(const Tensor& a, const Tensor& index, Launch launch) {
  ladder::check_input(a, "a", ScalarType::Float);
  ladder::check_input(index, "index", ScalarType::Long);
  auto guard = ladder::on_device_of(a);
  Tensor out = torch::stable::new_empty(a, index.sizes());
  launch(ceil_div(index.numel(), kThreads), ladder::current_stream(a),
         a.const_data_ptr<float>(), index.const_data_ptr<int64_t>(),
         out.mutable_data_ptr<float>(), index.numel(), a.numel());
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

Tensor negative_index(const Tensor& a, const Tensor& index) {
  return gather(a, index, LAUNCH(negative_index_kernel, blocks));
}
Tensor negative_index_fixed(const Tensor& a, const Tensor& index) {
  return gather(a, index, LAUNCH(negative_index_fixed_kernel, blocks));
}

template <typename Launch>
Tensor column_of(const Tensor& a, int64_t column, Launch launch) {
  ladder::check_input(a, "a", ScalarType::Byte);
  auto guard = ladder::on_device_of(a);
  Tensor out = torch::stable::new_empty(a, {a.size(0)});
  launch(a.size(0), ladder::current_stream(a), a.const_data_ptr<uint8_t>(),
         out.mutable_data_ptr<uint8_t>(), a.size(1), column);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

Tensor int_overflow(const Tensor& a, int64_t column) {
  return column_of(a, column,
                   [](int64_t blocks, cudaStream_t stream, auto... arguments) {
                     int_overflow_kernel<<<blocks, 1, 0, stream>>>(arguments...);
                   });
}
Tensor int_overflow_fixed(const Tensor& a, int64_t column) {
  return column_of(a, column,
                   [](int64_t blocks, cudaStream_t stream, auto... arguments) {
                     int_overflow_fixed_kernel<<<blocks, 1, 0, stream>>>(arguments...);
                   });
}

// -------------------------------------------------------------------------------------
// Registration: each exhibit and its fixed twin

#define EXHIBITS(each)                                                       \
  each(guard_off_by_one, "(Tensor(a!) out, float value) -> ()")              \
      each(vector_guard, "(Tensor a) -> Tensor")                             \
          each(vector_misaligned, "(Tensor a) -> Tensor")                    \
              each(load_before_guard, "(Tensor a) -> Tensor")                \
                  each(negative_index, "(Tensor a, Tensor index) -> Tensor") \
                      each(int_overflow, "(Tensor a, int column) -> Tensor")

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) { EXHIBITS(DEFINE); }
STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) { EXHIBITS(IMPLEMENT); }
