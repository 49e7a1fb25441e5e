// ptx_values.cu: inline PTX that computes. Thread i applies each instruction of a kernel to element i of the inputs and
// writes the results side by side; the test computes them in Python, which reads the instructions from this file.
#include "case.h"

__global__ void words(const uint32_t* as, const uint32_t* bs, const uint32_t* cs, uint32_t* d, int count) {
  uint32_t i = threadIdx.x, a = as[i], b = bs[i], c = cs[i], shift = c % 40;
  d += i * count;
  asm("add.u32 %0, %1, %2;" : "=r"(*d++) : "r"(a), "r"(b));
  asm("add.sat.s32 %0, %1, %2;" : "=r"(*d++) : "r"(a), "r"(b));
  asm("sub.s32 %0, %1, %2;" : "=r"(*d++) : "r"(a), "r"(b));
  asm("sub.sat.s32 %0, %1, %2;" : "=r"(*d++) : "r"(a), "r"(b));
  asm("mul.lo.u32 %0, %1, %2;" : "=r"(*d++) : "r"(a), "r"(b));
  asm("mul.hi.u32 %0, %1, %2;" : "=r"(*d++) : "r"(a), "r"(b));
  asm("mul.hi.s32 %0, %1, %2;" : "=r"(*d++) : "r"(a), "r"(b));
  asm("mad.lo.s32 %0, %1, %2, %3;" : "=r"(*d++) : "r"(a), "r"(b), "r"(c));
  asm("mad.hi.u32 %0, %1, %2, %3;" : "=r"(*d++) : "r"(a), "r"(b), "r"(c));
  asm("sad.s32 %0, %1, %2, %3;" : "=r"(*d++) : "r"(a), "r"(b), "r"(c));
  asm("div.u32 %0, %1, %2;" : "=r"(*d++) : "r"(a), "r"(c | 1));
  asm("div.s32 %0, %1, %2;" : "=r"(*d++) : "r"(a), "r"(c >> 3 | 1));
  asm("rem.s32 %0, %1, %2;" : "=r"(*d++) : "r"(a), "r"(c >> 3 | 1));
  asm("abs.s32 %0, %1;" : "=r"(*d++) : "r"(a));
  asm("neg.s32 %0, %1;" : "=r"(*d++) : "r"(a));
  asm("min.s32 %0, %1, %2;" : "=r"(*d++) : "r"(a), "r"(b));
  asm("max.u32 %0, %1, %2;" : "=r"(*d++) : "r"(a), "r"(b));
  asm("popc.b32 %0, %1;" : "=r"(*d++) : "r"(a));
  asm("clz.b32 %0, %1;" : "=r"(*d++) : "r"(a));
  asm("brev.b32 %0, %1;" : "=r"(*d++) : "r"(a));
  asm("bfind.u32 %0, %1;" : "=r"(*d++) : "r"(a));
  asm("bfind.s32 %0, %1;" : "=r"(*d++) : "r"(a));
  asm("bfind.shiftamt.u32 %0, %1;" : "=r"(*d++) : "r"(a));
  asm("bfe.u32 %0, %1, %2, %3;" : "=r"(*d++) : "r"(a), "r"(shift), "r"(b));
  asm("bfe.s32 %0, %1, %2, %3;" : "=r"(*d++) : "r"(a), "r"(shift), "r"(b % 40));
  asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(*d++) : "r"(a), "r"(b), "r"(shift), "r"(c >> 8));
  asm("and.b32 %0, %1, %2;" : "=r"(*d++) : "r"(a), "r"(b));
  asm("or.b32 %0, %1, 0xf0U;" : "=r"(*d++) : "r"(a));
  asm("xor.b32 %0, %1, %2;" : "=r"(*d++) : "r"(a), "r"(b));
  asm("not.b32 %0, %1;" : "=r"(*d++) : "r"(a));
  asm("cnot.b32 %0, %1;" : "=r"(*d++) : "r"(a % 3));
  asm("lop3.b32 %0, %1, %2, %3, 0xe8;" : "=r"(*d++) : "r"(a), "r"(b), "r"(c));
  asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(*d++) : "r"(a), "r"(b), "r"(c));
  asm("shl.b32 %0, %1, %2;" : "=r"(*d++) : "r"(a), "r"(shift));
  asm("shr.u32 %0, %1, %2;" : "=r"(*d++) : "r"(a), "r"(shift));
  asm("shr.s32 %0, %1, %2;" : "=r"(*d++) : "r"(a), "r"(shift));
  asm("shf.l.wrap.b32 %0, %1, %2, %3;" : "=r"(*d++) : "r"(a), "r"(b), "r"(shift));
  asm("shf.r.wrap.b32 %0, %1, %2, %3;" : "=r"(*d++) : "r"(a), "r"(b), "r"(shift));
  asm("shf.l.clamp.b32 %0, %1, %2, %3;" : "=r"(*d++) : "r"(a), "r"(b), "r"(shift));
  asm("shf.r.clamp.b32 %0, %1, %2, %3;" : "=r"(*d++) : "r"(a), "r"(b), "r"(shift));
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(*d++) : "r"(a), "r"(b), "r"(c));
  asm("dp4a.s32.u32 %0, %1, %2, %3;" : "=r"(*d++) : "r"(a), "r"(b), "r"(c));
  asm("dp4a.u32.u32 %0, %1, %2, %3;" : "=r"(*d++) : "r"(a), "r"(b), "r"(c));
  asm("dp2a.hi.s32.s32 %0, %1, %2, %3;" : "=r"(*d++) : "r"(a), "r"(b), "r"(c));
  asm("vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;" : "=r"(*d++) : "r"(a), "r"(b), "r"(c));
  asm("vabsdiff4.u32.u32.u32 %0, %1, %2, %3;" : "=r"(*d++) : "r"(a), "r"(b), "r"(c));
  asm("vmax2.s32.s32.s32 %0, %1, %2, %3;" : "=r"(*d++) : "r"(a), "r"(b), "r"(c));
  asm("vadd4.u32.u32.u32 %0, %1, %2, %3;" : "=r"(*d++) : "r"(a), "r"(b), "r"(c));
  asm("fns.b32 %0, %1, %2, %3;" : "=r"(*d++) : "r"(a), "r"(b % 32), "r"(int(c % 7) - 3));
  asm("cvt.u32.u8 %0, %1;" : "=r"(*d++) : "r"(a));
  asm("cvt.s32.s16 %0, %1;" : "=r"(*d++) : "r"(a));
  asm("cvt.sat.u8.s32 %0, %1;" : "=r"(*d++) : "r"(a >> 3));
  asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;" : "=r"(*d++) : "r"(a), "r"(b % 200), "r"(c));
  asm("{ .reg .b16 low, high; mov.b32 {low, high}, %1; mov.b32 %0, {high, low}; }" : "=r"(*d++) : "r"(a));
  asm("{ .reg .b8 p<4>; mov.b32 {p0, p1, p2, p3}, %1; mov.b32 %0, {p3, p2, p1, p0}; }" : "=r"(*d++) : "r"(a));
  asm("{ .reg .pred p, q; setp.lt.s32 p|q, %1, %2; selp.b32 %0, 1, 2, p; @q add.u32 %0, %0, 4; }"
      : "=r"(*d++)
      : "r"(a), "r"(b));
  asm("{ .reg .pred p, q; setp.hi.u32 p, %1, %2; setp.eq.and.b32 q, %3, 3, !p; selp.u32 %0, 1, 0, q; }"
      : "=r"(*d++)
      : "r"(a), "r"(b), "r"(c % 4));
  asm("set.ge.u32.s32 %0, %1, %2;" : "=r"(*d++) : "r"(a), "r"(b));
  asm("slct.b32.s32 %0, %1, %2, %3;" : "=r"(*d++) : "r"(a), "r"(b), "r"(c));
  // Counts the bits with a loop, and assembles a register from an operand that is read and written.
  uint32_t rest = a;
  asm("{\n"
      "  .reg .pred more;\n"
      "  mov.u32 %0, 0;\n"
      "again:  // comments end with the line\n"
      "  setp.ne.u32 more, %1, 0;\n"
      "  @!more bra.uni done;\n"
      "  { .reg .b32 %%less; sub.u32 %%less, %1, 1; and.b32 %1, %1, %%less; }\n"
      "  add.u32 %0, %0, 1;\n"
      "  bra again;\n"
      "done:\n"
      "}"
      : "=&r"(*d++), "+r"(rest));
  asm volatile("" : "+r"(rest) : : "memory");
}

