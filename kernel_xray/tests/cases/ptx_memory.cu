// ptx_memory.cu: loads, stores, atomics, cp.async and mbarriers of inline PTX.
#include <cuda_fp16.h>

#include "case.h"

// Each load reads from the same 32 bytes and stores what it got; the test compares rows.
__global__ void loads_kernel(const uint8_t* bytes, uint64_t* d) {
  uint32_t w[4];
  uint64_t l[2];
  uint16_t h[4];
  float f[4];
  double g;
  asm("ld.global.u8 %0, [%1];" : "=r"(w[0]) : "l"(bytes + 1));
  asm("ld.global.s8 %0, [%1+3];" : "=r"(w[1]) : "l"(bytes));
  asm("ld.global.nc.u16 %0, [%1 + 2];" : "=h"(h[0]) : "l"(bytes));
  asm("ld.global.s16 %0, [%1];" : "=r"(w[2]) : "l"(bytes + 6));
  asm("ld.global.ca.L2::128B.s8 %0, [%1+-4];" : "=l"(l[0]) : "l"(bytes + 7));
  *d++ = w[0], *d++ = w[1], *d++ = h[0], *d++ = w[2], *d++ = l[0];
  asm("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3]) : "l"(bytes + 16));
  for (int i = 0; i < 4; ++i) *d++ = w[i];
  asm("ld.global.nc.L1::no_allocate.L2::256B.v4.f32 {%0, %1, %2, %3}, [%4];"
      : "=f"(f[0]), "=f"(f[1]), "=f"(f[2]), "=f"(f[3])
      : "l"(bytes));
  for (int i = 0; i < 4; ++i) *d++ = __float_as_uint(f[i]);
  asm("ld.v2.u64 {%0, %1}, [%2];" : "=l"(l[0]), "=l"(l[1]) : "l"(bytes));
  *d++ = l[0], *d++ = l[1];
  asm("ld.global.v2.b32 {%0, %1}, [%2];" : "=r"(w[0]), "=r"(w[1]) : "l"(bytes + 8));
  *d++ = w[0], *d++ = w[1];
  asm("ld.global.v4.b16 {%0, %1, %2, %3}, [%4];" : "=h"(h[0]), "=h"(h[1]), "=h"(h[2]), "=h"(h[3]) : "l"(bytes + 8));
  for (int i = 0; i < 4; ++i) *d++ = h[i];
  asm volatile("ld.volatile.global.f64 %0, [%1];" : "=d"(g) : "l"(bytes + 8) : "memory");
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(w[0]) : "l"(bytes + 8) : "memory");
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(l[0]) : "l"(bytes + 24) : "memory");
  asm volatile("ld.global.acquire.gpu.b32 %0, [%1];" : "=r"(w[1]) : "l"(bytes + 12) : "memory");
  *d++ = __double_as_longlong(g), *d++ = w[0], *d++ = l[0], *d++ = w[1];
  asm("{ .reg .pred p;\n  setp.ne.b32 p, %2, 0;\n  mov.u32 %0, 7;\n  @p ld.global.u32 %0, [%1];\n}"
      : "=r"(w[0])
      : "l"(bytes), "r"(0));
  *d++ = w[0];
}
CASE(loads) { loads_kernel<<<1, 1>>>(call.data<uint8_t>(0), call.data<uint64_t>(1)); }

