// row.h: for kernels in which some threads keep a row of a matrix in registers between
// two passes over it.
//
//   Row            a row's aligned vectors and, since it may begin at any address, the
//                  single elements before and after them
//   load_fragment  a thread's part of the row: vectors, `threads` apart, so that a warp
//                  reads whole lines
//   sums_over_row  adds up the values of the row's threads: by shuffles within a warp,
//                  then through shared memory
//
// A row belongs to the threads with one threadIdx.y: 8 or more lanes of a warp, or all
// warps of a block.
#pragma once

#include <algorithm>
#include <cmath>

#include "floating.h"
#include "vector.h"

namespace ladder {

constexpr int kWarp = 32;
constexpr int kRowThreads = 256;  // of a block with several rows
constexpr int kRegisters = 32;    // that hold a thread's part of a row

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

// The sums of n values over a row's threads, in place, for all of them: `lanes` of a
// warp, or a block of up to `warps` warps: within warps, then between them. All threads
// of the block must call it. Where it is called in a loop, `buffer` must alternate
// between 0 and 1: then a warp that is ahead does not overwrite what another still
// reads, and one barrier is enough.
template <int lanes, int warps, typename W, int n>
__device__ void sums_over_row(W (&values)[n], int buffer = 0) {
  for (int i = 0; i < n; ++i) values[i] = sum_of_lanes<lanes>(values[i]);
  if constexpr (warps > 1) {
    __shared__ W of_warps[2][n][warps];
    int lane = threadIdx.x % kWarp;
    if (lane == 0) {
      for (int i = 0; i < n; ++i) of_warps[buffer][i][threadIdx.x / kWarp] = values[i];
    }
    __syncthreads();  // every warp's values are written before they are read
    for (int i = 0; i < n; ++i)
      values[i] = sum_of_lanes<kWarp>(
          lane < blockDim.x / kWarp ? of_warps[buffer][i][lane] : W(0));
  }
}

template <typename V, typename T>
__device__ V filled(T value) {
  V v;
  for (int j = 0; j < V::size; ++j) v.at[j] = value;
  return v;
}

// region row
// A row of a matrix: `count` vectors of 16 bytes and, if rows begin anywhere, fewer
// single elements before the first multiple of 16 bytes, and after the last vector.
template <typename T, bool aligned, typename Int = int>
struct Row {
  static constexpr int size = Vector<T>::size;
  int64_t first;      // the element of the matrix that begins the first vector
  Int count;          // of vectors
  int before, after;  // numbers of single elements

  // Row `row`, in vectors that are aligned at p.
  __device__ Row(const T* p, int64_t row, int64_t columns)
      : first(row * columns), before(0), after(0) {
    if constexpr (!aligned) {
      int past = reinterpret_cast<uintptr_t>(p + first) % 16 / sizeof(T);
      before = min(columns, int64_t((size - past) % size));
      after = (columns - before) % size;
      first += before;
    }
    count = (columns - before) / size;
  }

  // What block `which` of `blocks` has of it: an equal share of the vectors.
  __device__ Row part(int which, int blocks) const {
    Row part = *this;
    Int share = (count + blocks - 1) / blocks, begin = min(count, which * share);
    part.first += int64_t(begin) * size;
    part.count = min(share, count - begin);
    if (which > 0) part.before = 0;
    if (which < blocks - 1) part.after = 0;
    return part;
  }

  // Calls visit(element of the matrix, k) for the thread's single elements: k = 0
  // before the vectors, k = 1 after them.
  template <typename Visit>
  __device__ void each_single(Visit visit) const {
    if constexpr (!aligned) {
      int thread = threadIdx.x;
      if (thread < before) visit(first - before + thread, Constant<0>());
      if (thread < after) visit(first + int64_t(count) * size + thread, Constant<1>());
    }
  }
};
// endregion

// Vectors threadIdx.x, threadIdx.x + threads, ... of the `count` that begin with
// element `first` of p, as they are in memory: halves stay packed two to a register.
// All loads start before any value is used. p has n elements; if aligned, its vectors
// are.
template <bool aligned, typename T, int vectors>
__device__ void load_fragment(uint4 (&words)[vectors], const T* __restrict__ p,
                              int64_t first, int64_t n, int count, int threads,
                              T beyond) {
  auto load = [&](auto one) {
#pragma unroll
    for (int k = 0; k < vectors; ++k) {
      int v = k * threads + threadIdx.x;
      words[k] = bits_as<uint4>(filled<Vector<T>>(beyond));
      if (v < count) words[k] = bits_as<uint4>(one(v));
    }
  };
  if (aligned || reinterpret_cast<uintptr_t>(p + first) % 16 == 0) {
    load([&](int v) { return Vector<T>::load(p + first, v); });
  } else {
    load([&](int v) { return load_anywhere(p, first + v * Vector<T>::size, n); });
  }
}

// How many vectors a thread keeps in kRegisters registers if it widens them.
template <typename T>
constexpr int kWidened =
    std::min<int>(8, kRegisters * 4 / (Vector<T>::size * sizeof(Wide<T>)));

// A row of few vectors: calls attempt(lanes of a warp, vectors of each) for 1 to 8
// lanes, until one is true. A lane with two vectors has two loads in flight, and no
// lane is idle: with 8 lanes for a row of 8 halves, 7 of 8 would be.
template <typename Attempt>
bool in_few_lanes(Attempt attempt) {
  constexpr Constant<1> one;
  constexpr Constant<2> two;
  return attempt(one, one) || attempt(two, one) || attempt(two, two) ||
         attempt(Constant<4>(), two) || attempt(Constant<8>(), two);
}

// How many blocks keep a row of `vectors` vectors, up to `each` in a thread, and how
// many threads each has: as few warps as can keep it. One block has up to most_threads;
// those of a cluster have up to of_cluster, or more if most_blocks are not enough.
struct RowThreads {
  int blocks;
  int64_t threads;
};
inline RowThreads threads_of_row(int64_t vectors, int each, int most_threads,
                                 int of_cluster, int most_blocks) {
  int blocks = vectors <= each * most_threads ? 1 : 2;
  while (blocks > 1 && blocks < most_blocks && vectors > each * of_cluster * blocks)
    blocks *= 2;
  return {blocks, ceil_div(ceil_div(vectors, blocks), each * kWarp) * kWarp};
}

}  // namespace ladder
