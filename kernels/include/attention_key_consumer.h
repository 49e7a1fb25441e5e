// attention_key_consumer.h: what a consumer of attention_hopper_backward.cu computes of
// a work tile: five products for each tile of queries, and the gradients of its keys.
#pragma once

#include "attention_grad_q.h"

namespace ladder {

// A warp group: 64 of the work tile's keys. t: the thread. step: of the block's.
// padded: tensors have fewer columns than d. TMA fills the others with zeros, which
// change no sum.
template <int d, bool padded, typename Lengths, typename Mask, typename Scale>
__device__ __forceinline__ void consume(KeyTiles<d>& shared, const Operands& operands,
                                        const WorkTile& work, int t,
                                        PingPong<kConsumers> turn, int parity,
                                        unsigned& step, int heads, const Mask& mask,
                                        Scale scale, float factor) {
  constexpr int queries = kQueriesOfTile<d>;
  // Rows of queries are read before a wait, so that nothing waits for them after it,
  // where there are registers for that.
  constexpr bool delta_early = std::is_same_v<Scale, Scaled>,
                 shift_early = delta_early && d == 64;
  // dP's sums begin with delta: 2% faster with d = 64, 1% slower with d = 128.
  constexpr bool from_delta = d == 64;
  int consumer = turn.consumer, lane = t % 32, column = lane % 4 * 2,
      first = consumer * kKeysOfGroup;
  int thread_key = first + t / 32 * 16 + lane / 4;  // the first of two, 8 apart
  TileIterator iterator = work.iterator;
  iterator.heads = heads;  // the compiler knows it: a register less
  // Which queries see all of these keys. Later keys are seen by later queries.
  auto queries_of = [&](int key, int last) -> Range {
    key += work.first, last += work.first;
    if (last >= mask.tokens_kv) return {0, 0};
    return {mask.queries_of(last, last).begin, mask.queries_of(key, key).end};
  };
  Range unmasked = queries_of(first, first + kKeysOfGroup - 1);
  float grad_k[d / 2] = {}, grad_v[d / 2] = {};
  uint64_t all_k = hopper::descriptor(shared.k, sizeof shared.k[0]);
  KeyRows<d> k, v;

  hopper::wait(shared.keys_full, parity);
  k.load(shared.k, first);
  v.load(shared.v, first);
#pragma unroll 1
  for (unsigned end = step + work.steps; step < end; ++step, iterator.advance()) {
    QueryTile<d>& stage = shared.stages[step % kStages];
    uint64_t q = hopper::descriptor(stage.q, sizeof stage.q[0]);
    uint64_t grad = hopper::descriptor(stage.grad, sizeof stage.grad[0]);
    uint32_t ds[queries / 16][4];  // of two bfloat16 each, as p

    hopper::wait(shared.full[step % kStages], step / kStages % 2);
#pragma unroll
    for (int from = 0; from < queries; from += kSubtile) {
      float s[kSubtile / 2], dp[kSubtile / 2];
      uint32_t p[kSubtile / 16][4];
      // Of two queries, for both keys.
      float2 shift[kSubtile / 8], delta[kSubtile / 8];
      auto load = [&](float2(&to)[kSubtile / 8], const float* rows, int begin,
                      int end) {
#pragma unroll
        for (int i = begin; i < end; ++i)
          to[i] = *reinterpret_cast<const float2*>(&rows[from + 8 * i + column]);
      };
      if constexpr (from_delta) {
        load(delta, stage.delta, 0, kSubtile / 8);
#pragma unroll
        for (int i = 0; i < kSubtile / 2; ++i) {
          dp[i] = i % 2 ? delta[i / 4].y : delta[i / 4].x;
          asm volatile("" : "+f"(dp[i]));  // copied here, not while S is computed
        }
      }
      turn.wait();
      begin_scores<d>(s, k, advanced(q, from * kRowBytes));
      begin_scores<d, from_delta>(dp, v, advanced(grad, from * kRowBytes));
      if constexpr (shift_early) load(shift, stage.logsumexp, 0, kSubtile / 8);
      hopper::wgmma_wait_for<1>(s);
#pragma unroll
      for (int i = 0; i < kSubtile / 2; ++i) s[i] = scale.of(s[i]);
      int query = iterator.tile * queries + from;
      if (query < unmasked.begin || query + kSubtile > unmasked.end) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          Range visible = queries_of(thread_key + 8 * half, thread_key + 8 * half);
          visible.begin -= query + column, visible.end -= query + column;
#pragma unroll
          for (int i = 0; i < kSubtile / 4; ++i) {
            int at = i / 2 * 8 + i % 2;
            if (at < visible.begin || at >= visible.end)
              s[i / 2 * 4 + 2 * half + i % 2] = -INFINITY;
          }
        }
      }
#pragma unroll
      for (int i = 0; i < kSubtile / 2; i += 2) {
        if (!shift_early && i % 4 == 0) load(shift, stage.logsumexp, i / 4, i / 4 + 1);
        float first = exp2_approximate(s[i] * scale.scale - shift[i / 4].x),
              second = exp2_approximate(s[i + 1] * scale.scale - shift[i / 4].y);
        p[i / 8][i / 2 % 4] = packed<bfloat16>(first, second);
        s[i] = first * scale.slope(s[i]), s[i + 1] = second * scale.slope(s[i + 1]);
      }
      turn.pass_on();
      if constexpr (!from_delta && delta_early)
        load(delta, stage.delta, 0, kSubtile / 8);
      hopper::wgmma_wait_for<0>(dp);
      char* row = reinterpret_cast<char*>(
                      shared.ds[step % 2][consumer][from + lane / 16 * 8 + lane % 8]) +
                  ((t / 32 * 2 + lane / 8 % 2) ^ lane % 8) * 16;
#pragma unroll
      for (int i = 0; i < kSubtile / 2; i += 2) {
        if constexpr (!from_delta) {
          if (!delta_early && i % 4 == 0) load(delta, stage.delta, i / 4, i / 4 + 1);
          dp[i] += delta[i / 4].x, dp[i + 1] += delta[i / 4].y;
        }
        uint32_t (&four)[4] = ds[from / 16 + i / 8];
        four[i / 2 % 4] = packed<bfloat16>(s[i] * dp[i], s[i + 1] * dp[i + 1]);
        if (i % 8 == 6)  // to its place in the swizzled rows
          hopper::store_columns(row + rows_at(i / 8), four);
      }
      // It could begin before dS, but so the exponentials are computed beside dS.
      begin_sum<d>(grad_v, p, advanced(grad, from * kRowBytes));
    }
    hopper::fence_before_store();  // for wgmma as for TMA
    __syncwarp();
    if (lane == 0) hopper::arrive(shared.ds_full[step % 2]);