// Thread i writes 16 bytes from 16 * i on, in the way that its number selects.
__global__ void stores_kernel(uint8_t* out) {
  const int i = threadIdx.x;
  uint8_t* to = out + 16 * i;
  uint32_t w = 0x01020304u * (i + 1);
  uint64_t l = 0x0102030405060708ull;
  if (i == 0)
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(w), "r"(w + 1), "r"(5), "r"(w + 3));
  if (i == 1) asm volatile("st.global.cs.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(l), "l"(l + 1) : "memory");
  if (i == 2) asm volatile("st.global.wb.v4.f32 [%0], {%1, %1, %2, 0f3F800000};" ::"l"(to), "f"(1.5f), "f"(-2.0f));
  if (i == 3) asm volatile("st.u8 [%0+5], %1; st.global.u16 [%0+2], %2;" ::"l"(to), "r"(w), "h"(short(0x1234)));
  if (i == 4) asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(w) : "memory");
  if (i == 5) asm volatile("st.relaxed.gpu.global.u64 [%0], 42; st.volatile.global.u32 [%0+8], %1;" ::"l"(to), "r"(w));
  if (i == 6) asm volatile("st.global.cg.v4.b8 [%0], {%1, %2, %1, %2};" ::"l"(to), "h"(short(0x101)), "h"(short(0x7f)));
  if (i == 7) {
    asm volatile(
        "{ .reg .b64 policy; createpolicy.fractional.L2::evict_last.b64 policy, 1.0;\n"
        "createpolicy.range.global.L2::evict_last.L2::evict_first.b64 policy, [%0], 16, 64; createpolicy.cvt.L2.b64 "
        "policy, policy;\n"
        "st.global.L2::cache_hint.v2.b32 [%0], {%1, %1}, policy; prefetch.global.L2 [%0]; prefetchu.L1 [%0]; }" ::"l"(
            to),
        "r"(w));
  }
}
CASE(stores) { stores_kernel<<<1, 8>>>(call.data<uint8_t>(0)); }

// Shared memory by 32-bit addresses, of static and of dynamic memory, some of them the lower half of a generic address; by
// 64-bit addresses and by generic ones.
__global__ void shared_kernel(int* out) {
  __shared__ int fixed[64];
  extern __shared__ int dynamic[];
  const int i = threadIdx.x;
  uint32_t to_fixed = shared_address(&fixed[i]), to_dynamic;
  asm("{ .reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t; }" : "=r"(to_dynamic) : "l"(&dynamic[i]));
  if (i % 2) to_dynamic = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(&dynamic[i]));
  asm volatile("st.shared.s32 [%0], %1;" ::"r"(to_fixed), "r"(i * i) : "memory");
  asm volatile("st.shared::cta.u32 [%0], %1;" ::"r"(to_dynamic), "r"(1000 + i) : "memory");
  asm volatile("bar.sync 0;" ::: "memory");
  int other = 63 - i, a, b, c, d, e = 0;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(a) : "r"(shared_address(&fixed[other])));
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(b) : "l"(__cvta_generic_to_shared(&dynamic[other])));
  asm volatile("ld.b32 %0, [%1];" : "=r"(c) : "l"(&dynamic[other]));
  asm volatile("{ .reg .u64 g, s; cvt.u64.u32 s, %1; cvta.shared.u64 g, s; ld.u32 %0, [g]; }"
               : "=r"(d)
               : "r"(to_fixed));
  asm("{ .reg .pred p, q; isspacep.shared p, %1; isspacep.global q, %1; selp.u32 %0, 1, 0, p; @q add.u32 %0, %0, 2; }"
      : "=r"(e)
      : "l"(i % 2 ? (void*)&fixed[i] : (void*)out));
  asm volatile("barrier.sync.aligned 3, %0;" ::"r"(int(blockDim.x)) : "memory");
  store_all(out + 5 * i, a, b, c, d, e);
}
CASE(shared) { shared_kernel<<<1, 64, 64 * sizeof(int)>>>(call.data<int>(0)); }

