// attention_grad_q.h: the gradient of q in attention_hopper_backward.cu. Blocks add
// their parts to sums in global memory; a kernel before them writes zeros there and
// computes what they need of each query, and one after them rounds the sums.
//
// The order of additions differs from run to run, and the last bits of grad_q with it;
// grad_k and grad_v are the same each time. deterministic: blocks add to a tile in the
// order of their keys. Each tile counts the blocks that have added to it, and the next
// one waits for its turn: for work tiles that were taken before its own, so by blocks
// that run. All blocks go through the tiles from the last one down, which every block
// of a causal head has, so they do not wait for a block that comes to a tile much
// later, but once, for the hand-overs of the first tile. Those are fewer if blocks of
// several heads alternate.
#pragma once

#include <cuda/atomic>

#include "attention_key_tiles.h"

namespace ladder {

// Where the subtile of grad_q that `consumer` computes of a tile begins: 4 warps, 8
// columns at a time, 32 lanes.
__device__ inline float4* grad_q_subtile(float* sums, int64_t tile, int consumer) {
  return reinterpret_cast<float4*>(sums) +
         ((tile * kConsumers + consumer) * (kWarpGroup / 32) * kSubtile / 8) * 32;
}
__device__ inline int index_in_subtile(int t, int eight) {
  return (t / 32 * (kSubtile / 8) + eight) * 32 + t % 32;
}

using Turn = cuda::atomic_ref<int, cuda::thread_scope_device>;

// One thread of each adder, which has every other step: while one waits for its turn,
// or until its additions are complete, the other goes on.
template <int d, typename Scheduler>
__device__ void add_grad_q(KeyTiles<d>& shared, const Operands& operands, int adder,
                           const Scheduler& scheduler) {
  unsigned step = 0;
  shared.for_each_work_tile([&](const WorkTile& work, unsigned i) {
    TileIterator iterator = work.iterator;
#pragma unroll 1
    for (unsigned end = step + work.steps; step < end; ++step, iterator.advance()) {
      if (step % kAdders != adder) continue;
      int number = iterator.number();
      Turn turn(operands.turns[operands.turns ? number : 0]);
      if (operands.turns) {
        int query = iterator.tile * kQueriesOfTile<d>,
            first_key = scheduler.mask_of(work.q, work.kv).keys_of(query, query).begin;
        int before = work.first / kKeysOfBlock - first_key / kKeysOfBlock;
        while (turn.load(cuda::memory_order_acquire) != before) {
        }
        hopper::fence_async();
      }
      for (int consumer = 0; consumer < kConsumers; ++consumer) {
        hopper::wait(shared.grad_q_full[adder][consumer], step / kAdders % 2);
        hopper::add_floats(grad_q_subtile(operands.grad_q, number, consumer),
                           shared.grad_q[consumer], sizeof shared.grad_q[consumer]);
        hopper::store_commit();
      }
      hopper::store_wait<1>();
      hopper::arrive(shared.grad_q_empty[0]);
      hopper::store_wait<0>();
      hopper::arrive(shared.grad_q_empty[1]);
      if (operands.turns) {
        hopper::store_complete();
        turn.fetch_add(1, cuda::memory_order_release);
      }
    }
    hopper::arrive(shared.work_empty[i % 2]);
  });
}

// A warp group. Writes 64 rows of n sums, times factor, as far as there are `rows`
// rows. pitch: from row to row. limited: only the first `columns`, a multiple of 8.
template <int n, bool limited>
__device__ __forceinline__ void write_rows(const float (&sum)[n / 2], bfloat16* to,
                                           int64_t pitch, int rows, float factor,
                                           int columns) {
  int t = threadIdx.x % kWarpGroup, row = t / 32 * 16 + t % 32 / 4;
#pragma unroll
  for (int j = 0; j < n / 2; j += 8) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float* at = &sum[j + 2 * half];
      uint2 four = four_neighbours(packed<bfloat16>(at[0] * factor, at[1] * factor),
                                   packed<bfloat16>(at[4] * factor, at[5] * factor));
      if (row + 8 * half < rows && (!limited || 2 * j + first_of_four() < columns)) {
        *reinterpret_cast<uint2*>(
            &to[(row + 8 * half) * pitch + 2 * j + first_of_four()]) = four;
      }
    }
  }
}

constexpr int kThreadsOfTile = kConsumers * kWarpGroup;

