// curand_kernel.h: random numbers in kernels: states that a kernel initialises and draws from.
//
// The bits of XORWOW, Philox4_32_10 and MRG32k3a, and the uniform numbers made of them, are those of a GPU
// (simt/random_engines.h). Normal numbers are made of the same bits in the same way (Box and Muller's method), and
// differ in the last places, since a GPU's sine and cosine are approximate. Poisson numbers have the right distribution
// and come in another sequence. Mersenne Twister and Sobol states are not supported.
#pragma once

#include <math.h>

#include "curand.h"
#include "simt/random_engines.h"
#include "simt/runtime_refused.h"
#include "simt/vector_types.h"

namespace simt::random {

enum class Kept : int { nothing, normal, log_normal };

// An engine, and the second number of the last pair of normal numbers.
template <typename Engine>
struct State : Engine {
  Kept kept, kept_double;
  float value;
  double value_double;
};

inline constexpr float kTwoPi = 6.2831855f;
inline constexpr float kPow32 = 0x1p-32f;

inline float unit(uint32_t bits) { return static_cast<float>(bits) * kPow32 + kPow32 / 2; }  // above 0, at most 1
inline double unit_double(uint32_t low, uint32_t high) {
  return static_cast<double>(uint64_t(low) ^ uint64_t(high) << 21) * 0x1p-53 + 0x1p-54;
}

struct Pair {
  float x, y;
};
struct PairDouble {
  double x, y;
};
inline Pair box_muller(float u, float angle) {
  const float radius = sqrtf(-2 * logf(u));
  return {radius * sinf(angle), radius * cosf(angle)};
}
inline PairDouble box_muller(double u, double half_turns) {
  const double radius = sqrt(-2 * log(u)), angle = half_turns * 3.14159265358979323846;
  return {radius * sin(angle), radius * cos(angle)};
}
inline Pair normals(uint32_t a, uint32_t b) {
  constexpr float scale = kPow32 * kTwoPi;
  return box_muller(unit(a), static_cast<float>(b) * scale + scale / 2);
}
inline PairDouble normals(const Four& f) { return box_muller(unit_double(f.x, f.y), 2 * unit_double(f.z, f.w)); }

// The next pair of an engine, of the bits that cuRAND takes for it.
template <typename E>
Pair normals(State<E>& s) {
  const uint32_t a = s.bits(), b = s.bits();
  return normals(a, b);
}
inline Pair normals(State<Mrg>& s) {
  const float u = static_cast<float>(s.unit());
  return box_muller(u, static_cast<float>(s.unit()) * kTwoPi);
}
inline PairDouble normals_double(State<Xorwow>& s) {
  const uint32_t a = s.bits(), b = s.bits(), c = s.bits(), d = s.bits();
  return normals(Four{a, b, c, d});
}
inline PairDouble normals_double(State<Philox>& s) { return normals(s.four_bits()); }
inline PairDouble normals_double(State<Mrg>& s) {
  const double u = s.unit();
  return box_muller(u, 2 * s.unit());
}

// One number of a pair; the other is kept for the next call. `shape` maps a normal number to the wanted one.
template <typename E, typename Shape>
float one_of_pair(State<E>& s, Kept kind, Shape shape) {
  const bool second = s.kept == kind;
  s.kept = second ? Kept::nothing : kind;
  if (second) return s.value;
  const Pair pair = normals(s);
  s.value = shape(pair.y);
  return shape(pair.x);
}
template <typename E, typename Shape>
double one_of_pair_double(State<E>& s, Kept kind, Shape shape) {
  const bool second = s.kept_double == kind;
  s.kept_double = second ? Kept::nothing : kind;
  if (second) return s.value_double;
  const PairDouble pair = normals_double(s);
  s.value_double = shape(pair.y);
  return shape(pair.x);
}

// By multiplication (Knuth) for small means, else by transformed rejection (Hörmann 1993, algorithm PTRS).
template <typename E>
unsigned poisson(State<E>& s, double mean) {
  auto draw = [&] { return (s.bits() + 0.5) * 0x1p-32; };
  if (mean < 30) {
    unsigned count = 0;
    for (double product = draw(); product > exp(-mean); product *= draw()) ++count;
    return count;
  }
  const double b = 0.931 + 2.53 * sqrt(mean), a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), accept = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const double u = draw() - 0.5, v = draw(), distance = 0.5 - fabs(u);
    const double k = floor((2 * a / distance + b) * u + mean + 0.43);
    if (distance >= 0.07 && v <= accept) return static_cast<unsigned>(k);
    if (k < 0 || (distance < 0.013 && v > distance)) continue;
    const double density = k * log(mean) - mean - lgamma(k + 1);
    if (log(v * inverse_alpha / (a / (distance * distance) + b)) <= density) return static_cast<unsigned>(k);
  }
}

}  // namespace simt::random