// Every thread of two blocks updates the same elements; the results do not depend on the order.
__global__ void atomics_kernel(uint32_t* w, uint64_t* l, float* f, double* g, __half2* h, int* seen) {
  __shared__ uint32_t total;
  const int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  uint32_t before;
  asm volatile("atom.global.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(w), "r"(1) : "memory");
  atomicAdd(&seen[before], 1);
  asm volatile("red.relaxed.gpu.global.max.s32 [%0], %1;" ::"l"(w + 1), "r"(i - 1000) : "memory");
  asm volatile("red.global.min.u32 [%0], %1;" ::"l"(w + 2), "r"(5000 - i) : "memory");
  asm volatile("red.global.or.b32 [%0], %1; red.global.and.b32 [%0+4], %2; red.global.xor.b32 [%0+8], %1;" ::"l"(w + 3),
               "r"(1u << i % 32), "r"(~(1u << i % 7)));
  asm volatile("red.global.inc.u32 [%0], 9; red.global.dec.u32 [%0+4], 9;" ::"l"(w + 6));
  asm volatile("{ .reg .u32 t; atom.exch.b32 t, [%0], 77; }" ::"l"(w + 8));
  asm volatile("red.release.gpu.global.add.s32 [%0], %1;" ::"l"(w + 9), "r"(-1) : "memory");
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 2;" : "=r"(before) : "l"(w + 10) : "memory");
  asm volatile("atom.shared.add.u32 _, [%0], 1;" ::"r"(shared_address(&total)) : "memory");
  asm volatile("atom.add.u64 _, [%0], 0x100000001;" ::"l"(l));
  asm volatile("red.global.max.s64 [%0], %1;" ::"l"(l + 1), "l"((long long)i - 500));
  asm volatile("red.add.f32 [%0], %1;" ::"l"(f), "f"(0.5f));
  asm volatile("red.global.add.f64 [%0], %1;" ::"l"(g), "d"(0.25));
  asm volatile("red.global.add.noftz.f16x2 [%0], %1;" ::"l"(h), "r"(0x40003c00u));  // 1, 2
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900 || defined(__SIMT__)
  asm volatile("red.global.add.v2.f32 [%0], {%1, %2};" ::"l"(f + 2), "f"(0.5f), "f"(float(-i)));
  asm volatile("red.relaxed.gpu.global.v4.f32.add [%0], {%1, %1, %2, %1};" ::"l"(f + 4), "f"(1.0f), "f"(2.0f));
  asm volatile("red.global.max.noftz.v2.f16x2 [%0], {%1, %2};" ::"l"(h + 2), "r"(0x40003c00u), "r"(0xc000bc00u));
  asm volatile("red.global.min.noftz.v2.bf16 [%0], {%1, %2};" ::"l"(h + 4), "h"(uint16_t(0xbf80 + i % 8)),
               "h"(uint16_t(0x3f80)));
#endif
  uint32_t old = 0;
  do {  // adds 3 by compare and swap
    before = old;
    asm volatile("atom.global.cas.b32 %0, [%1], %2, %3;" : "=r"(old) : "l"(w + 11), "r"(before), "r"(before + 3));
  } while (old != before);
  asm volatile("membar.gl; fence.acq_rel.gpu;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) w[12 + blockIdx.x] = total;
}
CASE_OF(atomics, 2, 96)

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900 || defined(__SIMT__)
// Each thread gets back what the elements were; the words of a vector are updated one by one.
__global__ void vector_atomics_kernel(float* f, __half2* h, float* seen, uint32_t* halves) {
  const int i = threadIdx.x;
  float was[6];
  asm volatile("atom.global.add.v4.f32 {%0, %1, %2, %3}, [%4], {%5, 2.0, %6, %5};"
               : "=f"(was[0]), "=f"(was[1]), "=f"(was[2]), "=f"(was[3])
               : "l"(f), "f"(1.0f), "f"(float(i))
               : "memory");
  asm volatile("atom.relaxed.gpu.global.add.v2.f32 {%0, %1}, [%2], {%3, %4};"
               : "=f"(was[4]), "=f"(was[5])
               : "l"(f + 4), "f"(-1.0f), "f"(0.5f)
               : "memory");
  for (int k = 0; k < 6; ++k) seen[6 * i + k] = was[k];
  uint32_t before[2];
  asm volatile("atom.global.max.noftz.v2.f16x2 {%0, %1}, [%2], {%3, %4};"
               : "=r"(before[0]), "=r"(before[1])
               : "l"(h), "r"(0x40003c00u), "r"(0xc000bc00u)  // 1, 2 and -1, -2
               : "memory");
  halves[2 * i] = before[0], halves[2 * i + 1] = before[1];
}
CASE(vector_atomics) {
  vector_atomics_kernel<<<1, 64>>>(call.floats(0), call.data<__half2>(1), call.floats(2), call.data<uint32_t>(3));
}
#endif

#ifdef __SIMT__  // sm_100
// Thread i copies 32 bytes, in two ways.
__global__ void wide_kernel(const float* in, float* out, int skip) {
  const float* const from = in + 8 * threadIdx.x + skip;
  float* const to = out + 8 * threadIdx.x;
  float v[8];
  uint64_t w[4];
  if (threadIdx.x % 2) {
    asm volatile("ld.global.v8.f32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
                 : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]), "=f"(v[4]), "=f"(v[5]), "=f"(v[6]), "=f"(v[7])
                 : "l"(from));
    asm volatile("st.global.v8.b32 [%0], {%1, %2, %3, %4, %5, %6, %7, 0};" ::"l"(to), "f"(v[0]), "f"(v[1]), "f"(v[2]),
                 "f"(v[3]), "f"(v[4]), "f"(v[5]), "f"(v[6])
                 : "memory");
  } else {
    asm volatile("ld.global.nc.v4.b64 {%0, %1, %2, %3}, [%4];"
                 : "=l"(w[0]), "=l"(w[1]), "=l"(w[2]), "=l"(w[3])
                 : "l"(from));
    asm volatile("st.global.v4.u64 [%0], {%1, %2, %3, %4};" ::"l"(to), "l"(w[3]), "l"(w[2]), "l"(w[1]), "l"(w[0])
                 : "memory");
  }
}
CASE(wide) { wide_kernel<<<1, 32>>>(call.floats(0), call.floats(1), call.n(0)); }
#endif

