// validation/access.cu: micro-kernels that make one memory access per lane, in a pattern given as integers.
//
// ncu counts them on a GPU, the simulator on a CPU. They make no other access: a loaded value is compared with one that
// memory never holds, so the compiler cannot drop the load, and nothing is stored.
//
//   micro_global_load, micro_global_store   element of thread t at index(t) of an array in global memory
//   micro_shared_load, micro_shared_store   the same in a block's 16 KB of shared memory

#include <torch/csrc/stable/library.h>

#include "launch.h"

using torch::stable::Tensor;

// index(t) = offset + ((t / divide * multiply) % modulus ^ flip), in elements, for the threads whose lane is in `lanes`.
struct Pattern {
  unsigned divide, multiply, modulus, flip, offset, lanes;
};

__device__ inline unsigned index_of(Pattern p, unsigned t) {
  return p.offset + ((t / p.divide * p.multiply) % p.modulus ^ p.flip);
}
__device__ inline bool takes_part(Pattern p) { return p.lanes >> (threadIdx.x % 32) & 1; }
__device__ inline unsigned thread_number() { return blockIdx.x * blockDim.x + threadIdx.x; }

constexpr unsigned kNever = 0x5a;  // memory holds zeros

__device__ inline bool is_never(unsigned char v) { return v == kNever; }
__device__ inline bool is_never(unsigned short v) { return v == kNever; }
__device__ inline bool is_never(unsigned v) { return v == kNever; }
__device__ inline bool is_never(uint2 v) { return (v.x ^ v.y) == kNever; }
__device__ inline bool is_never(uint4 v) { return (v.x ^ v.y ^ v.z ^ v.w) == kNever; }

template <typename T>
__device__ inline T some_value() {
  return T(1);
}
template <>
__device__ inline uint2 some_value<uint2>() {
  return make_uint2(1, 1);
}
template <>
__device__ inline uint4 some_value<uint4>() {
  return make_uint4(1, 1, 1, 1);
}

// ---------------------------------------------------------------------------------------------------------------------
// Kernels

template <typename T>
__global__ void micro_global_load_kernel(const T* data, unsigned* sink, Pattern p) {
  if (takes_part(p)) {
    T v = data[index_of(p, thread_number())];
    if (is_never(v)) *sink = 1;
  }
}

template <typename T>
__global__ void micro_global_store_kernel(T* data, Pattern p) {
  if (takes_part(p)) data[index_of(p, thread_number())] = some_value<T>();
}

constexpr unsigned kWords = 4096;  // 16 KB of shared memory

// Every word is written once, by the first 32 threads: 128 requests of one wavefront each. Not unrolled, because nvcc
// would add stores for a remainder that is not there: requests without a lane, which ncu counts.
__device__ inline void clear(unsigned* words) {
  if (threadIdx.x < 32) {
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < kWords; i += 32) words[i] = 0;
  }
  __syncthreads();
}

template <typename T>
__global__ void micro_shared_load_kernel(unsigned* sink, Pattern p) {
  __shared__ uint4 cells[kWords / 4];
  clear(reinterpret_cast<unsigned*>(cells));
  if (takes_part(p)) {
    T v = reinterpret_cast<T*>(cells)[index_of(p, threadIdx.x)];
    if (is_never(v)) *sink = 1;
  }
}

// `never` is false. Without the load, the store could be dropped.
template <typename T>
__global__ void micro_shared_store_kernel(unsigned* sink, Pattern p, bool never) {
  __shared__ uint4 cells[kWords / 4];
  if (takes_part(p)) reinterpret_cast<T*>(cells)[index_of(p, threadIdx.x)] = some_value<T>();
  __syncthreads();
  if (never) *sink = reinterpret_cast<unsigned*>(cells)[threadIdx.x];
}

// ---------------------------------------------------------------------------------------------------------------------
// Launchers. `data` is memory of zeros, at least as much as the pattern reaches; `sink` one int32.

template <typename Function>
void for_size(int64_t bytes, Function function) {
  switch (bytes) {
    case 1:
      return function((unsigned char)0);
    case 2:
      return function((unsigned short)0);
    case 4:
      return function(0u);
    case 8:
      return function(uint2{});
    case 16:
      return function(uint4{});
    default:
      STD_TORCH_CHECK(false, "bytes must be 1, 2, 4, 8 or 16, got ", bytes);
  }
}

Pattern pattern(int64_t divide, int64_t multiply, int64_t modulus, int64_t flip, int64_t offset, int64_t lanes) {
  STD_TORCH_CHECK(divide > 0 && modulus > 0, "divide and modulus must be 1 or more, got ", divide, " and ", modulus);
  return {unsigned(divide), unsigned(multiply), unsigned(modulus), unsigned(flip), unsigned(offset), unsigned(lanes)};
}

void micro_global(Tensor data, Tensor sink, bool store, int64_t bytes, int64_t blocks, int64_t threads, int64_t divide,
                  int64_t multiply, int64_t modulus, int64_t flip, int64_t offset, int64_t lanes) {
  auto guard = ladder::on_device_of(data);
  cudaStream_t stream = ladder::current_stream(data);
  Pattern p = pattern(divide, multiply, modulus, flip, offset, lanes);
  for_size(bytes, [&](auto zero) {
    using T = decltype(zero);
    T* pointer = static_cast<T*>(data.data_ptr());
    if (store) {
      micro_global_store_kernel<<<blocks, threads, 0, stream>>>(pointer, p);
    } else {
      micro_global_load_kernel<<<blocks, threads, 0, stream>>>(static_cast<const T*>(pointer),
                                                               static_cast<unsigned*>(sink.data_ptr()), p);
    }
  });
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

void micro_shared(Tensor sink, bool store, int64_t bytes, int64_t blocks, int64_t threads, int64_t divide,
                  int64_t multiply, int64_t modulus, int64_t flip, int64_t offset, int64_t lanes) {
  auto guard = ladder::on_device_of(sink);
  cudaStream_t stream = ladder::current_stream(sink);
  Pattern p = pattern(divide, multiply, modulus, flip, offset, lanes);
  for_size(bytes, [&](auto zero) {
    using T = decltype(zero);
    unsigned* pointer = static_cast<unsigned*>(sink.data_ptr());
    if (store) {
      micro_shared_store_kernel<T><<<blocks, threads, 0, stream>>>(pointer, p, false);
    } else {
      micro_shared_load_kernel<T><<<blocks, threads, 0, stream>>>(pointer, p);
    }
  });
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

// ---------------------------------------------------------------------------------------------------------------------
// Registration

#define NUMBERS                                                                                                   \
  "bool store, int bytes, int blocks, int threads, int divide, int multiply, int modulus, int flip, int offset, " \
  "int lanes) -> ()"

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def("micro_global(Tensor(a!) data, Tensor(b!) sink, " NUMBERS);
  m.def("micro_shared(Tensor(a!) sink, " NUMBERS);
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("micro_global", TORCH_BOX(&micro_global));
  m.impl("micro_shared", TORCH_BOX(&micro_shared));
}
