// random_engines.h: cuRAND's three generators of pseudo-random bits: XORWOW, Philox4x32-10 and MRG32k3a.
//
// The algorithms are published: G. Marsaglia, "Xorshift RNGs" (2003); J. Salmon and others, "Parallel random numbers: as
// easy as 1, 2, 3" (2011); P. L'Ecuyer, "Good parameters and implementations for combined multiple recursive random
// number generators" (1999). Seeds and sequences are those of cuRAND, so a state gives the numbers that it gives on a
// GPU. Each engine has `init`, `bits` and the two ways to skip: `skip(n)` by n numbers and `skip_sequence(n)` by n times
// the length of a sequence: 2^67 numbers for XORWOW, 2^66 for Philox, 2^76 for MRG32k3a.
#pragma once

#include "simt/core.h"

namespace simt::random {

// Powers of the engines' steps, which are linear: they take tables, and are in libsimt-libraries.
SIMT_API void xorwow_skip(uint32_t* v, uint64_t n, bool sequences);
SIMT_API void mrg_skip(uint32_t* s1, uint32_t* s2, uint64_t n, int log2_step);

struct Xorwow {
  uint32_t d, v[5];  // a counter, and a register of 160 bits that is shifted by a word each time

  void init(uint64_t seed, uint64_t sequence, uint64_t offset) {
    const uint32_t low = 1099087573u * (static_cast<uint32_t>(seed) ^ 0xaad26b49u);
    const uint32_t high = 2591861531u * (static_cast<uint32_t>(seed >> 32) ^ 0xf7dcefddu);
    d = 6615241u + low + high;
    v[0] = 123456789u + low;
    v[1] = 362436069u ^ low;
    v[2] = 521288629u + high;
    v[3] = 88675123u ^ high;
    v[4] = 5783321u + low;
    skip_sequence(sequence);
    skip(offset);
  }
  uint32_t bits() {
    const uint32_t t = v[0] ^ v[0] >> 2;
    for (int i = 0; i < 4; ++i) v[i] = v[i + 1];
    v[4] ^= v[4] << 4 ^ t ^ t << 1;
    d += 362437u;
    return d + v[4];
  }
  void skip(uint64_t n) {
    jump(n, false);
    d += 362437u * static_cast<uint32_t>(n);
  }
  void skip_sequence(uint64_t n) { jump(n, true); }  // the counter returns to where it was

 private:
  void jump(uint64_t n, bool sequences) {
    if (n == 0) return;
    uint32_t words[5];  // the library is not traced: it works on a copy
    for (int i = 0; i < 5; ++i) words[i] = v[i];
    xorwow_skip(words, n, sequences);
    for (int i = 0; i < 5; ++i) v[i] = words[i];
  }
};

struct Four {
  uint32_t x, y, z, w;
};

// Ten rounds of multiplications make four numbers of each value of a 128-bit counter.
struct Philox {
  Four counter, output;  // `output` belongs to `counter`
  uint32_t key[2];
  unsigned next;  // the number of `output` that comes next, below 4

  void init(uint64_t seed, uint64_t sequence, uint64_t offset) {
    counter = {0, 0, 0, 0};
    key[0] = static_cast<uint32_t>(seed);
    key[1] = static_cast<uint32_t>(seed >> 32);
    next = 0;
    skip_sequence(sequence);
    skip(offset);
  }
  uint32_t bits() {
    const uint32_t result = next == 0 ? output.x : next == 1 ? output.y : next == 2 ? output.z : output.w;
    if (++next == 4) {
      next = 0;
      advance(1);
    }
    return result;
  }
  Four four_bits() {
    const Four before = output;
    advance(1);
    switch (next) {
      case 1:
        return {before.y, before.z, before.w, output.x};
      case 2:
        return {before.z, before.w, output.x, output.y};
      case 3:
        return {before.w, output.x, output.y, output.z};
      default:
        return before;
    }
  }
  void skip(uint64_t n) {
    next += n % 4;
    advance(n / 4 + next / 4);
    next %= 4;
  }
  void skip_sequence(uint64_t n) {  // the sequence is the upper half of the counter
    const uint64_t high = (uint64_t(counter.w) << 32 | counter.z) + n;
    counter.z = static_cast<uint32_t>(high);
    counter.w = static_cast<uint32_t>(high >> 32);
    output = rounds(counter, key[0], key[1]);
  }

  static Four rounds(Four c, uint32_t key0, uint32_t key1) {
    for (int round = 0; round < 10; ++round, key0 += 0x9e3779b9u, key1 += 0xbb67ae85u) {
      const uint64_t x = uint64_t(0xd2511f53u) * c.x, z = uint64_t(0xcd9e8d57u) * c.z;
      c = {static_cast<uint32_t>(z >> 32) ^ c.y ^ key0, static_cast<uint32_t>(z),
           static_cast<uint32_t>(x >> 32) ^ c.w ^ key1, static_cast<uint32_t>(x)};
    }
    return c;
  }

 private:
  void advance(uint64_t n) {
    const uint64_t before = uint64_t(counter.y) << 32 | counter.x, low = before + n;
    counter.x = static_cast<uint32_t>(low);
    counter.y = static_cast<uint32_t>(low >> 32);
    skip_sequence(low < before);
  }
};

// The difference of two recurrences, each over its last three numbers.
struct Mrg {
  static constexpr uint64_t kModulus1 = 4294967087u, kModulus2 = 4294944443u;
  uint32_t s1[3], s2[3];

  void init(uint64_t seed, uint64_t sequence, uint64_t offset) {
    const uint64_t low = static_cast<uint32_t>(seed) ^ 0x55555555u;
    const uint64_t high = static_cast<uint32_t>(seed >> 32) ^ 0xaaaaaaaau;
    for (int i = 0; i < 3; ++i) {
      s1[i] = static_cast<uint32_t>(seed ? (i == 1 ? high : low) * 12345 % kModulus1 : 12345);
      s2[i] = static_cast<uint32_t>(seed ? (i == 1 ? low : high) * 12345 % kModulus2 : 12345);
    }
    skip_sequence(sequence);
    skip(offset);
  }
  double draw() {  // an integer from 1 to the first modulus
    const uint64_t a = (1403580u * uint64_t(s1[1]) + 810728u * (kModulus1 - s1[0])) % kModulus1;
    const uint64_t b = (527612u * uint64_t(s2[2]) + 1370589u * (kModulus2 - s2[0])) % kModulus2;
    s1[0] = s1[1], s1[1] = s1[2], s1[2] = static_cast<uint32_t>(a);
    s2[0] = s2[1], s2[1] = s2[2], s2[2] = static_cast<uint32_t>(b);
    return static_cast<double>(a > b ? a - b : a + kModulus1 - b);
  }
  uint32_t bits() { return static_cast<uint32_t>(draw() * 1.000000048662); }
  double unit() { return draw() * 2.3283065498378288e-10; }  // above 0, at most 1
  void skip(uint64_t n) { jump(n, 0); }
  void skip_sequence(uint64_t n) { jump(n, 76); }

  void jump(uint64_t n, int log2_step) {
    if (n == 0) return;
    uint32_t one[3], two[3];
    for (int i = 0; i < 3; ++i) one[i] = s1[i], two[i] = s2[i];
    mrg_skip(one, two, n, log2_step);
    for (int i = 0; i < 3; ++i) s1[i] = one[i], s2[i] = two[i];
  }
};

}  // namespace simt::random