struct curandStateXORWOW : simt::random::State<simt::random::Xorwow> {};
struct curandStatePhilox4_32_10 : simt::random::State<simt::random::Philox> {};
struct curandStateMRG32k3a : simt::random::State<simt::random::Mrg> {};
using curandStateXORWOW_t = curandStateXORWOW;
using curandStatePhilox4_32_10_t = curandStatePhilox4_32_10;
using curandStateMRG32k3a_t = curandStateMRG32k3a;
using curandState = curandStateXORWOW;
using curandState_t = curandStateXORWOW;

#define SIMT_NO_ENGINE "this random generator; use curandState, curandStatePhilox4_32_10_t or curandStateMRG32k3a_t"
#define SIMT_NO_STATE(name) SIMT_REFUSED_TYPE(name, SIMT_NO_ENGINE);
SIMT_NO_STATE(curandStateMtgp32)
SIMT_NO_STATE(curandStateMtgp32_t)
SIMT_NO_STATE(curandStateSobol32_t)
SIMT_NO_STATE(curandStateScrambledSobol32_t)
SIMT_NO_STATE(curandStateSobol64_t)
SIMT_NO_STATE(curandStateScrambledSobol64_t)
#undef SIMT_NO_STATE

// ---------------------------------------------------------------------------------------------------------------
// For each engine

template <typename E>
void curand_init(unsigned long long seed, unsigned long long subsequence, unsigned long long offset,
                 simt::random::State<E>* state) {
  state->init(seed, subsequence, offset);
  state->kept = state->kept_double = simt::random::Kept::nothing;
  state->value = 0;
  state->value_double = 0;
}
template <typename E>
void skipahead(unsigned long long n, simt::random::State<E>* state) {
  state->skip(n);
}
template <typename E>
void skipahead_sequence(unsigned long long n, simt::random::State<E>* state) {
  state->skip_sequence(n);
}
// Of MRG32k3a, a sequence has 2^51 subsequences of 2^76 numbers.
inline void skipahead_subsequence(unsigned long long n, curandStateMRG32k3a* state) { state->jump(n, 76); }
inline void skipahead_sequence(unsigned long long n, curandStateMRG32k3a* state) { state->jump(n, 127); }

template <typename E>
unsigned curand(simt::random::State<E>* state) {
  return state->bits();
}
template <typename E>
float curand_uniform(simt::random::State<E>* state) {
  return simt::random::unit(state->bits());
}
inline float curand_uniform(simt::random::State<simt::random::Mrg>* state) { return static_cast<float>(state->unit()); }
inline double curand_uniform_double(simt::random::State<simt::random::Xorwow>* state) {
  const uint32_t low = state->bits();
  return simt::random::unit_double(low, state->bits());
}
inline double curand_uniform_double(simt::random::State<simt::random::Philox>* state) {
  return state->bits() * 0x1p-32 + 0x1p-32;
}
inline double curand_uniform_double(simt::random::State<simt::random::Mrg>* state) { return state->unit(); }

