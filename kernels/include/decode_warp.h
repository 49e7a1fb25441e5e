// decode_warp.h: what a warp of attention_decode.cu computes: it copies tiles of keys
// and values into its ring, multiplies them with 16 rows of q, and keeps the state of
// these rows' online softmax. States of several warps and blocks are merged.
#pragma once

#include "async_copy.h"
#include "attention.h"
#include "mma_sync.h"

namespace ladder {

constexpr int kWarps = 4, kThreads = 32 * kWarps;
constexpr int kRows = 16;   // of an mma.sync
constexpr int kStages = 2;  // of a warp's ring
template <int d>
constexpr int kKeys = d > 64 ? 16 : 32;  // of a warp's tile
template <int d>
constexpr int kTile = kWarps * kKeys<d>;  // of a block's
using Four = Vector<float>;

// Rows are padded by 16 bytes, so that the 8 that ldmatrix reads at once are in
// different banks.
template <typename T, int d>
struct Ring {
  T k[kStages][kKeys<d>][d + 8], v[kStages][kKeys<d>][d + 8];
};

// The state of online softmax over a part of the keys, for each row; largest: in powers
// of 2. Padded likewise.
template <int d>
struct Part {
  float out[kRows][d + 8], largest[kRows], sum[kRows];
};

// The state of four columns of a row.
struct State {
  float largest = -INFINITY, sum = 0;
  Four out = {};

  __device__ void merge(const State& other) {
    float now = fmaxf(largest, other.largest), shift = finite_or_0(now);
    float mine = exp2_approximate(largest - shift),
          theirs = exp2_approximate(other.largest - shift);
    largest = now;
    sum = sum * mine + other.sum * theirs;
    for (int i = 0; i < Four::size; ++i)
      out.at[i] = out.at[i] * mine + other.out.at[i] * theirs;
  }
  template <int d>
  __device__ void merge(const Part<d>& part, int row, int four) {
    merge({part.largest[row], part.sum[row], Four::load(part.out[row], four)});
  }
};

template <typename T>
struct Operands {
  const T *q, *k, *v;
  T* out;
  float* logsumexp;
  const int* lengths;
  Strides of_q, of_k, of_v, of_out;
  int batches, heads_kv, group, queries, tokens;
  bool causal;
  float scale;  // log2(e) is in it

  __device__ int length(int batch) const {
    return lengths ? max(0, min(lengths[batch], tokens)) : tokens;
  }
  // Row r of those that share a head of k and v is of query r % queries, and of head
  // r / queries of the group.
  __device__ int rows() const { return group * queries; }
  __device__ int head(int head_kv, int row) const {
    return head_kv * group + row / queries;
  }
  __device__ int visible(int row, int length) const {
    return causal ? length - (queries - 1 - row % queries) : length;
  }

  template <typename Pointer>
  __device__ Pointer at(Pointer p, const Strides& s, int batch, int head_kv,
                        int row) const {
    return p + batch * s.batch + head(head_kv, row) * s.head + row % queries * s.token;
  }

  __device__ void write(int batch, int head_kv, int row, int four,
                        const State& state) const {
    float factor = state.sum == 0 ? 0 : 1 / state.sum;  // 0: saw no key
    const float* x = state.out.at;
    uint2 both = {packed<T>(x[0] * factor, x[1] * factor),
                  packed<T>(x[2] * factor, x[3] * factor)};
    *reinterpret_cast<uint2*>(at(out, of_out, batch, head_kv, row) + 4 * four) = both;
    if (four == 0) {
      int64_t first =
          (int64_t(batch) * heads_kv * group + head(head_kv, row)) * queries;
      logsumexp[first + row % queries] = (state.largest + log2f(state.sum)) * kLn2;
    }
  }
};

// -------------------------------------------------------------------------------------
// A warp's tiles

// 16 rows of q as factors of mma.sync, and the state of their online softmax: a lane
// has two rows, 8 apart.
template <typename T, int d>
struct WarpState {
  uint32_t q[d / 16][4];
  float out[d / 8][4] = {}, largest[2] = {-INFINITY, -INFINITY}, sum[2] = {};