__global__ void long_words(const uint64_t* as, const uint64_t* bs, const uint64_t* cs, uint64_t* d, int count) {
  uint64_t i = threadIdx.x, a = as[i], b = bs[i], c = cs[i];
  uint32_t a1 = uint32_t(a), b1 = uint32_t(b), b2 = uint32_t(b >> 32), shift = uint32_t(c % 70);
  d += i * count;
  asm("add.u64 %0, %1, %2;" : "=l"(*d++) : "l"(a), "l"(b));
  asm("mul.lo.u64 %0, %1, %2;" : "=l"(*d++) : "l"(a), "l"(b));
  asm("mul.hi.u64 %0, %1, %2;" : "=l"(*d++) : "l"(a), "l"(b));
  asm("mul.hi.s64 %0, %1, %2;" : "=l"(*d++) : "l"(a), "l"(b));
  asm("mul.wide.u32 %0, %1, %2;" : "=l"(*d++) : "r"(a1), "r"(b1));
  asm("mul.wide.s32 %0, %1, %2;" : "=l"(*d++) : "r"(a1), "r"(b1));
  asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(*d++) : "r"(a1), "r"(b1), "l"(c));
  asm("shl.b64 %0, %1, %2;" : "=l"(*d++) : "l"(a), "r"(shift));
  asm("shr.s64 %0, %1, %2;" : "=l"(*d++) : "l"(a), "r"(shift));
  asm("bfe.u64 %0, %1, %2, %3;" : "=l"(*d++) : "l"(a), "r"(shift), "r"(b1 % 70));
  asm("bfi.b64 %0, %1, %2, %3, %4;" : "=l"(*d++) : "l"(a), "l"(b), "r"(shift), "r"(b1 % 70));
  asm("{ .reg .u32 n; popc.b64 n, %1; cvt.u64.u32 %0, n; }" : "=l"(*d++) : "l"(a));
  asm("{ .reg .u32 n; clz.b64 n, %1; cvt.u64.u32 %0, n; }" : "=l"(*d++) : "l"(a));
  asm("brev.b64 %0, %1;" : "=l"(*d++) : "l"(a));
  asm("mov.b64 %0, {%1, %2};" : "=l"(*d++) : "r"(b1), "r"(a1));
  asm("{ .reg .b32 low, high; mov.b64 {low, high}, %1; mov.b64 %0, {high, low}; }" : "=l"(*d++) : "l"(a));
  asm("cvt.s64.s32 %0, %1;" : "=l"(*d++) : "r"(a1));
  asm("add.u64 %0, %1, 0xfedcba9876543210;" : "=l"(*d++) : "l"(a));
  // Carry chains: in one statement, over several ones, with borrows, and in a product of two words.
  uint32_t low, middle, high;
  asm("add.cc.u32 %0, %3, %4; addc.cc.u32 %1, %3, %5; addc.u32 %2, 0, 0;"
      : "=r"(low), "=r"(middle), "=r"(high)
      : "r"(a1), "r"(b1), "r"(b2));
  *d++ = low + (uint64_t(middle) << 32) + high;
  uint64_t more;
  asm volatile("add.cc.u64 %0, %1, %2;" : "=l"(*d++) : "l"(a), "l"(b));
  more = cs[i];
  asm volatile("addc.u64 %0, %1, 0;" : "=l"(*d++) : "l"(more));
  asm volatile("sub.cc.u64 %0, %1, %2;" : "=l"(*d++) : "l"(a), "l"(b));
  asm volatile("subc.u64 %0, %1, 1;" : "=l"(*d++) : "l"(more));
  asm("{ .reg .u64 t; mad.lo.cc.u64 %0, %1, %2, %3; madc.hi.u64 t, %1, %2, %3; xor.b64 %0, %0, t; }"
      : "=l"(*d++)
      : "l"(a), "l"(b), "l"(c));
}

