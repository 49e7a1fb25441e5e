// mma_sync_simulated.h: the functions of mma_sync.h for the simulator, which includes this file in its place.
//
// Lanes hold the same elements as on a GPU, and sums equal those of Hopper's tensor cores bit by bit (the simulator's
// simt/tensor_core.h explains how). Each lane reads the row whose address it passes, and the lanes exchange what they
// have read. So the X-ray counts ldmatrix as one request of 16 bytes per lane: 4 wavefronts if the rows of each matrix
// are in different banks.
#pragma once

#include <cuda_runtime.h>
#include <mma.h>

#include <cstdint>
#include <cstring>

namespace ladder {

__device__ inline uint4 row_of_matrix(const void* row) {
  if (reinterpret_cast<uintptr_t>(row) % 16 != 0)
    simt::fault("misaligned", "ldmatrix reads rows of 16 bytes at multiples of 16 bytes");
  return *static_cast<const uint4*>(row);
}

// to[i]: two elements of matrix i; lane 8 * i + r has read its row r.
SIMT_NOT_TRACED __attribute__((noinline)) inline void deal(uint32_t (&to)[4], const simt::Lanes<uint4>& rows, int lane,
                                                           bool transposed) {
  for (int i = 0; i < 4; ++i) {
    uint16_t pair[2];
    for (int c = 0; c < 2; ++c) {
      int row = transposed ? lane % 4 * 2 + c : lane / 4, column = transposed ? lane / 4 : lane % 4 * 2 + c;
      __builtin_memcpy(&pair[c], reinterpret_cast<const char*>(&rows[8 * i + row]) + 2 * column, 2);
    }
    __builtin_memcpy(&to[i], pair, 4);
  }
}

__device__ inline void load_matrices(uint32_t (&to)[4], const void* row) {
  simt::Lanes<uint4> rows(row_of_matrix(row));
  deal(to, rows, threadIdx.x % 32, false);
}

__device__ inline void load_transposed(uint32_t (&to)[4], const void* row) {
  simt::Lanes<uint4> rows(row_of_matrix(row));
  deal(to, rows, threadIdx.x % 32, true);
}

struct Factors {
  uint32_t a[4], b[2];
};

template <typename T>
SIMT_NOT_TRACED __attribute__((noinline)) void multiply_lane(float (&d)[4], const simt::Lanes<Factors>& lanes,
                                                             int lane) {
  T rows[2][16], columns[2][16];
  for (int which = 0; which < 2; ++which) {  // rows lane / 4 and lane / 4 + 8; columns lane % 4 * 2 and the next
    for (int i = 0; i < 8; ++i) {
      __builtin_memcpy(&rows[which][2 * i], &lanes[lane / 4 * 4 + i % 4].a[which + i / 4 * 2], 4);
      __builtin_memcpy(&columns[which][2 * i], &lanes[(lane % 4 * 2 + which) * 4 + i % 4].b[i / 4], 4);
    }
  }
  for (int i = 0; i < 4; ++i) {
    simt::round_sum(simt::tensor_core_sum(rows[i / 2], columns[i % 2], 16, d[i]), d[i]);
  }
}

template <typename T>
__device__ inline void multiply_add(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  Factors own = {{a[0], a[1], a[2], a[3]}, {b0, b1}};
  simt::Lanes<Factors> lanes(own);
  multiply_lane<T>(d, lanes, threadIdx.x % 32);
}

}  // namespace ladder
