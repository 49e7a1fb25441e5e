// intrinsics_test.cpp: integer intrinsics, conversions and maths against straightforward references.
#include "check.h"
#include "stub_runtime.h"

// The headers under test come last, as in a kernel: their macros must not reach the library's headers.
#include "cuda_runtime.h"
#include "math_constants.h"

using check::close;
using check::random_word;
using check::same;

struct Bits {  // of the low `width` bits of a number
  int ones = 0, leading, first = 0;
  uint64_t reversed = 0;
  Bits(uint64_t value, int width) : leading(width) {
    for (int i = 0; i < width; ++i) {
      if (!(value >> i & 1)) continue;
      ++ones;
      leading = width - 1 - i;
      reversed |= 1ull << leading;
      if (first == 0) first = i + 1;
    }
  }
};

static void bits() {
  for (int round = 0; round < 2000; ++round) {
    const uint64_t wide = round < 64 ? 1ull << round : round == 64 ? 0 : random_word() >> (random_word() % 64);
    const auto x = static_cast<unsigned>(wide), y = static_cast<unsigned>(random_word());
    const Bits narrow(wide, 32), all(wide, 64);
    same("__popc", __popc(x), narrow.ones);
    same("__popcll", __popcll(wide), all.ones);
    same("__clz", __clz(static_cast<int>(x)), narrow.leading);
    same("__clzll", __clzll(static_cast<long long>(wide)), all.leading);
    same("__ffs", __ffs(static_cast<int>(x)), narrow.first);
    same("__ffsll", __ffsll(static_cast<long long>(wide)), all.first);
    same("__brev", __brev(x), narrow.reversed);
    same("__brevll", __brevll(wide), all.reversed);

    unsigned char bytes[8];
    for (int i = 0; i < 8; ++i) bytes[i] = static_cast<unsigned char>((i < 4 ? x >> 8 * i : y >> 8 * (i - 4)));
    const auto selector = static_cast<unsigned>(random_word());  // bit 3 of a nibble has no effect
    unsigned permuted = 0;
    for (int i = 0; i < 4; ++i) permuted |= unsigned(bytes[selector >> 4 * i & 7]) << 8 * i;
    same("__byte_perm", __byte_perm(x, y, selector), permuted);

    const unsigned shift = static_cast<unsigned>(random_word() % 80);
    unsigned left = y, right = x, left_clamped = y, right_clamped = x;
    for (unsigned i = 0; i < shift; ++i) {  // one bit at a time
      if (i < shift % 32) {
        left = left << 1 | (x >> (31 - i) & 1);
        right = right >> 1 | (y >> i & 1) << 31;
      }
      if (i < 32) {
        left_clamped = left_clamped << 1 | (x >> (31 - i) & 1);
        right_clamped = right_clamped >> 1 | (y >> i & 1) << 31;
      }
    }
    same("__funnelshift_l", __funnelshift_l(x, y, shift), left);
    same("__funnelshift_r", __funnelshift_r(x, y, shift), right);
    same("__funnelshift_lc", __funnelshift_lc(x, y, shift), left_clamped);
    same("__funnelshift_rc", __funnelshift_rc(x, y, shift), right_clamped);

    const unsigned rank = static_cast<unsigned>(random_word() % 8);
    unsigned position = 0xffffffffu, seen = 0;
    for (unsigned i = 0; i < 32 && position == 0xffffffffu; ++i)
      if ((x >> i & 1) && seen++ == rank) position = i;
    same("__fns", __fns(x, 0, static_cast<int>(rank) + 1), position);
  }
  same("__fns downwards", __fns(0x90u, 6, -1), 4u);
  same("__fns at base", __fns(0x90u, 7, 0), 7u);
}

static unsigned __int128 product(uint64_t a, uint64_t b) { return static_cast<unsigned __int128>(a) * b; }

