// atomics.cu: every atomic function for every type that has it, on global and on shared memory.
#include <cuda/atomic>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "case.h"

// ------------------------------------------------------------------------------------------------------------------
// Arithmetic: 4 blocks of 50 threads work on the same cells. `cells` hold initial values; thread t uses cell t % 7.

template <typename T>
__global__ void add_kernel(T* cells) {
  __shared__ T shared[1];
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x == 0) shared[0] = T(0);
  __syncthreads();
  atomicAdd(&cells[0], T(t % 7));
  atomicAdd(shared, T(1));
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(cells + 1, shared[0]);
}

CASE(add) {
  with_type<int, unsigned, unsigned long long, float, double, __half, __nv_bfloat16>(
      call.number(0), [&](auto zero) { add_kernel<<<4, 50>>>(call.data<decltype(zero)>(0)); });
}

// Two halves in one atomic.
__global__ void add_pairs_kernel(__half2* halves, __nv_bfloat162* bfloats) {
  atomicAdd(halves, __floats2half2_rn(1.0f, 0.5f));
  atomicAdd(bfloats, __floats2bfloat162_rn(2.0f, 0.25f));
}

CASE(add_pairs) { add_pairs_kernel<<<2, 20>>>(call.data<__half2>(0), call.data<__nv_bfloat162>(1)); }

// Two or four floats, since compute capability 9.0.
__global__ void add_vectors_kernel([[maybe_unused]] float2* twos, [[maybe_unused]] float4* fours) {
#if defined(__SIMT__) || !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  atomicAdd(twos, make_float2(1, 2));
  float before = atomicAdd(fours + 1, make_float4(1, 2, 3, 4)).w;
  atomicMax(reinterpret_cast<int*>(fours), int(before));
#endif
}

CASE(add_vectors) { add_vectors_kernel<<<2, 20>>>(call.data<float2>(0), call.data<float4>(1)); }

// Cells: sub, min, max, exchange's survivors, and, or, xor.
template <typename T>
__global__ void integer_kernel(T* cells) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  atomicMin(&cells[0], T(1000 - t));
  atomicMax(&cells[1], T(t - 100));
  atomicAnd(&cells[2], ~(T(1) << t % 20));
  atomicOr(&cells[3], T(1) << t % 20);
  atomicXor(&cells[4], T(t));
}

CASE(integers) {
  with_type<int, unsigned, long long, unsigned long long>(
      call.number(0), [&](auto zero) { integer_kernel<<<4, 50>>>(call.data<decltype(zero)>(0)); });
}

// ------------------------------------------------------------------------------------------------------------------
// What each call returns: the old value.

// Tickets: each of 200 threads draws a distinct number from each counter; a row of 200 per counter.
__global__ void tickets_kernel(int* out, int* ints, unsigned* unsigneds, unsigned long long* longs, float* floats) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  out[t] = atomicAdd(ints, 1);
  out[200 + t] = atomicSub(ints + 1, 1);
  out[400 + t] = int(atomicInc(unsigneds, 1000u));
  out[600 + t] = int(atomicDec(unsigneds + 1, 1000u));
  out[800 + t] = int(atomicAdd(longs, 1ull));
  out[1000 + t] = int(atomicAdd(floats, 1.0f));
  atomicInc(unsigneds + 2, 6u);  // wraps after 6
  atomicDec(unsigneds + 3, 6u);  // wraps below 0
}

CASE_OF(tickets, 4, 50)

// A chain of exchanges: every value put in comes out once; the last one stays.
template <typename T>
__global__ void exchange_kernel(T* cell, T* out) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  out[t] = atomicExch(cell, T(t + 1));
}

CASE(exchange) {
  exchange_kernel<<<4, 50>>>(call.data<int>(0), call.data<int>(1));
  exchange_kernel<<<4, 50>>>(call.data<unsigned long long>(2), call.data<unsigned long long>(3));
  exchange_kernel<<<4, 50>>>(call.data<float>(4), call.data<float>(5));
}