    // The descriptors before the wait: 2% faster with d = 64, 2% slower with d = 128.
    auto wait_for_ds = [&] { hopper::wait(shared.ds_full[step % 2], step / 2 % 2); };
    if constexpr (d == 128) wait_for_ds();
    float grad_q[kSubtile / 2];
    // d = 128: all 64 queries and half of the columns. d = 64: half of the 128 queries
    // and all columns.
    uint64_t of_ds = hopper::descriptor(shared.ds[step % 2], 16), of_k = all_k;
    if constexpr (d == 128) of_k = advanced(of_k, consumer * kKeysOfBlock * kRowBytes);
    if constexpr (d == 64) of_ds = advanced(of_ds, consumer * kSubtile * kRowBytes);
    if constexpr (d == 64) wait_for_ds();
    hopper::wgmma_fence();
#pragma unroll
    for (int i = 0; i < kKeysOfBlock / 16; ++i) {
      hopper::wgmma_shared<kSubtile, false, true>(
          grad_q, advanced(of_ds, columns_at(i, queries)), advanced(of_k, rows_at(i)),
          i > 0);
    }
    hopper::wgmma_commit();
    begin_sum<d>(grad_k, ds, q);
    hopper::wgmma_wait_for<1>(grad_q);
    hopper::wait(shared.grad_q_empty[consumer], step % 2 ^ 1);
#pragma unroll
    for (int i = 0; i < kSubtile / 8; ++i) {
      shared.grad_q[consumer][index_in_subtile(t, i)] = make_float4(
          grad_q[4 * i], grad_q[4 * i + 1], grad_q[4 * i + 2], grad_q[4 * i + 3]);
    }
    hopper::fence_before_store();
    __syncwarp();
    if (lane == 0) hopper::arrive(shared.grad_q_full[step % kAdders][consumer]);
    hopper::wgmma_wait_for<0>(grad_k);
    __syncwarp();
    if (lane == 0) hopper::arrive(shared.empty[step % kStages]);
  }
  hopper::wgmma_wait_for<0>(grad_v);
  __syncwarp();
  if (lane == 0) hopper::arrive(shared.keys_empty);
  int first_row = first + work.first, rows = mask.tokens_kv - first_row;
  auto write = [&](const float (&sum)[d / 2], bfloat16* to, const Strides& s,
                   float by) {
    to += Lengths::offset(work.kv, s) + work.head_kv * s.head + first_row * s.token;
    write_rows<d, padded>(sum, to, s.token, rows, by, operands.columns);
  };
  write(grad_k, operands.grad_k, operands.of_grad_k, factor);
  write(grad_v, operands.grad_v, operands.of_grad_v, 1);
}

}  // namespace ladder
