// row.h: for kernels in which some threads keep a row of a matrix in registers between two passes over it.
//
//   Part           a thread's part of the row: vectors, `threads` apart, so that a warp reads whole lines
//   sums_over_row  adds up the values of the row's threads: by shuffles within a warp, then through shared memory
//
// A row belongs to the threads with one threadIdx.y: a power of two. A warp or less has a row of its own; if there are
// more, the block has one row.
#pragma once

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
constexpr int rows_of_block(int threads) { return threads <= kWarp ? kRowThreads / threads : 1; }

// The sum of the values that 2, 4, ... `lanes` neighbouring lanes have, or the largest, for all of them: a tree of shuffles.
template <int lanes, typename W>
__device__ W sum_of_lanes(W value) {
#pragma unroll
  for (int offset = lanes / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(kAll, value, offset);
  return value;
}
template <int lanes, typename W>
__device__ W max_of_lanes(W value) {  // drops a NaN
#pragma unroll
  for (int offset = lanes / 2; offset > 0; offset /= 2) value = fmax(value, __shfl_xor_sync(kAll, value, offset));
  return value;
}

// The sums of n values over the row's `threads` threads, in place, for all of them: within warps, then between them. All
// threads of the block must call it. Where it is called in a loop, `turn` must alternate between 0 and 1: then a warp
// that is ahead does not overwrite what another still reads, and one barrier is enough.
template <int threads, typename W, int n>
__device__ void sums_over_row(W (&values)[n], int turn = 0) {
  constexpr int lanes = threads < kWarp ? threads : kWarp, warps = threads / lanes;
  for (int i = 0; i < n; ++i) values[i] = sum_of_lanes<lanes>(values[i]);
  if constexpr (warps > 1) {
    __shared__ W of_warps[2][n][warps];
    if (threadIdx.x % kWarp == 0) {
      for (int i = 0; i < n; ++i) of_warps[turn][i][threadIdx.x / kWarp] = values[i];
    }
    __syncthreads();  // every warp's values are written before they are read
    for (int i = 0; i < n; ++i) values[i] = sum_of_lanes<warps>(of_warps[turn][i][threadIdx.x % warps]);
  }
}

template <typename V, typename T>
__device__ V filled(T value) {
  V v;
  for (int j = 0; j < V::size; ++j) v.at[j] = value;
  return v;
}

// The part of a row that a thread keeps, widened: vectors threadIdx.x, threadIdx.x + threads, ... of `count`.
template <typename T, int bytes, int threads>
struct Part {
  using V = Vector<T, bytes>;
  using W = Wide<T>;
  static constexpr int vectors =
      kRegisters / (V::size * sizeof(W) / 4) < 8 ? kRegisters / (V::size * sizeof(W) / 4) : 8;
  W at[vectors][V::size];

  // Element 0 of the row is p[first * V::size]. All loads start before any value is used. Beyond the row's end the
  // values are `beyond`.
  __device__ void load(const T* __restrict__ p, int64_t first, int count, T beyond) {
    V loaded[vectors];
#pragma unroll
    for (int k = 0; k < vectors; ++k) {
      int v = k * threads + threadIdx.x;
      loaded[k] = filled<V>(beyond);
      if (v < count) loaded[k] = V::load(p, first + v);
    }
#pragma unroll
    for (int k = 0; k < vectors; ++k) widen(k, loaded[k]);
  }

  __device__ void widen(int k, const V& loaded) {
#pragma unroll
    for (int j = 0; j < V::size; ++j) at[k][j] = W(loaded.at[j]);
  }

  __device__ void store(T* __restrict__ p, int64_t first, int count) const {
#pragma unroll
    for (int k = 0; k < vectors; ++k) {
      int v = k * threads + threadIdx.x;
      if (v < count) {
        V rounded;
        for (int j = 0; j < V::size; ++j) rounded.at[j] = T(at[k][j]);
        rounded.store(p, first + v);
      }
    }
  }

  // Calls visit(value) for all of them up to the first vector that none of the row's threads has.
  template <typename Visit>
  __device__ void each(int count, Visit visit) {
#pragma unroll
    for (int k = 0; k < vectors; ++k) {
      if (k * threads < count) {
#pragma unroll
        for (int j = 0; j < V::size; ++j) visit(at[k][j]);
      }
    }
  }
};

// What ask() returns, which must depend on the device alone: each lambda is asked once on each device.
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
