// names.cu: names and declarations that published programs use and the course does not, as nvcc takes them.
//
// Without PyTorch's headers, which take seconds to compile. A RUN fills `out`, managed memory, and returns a cudaError_t.
#include <cuda_runtime.h>

#if !defined(__CUDA_RUNTIME_H__) || !defined(__DRIVER_TYPES_H__) || !defined(__VECTOR_TYPES_H__)
#error "programs test these macros to see whether CUDA's headers are included"
#endif

#define RUN(name)                                                                            \
  static void name(int* out);                                                                \
  extern "C" __attribute__((visibility("default"))) int run_##name(int* result, int count) { \
    int* out = nullptr;                                                                      \
    if (cudaMallocManaged(&out, count * sizeof(int)) != cudaSuccess) return -1;              \
    for (int i = 0; i < count; ++i) out[i] = 0;                                              \
    name(out);                                                                               \
    const int launched = cudaGetLastError(), done = cudaDeviceSynchronize();                 \
    for (int i = 0; i < count; ++i) result[i] = out[i];                                      \
    cudaFree(out);                                                                           \
    return launched != cudaSuccess ? launched : done;                                        \
  }                                                                                          \
  static void name(int* out)

// ------------------------------------------------------------------------------------------------------------------
// Host variables named like the built-in ones

__global__ void sizes_kernel(int* out) {
  const uint3 thread = threadIdx;
  auto block = blockDim;
  if (thread.x == 0) *out = 100 * gridDim.x + block.x;
}

struct Launcher {
  dim3 gridDim, blockDim;
  explicit Launcher(int threads) : gridDim(2), blockDim(threads) {}
  void operator()(int* out) const { sizes_kernel<<<gridDim, blockDim>>>(out); }
};

template <int blockDim>
__global__ void template_sizes_kernel(int* out) {
  __shared__ int tile[blockDim];
  tile[threadIdx.x] = blockDim + threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = tile[blockDim - 1 - threadIdx.x];
}

#define LAUNCH(gridDim, blockDim, ...) sizes_kernel<<<gridDim, blockDim>>>(__VA_ARGS__)

static int product(int gridDim, const int& blockDim) { return gridDim * blockDim; }

RUN(built_in_names) {
  dim3 blockDim(16), gridDim(3);
  sizes_kernel<<<gridDim, blockDim>>>(out);
  blockDim.x = 8;
  sizes_kernel<<<gridDim, blockDim>>>(out + 1);
  Launcher{4}(out + 2);
  LAUNCH(dim3(1), blockDim, out + 3);
  const int threadIdx = 7;
  const auto plus = [threadIdx, &gridDim](int blockIdx) { return threadIdx + blockIdx + int(gridDim.x); };
  out[4] = plus(1);
  enum { blockIdx = 5 };
  out[5] = product(blockIdx, threadIdx) + sizeof(char[threadIdx]);
  constexpr int threads = 4;
  template_sizes_kernel<threads><<<1, threads>>>(out + 6);
}

// ------------------------------------------------------------------------------------------------------------------
// Shared memory declared outside functions, with the type before the keyword, and by macros

__shared__ int count;
static __shared__ float tile[4][8];
extern __shared__ float dynamic[];

template <int rows, int columns>
__device__ int elements(float (&)[rows][columns]) {
  return rows * columns;
}

__global__ void outer_shared_kernel(int* out) {
  if (threadIdx.x == 0) count = 0;
  tile[threadIdx.x / 8][threadIdx.x % 8] = threadIdx.x;
  dynamic[threadIdx.x] = 2 * threadIdx.x;
  __syncthreads();
  atomicAdd(&count, 3);
  float* row = tile[3];
  __syncthreads();
  if (threadIdx.x == blockIdx.x) out[blockIdx.x] = 100 * count + int(row[threadIdx.x]) + int(dynamic[31]);
  if (threadIdx.x == 0 && blockIdx.x == 0) out[2] = sizeof(tile) + elements(tile);
}

RUN(outer_shared) { outer_shared_kernel<<<2, 32, 32 * sizeof(float)>>>(out); }

