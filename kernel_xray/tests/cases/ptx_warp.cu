// ptx_warp.cu: special registers, collectives and matrix instructions of inline PTX.
#include "case.h"

#define ONE_ARGUMENT(statement) statement  // the commas of a translation are not a macro's

__global__ void special_kernel(uint32_t* out) {
  uint32_t v[15], sms, tid;
  asm("mov.u32 %0, %%tid.x; mov.u32 %1, %%tid.y; mov.u32 %2, %%ntid.x; mov.u32 %3, %%ctaid.x; mov.u32 %4, %%nctaid.x;"
      : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]), "=r"(v[4]));
  asm("mov.u32 %0, %laneid;" : "=r"(v[5]));
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(v[6]));
  asm("mov.u32 %0, %%lanemask_le;" : "=r"(v[7]));
  asm("mov.u32 %0, %%lanemask_eq;" : "=r"(v[8]));
  asm("mov.u32 %0, %%lanemask_ge;" : "=r"(v[9]));
  asm("mov.u32 %0, %%lanemask_gt;" : "=r"(v[10]));
  ONE_ARGUMENT(asm("add.u32 %0, %1, WARP_SZ;" : "=r"(v[11]) : "r"(v[0])));
  asm volatile("mov.u32 %0, %%smid; mov.u32 %1, %%nsmid; { .reg .pred p; setp.lo.u32 p, %0, %1; selp.u32 %0, 1, 0, p; }"
               : "=r"(v[12]), "=r"(sms));
  uint64_t clocks[2], times[2];
  asm volatile("mov.u64 %0, %%clock64; mov.u64 %1, %%globaltimer;" : "=l"(clocks[0]), "=l"(times[0]));
  asm volatile("mov.u64 %0, %%clock64; mov.u64 %1, %%globaltimer;" : "=l"(clocks[1]), "=l"(times[1]));
  v[13] = clocks[1] > clocks[0] && times[1] >= times[0];
  asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(v[14]));
  tid = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * blockIdx.x);
  for (int k = 0; k < 15; ++k) out[15 * tid + k] = v[k];
}
CASE(special) { special_kernel<<<3, dim3(16, 4), 96>>>(call.data<uint32_t>(0)); }

__global__ void collectives_kernel(uint32_t* out) {
  const uint32_t i = threadIdx.x, value = 3 * i + 1;
  uint32_t v[17];
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(v[0]) : "r"(value), "r"((i + 5) % 32));
  asm volatile("{ .reg .pred p; shfl.sync.up.b32 %0|p, %1, 3, 0x0, -1; @!p mov.u32 %0, 1000; }"
               : "=r"(v[1])
               : "r"(value));
  asm volatile("{ .reg .pred p; shfl.sync.down.b32 %0|p, %1, 2, %2, %3; @!p add.u32 %0, %0, 1000; }"
               : "=r"(v[2])
               : "r"(value), "r"((32 - 8) << 8 | 31), "r"(0xffffffff));
  asm volatile("shfl.sync.bfly.b32 %0, %1, 0x10, 0x1f, 0xffffffff;" : "=r"(v[3]) : "r"(value));
  float f = i;
  asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 31, 0xffffffff;" : "+f"(f));
  v[4] = uint32_t(f);
  asm volatile("{ .reg .pred p; setp.lt.u32 p, %1, 7; vote.sync.ballot.b32 %0, p, 0xffffffff; }" : "=r"(v[5]) : "r"(i));
  asm volatile(
      "{ .reg .pred p, a, b, c; setp.lt.u32 p, %3, 32; vote.sync.all.pred a, p, -1; vote.sync.any.pred b, !p, -1;\n"
      "setp.eq.u32 p, %3, 2; vote.sync.uni.pred c, p, -1; selp.u32 %0, 1, 0, a; selp.u32 %1, 1, 0, b; selp.u32 %2, 1, "
      "0, c; }"
      : "=r"(v[6]), "=r"(v[7]), "=r"(v[8])
      : "r"(i));
  asm volatile("redux.sync.add.u32 %0, %1, 0xffffffff;" : "=r"(v[9]) : "r"(value));
  asm volatile("redux.sync.min.s32 %0, %1, 0xffffffff;" : "=r"(v[10]) : "r"(int(i) - 9));
  asm volatile("redux.sync.xor.b32 %0, %1, 0xffffffff;" : "=r"(v[11]) : "r"(value));
  asm volatile("match.any.sync.b32 %0, %1, 0xffffffff;" : "=r"(v[12]) : "r"(i / 5));
  asm volatile("{ .reg .pred p; match.all.sync.b64 %0|p, %1, -1; @!p mov.u32 %0, 3; }"
               : "=r"(v[13])
               : "l"(uint64_t(i / 32)));
  asm volatile("activemask.b32 %0;" : "=r"(v[14]));
  asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
  asm volatile("{ .reg .pred p; setp.lt.u32 p, %1, 33; bar.red.popc.u32 %0, 0, p; }" : "=r"(v[15]) : "r"(i));
  asm volatile("{ .reg .pred p, q; setp.lt.u32 p, %1, 33; barrier.red.or.pred q, 1, p; selp.u32 %0, 1, 0, q; }"
               : "=r"(v[16])
               : "r"(i));
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile(".pragma \"nounroll\";");
  for (int k = 0; k < 17; ++k) out[17 * i + k] = v[k];
}
CASE(collectives) { collectives_kernel<<<1, 64>>>(call.data<uint32_t>(0)); }