static void arithmetic() {
  for (int round = 0; round < 2000; ++round) {
    const uint64_t a = random_word(), b = random_word();
    const auto x = static_cast<unsigned>(a), y = static_cast<unsigned>(b), z = static_cast<unsigned>(a >> 32);
    const auto sx = static_cast<int>(x), sy = static_cast<int>(y), sz = static_cast<int>(z);
    same("__umulhi", __umulhi(x, y), static_cast<unsigned>(product(x, y) >> 32));
    same("__mulhi", __mulhi(sx, sy), __umulhi(x, y) - (sx < 0 ? y : 0) - (sy < 0 ? x : 0));
    same("__umul64hi", __umul64hi(a, b), static_cast<unsigned long long>(product(a, b) >> 64));
    same("__mul64hi", __mul64hi(static_cast<long long>(a), static_cast<long long>(b)),
         __umul64hi(a, b) - (a >> 63 ? b : 0) - (b >> 63 ? a : 0));
    same("__umul24", __umul24(x, y), static_cast<unsigned>(product(x % (1 << 24), y % (1 << 24))));
    const auto low24 = [](unsigned v) {
      v %= 1 << 24;
      return v < 1 << 23 ? int(v) : int(v) - (1 << 24);
    };
    same("__mul24", __mul24(sx, sy), static_cast<int>(static_cast<long long>(low24(x)) * low24(y)));
    const long long gap = std::llabs(static_cast<long long>(sx) - sy);
    same("__sad", __sad(sx, sy, z), static_cast<unsigned>(gap) + z);
    same("__usad", __usad(x, y, z), static_cast<unsigned>(std::llabs(static_cast<long long>(x) - y)) + z);
    same("__hadd of int", __hadd(sx, sy), std::floor((double(sx) + sy) / 2));
    same("__rhadd of int", __rhadd(sx, sy), std::ceil((double(sx) + sy) / 2));
    same("__uhadd", __uhadd(x, y), std::floor((double(x) + y) / 2));
    same("__urhadd", __urhadd(x, y), std::ceil((double(x) + y) / 2));
    int dot = sz;
    unsigned udot = z, low = z, high = z;
    for (int i = 0; i < 4; ++i) {
      const auto p = static_cast<signed char>(x >> 8 * i), q = static_cast<signed char>(y >> 8 * i);
      dot = static_cast<int>(static_cast<unsigned>(dot) + static_cast<unsigned>(p * q));
      udot += (x >> 8 * i & 255) * (y >> 8 * i & 255);
      if (i < 2) low += (x >> 16 * i & 0xffff) * (y >> 8 * i & 255);
      if (i < 2) high += (x >> 16 * i & 0xffff) * (y >> (8 * i + 16) & 255);
    }
    same("__dp4a", __dp4a(sx, sy, sz), dot);
    same("__dp4a unsigned", __dp4a(x, y, z), udot);
    same("__dp2a_lo", __dp2a_lo(x, y, z), low);
    same("__dp2a_hi", __dp2a_hi(x, y, z), high);
  }
  same("__dp2a_lo signed", __dp2a_lo(make_short2(-3, 5), make_char4(7, -2, 100, 100), 1), -3 * 7 - 5 * 2 + 1);
}

static void conversions() {
  same("__float_as_int", __float_as_int(-0.0f), INT32_MIN);
  same("__uint_as_float", __uint_as_float(0x3f800000u), 1.0f);
  same("__int_as_float", __int_as_float(0x40000000), 2.0f);
  same("__double_as_longlong", __double_as_longlong(1.0), 0x3ff0000000000000ll);
  same("__longlong_as_double", __longlong_as_double(0x4000000000000000ll), 2.0);
  same("__hiloint2double", __hiloint2double(0x3ff00000, 0), 1.0);
  same("__double2hiint", __double2hiint(-2.0), static_cast<int>(0xc0000000u));
  same("__double2loint", __double2loint(1.0 + 0x1p-52), 1);
  const float ties[] = {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 1.25f, -1.75f};
  for (float x : ties) {
    same("__float2int_rn", __float2int_rn(x), std::nearbyint(x));
    same("__float2int_rz", __float2int_rz(x), std::trunc(x));
    same("__float2int_ru", __float2int_ru(x), std::ceil(x));
    same("__float2int_rd", __float2int_rd(x), std::floor(x));
    same("__double2ll_rd", __double2ll_rd(x), std::floor(x));
    same("__float2ull_ru", __float2ull_ru(std::fabs(x)), std::ceil(std::fabs(x)));
  }
  same("saturates above", __float2int_rz(3e9f), INT32_MAX);
  same("saturates below", __double2int_rn(-3e9), INT32_MIN);
  same("saturates at 0", __float2uint_rn(-5.0f), 0u);
  same("saturates at 2^64", __float2ull_rz(2e19f), UINT64_MAX);
  same("saturates at 2^63", __double2ll_rz(1e19), INT64_MAX);
  same("NaN to int", __float2int_rn(NAN), 0);
  same("NaN to long long", __float2ll_rn(NAN), INT64_MIN);
  same("NaN of double", __double2uint_rn(NAN), 0x80000000u);
  const int big = (1 << 24) + 1;  // halfway between two floats
  same("__int2float_rn", __int2float_rn(big), 16777216.0f);
  same("__int2float_ru", __int2float_ru(big), 16777218.0f);
  same("__int2float_rd", __int2float_rd(-big), -16777218.0f);
  same("__int2float_rz", __int2float_rz(-big), -16777216.0f);
  same("__ull2double_rd", __ull2double_rd(UINT64_MAX), 0x1.fffffffffffffp63);
  same("__double2float_ru", __double2float_ru(0.1), 0.1f);  // the nearest float is above 0.1
  same("__double2float_rd", __double2float_rd(0.1), std::nextafter(0.1f, 0.0f));
}

