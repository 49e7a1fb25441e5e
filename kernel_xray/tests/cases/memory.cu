// memory.cu: constant and device variables, vector types, and the ways to load and store.
#include <cuda_fp16.h>

#include "case.h"

// ------------------------------------------------------------------------------------------------------------------
// Constant memory and device variables

struct Filter {
  float weight[4];
  int shift;
};

__constant__ float coefficients[8];
__constant__ Filter filter;
__constant__ int primes[5] = {2, 3, 5, 7, 11};
__device__ int counter = 40;
__device__ float table[4];
static __device__ int next_counter() { return atomicAdd(&counter, 1); }

__global__ void constants_kernel(float* out) {
  const int i = threadIdx.x;
  out[i] = coefficients[i % 8] + filter.weight[i % 4] * filter.shift + primes[i % 5];
  if (i < 4) table[i] = out[i] * 2.0f;
  next_counter();
}

CASE(constants) {
  std::vector<float> host(8);
  for (int i = 0; i < 8; ++i) host[i] = 0.5f * i;
  EXPECT_SUCCESS(cudaMemcpyToSymbol(coefficients, host.data(), 8 * sizeof(float)));
  const float patch[2] = {100.0f, 200.0f};  // over elements 3 and 4, by the offset in bytes
  EXPECT_SUCCESS(cudaMemcpyToSymbol(coefficients, patch, sizeof(patch), 3 * sizeof(float), cudaMemcpyHostToDevice));
  const Filter value{{1.0f, 2.0f, 3.0f, 4.0f}, 10};
  EXPECT_SUCCESS(cudaMemcpyToSymbol(filter, &value, sizeof(value)));
  constants_kernel<<<1, 16>>>(call.data<float>(0));
  int seen = 0;
  EXPECT_SUCCESS(cudaMemcpyFromSymbol(&seen, counter, sizeof(seen)));
  EXPECT(seen == 40 + 16);
  seen = 40;
  EXPECT_SUCCESS(cudaMemcpyToSymbolAsync(counter, &seen, sizeof(seen), 0, cudaMemcpyHostToDevice, nullptr));
  void* address = nullptr;
  size_t bytes = 0;
  EXPECT_SUCCESS(cudaGetSymbolAddress(&address, table));
  EXPECT_SUCCESS(cudaGetSymbolSize(&bytes, table));
  EXPECT(bytes == 4 * sizeof(float));
  EXPECT_SUCCESS(cudaMemcpy(call.data<float>(1), address, bytes, cudaMemcpyDeviceToDevice));
}

// ------------------------------------------------------------------------------------------------------------------
// Vector types

static_assert(sizeof(float2) == 8 && sizeof(float3) == 12 && sizeof(float4) == 16 && sizeof(double2) == 16);
static_assert(sizeof(int4) == 16 && sizeof(uchar4) == 4 && sizeof(short2) == 4 && sizeof(ulonglong2) == 16);
static_assert(alignof(float2) == 8 && alignof(float3) == 4 && alignof(float4) == 16 && alignof(uchar4) == 4);
static_assert(alignof(int2) == 8 && alignof(uint4) == 16 && alignof(char2) == 2 && alignof(double2) == 16);

__global__ void vectors_kernel(const float4* in, float4* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 v = in[i];
  const float2 sums = make_float2(v.x + v.y, v.z + v.w);
  v.x = sums.x;
  v.w = sums.y;
  out[i] = v;
  const float4 copy = reinterpret_cast<const float4*>(in)[i];
  reinterpret_cast<float*>(out + n + i)[0] = copy.w;
  reinterpret_cast<float2*>(out + n + i)[1] = float2{copy.y, copy.x};
  (&out[n + i].x)[1] = float(sizeof(copy));
}

CASE(vectors) { vectors_kernel<<<2, 16>>>(call.data<float4>(0), call.data<float4>(1), call.size(0) / 4); }

// One value of each family, built and taken apart.
__global__ void makers_kernel(double* out) {
  const char4 c = make_char4(1, -2, 3, -4);
  const uchar3 uc = make_uchar3(250, 5, 6);
  const short4 s = make_short4(-7, 8, 9, 10);
  const ushort2 us = make_ushort2(60000, 12);
  const int3 i = make_int3(13, -14, 15);
  const uint4 u = make_uint4(4000000000u, 17, 18, 19);
  const long2 l = make_long2(20, 21);
  const longlong2 ll = make_longlong2(1ll << 40, 23);
  const ulonglong3 ull = make_ulonglong3(24, 25, 27);
  const float1 f1 = make_float1(28.5f);
  const float3 f3 = make_float3(29.5f, 30.5f, 31.5f);
  const double2 d = make_double2(32.25, 33.25);
  const double3 d3 = make_double3(34, 35, 36);
  store_all(out, c.x, c.w, uc.x, uc.z, s.x, s.w, us.x, i.y, i.z, u.x, u.w, l.y, ll.x, ull.z, f1.x, f3.x, f3.z, d.x, d.y,
            d3.z);
}

