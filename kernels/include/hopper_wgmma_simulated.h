// hopper_wgmma_simulated.h: the functions of hopper_wgmma.h for the simulator, which includes this file instead.
//
// As in hopper_simulated.h, a product is complete when the function returns, its factors are read where the descriptors
// say, and an X-ray finds reads of shared memory that a GPU may do too early or too late. Factors and sums in registers
// are not checked: a wait that comes too late for them is missed. nvcc reports sums that are used too soon.
#pragma once

#include <mma.h>

#include "hopper_simulated.h"

namespace hopper {

// Reports the reads of a warp's part of a product: its 16 rows of a, if a is in shared memory.
template <bool turned>
SIMT_NOT_TRACED void tell_left(const char* memory, Lines a, int warp) {
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; j += 8)
      simt::async_reads(memory + (turned ? a.at(i, 16 * warp + j) : a.at(16 * warp + i, j)), 16);
}
template <int n, bool turned>
SIMT_NOT_TRACED void tell_right(const char* memory, Lines b) {
  for (int i = 0; i < (turned ? 16 : n); ++i)
    for (int j = 0; j < (turned ? n : 16); j += 8) simt::async_reads(memory + b.at(i, j), 16);
}

// The two rows of a that thread t's sums belong to.
template <bool turned>
SIMT_NOT_TRACED void rows_of(float (&rows)[2][16], const char* memory, Lines a, int t) {
  for (int i = 0; i < 2; ++i) {
    int y = t / 32 * 16 + t % 32 / 4 + 8 * i;
    for (int k = 0; k < 16; ++k) rows[i][k] = turned ? element(memory, a, k, y) : element(memory, a, y, k);
  }
}

template <int n, bool b_turned>
SIMT_NOT_TRACED __attribute__((noinline)) void add_products(float (&d)[n / 2], const float (&rows)[2][16],
                                                            const char* memory, Lines b, int add, int t) {
  for (int j = 0; j < n / 8; ++j) {
    for (int c = 0; c < 2; ++c) {
      int x = 8 * j + t % 4 * 2 + c;
      float column[16];
      for (int k = 0; k < 16; ++k) column[k] = b_turned ? element(memory, b, k, x) : element(memory, b, x, k);
      for (int i = 0; i < 2; ++i) {
        float& sum = d[4 * j + 2 * i + c];
        if (!add) sum = 0;
        for (int k = 0; k < 16; ++k) sum += rows[i][k] * column[k];
      }
    }
  }
}

template <int n, bool a_turned, bool b_turned>
__device__ __forceinline__ void wgmma_shared(float (&d)[n / 2], uint64_t a, uint64_t b, int add) {
  int t = threadIdx.x % 128;
  if (t % 32 == 0) {
    tell_left<a_turned>(shared_memory(), Lines(a), t / 32);
    tell_right<n, b_turned>(shared_memory(), Lines(b));
    simt::async_product();
  }
  float rows[2][16];
  rows_of<a_turned>(rows, shared_memory(), Lines(a), t);
  add_products<n, b_turned>(d, rows, shared_memory(), Lines(b), add, t);
}

struct LeftFactor {
  uint32_t a[4];
};

SIMT_NOT_TRACED inline void rows_of(float (&rows)[2][16], const simt::Lanes<LeftFactor>& lanes, int lane) {
  for (int i = 0; i < 2; ++i) {
    for (int k = 0; k < 16; ++k) {
      uint32_t pair = lanes[lane / 4 * 4 + k % 8 / 2].a[k / 8 * 2 + i], bits = pair >> k % 2 * 16 << 16;
      __builtin_memcpy(&rows[i][k], &bits, 4);
    }
  }
}

template <int n, bool b_turned>
__device__ __forceinline__ void wgmma_registers(float (&d)[n / 2], const uint32_t (&a)[4], uint64_t b, int add) {
  int t = threadIdx.x % 128;
  if (t % 32 == 0) {
    tell_right<n, b_turned>(shared_memory(), Lines(b));
    simt::async_product();
  }
  LeftFactor own = {{a[0], a[1], a[2], a[3]}};
  simt::Lanes<LeftFactor> lanes(own);
  float rows[2][16];
  rows_of(rows, lanes, t % 32);
  add_products<n, b_turned>(d, rows, shared_memory(), Lines(b), add, t);
}

template <int groups, int n>
__device__ __forceinline__ void wgmma_wait_for(float (&)[n]) {
  wgmma_wait<groups>();
}

}  // namespace hopper