// A block for each tile of queries: d / 8 threads for each row, of which those of
// `columns` have something to do. rows: logsumexp and delta of the tile; sums, taken
// and turns, if not null: zeros.
template <int d, typename Lengths>
__global__ void __launch_bounds__(kThreadsOfTile)
    attention_hopper_rows_kernel(const bfloat16* __restrict__ grad,
                                 const bfloat16* __restrict__ out,
                                 const float* __restrict__ grad_logsumexp,
                                 const float* __restrict__ logsumexp,
                                 float* __restrict__ rows, float4* __restrict__ sums,
                                 int* __restrict__ taken, int* __restrict__ turns,
                                 Strides of_grad, Strides of_out, Lengths lengths,
                                 int heads, int tokens, int columns) {
  constexpr int queries = kQueriesOfTile<d>, threads = d / 8;
  using Eight = Vector<uint32_t, 16>;
  int head = blockIdx.x / lengths.tiles(queries),
      number = blockIdx.x % lengths.tiles(queries),
      i = lengths.sequence_of(number, queries);
  Sequence sequence = lengths.sequence(head / heads, i);
  auto row_of = [&](const bfloat16* p, const Strides& s, int64_t row) {
    p += Lengths::offset(sequence, s) + head % heads * s.head + row * s.token;
    return Eight::load(reinterpret_cast<const uint32_t*>(p), threadIdx.x % threads);
  };
  int first = (number - lengths.first_tile(i, queries)) * queries;
  Strides of_sum = {int64_t(heads) * tokens, tokens, 1};
  int64_t first_row =
      Lengths::offset(sequence, of_sum) + head % heads * of_sum.head + first;
  if (threadIdx.x == 0) {
    if (blockIdx.x == 0) *taken = 0;
    if (turns) turns[blockIdx.x] = 0;
  }
  for (int i = threadIdx.x; i < queries * d / 4; i += kThreadsOfTile) {
    sums[blockIdx.x * int64_t(queries * d / 4) + i] = make_float4(0, 0, 0, 0);
  }
#pragma unroll
  for (int i = 0; i < queries; i += kThreadsOfTile / threads) {
    int within = i + threadIdx.x / threads;
    int64_t row = first_row + within;
    bool there = first >= 0 && first + within < sequence.length;
    float sum = 0;
    if (there && int(threadIdx.x % threads * 8) < columns) {
      Eight x = row_of(grad, of_grad, first + within);
      Eight y = row_of(out, of_out, first + within);
      // Two bfloat16, each the upper half of a float.
#pragma unroll
      for (int j = 0; j < Eight::size; ++j) {
        sum += __uint_as_float(x.at[j] << 16) * __uint_as_float(y.at[j] << 16);
        sum += __uint_as_float(x.at[j] & 0xffff0000) *
               __uint_as_float(y.at[j] & 0xffff0000);
      }
    }
    for (int lane = threads / 2; lane > 0; lane /= 2)
      sum += __shfl_xor_sync(kAll, sum, lane);
    if (threadIdx.x % threads == 0) {
      float* to = rows + blockIdx.x * int64_t(2 * queries) + within;
      // Of a row that sees no key it is -inf, and all its scores are.
      to[0] = there && logsumexp[row] != -INFINITY ? logsumexp[row] * kLog2E : 0;
      to[queries] = there ? grad_logsumexp[row] - sum : 0;
    }
  }
}

// A block for each tile of queries: grad_q = factor * sums.
template <int d, typename Lengths>
__global__ void __launch_bounds__(kThreadsOfTile)
    attention_hopper_round_kernel(float* __restrict__ sums,
                                  bfloat16* __restrict__ grad_q, Strides of_grad_q,
                                  Lengths lengths, int heads, float factor,
                                  int columns) {
  int consumer = threadIdx.x / kWarpGroup;
  const float4* from = grad_q_subtile(sums, blockIdx.x, consumer);
  float sum[kSubtile / 2];
#pragma unroll
  for (int i = 0; i < kSubtile / 8; ++i) {
    float4 four = from[index_in_subtile(threadIdx.x % kWarpGroup, i)];
    sum[4 * i] = four.x, sum[4 * i + 1] = four.y, sum[4 * i + 2] = four.z,
            sum[4 * i + 3] = four.w;
  }
  int queries = kQueriesOfTile<d>, head = blockIdx.x / lengths.tiles(queries),
      number = blockIdx.x % lengths.tiles(queries),
      i = lengths.sequence_of(number, queries);
  Sequence sequence = lengths.sequence(head / heads, i);
  int row = (number - lengths.first_tile(i, queries)) * queries +
            (d == 128 ? 0 : consumer * kSubtile),
      column = d == 128 ? consumer * kSubtile : 0;
  if (row < 0) return;
  grad_q += Lengths::offset(sequence, of_grad_q) + head % heads * of_grad_q.head;
  grad_q += row * of_grad_q.token + column;
  write_rows<kSubtile, true>(sum, grad_q, of_grad_q.token, sequence.length - row,
                             factor, columns - column);
}

// The memory of these kernels. Launches the first of them.
template <int d, typename Lengths>
struct SumsOfGradQ {
  static constexpr int queries = kQueriesOfTile<d>;
  Lengths lengths;
  int64_t tiles;
  int heads, columns;
  cudaStream_t stream;
  Tensor rows, sums, counters;
  int *taken, *turns;

  SumsOfGradQ(const Tensor& grad, const Tensor& grad_logsumexp, const Tensor& q,
              const Tensor& out, const Tensor& logsumexp, const Sizes& size,
              Lengths lengths, bool deterministic)
      : lengths(lengths),
        tiles(size.heads * lengths.tiles(queries)),
        heads(q.size(1)),
        columns(size.d),
        stream(current_stream(q)),
        rows(torch::stable::new_empty(q, {tiles, 2, queries}, ScalarType::Float)),
        sums(torch::stable::new_empty(q, {tiles, queries, d}, ScalarType::Float)),
        counters(torch::stable::new_empty(q, {deterministic ? 1 + tiles : 1},
                                          ScalarType::Int)),
        taken(data<int>(counters)),
        turns(deterministic ? taken + 1 : nullptr) {
    attention_hopper_rows_kernel<d, Lengths>
        <<<grid_of(tiles), kThreadsOfTile, 0, stream>>>(
            data<bfloat16>(grad), data<bfloat16>(out), data<float>(grad_logsumexp),
            data<float>(logsumexp), data<float>(rows), data<float4>(sums), taken, turns,
            strides(grad), strides(out), lengths, heads, size.tokens, columns);
    STD_CUDA_KERNEL_LAUNCH_CHECK();
  }
  // Launches the last.
  void round(Tensor& grad_q, float factor) {
    attention_hopper_round_kernel<d, Lengths>
        <<<grid_of(tiles), kThreadsOfTile, 0, stream>>>(
            data<float>(sums), data<bfloat16>(grad_q), strides(grad_q), lengths, heads,
            factor, columns);
    STD_CUDA_KERNEL_LAUNCH_CHECK();
  }
};

}  // namespace ladder