__global__ void floats(const float* as, const float* bs, const float* cs, float* d, int count) {
  int i = threadIdx.x;
  float a = as[i], b = bs[i], c = cs[i];
  d += i * count;
  asm("add.f32 %0, %1, %2;" : "=f"(*d++) : "f"(a), "f"(b));
  asm("add.rz.f32 %0, %1, %2;" : "=f"(*d++) : "f"(a), "f"(b));
  asm("sub.rm.f32 %0, %1, %2;" : "=f"(*d++) : "f"(a), "f"(b));
  asm("mul.rp.f32 %0, %1, %2;" : "=f"(*d++) : "f"(a), "f"(b));
  asm("mul.rn.ftz.f32 %0, %1, %2;" : "=f"(*d++) : "f"(a), "f"(b));
  asm("add.sat.f32 %0, %1, %2;" : "=f"(*d++) : "f"(a), "f"(b));
  asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(*d++) : "f"(a), "f"(b), "f"(c));
  asm("fma.rz.f32 %0, %1, %2, %3;" : "=f"(*d++) : "f"(a), "f"(b), "f"(c));
  asm("div.rn.f32 %0, %1, %2;" : "=f"(*d++) : "f"(a), "f"(b));
  asm("div.rm.f32 %0, %1, %2;" : "=f"(*d++) : "f"(a), "f"(b));
  asm("rcp.rn.f32 %0, %1;" : "=f"(*d++) : "f"(a));
  asm("sqrt.rn.f32 %0, %1;" : "=f"(*d++) : "f"(a));
  asm("min.f32 %0, %1, %2;" : "=f"(*d++) : "f"(a), "f"(b));
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(*d++) : "f"(a), "f"(b));
  asm("abs.f32 %0, %1;" : "=f"(*d++) : "f"(a));
  asm("neg.ftz.f32 %0, %1;" : "=f"(*d++) : "f"(a));
  asm("copysign.f32 %0, %1, %2;" : "=f"(*d++) : "f"(a), "f"(b));
  asm("add.f32 %0, %1, 0f3F800000;" : "=f"(*d++) : "f"(a));
  asm("mul.f32 %0, %1, -2.5;" : "=f"(*d++) : "f"(a));
  asm("cvt.rni.f32.f32 %0, %1;" : "=f"(*d++) : "f"(a));
  asm("cvt.rpi.f32.f32 %0, %1;" : "=f"(*d++) : "f"(a));
  asm("cvt.sat.f32.f32 %0, %1;" : "=f"(*d++) : "f"(a));
  asm("{ .reg .b16 h; cvt.rn.f16.f32 h, %1; cvt.f32.f16 %0, h; }" : "=f"(*d++) : "f"(a));
  asm("{ .reg .b16 h; cvt.rz.f16.f32 h, %1; cvt.f32.f16 %0, h; }" : "=f"(*d++) : "f"(a));
  asm("{ .reg .b16 h; cvt.rn.bf16.f32 h, %1; mov.b32 %0, {0, h}; }" : "=f"(*d++) : "f"(a));
  asm("{ .reg .f64 w; cvt.f64.f32 w, %1; mul.rn.f64 w, w, 0d3FF0000010000000; cvt.rn.f32.f64 %0, w; }"
      : "=f"(*d++)
      : "f"(a));
  asm("{ .reg .s32 n; cvt.rzi.s32.f32 n, %1; cvt.rn.f32.s32 %0, n; }" : "=f"(*d++) : "f"(a));
  asm("{ .reg .u32 n; cvt.rmi.u32.f32 n, %1; cvt.rz.f32.u32 %0, n; }" : "=f"(*d++) : "f"(a));
  asm("{ .reg .b32 t; cvt.rna.tf32.f32 t, %1; mov.b32 %0, t; }" : "=f"(*d++) : "f"(a));
  asm("{ .reg .pred p; setp.lt.f32 p, %1, %2; selp.f32 %0, 0f3f800000, 0f00000000, p; }" : "=f"(*d++) : "f"(a), "f"(b));
  asm("{ .reg .pred p; setp.geu.f32 p, %1, %2; selp.f32 %0, 0f3f800000, 0f00000000, p; }"
      : "=f"(*d++)
      : "f"(a), "f"(b));
  asm("set.ne.f32.f32 %0, %1, %2;" : "=f"(*d++) : "f"(a), "f"(b));
  asm("{ .reg .pred p; testp.subnormal.f32 p, %1; selp.f32 %0, 0f3f800000, 0f00000000, p; }" : "=f"(*d++) : "f"(a));
}