template <typename E>
float curand_normal(simt::random::State<E>* state) {
  return simt::random::one_of_pair(*state, simt::random::Kept::normal, [](float x) { return x; });
}
template <typename E>
double curand_normal_double(simt::random::State<E>* state) {
  return simt::random::one_of_pair_double(*state, simt::random::Kept::normal, [](double x) { return x; });
}
template <typename E>
float2 curand_normal2(simt::random::State<E>* state) {
  const auto pair = simt::random::normals(*state);
  return float2{pair.x, pair.y};
}
template <typename E>
double2 curand_normal2_double(simt::random::State<E>* state) {
  const auto pair = simt::random::normals_double(*state);
  return double2{pair.x, pair.y};
}

template <typename E>
float curand_log_normal(simt::random::State<E>* state, float mean, float stddev) {
  auto shape = [=](float x) { return expf(mean + stddev * x); };
  return simt::random::one_of_pair(*state, simt::random::Kept::log_normal, shape);
}
template <typename E>
double curand_log_normal_double(simt::random::State<E>* state, double mean, double stddev) {
  auto shape = [=](double x) { return exp(mean + stddev * x); };
  return simt::random::one_of_pair_double(*state, simt::random::Kept::log_normal, shape);
}
template <typename E>
float2 curand_log_normal2(simt::random::State<E>* state, float mean, float stddev) {
  const auto pair = simt::random::normals(*state);
  return float2{expf(mean + stddev * pair.x), expf(mean + stddev * pair.y)};
}
template <typename E>
double2 curand_log_normal2_double(simt::random::State<E>* state, double mean, double stddev) {
  const auto pair = simt::random::normals_double(*state);
  return double2{exp(mean + stddev * pair.x), exp(mean + stddev * pair.y)};
}
template <typename E>
unsigned curand_poisson(simt::random::State<E>* state, double lambda) {
  return simt::random::poisson(*state, lambda);
}

// ---------------------------------------------------------------------------------------------------------------
// Four at once, for Philox

inline uint4 curand4(curandStatePhilox4_32_10* state) {
  const auto four = state->four_bits();
  return uint4{four.x, four.y, four.z, four.w};
}
inline float4 curand_uniform4(curandStatePhilox4_32_10* state) {
  using simt::random::unit;
  const auto four = state->four_bits();
  return float4{unit(four.x), unit(four.y), unit(four.z), unit(four.w)};
}
inline double2 curand_uniform2_double(curandStatePhilox4_32_10* state) {
  const auto four = state->four_bits();
  return double2{simt::random::unit_double(four.x, four.y), simt::random::unit_double(four.z, four.w)};
}
inline double4 curand_uniform4_double(curandStatePhilox4_32_10* state) {
  const double2 a = curand_uniform2_double(state), b = curand_uniform2_double(state);
  return double4{a.x, a.y, b.x, b.y};
}
inline float4 curand_normal4(curandStatePhilox4_32_10* state) {
  const auto four = state->four_bits();
  const auto a = simt::random::normals(four.x, four.y), b = simt::random::normals(four.z, four.w);
  return float4{a.x, a.y, b.x, b.y};
}
inline double4 curand_normal4_double(curandStatePhilox4_32_10* state) {
  const double2 a = curand_normal2_double(state), b = curand_normal2_double(state);
  return double4{a.x, a.y, b.x, b.y};
}
inline float4 curand_log_normal4(curandStatePhilox4_32_10* state, float mean, float stddev) {
  const float4 x = curand_normal4(state);
  auto shape = [=](float value) { return expf(mean + stddev * value); };
  return float4{shape(x.x), shape(x.y), shape(x.z), shape(x.w)};
}
inline double4 curand_log_normal4_double(curandStatePhilox4_32_10* state, double mean, double stddev) {
  const double4 x = curand_normal4_double(state);
  auto shape = [=](double value) { return exp(mean + stddev * value); };
  return double4{shape(x.x), shape(x.y), shape(x.z), shape(x.w)};
}
inline uint4 curand_poisson4(curandStatePhilox4_32_10* state, double lambda) {
  const unsigned x = curand_poisson(state, lambda), y = curand_poisson(state, lambda);
  const unsigned z = curand_poisson(state, lambda), w = curand_poisson(state, lambda);
  return uint4{x, y, z, w};
}