  __device__ WarpState(const Operands<T>& o, int batch, int head_kv, int first) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int row = first + lane / 4 + 8 * half;
      const T* from = o.at(o.q, o.of_q, batch, head_kv, row) + lane % 4 * 2;
#pragma unroll
      for (int i = 0; i < d / 8; ++i) {
        q[i / 2][i % 2 * 2 + half] =
            row < o.rows() ? *reinterpret_cast<const uint32_t*>(from + 8 * i) : 0;
      }
    }
  }

  // k, v: tiles in shared memory, from key `key` on. visible: how many keys a row sees.
  __device__ void add(const T (&k)[kKeys<d>][d + 8], const T (&v)[kKeys<d>][d + 8],
                      int key, const int (&visible)[2], float scale) {
    constexpr int n = kKeys<d>;
    int lane = threadIdx.x % 32;
    float scores[n / 8][4] = {};
    uint32_t right[4];
#pragma unroll
    for (int i = 0; i < d / 16; ++i) {
#pragma unroll
      for (int x = 0; x < n / 8; x += 2) {
        load_matrices(right,
                      &k[8 * x + lane / 16 * 8 + lane % 8][16 * i + lane / 8 % 2 * 8]);
        multiply_add<T>(scores[x], q[i], right[0], right[1]);
        multiply_add<T>(scores[x + 1], q[i], right[2], right[3]);
      }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float before = largest[half], now = before;
#pragma unroll
      for (int i = 0; i < n / 4; ++i) {
        float& score = scores[i / 2][2 * half + i % 2];
        if (key + i / 2 * 8 + lane % 4 * 2 + i % 2 >= visible[half]) score = -INFINITY;
        now = fmaxf(now, score);
      }
      now = largest[half] = quad_max(now);
      float shift = finite_or_0(now * scale);
      float correction = exp2_approximate(before * scale - shift);
      sum[half] *= correction;
#pragma unroll
      for (int i = 0; i < d / 4; ++i) out[i / 2][2 * half + i % 2] *= correction;
#pragma unroll
      for (int i = 0; i < n / 4; ++i) {
        float& score = scores[i / 2][2 * half + i % 2];
        sum[half] += score = exp2_approximate(score * scale - shift);
      }
    }
#pragma unroll
    for (int i = 0; i < n / 8; i += 2) {
      uint32_t left[4];  // 16 rows by 16 keys: where the sums lie, a factor has to lie
#pragma unroll
      for (int j = 0; j < 4; ++j)
        left[j] =
            packed<T>(scores[i + j / 2][j % 2 * 2], scores[i + j / 2][j % 2 * 2 + 1]);
#pragma unroll
      for (int x = 0; x < d / 8; x += 2) {
        load_transposed(right, &v[8 * i + lane % 16][8 * x + lane / 16 * 8]);
        multiply_add<T>(out[x], left, right[0], right[1]);
        multiply_add<T>(out[x + 1], left, right[2], right[3]);
      }
    }
  }

  __device__ void write(Part<d>& to, float scale) const {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int row = lane / 4 + 8 * half;
#pragma unroll
      for (int x = 0; x < d / 8; ++x) {
        *reinterpret_cast<float2*>(&to.out[row][8 * x + lane % 4 * 2]) =
            make_float2(out[x][2 * half], out[x][2 * half + 1]);
      }
      float all = quad_sum(sum[half]);
      if (lane % 4 == 0) to.largest[row] = largest[half] * scale, to.sum[row] = all;
    }
  }
};

// A warp's share of `count` tiles of a head from tile `first` on; rows from `row` on.
template <typename T, int d>
__device__ void attend(const Operands<T>& o, Ring<T, d>& ring, Part<d>* to, int batch,
                       int head_kv, int row, int first, int count) {
  constexpr int vectors = d / 8;  // of a row, of 16 bytes
  int lane = threadIdx.x % 32, length = o.length(batch);
  const T *k = o.k + batch * o.of_k.batch + head_kv * o.of_k.head,
          *v = o.v + batch * o.of_v.batch + head_kv * o.of_v.head;
  int begin = first * kTile<d> + threadIdx.x / 32 * kKeys<d>;
  AsyncCopies copies;
  auto fill = [&](int step) {
    if (step < count) {
#pragma unroll
      for (int i = 0; i < kKeys<d> * vectors; i += 32) {
        int within = (i + lane) / vectors, column = (i + lane) % vectors * 8;
        int64_t key = begin + step * kTile<d> + within;
        copies.start<16>(&ring.k[step % kStages][within][column],
                         k + key * o.of_k.token + column, key < length);
        copies.start<16>(&ring.v[step % kStages][within][column],
                         v + key * o.of_v.token + column, key < length);
      }
    }
    copies.commit();
  };
  for (int step = 0; step < kStages - 1; ++step) fill(step);
  WarpState<T, d> state(o, batch, head_kv, row);
  row += lane / 4;
  int visible[2] = {o.visible(row, length), o.visible(row + 8, length)};
  for (int step = 0; step < count; ++step) {
    fill(step + kStages - 1);
    copies.wait<kStages - 1>();
    __syncwarp();  // all lanes' copies of this step are here
    state.add(ring.k[step % kStages], ring.v[step % kStages], begin + step * kTile<d>,
              visible, o.scale);
    __syncwarp();  // no lane still reads this stage
  }
  copies.wait<0>();
  __syncthreads();  // every warp has finished with its ring, whose memory `to` has
  state.write(to[threadIdx.x / 32], o.scale);
}

}  // namespace ladder