// A rounded result brackets the exact one, which long double holds for these operands.
static void rounding() {
  for (int round = 0; round < 3000; ++round) {
    const float a = std::ldexp(static_cast<float>(random_word() % 16777216 + 1), int(random_word() % 20) - 30);
    const float b = -std::ldexp(static_cast<float>(random_word() % 16777216 + 1), int(random_word() % 20) - 30);
    const long double sum = static_cast<long double>(a) + b, product_ = static_cast<long double>(a) * b;
    const auto brackets = [](const char* name, float up, float down, float zero, long double exact) {
      const float above = static_cast<float>(exact) < exact ? std::nextafter(static_cast<float>(exact), INFINITY)
                                                            : static_cast<float>(exact);
      const float below = static_cast<float>(exact) > exact ? std::nextafter(static_cast<float>(exact), -INFINITY)
                                                            : static_cast<float>(exact);
      same(std::string(name) + "_ru", up, above);
      same(std::string(name) + "_rd", down, below);
      same(std::string(name) + "_rz", zero, exact < 0 ? above : below);
    };
    brackets("__fadd", __fadd_ru(a, b), __fadd_rd(a, b), __fadd_rz(a, b), sum);
    brackets("__fsub", __fsub_ru(a, -b), __fsub_rd(a, -b), __fsub_rz(a, -b), sum);
    brackets("__fmul", __fmul_ru(a, b), __fmul_rd(a, b), __fmul_rz(a, b), product_);
    brackets("__fmaf", __fmaf_ru(a, b, 0), __fmaf_rd(a, b, 0), __fmaf_rz(a, b, 0), product_);
    same("__fadd_rn", __fadd_rn(a, b), static_cast<float>(sum));
    same("__fmul_rn", __fmul_rn(a, b), static_cast<float>(product_));
    same("__fsqrt_rn", __fsqrt_rn(a), static_cast<float>(std::sqrt(static_cast<long double>(a))));
    same("__frcp_ru of __frcp_rd", double(__frcp_rd(a)) * a <= 1 && double(__frcp_ru(a)) * a >= 1, true);
    same("__ddiv",
         static_cast<long double>(__ddiv_ru(a, 3.0)) * 3 >= a && static_cast<long double>(__ddiv_rd(a, 3.0)) * 3 <= a,
         true);
  }
  same("rounding mode restored", 1.0 / 3.0 == __ddiv_rn(1.0, 3.0), true);
}