__global__ void float_pairs(const float2* as, const float2* bs, const float2* cs, uint64_t* d, int count) {
#if __CUDA_ARCH__ >= 1000 || defined(__SIMT__)
  int i = threadIdx.x;
  uint64_t a = reinterpret_cast<const uint64_t&>(as[i]), b = reinterpret_cast<const uint64_t&>(bs[i]);
  uint64_t c = reinterpret_cast<const uint64_t&>(cs[i]);
  d += i * count;
  asm("add.rz.f32x2 %0, %1, %2;" : "=l"(*d++) : "l"(a), "l"(b));
  asm("mul.ftz.f32x2 %0, %1, %2;" : "=l"(*d++) : "l"(a), "l"(b));
  asm("fma.rn.f32x2 %0, %1, %2, %3;" : "=l"(*d++) : "l"(a), "l"(b), "l"(c));
#endif
}
CASE(values_of_float_pairs) {
  float_pairs<<<1, call.size(0)>>>(call.data<float2>(0), call.data<float2>(1), call.data<float2>(2),
                                   call.data<uint64_t>(3), static_cast<int>(call.number(0)));
}

// Approximations: the test compares them with the bounds of the PTX ISA.
__global__ void approximations(const float* as, const float* bs, float* d, int count) {
  int i = threadIdx.x;
  float a = as[i], b = bs[i];
  d += i * count;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(*d++) : "f"(a));
  asm("lg2.approx.f32 %0, %1;" : "=f"(*d++) : "f"(b));
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(*d++) : "f"(b));
  asm("rsqrt.approx.f32 %0, %1;" : "=f"(*d++) : "f"(b));
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(*d++) : "f"(b));
  asm("sin.approx.f32 %0, %1;" : "=f"(*d++) : "f"(a));
  asm("cos.approx.ftz.f32 %0, %1;" : "=f"(*d++) : "f"(a));
  asm("tanh.approx.f32 %0, %1;" : "=f"(*d++) : "f"(a));
  asm("div.approx.f32 %0, %1, %2;" : "=f"(*d++) : "f"(a), "f"(b));
  asm("div.full.f32 %0, %1, %2;" : "=f"(*d++) : "f"(a), "f"(b));
}

