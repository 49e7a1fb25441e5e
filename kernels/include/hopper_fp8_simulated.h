// hopper_fp8_simulated.h: wgmma_64x256x32 for the simulator, which includes this file in place of the rest of
// hopper_fp8.h. It reads the elements where the descriptors say, as hopper_simulated.h does, and drops the bits that the
// unit drops: 64 x 256 sums of 128 products were those of an H200, bit for bit (November 2026).
//
// Where it may deviate: sums whose largest factors are subnormal, below 2^-6, were not compared.
#pragma once

#include "hopper.h"

namespace hopper {

SIMT_NOT_TRACED inline uint32_t bits_of(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}
SIMT_NOT_TRACED inline int exponent_of(float x) { return int(bits_of(x) >> 23 & 0xff) - 127; }
SIMT_NOT_TRACED inline float with_bits(uint32_t bits) {
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

// Element k of a line: half of the 16 bits that a bfloat16 would occupy. An e4m3, moved to the place of the same fields
// in a float, is the number divided by 2^120.
SIMT_NOT_TRACED inline float element_fp8(const char* memory, const Lines& lines, int line, int k) {
  uint32_t code = static_cast<unsigned char>(memory[lines.at(line, k / 2) + k % 2]);
  uint32_t bits = (code & 0x80u) << 24 | (code & 0x7fu) << 20;
  return (code & 0x7fu) == 0x7fu ? __builtin_nanf("") : with_bits(bits) * 0x1p120f;
}

// Reports the reads of a warp's part of a product: 32 bytes of each of its 16 rows of a, and of b's 256 columns.
SIMT_NOT_TRACED __attribute__((noinline)) inline void tell_product_fp8(const char* memory, Lines a, Lines b, int warp) {
  for (int piece = 0; piece < 16; piece += 8) {  // 16 bytes
    for (int i = 0; i < 16; ++i) simt::async_reads(memory + a.at(16 * warp + i, piece), 16);
    for (int j = 0; j < 256; ++j) simt::async_reads(memory + b.at(j, piece), 16);
  }
}

// sum plus 32 products, as the unit adds them up: each term is truncated to a multiple of 2^-13 of the largest power of
// two in a term (of a product: of its factors), and so is the result, to 13 bits of fraction.
SIMT_NOT_TRACED inline float add_32(float sum, const float* row, const float* column) {
  int top = exponent_of(sum);
  for (int k = 0; k < 32; ++k) {
    int of_product = exponent_of(row[k]) + exponent_of(column[k]);
    if (of_product > top) top = of_product;  // std::max would be traced
  }
  if (top < -60 || top > 60) {  // all zeros, or a NaN
    for (int k = 0; k < 32; ++k) sum += row[k] * column[k];
    return sum;
  }
  float unit = with_bits(uint32_t(top - 13 + 127) << 23), units = with_bits(uint32_t(13 - top + 127) << 23);
  float total = __builtin_truncf(sum * units);
  for (int k = 0; k < 32; ++k) total += __builtin_truncf(row[k] * column[k] * units);
  return with_bits(bits_of(total * unit) & ~0x3ffu);
}

SIMT_NOT_TRACED __attribute__((noinline)) inline void do_product_fp8(float (&d)[128], const char* memory, Lines a,
                                                                     Lines b, int add, int t) {
  for (int i = 0; i < 2; ++i) {
    float row[32];
    for (int k = 0; k < 32; ++k) row[k] = element_fp8(memory, a, t / 32 * 16 + t % 32 / 4 + 8 * i, k);
    for (int j = 0; j < 32; ++j) {
      for (int c = 0; c < 2; ++c) {
        float column[32], &sum = d[4 * j + 2 * i + c];
        for (int k = 0; k < 32; ++k) column[k] = element_fp8(memory, b, 8 * j + t % 4 * 2 + c, k);
        sum = add_32(add ? sum : 0, row, column);
      }
    }
  }
}

__device__ __forceinline__ void wgmma_64x256x32(float (&d)[128], uint64_t a, uint64_t b, int add) {
  int t = threadIdx.x % 128;
  if (t % 32 == 0) {
    tell_product_fp8(shared_memory(), Lines(a), Lines(b), t / 32);
    simt::async_product();
  }
  do_product_fp8(d, shared_memory(), Lines(a), Lines(b), add, t);
}

}  // namespace hopper
