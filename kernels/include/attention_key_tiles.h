// attention_key_tiles.h: a block's tiles in shared memory in
// attention_hopper_backward.cu, the producer that requests them, and the products of a
// consumer.
#pragma once

#include "attention_key_work.h"
#include "hopper_bulk.h"
#include "hopper_wgmma.h"

namespace ladder {

using hopper::Barrier, hopper::bfloat16, hopper::kConsumers, hopper::kRowBytes,
    hopper::kWarpGroup, hopper::PingPong, hopper::TileMap;

constexpr int kStages = 2;
constexpr int kAdders = 2;  // threads that add parts of grad_q, each in its own steps
using PipelineState = hopper::PipelineStateOf<kStages>;

// Tiles are stored in panels of 64 columns.
template <int d>
struct QueryTile {
  alignas(1024) bfloat16 q[d / 64][kQueriesOfTile<d>][64];
  bfloat16 grad[d / 64][kQueriesOfTile<d>][64];
  float logsumexp[kQueriesOfTile<d>], delta[kQueriesOfTile<d>];
};

template <int d>
struct KeyTiles {
  bfloat16 k[d / 64][kKeysOfBlock][64], v[d / 64][kKeysOfBlock][64];
  bfloat16 ds[2][kConsumers][kQueriesOfTile<d>]
             [64];  // a panel for each consumer's keys
  float4 grad_q[kConsumers][kSubtile * kSubtile / 4];  // a block's part of a tile
  QueryTile<d> stages[kStages];
  Barrier keys_full, keys_empty, full[kStages], empty[kStages], ds_full[2],
      grad_q_full[kAdders][kConsumers], grad_q_empty[kConsumers], work_full[2],
      work_empty[2];
  WorkTile work[2];  // the block's own, and the next

  // One thread.
  __device__ void init() {
    constexpr int group = kWarpGroup / 32, warps = kConsumers * group;
    hopper::init(keys_full, 1);
    hopper::init(keys_empty, warps);
    for (int i = 0; i < 2; ++i) {
      hopper::init(work_full[i], 1);
      hopper::init(work_empty[i], warps + kAdders);
    }
    for (int stage = 0; stage < kStages; ++stage) {
      hopper::init(full[stage], 1);
      hopper::init(empty[stage], warps);
    }
    for (Barrier& full : ds_full) hopper::init(full, warps);
    for (int consumer = 0; consumer < kConsumers; ++consumer) {
      hopper::init(grad_q_empty[consumer], 1);
      for (auto& full : grad_q_full) hopper::init(full[consumer], group);
    }
  }
  // Calls run(work tile, how many came before) for each; it arrives at work_empty.
  template <typename Run>
  __device__ __forceinline__ void for_each_work_tile(Run run) {
#pragma unroll 1
    for (unsigned i = 0;; ++i) {
      hopper::wait(work_full[i % 2], i / 2 % 2);
      if (work[i % 2].steps == kNoMore) return;
      run(work[i % 2], i);
    }
  }
};

struct Operands {
  TileMap q, grad, k, v;
  const float* rows;  // of each tile of queries: all logsumexp, then all delta
  float* grad_q;      // sums, in the order of grad_q_subtile
  int* turns;         // blocks that have added to each tile; or null
  bfloat16 *grad_k, *grad_v;
  Strides of_grad_k, of_grad_v;
  int columns;
};

// -------------------------------------------------------------------------------------
// The producer

// One thread. Requests the tiles of the block's i-th work tile.
template <typename Lengths, int d>
__device__ void request(KeyTiles<d>& shared, const Operands& operands, WorkTile work,
                        unsigned i, PipelineState& pipe) {
  constexpr int queries = kQueriesOfTile<d>, row_bytes = 2 * queries * sizeof(float);
  TileIterator& iterator = work.iterator;
#pragma unroll 1
  for (int step = 0; step <= work.steps; ++step) {
    // The first queries have their place before the keys.
    if (step == min(1, work.steps)) {
      hopper::wait(shared.keys_empty, i % 2 ^ 1);
      hopper::arrive_and_expect(shared.keys_full, sizeof shared.k + sizeof shared.v);
      Lengths::load(shared.k, operands.k, shared.keys_full, work.kv, work.head_kv,
                    work.first);
      Lengths::load(shared.v, operands.v, shared.keys_full, work.kv, work.head_kv,
                    work.first);
    }
    if (step == work.steps) return;
    QueryTile<d>& stage = shared.stages[pipe.stage];
    Barrier& full = shared.full[pipe.stage];
    // At first there is no phase to wait for.
    hopper::wait(shared.empty[pipe.stage], pipe.parity ^ 1);
    hopper::arrive_and_expect(full, sizeof stage.q + sizeof stage.grad + row_bytes);
    int head = work.head_kv * iterator.heads + iterator.head,
        row = iterator.tile * queries;
    Lengths::load(stage.q, operands.q, full, work.q, head, row);
    Lengths::load(stage.grad, operands.grad, full, work.q, head, row);
    hopper::load_bytes(stage.logsumexp,
                       operands.rows + int64_t(iterator.number()) * 2 * queries,
                       row_bytes, full);
    pipe.advance(), iterator.advance();
  }
}

// A warp.
template <int d, typename Lengths, typename Mask>
__device__ void produce(KeyTiles<d>& shared, const Operands& operands,
                        const TileScheduler<d, Lengths, Mask>& scheduler) {
  PipelineState pipe;
  bool more = true;
#pragma unroll 1
  for (unsigned i = 0; more; ++i) {
    WorkTile work;
    more = scheduler.next(work);
    if (!more) work.steps = kNoMore;
    if (hopper::elected()) {
      hopper::wait(shared.work_empty[i % 2], i / 2 % 2 ^ 1);
      shared.work[i % 2] = work;
      hopper::arrive(shared.work_full[i % 2]);
      if (more) request<Lengths>(shared, operands, work, i, pipe);
    }
    __syncwarp();
  }
}

// -------------------------------------------------------------------------------------
// Products of a consumer

__device__ __forceinline__ uint64_t advanced(uint64_t descriptor, int bytes) {
  return descriptor + (bytes >> 4);
}
// Bytes to the i-th 16 columns of a tile with panels of `rows` rows, and to its i-th 16
// rows.
__device__ constexpr int columns_at(int i, int rows) {
  return i / 4 * rows * kRowBytes + i % 4 * 32;
}
__device__ constexpr int rows_at(int i) { return i * 16 * kRowBytes; }

// A consumer's 64 rows of k or v. With d = 64 there are registers for them: so products
// read half as much shared memory.
template <int d>
struct KeyRows {
  static constexpr bool in_registers = d == 64;
  uint32_t factors[d / 16][4];
  uint64_t descriptor;