// ------------------------------------------------------------------------------------------------------------------
// cp.async

#define CP_ASYNC_CG(to, from, bytes) \
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], %2;\n" ::"r"(to), "l"(from), "n"(bytes))
#define CP_ASYNC_CA_ZFILL(to, from, bytes, present) \
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;\n" ::"r"(to), "l"(from), "n"(bytes), "r"(present))
#define CP_ASYNC_COMMIT() asm volatile("cp.async.commit_group;\n" ::)
#define CP_ASYNC_WAIT(n) asm volatile("cp.async.wait_group %0;\n" ::"n"(n))

// wait: how many groups may be in flight when shared memory is read.
template <int wait>
__global__ void copies_kernel(const float4* in, const float* in4, float4* out, float* out4) {
  __shared__ float4 tile[2][32];
  __shared__ float zeros[3][32];
  const int i = threadIdx.x;
  CP_ASYNC_CG(shared_address(&tile[0][i]), in + i, 16);
  CP_ASYNC_COMMIT();
  CP_ASYNC_CG(shared_address(&tile[1][i]), in + 32 + i, 16);
  CP_ASYNC_CA_ZFILL(shared_address(&zeros[0][i]), in4 + i, 4, i < 20 ? 4 : 0);
  CP_ASYNC_CA_ZFILL(shared_address(&zeros[1][i]), in4 + i, 4, 2);
  asm volatile("{ .reg .pred p; setp.ge.s32 p, %2, 20; cp.async.ca.shared.global [%0], [%1], 4, p; }" ::"r"(
                   shared_address(&zeros[2][i])),
               "l"(in4 + i), "r"(i));
  CP_ASYNC_COMMIT();
  CP_ASYNC_WAIT(wait);
  out[i] = tile[0][i];
  out[32 + i] = tile[1][i];
  asm volatile("cp.async.wait_all;" ::: "memory");
  out[64 + i] = tile[1][i];
  for (int row = 0; row < 3; ++row) out4[32 * row + i] = zeros[row][i];
}
CASE(copies) {
  if (call.number(0) == 0) RUN(copies_kernel<0>, 1, 32);
  if (call.number(0) == 1) RUN(copies_kernel<1>, 1, 32);
}