// Odd threads end early; warp barriers and the block's barrier go on without them.
__global__ void exits_kernel(int* out) {
  __shared__ int sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  if (threadIdx.x % 2) {
    out[threadIdx.x] = -1;
    asm volatile("exit;");
  }
  atomicAdd(&sum, 1);
  __syncthreads();
  out[threadIdx.x] = sum;
}
CASE(exits) { exits_kernel<<<2, 80>>>(call.data<int>(0)); }

// Barriers of a warp and of a warp group: each part of the block turns its own elements round.
__global__ void parts_kernel(int* out) {
  __shared__ int one[256], two[256];
  const int i = threadIdx.x, warp = i / 32, group = i / 128;
  one[i] = i;
  asm volatile("bar.sync %0, 32;" ::"r"(8 + warp) : "memory");
  two[i] = one[32 * warp + 31 - i % 32];
  asm volatile("barrier.sync %0, %1;" ::"r"(1 + group), "n"(128) : "memory");
  out[i] = two[128 * group + 127 - i % 128];
}
CASE(parts) { parts_kernel<<<2, 256>>>(call.data<int>(0)); }

#ifdef __SIMT__  // sm_100a
__global__ void float_reductions_kernel(const float* in, float* out) {
  const float own = in[threadIdx.x];
  float v[6];
  asm volatile("redux.sync.min.f32 %0, %1, 0xffffffff;" : "=f"(v[0]) : "f"(own));
  asm volatile("redux.sync.max.f32 %0, %1, 0xffffffff;" : "=f"(v[1]) : "f"(own));
  asm volatile("redux.sync.min.abs.f32 %0, %1, 0xffffffff;" : "=f"(v[2]) : "f"(own));
  asm volatile("redux.sync.max.abs.f32 %0, %1, 0xffffffff;" : "=f"(v[3]) : "f"(own));
  asm volatile("redux.sync.min.NaN.f32 %0, %1, 0xffffffff;" : "=f"(v[4]) : "f"(own));
  asm volatile("redux.sync.max.abs.NaN.f32 %0, %1, 0xffffffff;" : "=f"(v[5]) : "f"(own));
  for (int k = 0; k < 6; ++k) out[32 * k + threadIdx.x] = v[k];
}
CASE(float_reductions) { float_reductions_kernel<<<1, 32>>>(call.floats(0), call.floats(1)); }
#endif