#define TILE(T, name) __shared__ T name[32]
#define SHARED __shared__
#ifdef NEVER_DEFINED_BY_ANYONE
#define __shared__
#endif

__global__ void inner_shared_kernel(int* out) {
  TILE(float, low);
  TILE(double, high);
  SHARED int total;
  extern float __shared__ more[];
  volatile __shared__ unsigned flags[2];
  if (threadIdx.x == 0) total = 0;
  low[threadIdx.x] = high[threadIdx.x] = more[threadIdx.x] = threadIdx.x;
  flags[threadIdx.x % 2] = 1;
  __syncthreads();
  atomicAdd(&total, int(low[31 - threadIdx.x] + high[31 - threadIdx.x] + more[31 - threadIdx.x]));
  __syncthreads();
  if (threadIdx.x == 0) *out = total + flags[0] + flags[1];
}

RUN(inner_shared) { inner_shared_kernel<<<1, 32, 32 * sizeof(float)>>>(out); }

// ------------------------------------------------------------------------------------------------------------------
// Launches: as a formatter spaces them, of a kernel that shares its name with a host function, of one that a macro names

__global__ void fill(int* out, int value) { out[threadIdx.x] = value; }
static int fill(int* out) {
  fill<<<1, 1>>>(out, 1);
  return 2;
}

__global__ void fill_int_kernel(int* out) { out[threadIdx.x] = int(INT_MAX % 1000); }  // <limits.h> comes with CUDA's
#define FILL(type) \
  static void fill_##type(int* out) { fill_##type##_kernel<<<1, 2>>>(out); }
FILL(int)

RUN(launches) {
  out[1] = fill(out);
  // clang-format off
  fill << <1, 2 >> > (out + 2, 3);
  fill<<<1, 1
      >> >(out + 4, 4);
  // clang-format on
  fill_int(out + 5);
}

// ------------------------------------------------------------------------------------------------------------------
// An argument with a destructor: copied and destroyed on the host, its bytes copied for each thread

static int copies = 0, alive = 0;

struct Counted {
  int* cell;
  int local = 5;
  explicit Counted(int* cell_) : cell(cell_) { ++alive; }
  Counted(const Counted& other) : cell(other.cell), local(other.local) {
    ++copies;
    ++alive;
    cudaFree(nullptr);  // host code alone may call it
  }
  ~Counted() {
    cudaFree(nullptr);
    --alive;
  }
};

__global__ void counted_kernel(Counted counted, size_t n) {
  counted.local += threadIdx.x;  // in this thread's own copy
  if (threadIdx.x < n) counted.cell[threadIdx.x] = counted.local;
}
template <typename T, typename Argument>
__global__ void counted_template_kernel(T* out, Argument argument) {
  atomicAdd(out, argument.local++);
}

RUN(destructors) {
  {
    Counted counted(out);
    counted_kernel<<<1, 3>>>(counted, 3);
    out[3] = copies;
    counted_template_kernel<<<2, 4>>>(out + 4, counted);
    counted_template_kernel<int, Counted><<<1, 2>>>(out + 5, Counted(out));
    out[6] = counted.local;
  }
  out[7] = alive;
}

// ------------------------------------------------------------------------------------------------------------------
// assert follows NDEBUG at the last inclusion of its header

#define NDEBUG
#include <assert.h>
__device__ int unchecked(int value) {
  assert(value == 1);
  return value;
}
#undef NDEBUG
#include <cassert>
__global__ void assert_kernel(int* out) {
  assert(threadIdx.x < 32);
  out[0] = unchecked(2);
}

RUN(assertions) { assert_kernel<<<1, 32>>>(out); }

// ------------------------------------------------------------------------------------------------------------------
// A name that C++20 adds: nvcc's default is C++17

#if __cplusplus < 202002L
__host__ __device__ inline float lerp(float a, float b, float t) { return a + t * (b - a); }
#endif

RUN(standard) {
  out[0] = __cplusplus / 100;
  out[1] = int(lerp(2.f, 6.f, 0.5f));
}