// ------------------------------------------------------------------------------------------------------------------
// mbarriers: warp 0 fills a buffer, warp 1 reads it, and two barriers pass it to and fro. With `copied`, cp.async
// fills it and arrives.

__device__ void wait_for(uint32_t barrier, int parity) {
  asm volatile(
      "{\n"
      ".reg .pred P1;\n"
      "LAB_WAIT:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
      "@P1 bra.uni DONE;\n"
      "bra.uni LAB_WAIT;\n"
      "DONE:\n"
      "}\n" ::"r"(barrier),
      "r"(parity)
      : "memory");
}
__device__ bool has_passed(uint32_t barrier, int parity) {
  uint32_t passed;
  asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
               : "=r"(passed)
               : "r"(barrier), "r"(parity)
               : "memory");
  return passed;
}

__global__ void mbarriers_kernel(const int* in, int* out, int rounds, bool copied) {
  __shared__ uint64_t full, empty;
  __shared__ int buffer[32];
  const int i = threadIdx.x % 32;
  const uint32_t at_full = shared_address(&full), at_empty = shared_address(&empty);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at_full), "r"(32));
    asm volatile("mbarrier.init.shared.b64 [%0], 32;" ::"r"(at_empty));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  for (int round = 0; round < rounds; ++round) {
    if (threadIdx.x < 32) {
      if (round) wait_for(at_empty, (round - 1) % 2);
      if (copied) {
        CP_ASYNC_CA_ZFILL(shared_address(&buffer[i]), in + 32 * round + i, 4, 4);
        asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(at_full) : "memory");
      } else {
        buffer[i] = in[32 * round + i];
        asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(at_full) : "memory");
      }
    } else {
      if (round % 2) {
        while (!has_passed(at_full, round % 2)) asm volatile("nanosleep.u32 20;");
      } else {
        wait_for(at_full, round % 2);
      }
      out[32 * round + i] = buffer[31 - i];
      asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(at_empty) : "memory");
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(at_full));
}
CASE(mbarriers) {
  mbarriers_kernel<<<1, 64>>>(call.data<int>(0), call.data<int>(1), call.size(0) / 32, call.number(0));
}

// One thread has a unit copy a tile in and out again.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900 || defined(__SIMT__)
__global__ void bulk_kernel(const float4* in, float4* out, bool fenced) {
  __shared__ alignas(128) float4 tile[32];
  __shared__ uint64_t full;
  const uint32_t at = shared_address(tile), barrier = shared_address(&full), bytes = sizeof(tile);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier));
    asm volatile("fence.mbarrier_init.release.cluster; fence.proxy.async;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(at),
                 "l"(in), "r"(bytes), "r"(barrier)
                 : "memory");
  }
  __syncthreads();
  wait_for(barrier, 0);
  tile[threadIdx.x].x += 1;
  if (fenced) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(out), "r"(at), "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;" ::: "memory");
  }
}
CASE(bulk) { bulk_kernel<<<1, 32>>>(call.data<float4>(0), call.data<float4>(1), call.number(0)); }
#endif

// A flag in shared memory and one in global memory, each with a release and an acquire.
__global__ void flags_kernel(int* out, int* flag) {
  __shared__ int ready, value;
  if (threadIdx.x == 0) ready = 0;
  __syncthreads();
  if (threadIdx.x == 32) {
    value = 5;
    out[1] = 6;
    asm volatile("st.release.cta.shared.u32 [%0], 1;" ::"r"(shared_address(&ready)) : "memory");
    asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory");
  } else if (threadIdx.x == 0) {
    int seen = 0;
    while (!seen)
      asm volatile("ld.acquire.cta.shared.u32 %0, [%1];" : "=r"(seen) : "r"(shared_address(&ready)) : "memory");
    out[0] = value;
    do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    while (!seen);
    out[2] = out[1] + 1;
  }
}
CASE(flags) { flags_kernel<<<1, 64>>>(call.data<int>(0), call.data<int>(1)); }