// ------------------------------------------------------------------------------------------------------------------
// Matrices of 8 x 8 elements: what each lane gets of the 32 rows in shared memory

#define LDMATRIX_X4(R0, R1, R2, R3, addr)                                           \
  asm volatile("ldmatrix.sync.aligned.x4.m8n8.shared.b16 {%0, %1, %2, %3}, [%4];\n" \
               : "=r"(R0), "=r"(R1), "=r"(R2), "=r"(R3)                             \
               : "r"(addr))

__global__ void ldmatrix_kernel(const uint16_t* in, uint32_t* out) {
  __shared__ __align__(16) uint16_t tile[32][8];
  const int lane = threadIdx.x;
  for (int i = 0; i < 8; ++i) tile[lane][i] = in[8 * lane + i];
  __syncthreads();
  const uint32_t row = uint32_t(__cvta_generic_to_shared(tile[lane]));
  uint32_t v[14];
  LDMATRIX_X4(v[0], v[1], v[2], v[3], row);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(v[4]), "=r"(v[5]), "=r"(v[6]), "=r"(v[7])
               : "r"(row)
               : "memory");
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared::cta.b16 {%0, %1}, [%2];" : "=r"(v[8]), "=r"(v[9]) : "r"(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(v[10]), "=r"(v[11]) : "r"(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(v[12]) : "r"(row));
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(v[13]) : "r"(v[0]));
  for (int k = 0; k < 14; ++k) out[32 * k + lane] = v[k];
}
CASE(ldmatrix) { ldmatrix_kernel<<<1, 32>>>(call.data<uint16_t>(0), call.data<uint32_t>(1)); }

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900 || defined(__SIMT__)
__global__ void stmatrix_kernel(const uint32_t* in, uint16_t* out) {
  __shared__ __align__(16) uint16_t tile[64][8];
  const int lane = threadIdx.x;
  const uint32_t row = uint32_t(__cvta_generic_to_shared(tile[lane]));
  for (int i = 0; i < 8; ++i) tile[lane][i] = tile[32 + lane][i] = 0;
  __syncthreads();
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(in[lane]),
               "r"(in[32 + lane]), "r"(in[64 + lane]), "r"(in[96 + lane]));
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(row + 512), "r"(in[lane]),
               "r"(in[32 + lane]));
  __syncthreads();
  for (int i = 0; i < 8; ++i) out[8 * lane + i] = tile[lane][i], out[8 * (32 + lane) + i] = tile[32 + lane][i];
}
CASE(stmatrix) { stmatrix_kernel<<<1, 32>>>(call.data<uint32_t>(0), call.data<uint16_t>(1)); }
#endif

// ------------------------------------------------------------------------------------------------------------------
// mma.sync. Lane l passes registers l of a, b and c, and stores those of d.

template <int na, int nb, int nc, int nd>
struct Registers {
  uint32_t a[na], b[nb], c[nc], d[nd];
};
template <typename R>
__device__ void read(R& to, const uint32_t* from) {
  for (uint32_t& word : to) word = *from, from += 32;
}
template <typename R>
__global__ void mma_kernel(const uint32_t* a, const uint32_t* b, const uint32_t* c, uint32_t* d) {
  R r;
  const int lane = threadIdx.x;
  read(r.a, a + lane);
  read(r.b, b + lane);
  read(r.c, c + lane);
  r.multiply();
  for (uint32_t word : r.d) d[lane] = word, d += 32;
}
__device__ float& as_float(uint32_t& word) { return reinterpret_cast<float&>(word); }

// clang-format off
#define TO_FLOATS "=f"(as_float(d[0])), "=f"(as_float(d[1])), "=f"(as_float(d[2])), "=f"(as_float(d[3]))
#define FLOATS "f"(as_float(c[0])), "f"(as_float(c[1])), "f"(as_float(c[2])), "f"(as_float(c[3]))
#define TO_WORDS "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
#define WORDS "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3])
#define MMA_4_2(instruction, to, addend)                                                                     \
  asm volatile("mma.sync.aligned." instruction " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};" \
               : to : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), addend)
