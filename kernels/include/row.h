// row.h: for kernels in which some threads keep a row of a matrix in registers between
// two passes over it.
//
//   load_fragment  a thread's part of the row: vectors, `threads` apart, so that a warp
//                  reads whole lines
//   sums_over_row  adds up the values of the row's threads: by shuffles within a warp,
//                  then through shared memory
//
// A row belongs to the threads with one threadIdx.y: a power of two. A warp or less has
// a row of its own; if there are more, the block has one row.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

#include "floating.h"
#include "vector.h"

namespace ladder {

constexpr int kWarp = 32;
constexpr unsigned kAll = 0xffffffffu;  // every lane of a warp
constexpr int kRowThreads = 256;        // of a block with several rows
constexpr int kRegisters = 32;          // that hold a thread's part of a row

// How many rows the block of `threads` threads per row has.
constexpr int rows_of_block(int threads) {
  return threads <= kWarp ? kRowThreads / threads : 1;
}

// The sum of the values that 2, 4, ... `lanes` neighbouring lanes have, or the largest,
// for all of them: a tree of shuffles.
template <int lanes, typename W>
__device__ W sum_of_lanes(W value) {
#pragma unroll
  for (int offset = lanes / 2; offset > 0; offset /= 2)
    value += __shfl_xor_sync(kAll, value, offset);
  return value;
}
template <int lanes, typename W>
__device__ W max_of_lanes(W value) {  // drops a NaN
#pragma unroll
  for (int offset = lanes / 2; offset > 0; offset /= 2)
    value = fmax(value, __shfl_xor_sync(kAll, value, offset));
  return value;
}

// The sums of n values over the row's `threads` threads, in place, for all of them:
// within warps, then between them. All threads of the block must call it. Where it is
// called in a loop, `buffer` must alternate between 0 and 1: then a warp that is ahead
// does not overwrite what another still reads, and one barrier is enough.
template <int threads, typename W, int n>
__device__ void sums_over_row(W (&values)[n], int buffer = 0) {
  constexpr int lanes = threads < kWarp ? threads : kWarp, warps = threads / lanes;
  for (int i = 0; i < n; ++i) values[i] = sum_of_lanes<lanes>(values[i]);
  if constexpr (warps > 1) {
    __shared__ W of_warps[2][n][warps];
    if (threadIdx.x % kWarp == 0) {
      for (int i = 0; i < n; ++i) of_warps[buffer][i][threadIdx.x / kWarp] = values[i];
    }
    __syncthreads();  // every warp's values are written before they are read
    for (int i = 0; i < n; ++i)
      values[i] = sum_of_lanes<warps>(of_warps[buffer][i][threadIdx.x % warps]);
  }
}

template <typename V, typename T>
__device__ V filled(T value) {
  V v;
  for (int j = 0; j < V::size; ++j) v.at[j] = value;
  return v;
}

// Vectors threadIdx.x, threadIdx.x + threads, ... of `count`, as they are in memory:
// halves stay packed two to a register. The row begins with vector number `first` of p.
// All loads start before any value is used.
template <int threads, typename T, typename Word, int vectors>
__device__ void load_fragment(Word (&words)[vectors], const T* __restrict__ p,
                              int64_t first, int count, Word beyond) {
#pragma unroll
  for (int k = 0; k < vectors; ++k) {
    int v = k * threads + threadIdx.x;
    words[k] = beyond;
    if (v < count) words[k] = reinterpret_cast<const Word*>(p)[first + v];
  }
}

// How many vectors a thread keeps in kRegisters registers if it widens them.
template <typename T, int bytes>
constexpr int kWidened =
    std::min<int>(8, kRegisters * 4 / (bytes / sizeof(T) * sizeof(Wide<T>)));

// What ask() returns, which must depend on the device alone: each lambda is asked once
// on each device.
template <typename Ask>
int once_per_device(Ask ask) {
  static std::mutex one_at_a_time;
  static std::map<int, int> answers;
  int device = 0;
  STD_CUDA_CHECK(cudaGetDevice(&device));
  std::lock_guard<std::mutex> lock(one_at_a_time);
  auto known = answers.find(device);
  return known == answers.end() ? answers[device] = ask() : known->second;
}

}  // namespace ladder