// Pairs of 16-bit numbers, a word each.
__global__ void halves(const uint32_t* as, const uint32_t* bs, const uint32_t* cs, uint32_t* d, int count) {
  uint32_t i = threadIdx.x, a = as[i], b = bs[i], c = cs[i];
  d += i * count;
  asm("add.f16x2 %0, %1, %2;" : "=r"(*d++) : "r"(a), "r"(b));
  asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(*d++) : "r"(a), "r"(b));
  asm("mul.f16x2 %0, %1, %2;" : "=r"(*d++) : "r"(a), "r"(b));
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(*d++) : "r"(a), "r"(b), "r"(c));
  asm("fma.rn.relu.f16x2 %0, %1, %2, %3;" : "=r"(*d++) : "r"(a), "r"(b), "r"(c));
  asm("max.f16x2 %0, %1, %2;" : "=r"(*d++) : "r"(a), "r"(b));
  asm("min.NaN.f16x2 %0, %1, %2;" : "=r"(*d++) : "r"(a), "r"(b));
  asm("neg.f16x2 %0, %1;" : "=r"(*d++) : "r"(a));
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(*d++) : "r"(a), "r"(b), "r"(c));
  asm("max.bf16x2 %0, %1, %2;" : "=r"(*d++) : "r"(a), "r"(b));
  asm("add.f16 %0, %1, %2;" : "=h"(*reinterpret_cast<uint16_t*>(d++)) : "h"(uint16_t(a)), "h"(uint16_t(b)));
  asm("{ .reg .pred p; setp.gt.f16 p, %1, %2; selp.u32 %0, 1, 0, p; }"
      : "=r"(*d++)
      : "h"(uint16_t(a)), "h"(uint16_t(b)));
  asm("{ .reg .f32 x, y; mov.b32 x, %1; mov.b32 y, %2; cvt.rn.f16x2.f32 %0, x, y; }" : "=r"(*d++) : "r"(a), "r"(b));
  asm("{ .reg .f32 x, y; mov.b32 x, %1; mov.b32 y, %2; cvt.rn.relu.bf16x2.f32 %0, x, y; }"
      : "=r"(*d++)
      : "r"(a), "r"(b));
}