CASE(makers) { makers_kernel<<<1, 1>>>(call.data<double>(0)); }

// A user-defined struct with the alignment of a vector access.
template <typename T, int N>
struct alignas(sizeof(T) * N) Pack {
  T value[N];
};
struct __align__(16) Padded {
  float x, y, z;
};
static_assert(sizeof(Padded) == 16 && alignof(Pack<short, 8>) == 16);

__global__ void packs_kernel(const short* in, short* out, int packs) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= packs) return;
  auto pack = reinterpret_cast<const Pack<short, 8>*>(in)[i];
#pragma unroll
  for (int k = 0; k < 8; ++k) pack.value[k] = static_cast<short>(pack.value[k] * 2);
  reinterpret_cast<Pack<short, 8>*>(out)[i] = pack;
}

CASE(packs) { packs_kernel<<<1, 32>>>(call.data<short>(0), call.data<short>(1), call.size(0) / 8); }

// Pairs in memory, 8 halves to a 16-byte access; and a shuffle of halves.
__global__ void axpy_kernel(const __half2* x, __half2* y, __half scale, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = __hfma2(__half2half2(scale), x[i], y[i]);
}

__global__ void wide_copy_kernel(const __half* in, __half* out) {
  const uint4 bits = reinterpret_cast<const uint4*>(in)[threadIdx.x];
  const __half2* pairs = reinterpret_cast<const __half2*>(&bits);
  for (int k = 0; k < 4; ++k) {
    out[8 * threadIdx.x + 2 * k] = __low2half(pairs[k]);
    out[8 * threadIdx.x + 2 * k + 1] = __shfl_sync(0xffffffffu, __high2half(pairs[k]), 31 - int(threadIdx.x));
  }
}

CASE(half_memory) {
  const int n = call.size(0) / 2;
  axpy_kernel<<<(n + 31) / 32, 32>>>(call.data<__half2>(0), call.data<__half2>(1), __float2half(0.5f), n);
  wide_copy_kernel<<<1, 32>>>(call.data<__half>(0), call.data<__half>(2));
}

// ------------------------------------------------------------------------------------------------------------------
// Loads and stores with a cache hint: out[k * n + i] = in[i] + k for load k, then the four stores.

__global__ void hints_kernel(const float* __restrict__ in, float* __restrict__ out, const int4* __restrict__ wide,
                             int4* wide_out, int n) {
  const int i = threadIdx.x;
  const float loads[] = {__ldg(in + i),  __ldg(&in[i]),  __ldcs(in + i), __ldcg(in + i),
                         __ldca(in + i), __ldlu(in + i), __ldcv(in + i)};
  for (int k = 0; k < 7; ++k) out[k * n + i] = loads[k] + k;
  __stcs(out + 7 * n + i, in[i] + 7.0f);
  __stcg(out + 8 * n + i, in[i] + 8.0f);
  __stwb(out + 9 * n + i, in[i] + 9.0f);
  __stwt(out + 10 * n + i, in[i] + 10.0f);
  int4 v = i % 2 ? __ldg(wide + i) : __ldcs(wide + i);
  v.y += 1;
  __stcs(wide_out + i, v);
}

CASE(hints) {
  hints_kernel<<<1, call.size(0)>>>(call.data<float>(0), call.data<float>(1), call.data<int4>(2), call.data<int4>(3),
                                    call.size(0));
}

// ------------------------------------------------------------------------------------------------------------------
// The kernel's own memory: local arrays, malloc and new on the device, memcpy and memset, placement of a pointer.

struct Node {
  int value;
  Node* next;
};

__global__ void allocate_kernel(int* out) {
  const int i = threadIdx.x;
  Node* head = nullptr;
  for (int k = 0; k <= i; ++k) head = new Node{k, head};
  int sum = 0;
  while (head != nullptr) {
    Node* next = head->next;
    sum += head->value;
    delete head;
    head = next;
  }
  int* block = static_cast<int*>(malloc(8 * sizeof(int)));
  memset(block, 0, 8 * sizeof(int));
  int local[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  memcpy(block + 2, local, 4 * sizeof(int));
  for (int k = 0; k < 8; ++k) sum += 100 * block[k];
  free(block);
  out[i] = sum;
}

CASE(allocate) { allocate_kernel<<<1, 40>>>(call.data<int>(0)); }

// Clocks and waiting: time does not run backwards, and a wait ends.
__global__ void clocks_kernel(int* out) {
  const long long before = clock64();
  const clock_t ticks = clock();
  __nanosleep(100);
  out[0] = clock64() >= before;
  out[1] = clock() - ticks >= 0;
}

CASE(clocks) { clocks_kernel<<<1, 1>>>(call.data<int>(0)); }