#define MMA_2_1(instruction, to, addend)                                                                     \
  asm volatile("mma.sync.aligned." instruction " {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};"              \
               : to : "r"(a[0]), "r"(a[1]), "r"(b[0]), addend)
struct F16 : Registers<4, 2, 4, 4> {
  __device__ void multiply() { MMA_4_2("m16n8k16.row.col.f32.f16.f16.f32", TO_FLOATS, FLOATS); }
};
struct Tf32 : Registers<4, 2, 4, 4> {
  __device__ void multiply() { MMA_4_2("m16n8k8.row.col.f32.tf32.tf32.f32", TO_FLOATS, FLOATS); }
};
struct S8 : Registers<4, 2, 4, 4> {
  __device__ void multiply() { MMA_4_2("m16n8k32.row.col.s32.s8.s8.s32", TO_WORDS, WORDS); }
};
struct F16OfDepth8 : Registers<2, 1, 4, 4> {
  __device__ void multiply() { MMA_2_1("m16n8k8.row.col.f32.f16.f16.f32", TO_FLOATS, FLOATS); }
};
struct Bf16OfDepth8 : Registers<2, 1, 4, 4> {
  __device__ void multiply() { MMA_2_1("m16n8k8.row.col.f32.bf16.bf16.f32", TO_FLOATS, FLOATS); }
};
struct Tf32OfDepth4 : Registers<2, 1, 4, 4> {
  __device__ void multiply() { MMA_2_1("m16n8k4.row.col.f32.tf32.tf32.f32", TO_FLOATS, FLOATS); }
};
struct U8S8 : Registers<2, 1, 4, 4> {
  __device__ void multiply() { MMA_2_1("m16n8k16.row.col.satfinite.s32.u8.s8.s32", TO_WORDS, WORDS); }
};
struct Bf16 : Registers<4, 2, 4, 4> {
  __device__ void multiply() {
    for (int i = 0; i < 4; ++i) d[i] = c[i];
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0,  %1,  %2,  %3},  {%4,  %5,  %6,  %7},  {%8,  %9},  {%0,  %1,  %2,  %3};"
                 : "+f"(as_float(d[0])), "+f"(as_float(d[1])), "+f"(as_float(d[2])), "+f"(as_float(d[3]))
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
};
#define MMA_4_2_TO_2(instruction) \
  asm volatile("mma.sync.aligned." instruction " {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%8,%9};" \
               : "=r"(d[0]), "=r"(d[1]) \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c[0]), "r"(c[1]))
#define MMA_1_1(instruction)                                                                                 \
  asm volatile("mma.sync.aligned." instruction " {%0,%1}, {%2}, {%3}, {%4,%5};"                              \
               : "=r"(d[0]), "=r"(d[1]) : "r"(a[0]), "r"(b[0]), "r"(c[0]), "r"(c[1]))