// Named barriers: two warps write and go on; four others wait for them, and for each other.
__global__ void named_kernel(int* out) {
  __shared__ int tile[64], sums[4];
  const int warp = threadIdx.x / 32;
  if (warp < 2) {
    tile[threadIdx.x] = threadIdx.x;
    asm volatile("bar.arrive 1, 192;" ::: "memory");
    return;
  }
  asm volatile("barrier.cta.sync 1, 192;" ::: "memory");
  if (threadIdx.x % 32 == 0) sums[warp - 2] = tile[warp] + tile[63];
  asm volatile("bar.sync 2, 128;" ::: "memory");
  out[threadIdx.x - 64] = sums[threadIdx.x % 4];
}
CASE(named) { named_kernel<<<1, 192>>>(call.data<int>(0)); }

// Barriers that count: of two warps, and of four, in rounds that a part of the threads leaves with other predicates.
__global__ void votes_kernel(uint32_t* out) {
  const uint32_t i = threadIdx.x, id = i < 64 ? 1 : 2, threads = i < 64 ? 64 : 128;
  for (uint32_t round = 0; round < 4; ++round) {
    uint32_t count, all, any;
    asm volatile("{ .reg .pred p; setp.lt.u32 p, %3, %4; bar.red.popc.u32 %0, %1, %2, p; }"
                 : "=r"(count)
                 : "r"(id), "r"(threads), "r"(i), "r"(20 * round + 50)
                 : "memory");
    asm volatile(
        "{ .reg .pred p, q, r; setp.lt.u32 p, %4, %5; barrier.cta.red.and.aligned.pred q, %2, %3, p;\n"
        "barrier.red.aligned.or.pred r, %2, %3, !p; selp.u32 %0, 1, 0, q; selp.u32 %1, 1, 0, r; }"
        : "=r"(all), "=r"(any)
        : "r"(id), "r"(threads), "r"(i), "r"(20 * round + 50)
        : "memory");
    out[4 * i + round] = count | all << 16 | any << 17;
  }
}
CASE(votes) { votes_kernel<<<1, 192>>>(call.data<uint32_t>(0)); }

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900 || defined(__SIMT__)
#define HOPPER_ASM(...) asm volatile(__VA_ARGS__)
#else
#define HOPPER_ASM(...)
#endif
__global__ void __cluster_dims__(2, 2, 1) cluster_shape_kernel(int* out) {
  uint32_t of[4] = {};
  HOPPER_ASM("mov.u32 %0, %%clusterid.x;\nmov.u32 %1, %%nclusterid.y;" : "=r"(of[0]), "=r"(of[1]));
  HOPPER_ASM("mov.u32 %0, %%cluster_ctaid.y;\nmov.u32 %1, %%cluster_nctaid.x;" : "=r"(of[2]), "=r"(of[3]));
  if (threadIdx.x < 4) out[(blockIdx.y * gridDim.x + blockIdx.x) * 4 + threadIdx.x] = of[threadIdx.x];
}
CASE(cluster_shape) { cluster_shape_kernel<<<dim3(4, 2), 32>>>(call.data<int>(0)); }

