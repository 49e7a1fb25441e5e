// ptx_traced.cu: pairs of kernels, one with inline PTX and one without, that must cost the same in an X-ray; and kernels
// whose mistakes an X-ray must find. Marked lines are compared.
#include <mma_sync.h>

#include "case.h"

#define LDMATRIX_X4(R0, R1, R2, R3, addr)                                           \
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n" \
               : "=r"(R0), "=r"(R1), "=r"(R2), "=r"(R3)                             \
               : "r"(addr))

// Rows of 16 bytes, `pitch` bytes apart; with 16, 8 rows take 4 wavefronts, with 128 they are all in the same banks.
__global__ void ldmatrix_kernel(uint32_t* out, int pitch) {
  __shared__ __align__(128) char memory[4096];
  uint32_t lane = threadIdx.x, a[4], b[4];
  for (int i = lane; i < 1024; i += 32) reinterpret_cast<uint32_t*>(memory)[i] = i;
  __syncthreads();
  const void* row = memory + lane * pitch;
  ladder::load_matrices(a, row);                                // <- header
  LDMATRIX_X4(b[0], b[1], b[2], b[3], shared_address(row));     // <- ptx
  for (int i = 0; i < 4; ++i) out[32 * i + lane] = a[i] == b[i];
}
CASE(ldmatrix) { ldmatrix_kernel<<<1, 32>>>(call.data<uint32_t>(0), static_cast<int>(call.number(0))); }

__global__ void vectors_kernel(const float4* in, float4* out) {
  int i = threadIdx.x;
  float x, y, z, w;
  float4 v = in[2 * i];  // <- plain load
  out[i] = v;            // <- plain store
  asm volatile(  // <- ptx load
      "ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4];"
      : "=f"(x), "=f"(y), "=f"(z), "=f"(w)
      : "l"(in + 2 * i));
  asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(out + 32 + i), "f"(x), "f"(y), "f"(z), "f"(w));  // <- ptx store
}
CASE(vectors) { vectors_kernel<<<1, 32>>>(call.data<float4>(0), call.data<float4>(1)); }

__global__ void copies_kernel(const float4* in, float4* out, bool waits) {
  __shared__ float4 tile[32];
  int i = threadIdx.x;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(&tile[i])), "l"(in + i));  // <- copy
  asm volatile("cp.async.wait_all;" ::: "memory");
  if (waits) __syncwarp();
  out[i] = tile[31 - i];  // <- read
}
CASE(copies) { copies_kernel<<<1, 32>>>(call.data<float4>(0), call.data<float4>(1), call.number(0)); }

__global__ void past_kernel(const float* in, float* out) {
  float x;
  int i = threadIdx.x;
  asm("{\n"  // <- past
      "ld.global.f32 %0, [%1];\n"
      "add.f32 %0, %0, %0;\n"
      "}" : "=f"(x) : "l"(in + i));
  out[i] = x;
}
CASE(past) { past_kernel<<<1, 32>>>(call.data<float>(0), call.data<float>(1)); }

// Threads of a warp add big numbers whose words lie in memory: the carry is each thread's own.
__global__ void carries_kernel(const uint32_t* a, const uint32_t* b, uint32_t* sum, int words) {
  int i = threadIdx.x;
  asm volatile("add.cc.u32 %0, %1, 0;" : "=r"(sum[i]) : "r"(0));
  for (int k = i; k < 32 * words; k += 32) asm volatile("addc.cc.u32 %0, %1, %2;" : "=r"(sum[k]) : "r"(a[k]), "r"(b[k]));
}
CASE(carries) {
  carries_kernel<<<1, 32>>>(call.data<uint32_t>(0), call.data<uint32_t>(1), call.data<uint32_t>(2), call.size(0) / 32);
}

__global__ void mma_kernel(const uint32_t* a, float* d) {
  int lane = threadIdx.x;
  float c[4] = {}, e[4] = {};
  uint32_t r[4] = {a[lane], a[lane + 1], a[lane + 2], a[lane + 3]};
  ladder::multiply_add<__half>(c, r, r[0], r[1]);
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%4,%5}, {%0,%1,%2,%3};"
      : "+f"(e[0]), "+f"(e[1]), "+f"(e[2]), "+f"(e[3]) : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]));
  for (int i = 0; i < 4; ++i) d[32 * i + lane] = c[i] - e[i], d[128 + 32 * i + lane] = c[i];
}
CASE(mma) { mma_kernel<<<1, 32>>>(call.data<uint32_t>(0), call.data<float>(1)); }

__global__ void exits_kernel(float* out) {
  if (threadIdx.x % 2) asm volatile("exit;");
  out[threadIdx.x] = 1;
}
CASE(exits) { exits_kernel<<<1, 64>>>(call.data<float>(0)); }

// Warp 0 writes and arrives at a named barrier, or arrives first; warp 1 waits there.
__global__ void named_kernel(float* out, bool fixed) {
  __shared__ float tile[32];
  if (threadIdx.x < 32) {
    if (!fixed) asm volatile("bar.arrive 3, 64;" ::: "memory");
    tile[threadIdx.x] = threadIdx.x;
    if (fixed) asm volatile("bar.arrive 3, 64;" ::: "memory");
  } else {
    asm volatile("bar.sync 3, 64;" ::: "memory");
    out[threadIdx.x - 32] = tile[63 - threadIdx.x];  // <- handed over
  }
}
CASE(named) { named_kernel<<<1, 64>>>(call.data<float>(0), call.number(0)); }