static void maths() {
  same("max int unsigned", max(-1, 1u), 0xffffffffu);
  same("max int", max(-1, 1), 1);
  same("min long long", min(-5ll, 3ll), -5ll);
  same("max float double", max(1.0f, 2.0), 2.0);
  same("max ignores NaN", max(NAN, 2.0f), 2.0f);
  same("min ignores NaN", min(2.0f, NAN), 2.0f);
  same("sinpi exact", sinpi(1e6), 0.0);
  same("sinpif half", sinpif(-2.5f), -1.0f);
  same("cospi half", cospi(0.5), 0.0);
  for (double x : {-3.0, -0.7, 0.1, 0.5, 1.3, 2.9}) {
    const double e = 1e-13;
    close("exp10", exp10(x), std::pow(10.0, x), e);
    close("exp10f", exp10f(float(x)), std::pow(10.0, double(float(x))), 1e-6);
    close("sinpi", sinpi(x), std::sin(x * M_PI), 1e-12);
    close("cospi", cospi(x), std::cos(x * M_PI), 1e-12);
    close("normcdf", normcdf(x), 0.5 * std::erfc(-x / std::sqrt(2.0)), e);
    close("normcdfinv", normcdfinv(normcdf(x)), x, 1e-12);
    close("erfcinv", erfcinv(std::erfc(x)), x, 1e-11);
    close("erfinv", erfinv(std::erf(x)), x, 1e-10);
    close("erfcx", erfcx(x), std::exp(x * x) * std::erfc(x), 1e-13);
    const double s = std::fabs(x);
    close("rsqrt", rsqrt(s), 1 / std::sqrt(s), e);
    close("rsqrtf", rsqrtf(float(s)), 1 / std::sqrt(double(float(s))), 2e-7);
    close("rcbrt", rcbrt(x), 1 / std::cbrt(x), e);
    close("norm3df", norm3df(float(x), 2, 3), std::sqrt(double(float(x)) * float(x) + 13), 1e-6);
    close("rhypot", rhypot(x, 2.0), 1 / std::sqrt(x * x + 4), e);
    close("__expf", __expf(float(x)), std::exp(double(float(x))), 1e-6);
    close("__logf", __logf(float(s)), std::log(double(float(s))), 1e-6);
    close("__powf", __powf(float(s), 1.5f), std::pow(double(float(s)), 1.5), 1e-6);
    close("__sinf", __sinf(float(x)), std::sin(double(float(x))), 4e-6);  // 2^-21.41 absolute
    double sine, cosine;
    sincos(x, &sine, &cosine);
    close("sincos", sine * 2 + cosine, std::sin(x) * 2 + std::cos(x), 1e-12);
    float sine_f, cosine_f;
    sincospif(float(x), &sine_f, &cosine_f);
    close("sincospif", sine_f * 2.0 + cosine_f, 2 * sinpi(double(float(x))) + cospi(double(float(x))), 1e-5);
    __sincosf(float(x), &sine_f, &cosine_f);
    close("__sincosf", sine_f * 2.0 + cosine_f, std::sin(x) * 2 + std::cos(x), 1e-5);
  }
  close("erfcx far out", erfcx(1e10), 0.56418958354775628695e-10, 1e-15);
  close("erfcx negative", erfcx(-5.0), 144009798674.66104, 1e-13);
  close("erfcinv of a tiny value", erfcinv(std::erfc(26.0)), 26.0, 1e-13);
  close("cyl_bessel_i0", cyl_bessel_i0(2.0), 2.2795853023360673, 1e-14);
  close("cyl_bessel_i1", cyl_bessel_i1(-2.0), -1.5906368546373291, 1e-14);
  close("cyl_bessel_i0 far out", cyl_bessel_i0(100.0), 1.0737517071310738e42, 1e-13);
  close("__powf of a negative base", __powf(-2.0f, 2.0f), NAN, 0);
  close("__fdividef by a huge number", __fdividef(1.0f, 0x1.8p126f), 0, 0);
  close("__fdividef", __fdividef(1.0f, 3.0f), 1.0f / 3.0f, 2e-7);
  same("__saturatef", __saturatef(1.5f), 1.0f);
  same("__saturatef of NaN", __saturatef(NAN), 0.0f);
  close("CUDART_PI", CUDART_PI, std::acos(-1.0), 0);
  close("CUDART_INF_F", CUDART_INF_F, INFINITY, 0);
}

static void memory() {
  alignas(16) float data[4] = {1, 2, 3, 4};
  const float4 four = __ldg(reinterpret_cast<const float4*>(data));
  same("__ldg of float4", four.x + 10 * four.w, 41.0f);
  __stcs(reinterpret_cast<float2*>(data), make_float2(7, 8));
  same("__stcs of float2", data[0] + 10 * data[1] + 100 * data[2], 387.0f);
  same("alignments", alignof(float4) + alignof(double2) + alignof(double4) + alignof(uchar4) + alignof(short3), 54u);
  same("sizes", sizeof(float3) + sizeof(double4) + sizeof(char3) + sizeof(uint4), 63u);
  bool trapped = false;
  try {
    __trap();
  } catch (const simt::Fault& fault) {
    trapped = fault.kind == "trap";
  }
  same("__trap", trapped, true);
  std::string message;
  try {
    assert(std::is_same_v<int, int> && data[1] < 0);
  } catch (const simt::Fault& fault) {
    message = fault.message;
  }
  same("assert", message.find("data[1] < 0") != std::string::npos, true);
  const long long before = clock64();
  volatile double work = 1;
  for (int i = 0; i < 100000; ++i) work = work * 1.0000001;
  same("clock64 runs", clock64() > before, true);
}

int main(int argc, char** argv) {
  return check::run(argc, argv, {bits, arithmetic, conversions, rounding, maths, memory});
}