// Each of two blocks sends its numbers, of 4, 8 and 16 bytes, to the other one, whose mbarrier counts them.
__global__ void __cluster_dims__(2, 1, 1) sent_kernel(int* out) {
  __shared__ alignas(16) int got[7];
  __shared__ uint64_t barrier;
  const uint32_t own = blockIdx.x % 2, at = shared_address(&barrier), value = 10 * blockIdx.x;
  uint32_t to = 0, of = 0, rank = 0, done = 0;
  if (threadIdx.x == 0) {
    HOPPER_ASM("mbarrier.init.shared::cta.b64 [%0], 1; fence.mbarrier_init.release.cluster;" ::"r"(at) : "memory");
    HOPPER_ASM("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 28;" ::"r"(at) : "memory");
  }
  HOPPER_ASM("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" :: : "memory");
  HOPPER_ASM("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(shared_address(got)), "r"(own ^ 1));
  HOPPER_ASM("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(of) : "r"(at), "r"(own ^ 1));
  HOPPER_ASM("getctarank.shared::cluster.u32 %0, %1;" : "=r"(rank) : "r"(to));
  if (threadIdx.x == 0) {
#define SEND "st.async.shared::cluster.mbarrier::complete_tx::bytes"
    HOPPER_ASM(SEND ".v4.b32 [%0], {%2, 1, 2, %2}, [%1];" ::"r"(to), "r"(of), "r"(value) : "memory");
    HOPPER_ASM(SEND ".v2.s32 [%0+16], {%2, -1}, [%1];" ::"r"(to), "r"(of), "r"(value) : "memory");
    HOPPER_ASM(SEND ".f32 [%0+24], %2, [%1];" ::"r"(to), "r"(of), "f"(1.0f) : "memory");
  }
  while (!done)
    HOPPER_ASM(
        "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(
            done) : "r"(at) : "memory");
  if (threadIdx.x < 8) out[8 * blockIdx.x + threadIdx.x] = threadIdx.x == 7 ? int(rank) : got[threadIdx.x];
}
CASE(sent) { sent_kernel<<<2, 32>>>(call.data<int>(0)); }

// An mbarrier's bytes that are announced and arrive without an arrival, and an arrival for the last time.
__global__ void counted_kernel(int* out) {
  __shared__ uint64_t barrier;
  const uint32_t at = shared_address(&barrier);
  if (threadIdx.x == 0) HOPPER_ASM("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(at) : "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    HOPPER_ASM("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 64;" ::"r"(at) : "memory");
    HOPPER_ASM("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 64;" ::"r"(at) : "memory");
  }
  uint64_t state = 0;
  if (threadIdx.x < 31)
    HOPPER_ASM("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(at) : "memory");
  else
    HOPPER_ASM("mbarrier.arrive_drop.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(at) : "memory");
  uint32_t done = 0;
  while (!done)
    HOPPER_ASM(
        "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(
            done) : "r"(at) : "memory");
  if (threadIdx.x < 31) HOPPER_ASM("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(at) : "memory");
  for (done = 0; !done;)
    HOPPER_ASM(
        "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], 1;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(
            done) : "r"(at) : "memory");
  out[threadIdx.x] = threadIdx.x;
}
CASE(counted) { counted_kernel<<<1, 32>>>(call.data<int>(0)); }

// Faults: what a kernel does wrong is reported.
__global__ void wrong_kernel(float* out, int what) {
  __shared__ float4 tile[2];
  float x = 0;
  if (what == 0) asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "l"(out));
  if (what < 0) asm volatile("st.shared.f32 [%0], %1;" ::"l"(tile), "f"(x));  // a generic address, which works
  if (what == 1) asm volatile("ld.global.v2.f32 {%0, %0}, [%1];" : "=f"(x) : "l"(out + 1));
  if (what == 2) asm volatile("bar.sync 1, %0;" ::"r"(int(blockDim.x) / 2));  // 48; ptxas would refuse a constant
  if (what == 3) asm volatile("trap;");
  if (what == 4) asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(shared_address(tile) + 4), "l"(out));
  out[0] = x;
}
CASE(wrong) { wrong_kernel<<<1, 96>>>(call.data<float>(0), static_cast<int>(call.number(0))); }
