// attention_consumer.h: what the warps of attention_hopper.cu do with tiles: the
// products and the online softmax of a consumer, and results. Which tiles, and when, is
// decided there.
#pragma once

#include "attention.h"
#include "hopper_matmul.h"
#include "hopper_wgmma.h"
#include "mma_sync.h"
#include "work_tiles.h"

namespace ladder {

using hopper::Barrier, hopper::bfloat16, hopper::kWarpGroup;

constexpr int kRowsOfGroup = 64;

// What a block is. q_in_registers: consumers read q once for all keys, which takes less
// power and leaves a place in its ring to k and v. padded: tensors have fewer columns
// than d. TMA fills the others with zeros, which change no sum.
template <int d_, int consumers_, bool q_in_registers_, bool padded_ = false>
struct Shape {
  static constexpr bool q_in_registers = q_in_registers_, padded = padded_;
  static constexpr int d = d_, consumers = consumers_, rows = consumers * kRowsOfGroup,
                       threads = (1 + consumers) * kWarpGroup, panels = (d + 63) / 64,
                       q_stages = panels == 2 && q_in_registers ? 1 : 2,
                       kv_stages = panels == 1 ? 4 : 4 - q_stages;
  // How many exponentials a thread begins before it waits for the product with v:
  // measured, of 0, 2, 4, 8, 12, 16, 24 and 32.
  static constexpr int early = consumers == 3 ? 0 : d == 64 ? 4 : 16;
};

// A tile is stored in panels of 64 columns.
template <typename S>
struct HopperTiles {
  bfloat16 q[S::q_stages][S::panels][S::rows][64],
      k[S::kv_stages][S::panels][kKeysOfTile][64],
      v[S::kv_stages][S::panels][kKeysOfTile][64];
  WorkTiles work_tiles;
  Barrier q_full[S::q_stages], q_empty[S::q_stages], k_full[S::kv_stages],
      k_empty[S::kv_stages], v_full[S::kv_stages], v_empty[S::kv_stages];

  // One thread.
  __device__ void init() {
    constexpr int warps = S::consumers * kWarpGroup / 32;
    work_tiles.init(warps);
    for (int stage = 0; stage < S::q_stages; ++stage) {
      hopper::init(q_full[stage], 1);
      hopper::init(q_empty[stage], warps);
    }
    for (int stage = 0; stage < S::kv_stages; ++stage) {
      hopper::init(k_full[stage], 1);
      hopper::init(v_full[stage], 1);
      hopper::init(k_empty[stage], S::consumers);
      hopper::init(v_empty[stage], S::consumers);
    }
  }
};

// -------------------------------------------------------------------------------------
// Scores and probabilities

// The state of online softmax of a thread's two rows of the 64, 8 apart. The sums are
// over the thread's own columns.
struct RowState {
  float largest[2] = {-INFINITY, -INFINITY}, sum[2] = {};

  __device__ float shift(int half, float scale) const {
    return finite_or_0(largest[half] * scale);
  }

  // Sees scores: probabilities are relative to the largest so far. correction: by what
  // earlier sums must be multiplied. scale: log2(e) is in it.
  __device__ __forceinline__ void see(const float (&scores)[kKeysOfTile / 2],
                                      float scale, float (&correction)[2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float before = largest[half], now = before;
#pragma unroll
      for (int i = 2 * half; i < kKeysOfTile / 2; i += 4)
        now = fmaxf(now, fmaxf(scores[i], scores[i + 1]));
      now = largest[half] = quad_max(now);
      correction[half] = exp2_approximate(before * scale - shift(half, scale));
      sum[half] *= correction[half];
    }
  }