struct F16ToF16 : Registers<4, 2, 2, 2> {
  __device__ void multiply() { MMA_4_2_TO_2("m16n8k16.row.col.f16.f16.f16.f16"); }
};
struct S8Small : Registers<1, 1, 2, 2> {
  __device__ void multiply() { MMA_1_1("m8n8k16.row.col.s32.s8.s8.s32"); }
};
struct S8FromZero : Registers<1, 1, 2, 2> {  // c is written as numbers
  __device__ void multiply() {
    asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1}, {%2}, {%3}, {0,0};"
                 : "=r"(d[0]), "=r"(d[1]) : "r"(a[0]), "r"(b[0]));
    for (int i = 0; i < 2; ++i) d[i] += c[i];
  }
};
struct F16FromZero : Registers<2, 1, 4, 4> {
  __device__ void multiply() {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
                 "{0f00000000,0f00000000,0f00000000,0f00000000};"
                 : TO_FLOATS : "r"(a[0]), "r"(a[1]), "r"(b[0]));
    for (int i = 0; i < 4; ++i) as_float(d[i]) += as_float(c[i]);
  }
};
struct E4m3 : Registers<4, 2, 4, 4> {
  __device__ void multiply() { MMA_4_2("m16n8k32.row.col.f32.e4m3.e4m3.f32", TO_FLOATS, FLOATS); }
};
struct E5m2E4m3 : Registers<2, 1, 4, 4> {
  __device__ void multiply() { MMA_2_1("m16n8k16.row.col.f32.e5m2.e4m3.f32", TO_FLOATS, FLOATS); }
};
struct E5m2ToF16 : Registers<4, 2, 2, 2> {
  __device__ void multiply() { MMA_4_2_TO_2("m16n8k32.row.col.f16.e5m2.e5m2.f16"); }
};
struct S4 : Registers<4, 2, 4, 4> {
  __device__ void multiply() { MMA_4_2("m16n8k64.row.col.s32.s4.s4.s32", TO_WORDS, WORDS); }
};
struct U4S4 : Registers<2, 1, 4, 4> {
  __device__ void multiply() { MMA_2_1("m16n8k32.row.col.satfinite.s32.u4.s4.s32", TO_WORDS, WORDS); }
};
struct S4U4Small : Registers<1, 1, 2, 2> {
  __device__ void multiply() { MMA_1_1("m8n8k32.row.col.s32.s4.u4.s32"); }
};
struct BitsXor : Registers<4, 2, 4, 4> {
  __device__ void multiply() { MMA_4_2("m16n8k256.row.col.s32.b1.b1.s32.xor.popc", TO_WORDS, WORDS); }
};
struct BitsAnd : Registers<2, 1, 4, 4> {
  __device__ void multiply() { MMA_2_1("m16n8k128.row.col.s32.b1.b1.s32.and.popc", TO_WORDS, WORDS); }
};
struct BitsXorSmall : Registers<1, 1, 2, 2> {
  __device__ void multiply() { MMA_1_1("m8n8k128.row.col.s32.b1.b1.s32.xor.popc"); }
};
// Of float64, two words are a register.
__device__ double in(const uint32_t* words, int i) { return __hiloint2double(words[2 * i + 1], words[2 * i]); }
__device__ void out(uint32_t* words, const double* values, int count) {
  for (int i = 0; i < count; ++i) words[2 * i] = __double2loint(values[i]), words[2 * i + 1] = __double2hiint(values[i]);
}
struct F64Small : Registers<2, 2, 4, 4> {
  __device__ void multiply() {
    double v[2];
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%4,%5};"
                 : "=d"(v[0]), "=d"(v[1]) : "d"(in(a, 0)), "d"(in(b, 0)), "d"(in(c, 0)), "d"(in(c, 1)));
    out(d, v, 2);
  }
};
struct F64 : Registers<8, 4, 8, 8> {
  __device__ void multiply() {
    double v[4];
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64.rn {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%10,%11,%12,%13};"
                 : "=d"(v[0]), "=d"(v[1]), "=d"(v[2]), "=d"(v[3])
                 : "d"(in(a, 0)), "d"(in(a, 1)), "d"(in(a, 2)), "d"(in(a, 3)), "d"(in(b, 0)), "d"(in(b, 1)),
                   "d"(in(c, 0)), "d"(in(c, 1)), "d"(in(c, 2)), "d"(in(c, 3)));
    out(d, v, 4);
  }
};
// clang-format on

CASE(mma) {  // the number selects the instruction
  with_type<F16, Bf16, F16ToF16, F16OfDepth8, Bf16OfDepth8, Tf32, Tf32OfDepth4, S8, U8S8, S8Small, S8FromZero,
            F16FromZero, E4m3, E5m2E4m3, E5m2ToF16, S4, U4S4, S4U4Small, BitsXor, BitsAnd, BitsXorSmall, F64Small, F64>(
      call.number(0), [&](auto registers) { RUN(mma_kernel<decltype(registers)>, 1, 32); });
}