// Compare and swap: the loop that builds any other atomic, here a product and a maximum of floats.
__device__ void atomic_multiply(double* address, double factor) {
  unsigned long long* bits = reinterpret_cast<unsigned long long*>(address);
  unsigned long long old = *bits, assumed;
  do {
    assumed = old;
    old = atomicCAS(bits, assumed, __double_as_longlong(__longlong_as_double(assumed) * factor));
  } while (assumed != old);
}

__device__ float atomic_max(float* address, float value) {
  int* bits = reinterpret_cast<int*>(address);
  int old = *bits;
  while (value > __int_as_float(old)) {
    const int assumed = old;
    old = atomicCAS(bits, assumed, __float_as_int(value));
    if (old == assumed) break;
  }
  return __int_as_float(old);
}

__global__ void swap_kernel(double* product, float* maximum, unsigned short* small, int* failed) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  atomic_multiply(product, t % 4 == 0 ? 2.0 : 1.0);
  atomic_max(maximum, float((t * 37) % 101));
  atomicCAS(small, static_cast<unsigned short>(t), static_cast<unsigned short>(t + 1));
  if (atomicCAS(failed, 12345, 0) != 12345) atomicAdd(failed + 1, 1);
}

CASE_OF(swap, 1, 40)

// The scoped forms, and 'the last block to finish sums up' with its fences.
__global__ void last_block_kernel(const float* in, float* partial, unsigned* arrived, float* out, int* scoped) {
  __shared__ bool last;
  atomicAdd_block(scoped, 1);
  atomicAdd_system(scoped, 1);
  atomicMax_block(scoped + 1, int(threadIdx.x));
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = in[blockIdx.x] * in[blockIdx.x];
    __threadfence();
    last = atomicAdd(arrived, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    __threadfence();
    float sum = 0.0f;
    for (unsigned b = 0; b < gridDim.x; ++b) sum += static_cast<volatile float*>(partial)[b];
    *out = sum;
    *arrived = 0;
  }
  __threadfence_block();
  __threadfence_system();
}

CASE_OF(last_block, call.size(0), 8)

#if CUDART_VERSION >= 12080
// nvcc's built-in functions: an update of each kind, a loop of exchanges, and a lock, which guards cells[7].
struct Pair {
  int a, b;
};
__global__ void built_ins_kernel(int* cells, float* sum, unsigned long long* bits, Pair* pairs, int* lock) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  __nv_atomic_fetch_add(&cells[0], 1, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
  __nv_atomic_sub(&cells[1], 2, __NV_ATOMIC_RELAXED);
  __nv_atomic_max(&cells[2], t, __NV_ATOMIC_RELAXED);
  __nv_atomic_min(&cells[3], t, __NV_ATOMIC_RELAXED);
  __nv_atomic_and(&cells[4], ~(1 << t % 3), __NV_ATOMIC_RELAXED);
  __nv_atomic_xor(&cells[5], t, __NV_ATOMIC_RELAXED);
  __nv_atomic_add(sum, 1, __NV_ATOMIC_RELAXED);
  __nv_atomic_or(bits, 1ull << (t % 64), __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_SYSTEM);
  int before = __nv_atomic_load_n(&cells[6], __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
  while (!__nv_atomic_compare_exchange_n(&cells[6], &before, before + 3, true, __NV_ATOMIC_RELAXED, __NV_ATOMIC_RELAXED,
                                         __NV_THREAD_SCOPE_DEVICE)) {
  }
  int one = 1, taken;
  for (bool done = false; !done;) {
    __nv_atomic_exchange(lock, &one, &taken, __NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_DEVICE);
    if (taken) continue;
    cells[7] += 1;
    __nv_atomic_store_n(lock, 0, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_DEVICE);
    done = true;
  }
  Pair pair;
  __nv_atomic_load(&pairs[0], &pair, __NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_BLOCK);
  if (t == 0) __nv_atomic_store(&pairs[1], &pair, __NV_ATOMIC_RELAXED);
  const cuda::atomic_ref<Pair, cuda::thread_scope_device> third(pairs[2]);
  Pair now = third.load();
  while (!third.compare_exchange_weak(now, Pair{now.a + 1, now.b + 2})) {
  }
  __nv_atomic_thread_fence(__NV_ATOMIC_SEQ_CST, __NV_THREAD_SCOPE_DEVICE);
}

CASE_OF(built_ins, 4, 50)
#endif
