// Kernels whose traffic is counted by hand in test_xray.py. The lines that are looked at are marked with a name.
#include <cuda_bf16.h>
#include <mma.h>
#include <torch/csrc/stable/ops.h>

#include <functional>

#include "../cases/case.h"

using torch::stable::Tensor;

// Lane i reads and writes element i * stride + offset of a type of 1 to 16 bytes, if i < lanes.
template <typename T>
__global__ void global_kernel(const T* a, T* c, int stride, int offset, int lanes) {
  if (threadIdx.x < lanes) {
    T value = a[threadIdx.x * stride + offset];  // <- load
    c[threadIdx.x * stride + offset] = value;    // <- store
  }
}

__global__ void gather_kernel(const float* a, const int* index, float* c) {
  int from = index[threadIdx.x];  // <- index
  float value = a[from];          // <- gather
  c[threadIdx.x] = value;
}

template <typename T>
__device__ T made_of(int i) {
  T value{};
  *reinterpret_cast<unsigned char*>(&value) = i;
  return value;
}

// Fills an array in shared memory; then lane i reads element (i / divide % modulus) * stride + offset, if i < lanes.
template <typename T>
__global__ void shared_kernel(T* c, int stride, int offset, int lanes, int divide, int modulus) {
  __shared__ T buffer[16384 / sizeof(T)];
  for (int i = threadIdx.x; i < 16384 / sizeof(T); i += 32) buffer[i] = made_of<T>(i);  // <- fill
  __syncwarp();
  if (threadIdx.x < lanes) {
    T value = buffer[threadIdx.x / divide % modulus * stride + offset];  // <- read
    c[threadIdx.x] = value;
  }
}

template <int Width>
__global__ void transpose_kernel(const float* a, float* c) {
  __shared__ float tile[32][Width];
  tile[threadIdx.y][threadIdx.x] = a[threadIdx.y * 32 + threadIdx.x];  // <- rows
  __syncthreads();
  c[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];  // <- columns
}

__global__ void atomic_kernel(float* sum, int* count) {
  atomicAdd(sum, 1.0f);               // <- atomic_float
  atomicAdd(&count[threadIdx.x], 1);  // <- atomic_int
}

__global__ void diverge_kernel(float* c) {
  if (threadIdx.x % 4 == 0) {
    c[threadIdx.x] = 1.0f;  // <- quarter
  } else {
    c[threadIdx.x] = 2.0f;  // <- rest
  }
  c[threadIdx.x + 32] = 3.0f;  // <- together
}

// In each of 800 rounds one lane goes through a branch of some blocks; the records of the lanes end in different rounds.
__global__ void rounds_kernel(const float* a, float* c) {
  float largest = 0, factor = 1;
  for (int i = 0; i < 800; ++i) {
    float value = a[i * 32 + threadIdx.x];  // <- round
    if (value > largest) {
      for (int k = 0; k < 3; ++k) factor *= largest + k;
      largest = value;
    }
    factor += value;
  }
  c[threadIdx.x] = factor;  // <- after_rounds
}

// Lane i goes round i + 1 times; all lanes go on together afterwards.
__global__ void trips_kernel(const float* a, float* c) {
  float sum = 0;
  for (int i = 0; i <= threadIdx.x; ++i) {
    sum += a[i];  // <- trip
  }
  c[threadIdx.x] = sum;  // <- after
}

__device__ __attribute__((noinline)) float twice(const float* a, int i) {
  float value = a[i];  // <- in_function
  return 2 * value;
}

__global__ void call_kernel(const float* a, float* c) {
  float sum = 0;
  if (threadIdx.x < 8) sum += twice(a, threadIdx.x);
  sum += twice(a, threadIdx.x + 32);
  c[threadIdx.x] = sum;  // <- after_call
}

// Copies of vector types, and of a struct that has their size but not their alignment.
__global__ void scale_kernel(const float4* a, float4* c) {
  float4 value = a[threadIdx.x];
  value.x *= 2;
  c[threadIdx.x] = value;
}
__global__ void swap_kernel(const float4* a, float4* c) {
  const float4 value = __ldg(a + threadIdx.x);
  c[threadIdx.x] = {value.w, value.z, value.y, value.x};
}
__global__ void pair_kernel(const float2* a, float2* c) {
  const float2 value = a[threadIdx.x];
  c[threadIdx.x] = make_float2(value.y + 1, value.x);
}
struct Particle {
  float x, y, z, mass;
};
__global__ void particle_kernel(const Particle* a, Particle* c) { c[threadIdx.x] = a[threadIdx.x]; }

