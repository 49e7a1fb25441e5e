// hopper_fp8_simulated.h: wgmma_64x256x32 for the simulator, which includes this file in place of the rest of
// hopper_fp8.h. It reads the elements where the descriptors say, as hopper_simulated.h does.
//
// Where it deviates: products are added one after the other in float32. A GPU keeps fewer bits (hopper_fp8.h).
#pragma once

#include "hopper.h"

namespace hopper {

// Element k of a line: half of the 16 bits that a bfloat16 would occupy. An e4m3, moved to the place of the same fields
// in a float, is the number divided by 2^120.
SIMT_NOT_TRACED inline float element_fp8(const char* memory, const Lines& lines, int line, int k) {
  uint32_t code = static_cast<unsigned char>(memory[lines.at(line, k / 2) + k % 2]);
  uint32_t bits = (code & 0x80u) << 24 | (code & 0x7fu) << 20;
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return (code & 0x7fu) == 0x7fu ? __builtin_nanf("") : value * 0x1p120f;
}

// Reports the reads of a warp's part of a product: 32 bytes of each of its 16 rows of a, and of b's 256 columns.
SIMT_NOT_TRACED __attribute__((noinline)) inline void tell_product_fp8(const char* memory, Lines a, Lines b, int warp) {
  for (int piece = 0; piece < 16; piece += 8) {  // 16 bytes
    for (int i = 0; i < 16; ++i) simt::async_reads(memory + a.at(16 * warp + i, piece), 16);
    for (int j = 0; j < 256; ++j) simt::async_reads(memory + b.at(j, piece), 16);
  }
}

SIMT_NOT_TRACED __attribute__((noinline)) inline void do_product_fp8(float (&d)[128], const char* memory, Lines a,
                                                                     Lines b, int add, int t) {
  for (int i = 0; i < 2; ++i) {
    float row[32];
    for (int k = 0; k < 32; ++k) row[k] = element_fp8(memory, a, t / 32 * 16 + t % 32 / 4 + 8 * i, k);
    for (int j = 0; j < 32; ++j) {
      for (int c = 0; c < 2; ++c) {
        float& sum = d[4 * j + 2 * i + c];
        if (!add) sum = 0;
        for (int k = 0; k < 32; ++k) sum += row[k] * element_fp8(memory, b, 8 * j + t % 4 * 2 + c, k);
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