  // Turns scores `from` to `to` into probabilities, and adds them up.
  template <int from, int to>
  __device__ __forceinline__ void exponentiate(float (&scores)[kKeysOfTile / 2],
                                               float scale) {
#pragma unroll
    for (int i = from; i < to; ++i) {
      int half = i / 2 % 2;
      sum[half] += scores[i] = exp2_approximate(scores[i] * scale - shift(half, scale));
    }
  }
};

// A warp group. Begins scores = q @ k^T for its 64 rows of q, in registers or, from
// row `row` of the block's on, in shared memory.
template <typename S>
__device__ __forceinline__ void begin_scores(float (&scores)[kKeysOfTile / 2],
                                             const HopperTiles<S>& shared,
                                             const uint32_t (&q)[S::d / 16][4],
                                             int stage_of_q, int row, int stage) {
  hopper::wgmma_fence();
#pragma unroll
  for (int i = 0; i < S::d; i += 16) {  // 32 bytes further in a panel's rows
    uint64_t b = hopper::descriptor(&shared.k[stage][i / 64], 16) + (i % 64 * 2 >> 4);
    if constexpr (S::q_in_registers) {
      hopper::wgmma_registers<kKeysOfTile, false>(scores, q[i / 16], b, i > 0);
    } else {
      uint64_t a = hopper::descriptor(&shared.q[stage_of_q][i / 64][row], 16);
      hopper::wgmma_shared<kKeysOfTile, false, false>(scores, a + (i % 64 * 2 >> 4), b,
                                                      i > 0);
    }
  }
  hopper::wgmma_commit();
}

// Rounds probabilities: as sums of the first product lie, so a factor of the second.
__device__ __forceinline__ void convert(uint32_t (&probabilities)[kKeysOfTile / 16][4],
                                        const float (&scores)[kKeysOfTile / 2]) {
#pragma unroll
  for (int i = 0; i < kKeysOfTile / 4; ++i)
    probabilities[i / 4][i % 4] = packed<bfloat16>(scores[2 * i], scores[2 * i + 1]);
}

// A warp group. Begins out += probabilities @ v, or out = probabilities @ v.
template <typename S>
__device__ __forceinline__ void begin_out(
    float (&out)[S::d / 2], const uint32_t (&probabilities)[kKeysOfTile / 16][4],
    const HopperTiles<S>& shared, int stage, bool add) {
  uint64_t v = hopper::descriptor(&shared.v[stage], sizeof(shared.v[stage][0]));
  hopper::wgmma_fence();
#pragma unroll
  for (int i = 0; i < kKeysOfTile / 16; ++i) {
    hopper::wgmma_registers<S::d, true>(
        out, probabilities[i], v + i * (16 * hopper::kRowBytes >> 4), add || i > 0);
  }
  hopper::wgmma_commit();
}

// -------------------------------------------------------------------------------------
// Results

// Where a block's results go.
struct Results {
  bfloat16* out;
  Strides strides;
  float* logsumexp;
  Strides strides_of_sum;
  int columns;

  // The first of a work tile's sequence.
  template <typename Lengths>
  __device__ bfloat16* out_of(const WorkTile& work) const {
    return out + Lengths::offset(work.q, strides) + work.head * strides.head;
  }
  template <typename Lengths>
  __device__ float* logsumexp_of(const WorkTile& work) const {
    return logsumexp + Lengths::offset(work.q, strides_of_sum) +
           work.head * strides_of_sum.head;
  }
};

// A warp. The results of a work tile's queries that see no key.
template <typename S, typename Lengths>
__device__ void write_nothing(const Results& results, const WorkTile& work) {
  bfloat16* to = results.out_of<Lengths>(work);
  float* logsumexp = results.logsumexp_of<Lengths>(work);
  int rows = min(S::rows, work.q.length - work.first),
      vectors = (S::padded ? results.columns : S::d) / 8;
  for (int i = threadIdx.x % 32; i < rows * vectors; i += 32) {
    int row = work.first + i / vectors;
    reinterpret_cast<uint4*>(to + row * results.strides.token)[i % vectors] = {};
    if (i % vectors == 0) logsumexp[row] = -INFINITY;
  }
}

// A row of results of a thread, and the one 8 after it, whose sums are complete.
struct Rows {
  bfloat16* to;
  int left;  // rows of the sequence, from the first on
  float factor[2];
};

// A warp group. Writes logsumexp of the rows that end a work tile; `row` is the
// thread's first.
template <typename Lengths>
__device__ __forceinline__ Rows complete(const Results& results, const WorkTile& work,
                                         int row, const RowState& state, float scale) {
  Rows rows = {results.out_of<Lengths>(work) + row * results.strides.token,
               work.q.length - row};
  float* logsumexp = results.logsumexp_of<Lengths>(work) + row;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float sum = quad_sum(state.sum[half]);
    rows.factor[half] = sum == 0 ? 0 : 1 / sum;  // 0: of no keys
    if (8 * half < rows.left && threadIdx.x % 4 == 0) {
      logsumexp[8 * half] =
          (finite_or_0(state.largest[half] * scale) + log2f(sum)) * kLn2;
    }
  }
  return rows;
}

template <typename S>
__device__ __forceinline__ void write(const Rows& rows, const float (&out)[S::d / 2],
                                      const Results& results) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    write_row<S::d, S::padded>(rows.to, 8 * half, rows.left,
                               reinterpret_cast<const float (&)[S::d / 8][4]>(out),
                               2 * half, rows.factor[half], results.strides.token,
                               results.columns);
  }
}

}  // namespace ladder