__global__ void doubles(const double* as, const double* bs, const double* cs, double* d, int count) {
  int i = threadIdx.x;
  double a = as[i], b = bs[i], c = cs[i];
  d += i * count;
  asm("add.rn.f64 %0, %1, %2;" : "=d"(*d++) : "d"(a), "d"(b));
  asm("mul.rz.f64 %0, %1, %2;" : "=d"(*d++) : "d"(a), "d"(b));
  asm("fma.rn.f64 %0, %1, %2, %3;" : "=d"(*d++) : "d"(a), "d"(b), "d"(c));
  asm("div.rn.f64 %0, %1, %2;" : "=d"(*d++) : "d"(a), "d"(b));
  asm("sqrt.rn.f64 %0, %1;" : "=d"(*d++) : "d"(a));
  asm("max.f64 %0, %1, %2;" : "=d"(*d++) : "d"(a), "d"(b));
  asm("{ .reg .s64 n; cvt.rzi.s64.f64 n, %1; cvt.rn.f64.s64 %0, n; }" : "=d"(*d++) : "d"(a));
  asm("{ .reg .b32 low, high; mov.b64 {low, high}, %1; mov.b64 %0, {low, high}; }" : "=d"(*d++) : "d"(a));
}

#define VALUES(name, T)                                                                           \
  CASE(values_of_##name) {                                                                        \
    name<<<1, call.size(0)>>>(call.data<T>(0), call.data<T>(1), call.data<T>(2), call.data<T>(3), \
                              static_cast<int>(call.number(0)));                                  \
  }
VALUES(words, uint32_t)
VALUES(long_words, uint64_t)
VALUES(floats, float)
VALUES(halves, uint32_t)
VALUES(doubles, double)

CASE(values_of_approximations) {
  approximations<<<1, call.size(0)>>>(call.data<float>(0), call.data<float>(1), call.data<float>(2),
                                      static_cast<int>(call.number(0)));
}