// Numbers of 16 bits that are read to be passed by value, to functions as a learner writes them: not inline.
__device__ float widened(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ __nv_bfloat16 twice(__nv_bfloat16 x) { return __float2bfloat16(2 * __bfloat162float(x)); }
__global__ void by_value_kernel(const __nv_bfloat16* a, float* c) {
  float sum = widened(a[threadIdx.x]);         // <- by_value
  sum += widened(twice(a[threadIdx.x + 32]));  // <- by_value_again
  c[threadIdx.x] = sum;
}

// Writes 32 elements, and then reads them and 32 others twice.
__global__ void again_kernel(const float* a, float* c) {
  c[threadIdx.x] = 1;
  for (int k = 0; k < 2; ++k) c[threadIdx.x] += a[threadIdx.x];
}

// Block b multiplies b + 1 pairs of tiles.
__global__ void product_kernel(const __half* a, float* c) {
  using namespace nvcuda;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::load_matrix_sync(left, a, 16);
  wmma::load_matrix_sync(right, a, 16);
  wmma::fill_fragment(sum, 0.0f);
  for (int i = 0; i <= blockIdx.x; ++i) wmma::mma_sync(sum, left, right, sum);
  wmma::store_matrix_sync(c + 256 * blockIdx.x, sum, 16, wmma::mem_row_major);
}

// Two results of special-function units a thread; those of expf, which is not an intrinsic, are not known.
__global__ void special_kernel(const float* a, float* c) {
  c[threadIdx.x] = __fdividef(1.0f, __expf(a[threadIdx.x])) + expf(a[threadIdx.x]);
}

// The warps of a block update one word twice, and 32 others once. Other atomics depend on how threads are scheduled.
__global__ void updates_kernel(float* sum, int* counts) {
  atomicAdd(sum, 1.0f);
  atomicMax(counts, 1);
  atomicMax(counts, 2);
  atomicAdd(&counts[threadIdx.x % 32], 1);
  for (int i = 0; i < 9; ++i) {
    atomicAdd(counts + 1, 0);
    atomicExch(counts + 2, i);
    atomicCAS(counts + 3, i, i);
  }
}

// Block b reads one row of 32 elements of its own or, if they are uneven, b + 1.
__global__ void rows_kernel(const float* a, float* c, bool uneven) {
  float sum = 0;
  for (int row = 0; row <= (uneven ? blockIdx.x : 0); ++row) sum += a[(4 * blockIdx.x + row) * 32 + threadIdx.x];
  c[blockIdx.x * 32 + threadIdx.x] = sum;
}

// A large grid, for sampling.
__global__ void many_kernel(float* c) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  c[i] = i;  // <- many
}

// ---------------------------------------------------------------------------------------------------------------

template <typename T>
static T* data(const Tensor& t) {
  return static_cast<T*>(t.data_ptr());
}

// Calls launch with a value of the type that has `size` bytes.
template <typename Launch>
static void for_size(int64_t size, Launch launch) {
  if (size == 1) launch(char{});
  if (size == 2) launch(short{});
  if (size == 4) launch(float{});
  if (size == 8) launch(float2{});
  if (size == 16) launch(float4{});
}

void global_memory(const Tensor& a, const Tensor& c, int64_t size, int64_t stride, int64_t offset, int64_t lanes) {
  for_size(size, [&](auto element) {
    using T = decltype(element);
    global_kernel<T><<<1, 32>>>(data<T>(a), data<T>(c), stride, offset, lanes);
  });
}
void shared_memory(const Tensor& c, int64_t size, int64_t stride, int64_t offset, int64_t lanes, int64_t divide,
                   int64_t modulus) {
  for_size(size, [&](auto element) {
    using T = decltype(element);
    shared_kernel<T><<<1, 32>>>(data<T>(c), stride, offset, lanes, divide, modulus);
  });
}
void gather(const Tensor& a, const Tensor& index, const Tensor& c) {
  gather_kernel<<<1, 32>>>(data<float>(a), data<int>(index), data<float>(c));
}
void transpose(const Tensor& a, const Tensor& c, int64_t width) {
  if (width == 33)
    transpose_kernel<33><<<1, dim3(32, 32)>>>(data<float>(a), data<float>(c));
  else
    transpose_kernel<32><<<1, dim3(32, 32)>>>(data<float>(a), data<float>(c));
}
void run(const Tensor& a, const Tensor& c, int64_t which) {
  const std::function<void()> launches[] = {
      [&] { atomic_kernel<<<1, 32>>>(data<float>(a), data<int>(c)); },
      [&] { diverge_kernel<<<1, 32>>>(data<float>(c)); },
      [&] { trips_kernel<<<1, 32>>>(data<float>(a), data<float>(c)); },
      [&] { call_kernel<<<1, 32>>>(data<float>(a), data<float>(c)); },
      [&] { many_kernel<<<c.numel() / 32, 32>>>(data<float>(c)); },
      [&] { scale_kernel<<<1, 32>>>(data<float4>(a), data<float4>(c)); },
      [&] { swap_kernel<<<1, 32>>>(data<float4>(a), data<float4>(c)); },
      [&] { pair_kernel<<<1, 32>>>(data<float2>(a), data<float2>(c)); },
      [&] { particle_kernel<<<1, 32>>>(data<Particle>(a), data<Particle>(c)); },
      [&] { by_value_kernel<<<1, 32>>>(data<__nv_bfloat16>(a), data<float>(c)); },
      [&] { again_kernel<<<1, 32>>>(data<float>(a), data<float>(c)); },
      [&] { product_kernel<<<3, 32>>>(data<__half>(a), data<float>(c)); },
      [&] { special_kernel<<<1, 64>>>(data<float>(a), data<float>(c)); },
      [&] {
        int sms = 0;
        cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0);
        many_kernel<<<sms, 32>>>(data<float>(c));
      },
      [&] { updates_kernel<<<2, 96>>>(data<float>(a), data<int>(c)); },
      [&] { rows_kernel<<<4, 32>>>(data<float>(a), data<float>(c), false); },
      [&] { rows_kernel<<<4, 32>>>(data<float>(a), data<float>(c), true); },
      [&] { rounds_kernel<<<1, 32>>>(data<float>(a), data<float>(c)); },
  };
  launches[which]();
}

OPERATOR(global_memory, global_memory, "(Tensor a, Tensor(a!) c, int size, int stride, int offset, int lanes) -> ()")
OPERATOR(shared_memory, shared_memory,
         "(Tensor(a!) c, int size, int stride, int offset, int lanes, int divide=1, int modulus=32) -> ()")
OPERATOR(gather, gather, "(Tensor a, Tensor index, Tensor(a!) c) -> ()")
OPERATOR(transpose, transpose, "(Tensor a, Tensor(a!) c, int width) -> ()")
OPERATOR(run, run, "(Tensor a, Tensor(a!) c, int which) -> ()")