  // A warp group. first: the first row.
  __device__ __forceinline__ void load(const bfloat16 (&tile)[d / 64][kKeysOfBlock][64],
                                       int first) {
    if constexpr (in_registers) {
      hopper::load_factors<d>(factors, tile,
                              first + threadIdx.x % kWarpGroup / 32 * 16);
    } else {
      descriptor =
          advanced(hopper::descriptor(tile, sizeof tile[0]), first * kRowBytes);
    }
  }
};

// A warp group. Begins sum = a @ b^T, b 64 rows of a tile of queries, or adds that.
template <int d, bool add = false>
__device__ __forceinline__ void begin_scores(float (&sum)[kSubtile / 2],
                                             const KeyRows<d>& a, uint64_t b) {
  hopper::wgmma_fence();
#pragma unroll
  for (int i = 0; i < d / 16; ++i) {
    uint64_t columns = advanced(b, columns_at(i, kQueriesOfTile<d>));
    if constexpr (KeyRows<d>::in_registers) {
      hopper::wgmma_registers<kSubtile, false>(sum, a.factors[i], columns,
                                               add || i > 0);
    } else {
      hopper::wgmma_shared<kSubtile, false, false>(
          sum, advanced(a.descriptor, columns_at(i, kKeysOfBlock)), columns,
          add || i > 0);
    }
  }
  hopper::wgmma_commit();
}

// A warp group. Begins sum += a @ b: a in registers, 64 keys by 16 * n queries; b rows
// of a tile of queries.
template <int d, int n>
__device__ __forceinline__ void begin_sum(float (&sum)[d / 2],
                                          const uint32_t (&a)[n][4], uint64_t b) {
  hopper::wgmma_fence();
#pragma unroll
  for (int i = 0; i < n; ++i)
    hopper::wgmma_registers<d, true>(sum, a[i], advanced(b, rows_at(i)), true);
  hopper::wgmma_commit();
}

}  // namespace ladder
