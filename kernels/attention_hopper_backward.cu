// attention_hopper_backward.cu: attention.cu's gradients on Hopper's own units: TMA
// copies the tiles, wgmma multiplies.
//
//   grad, q, out, grad_q    batch x heads x tokens x d, bfloat16, d = 64 or 128
//   k, v, grad_k, grad_v    batch x kv_heads x tokens_kv x d; heads / kv_heads query
//                           heads share one of them
//   grad_logsumexp, logsumexp   batch x heads x tokens, float32
//
// Views are taken as in attention_hopper.cu. grad_q, grad_k and grad_v have the order
// of dimensions of q, k and v. softcap, starts and starts_kv: as there.
//
// Three kernels. The first computes for each query what the second needs of it: its
// logsumexp in powers of two, and delta, the sum of grad * out minus logsumexp's
// gradient. In the second, a block has 128 keys: 64 for each of two warp groups, the
// consumers. A third, the producer, requests tiles of queries with their rows of grad,
// in a ring of two stages. With a row for each key, and P the probabilities, a
// consumer computes five products for a tile:
//
//   S = k @ q^T          dP = v @ grad^T          both from shared memory; the sums are
//                                                 in registers
//   P = exp2(scale * S - logsumexp)               dS = P * (dP - delta)
//   grad_v += P @ grad   grad_k += dS @ q         P and dS in registers, as sums lie:
//                                                 so a factor has to lie
//   grad_q += dS^T @ k                            over all 128 keys: each consumer
//                                                 writes its half of dS to shared
//                                                 memory, reads both, and computes half
//                                                 of the tile
//
// The readable version keeps a block's queries in a second kernel for grad_q, which
// computes S, P and dP again: seven products. Here blocks add their parts of grad_q to
// a buffer of floats, and the third kernel rounds the sums. A consumer leaves its part
// in shared memory, and the copy unit adds it while the consumer goes on.
//
// The order of these additions differs from run to run, and the last bits of grad_q
// with it; grad_k and grad_v are the same each time. deterministic: blocks add to a
// tile in the order of their keys. Each tile counts the blocks that have added to it,
// and the next one waits for its turn. All blocks go through the tiles from the last
// one down, which every block of a causal head has, so they do not wait for a block
// that comes to a tile much later, but once, for the hand-overs of the first tile.
// Those are fewer if blocks of several heads alternate.
//
// Tensor cores must not wait for exponentials: dP is computed during these, grad_v's
// product while dS is computed and written, and the other consumer's products during
// both.
//
// Needs compute capability 9.0: build with -gencode=arch=compute_90a,code=sm_90a.

#include <cuda/atomic>

#include "attention.h"
#include "hopper_bulk.h"
#include "hopper_matmul.h"
#include "hopper_wgmma.h"
#include "sequences.h"

using namespace ladder;
using hopper::Barrier, hopper::bfloat16, hopper::kConsumers, hopper::kRowBytes,
    hopper::kWarpGroup, hopper::TileMap;

constexpr int kKeysOfGroup = 64, kKeysOfBlock = kConsumers * kKeysOfGroup;
constexpr int kStages = 2;
constexpr int kAdders = 2;  // threads that add parts of grad_q, each in its own steps
using PipelineState = hopper::PipelineStateOf<kStages>;
constexpr int64_t kL2Bytes = 32 << 20;  // of the 50 MB of an H100 or H200
// a consumer's subtile of a tile of grad_q: kSubtile x kSubtile elements.
constexpr int kSubtile = 64;
template <int d>
constexpr int kQueriesOfTile = kConsumers * kSubtile * kSubtile / d;

// The tiles of queries that a block loops over: from the last one down, each of all
// `heads` heads of the group. first_head: of those of all batches. numbers: how many
// tiles of a head have; first: that of the sequence's first tile.
struct TileIterator {
  int first_head, heads, numbers, first, tile, head;
  __device__ void advance() {
    if (++head == heads) {
      head = 0;
      --tile;
    }
  }
  __device__ int64_t number() const {
    return int64_t(first_head + head) * numbers + first + tile;
  }
};

// What a block works on: keys from `first` on of a sequence, with a tile of queries in
// each of `steps` steps.
struct WorkTile {
  Sequence q, kv;
  int head_kv, first, steps;
  TileIterator iterator;
};

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
  bfloat16 ds[2][kQueriesOfTile<d> / 64][kKeysOfBlock][64];  // double-buffered
  float4 grad_q[kConsumers][kSubtile * kSubtile / 4];        // a block's part of a tile
  QueryTile<d> stages[kStages];
  Barrier keys_full, full[kStages], empty[kStages], ds_full[2],
      grad_q_full[kAdders][kConsumers], grad_q_empty[kConsumers];
  WorkTile work;
};

using Turn = cuda::atomic_ref<int, cuda::thread_scope_device>;

struct Operands {
  TileMap q, grad, k, v;
  const float* rows;   // of each tile of queries: all logsumexp, then all delta
  float* grad_q;       // sums, in the order of grad_q_subtile
  int *begun, *turns;  // blocks that have begun, and have added to each tile; or null
  bfloat16 *grad_k, *grad_v;
  Strides of_grad_k, of_grad_v;
};

// Where the subtile of grad_q that `consumer` computes of a tile begins: 4 warps, 8
// columns at a time, 32 lanes.
__device__ inline float4* grad_q_subtile(float* sums, int64_t tile, int consumer) {
  return reinterpret_cast<float4*>(sums) +
         ((tile * kConsumers + consumer) * (kWarpGroup / 32) * kSubtile / 8) * 32;
}
__device__ inline int index_in_subtile(int eight) {
  return (threadIdx.x % kWarpGroup / 32 * (kSubtile / 8) + eight) * 32 +
         threadIdx.x % 32;
}

// A warp group. Writes 64 rows of n sums, times factor, as far as there are `rows`
// rows. pitch: from row to row.
template <int n>
__device__ __forceinline__ void write_rows(const float (&sum)[n / 2], bfloat16* to,
                                           int64_t pitch, int rows, float factor) {
  int t = threadIdx.x % kWarpGroup, row = t / 32 * 16 + t % 32 / 4;
#pragma unroll
  for (int j = 0; j < n / 2; j += 8) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float* at = &sum[j + 2 * half];
      uint2 four = four_neighbours(packed<bfloat16>(at[0] * factor, at[1] * factor),
                                   packed<bfloat16>(at[4] * factor, at[5] * factor));
      if (row + 8 * half < rows) {
        *reinterpret_cast<uint2*>(
            &to[(row + 8 * half) * pitch + 2 * j + first_of_four()]) = four;
      }
    }
  }
}

// -------------------------------------------------------------------------------------
// The producer

template <typename Lengths, int d>
__device__ void produce(KeyTiles<d>& shared, const Operands& operands, WorkTile work) {
  constexpr int queries = kQueriesOfTile<d>, row_bytes = 2 * queries * sizeof(float);
  hopper::arrive_and_expect(shared.keys_full, sizeof shared.k + sizeof shared.v);
  Lengths::load(shared.k, operands.k, shared.keys_full, work.kv, work.head_kv,
                work.first);
  Lengths::load(shared.v, operands.v, shared.keys_full, work.kv, work.head_kv,
                work.first);
  PipelineState pipe;
  TileIterator& iterator = work.iterator;
#pragma unroll 1
  for (int step = 0; step < work.steps; ++step, pipe.advance(), iterator.advance()) {
    QueryTile<d>& stage = shared.stages[pipe.stage];
    Barrier& full = shared.full[pipe.stage];
    // At first there is no phase to wait for.
    hopper::wait(shared.empty[pipe.stage], pipe.parity ^ 1);
    hopper::arrive_and_expect(full, sizeof stage.q + sizeof stage.grad + row_bytes);
    int head = work.head_kv * iterator.heads + iterator.head,
        row = iterator.tile * queries;
    Lengths::load(stage.q, operands.q, full, work.q, head, row);
    Lengths::load(stage.grad, operands.grad, full, work.q, head, row);
    hopper::load_bytes(stage.logsumexp, operands.rows + iterator.number() * 2 * queries,
                       row_bytes, full);
  }
}

// One thread of each adder, which has every other step: while one waits for its turn,
// or until its additions are complete, the other goes on.
template <int d, typename Mask>
__device__ void add_grad_q(KeyTiles<d>& shared, const Operands& operands, int adder,
                           WorkTile work, const Mask& mask) {
  TileIterator& iterator = work.iterator;
#pragma unroll 1
  for (int step = 0; step < work.steps; ++step, iterator.advance()) {
    if (step % kAdders != adder) continue;
    int64_t number = iterator.number();
    Turn turn(operands.turns[operands.begun ? number : 0]);
    if (operands.begun) {
      int query = iterator.tile * kQueriesOfTile<d>;
      int before =
          work.first / kKeysOfBlock - mask.keys_of(query, query).begin / kKeysOfBlock;
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
    if (operands.begun) {
      hopper::store_complete();
      turn.fetch_add(1, cuda::memory_order_release);
    }
  }
}

// -------------------------------------------------------------------------------------
// The consumers

__device__ __forceinline__ uint64_t advanced(uint64_t descriptor, int bytes) {
  return descriptor + (bytes >> 4);
}
// Bytes to the i-th 16 columns of a tile with panels of `rows` rows, and to its i-th 16
// rows.
__device__ constexpr int columns_at(int i, int rows) {
  return i / 4 * rows * kRowBytes + i % 4 * 32;
}
__device__ constexpr int rows_at(int i) { return i * 16 * kRowBytes; }

// A warp group. Begins sum = a @ b^T: 64 rows of d columns of the keys' tiles, and 64
// of a tile of queries.
template <int d>
__device__ __forceinline__ void begin_scores(float (&sum)[kSubtile / 2], uint64_t a,
                                             uint64_t b) {
  hopper::wgmma_fence();
#pragma unroll
  for (int i = 0; i < d / 16; ++i) {
    hopper::wgmma_shared<kSubtile, false, false>(
        sum, advanced(a, columns_at(i, kKeysOfBlock)),
        advanced(b, columns_at(i, kQueriesOfTile<d>)), i > 0);
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

// A warp group: 64 of the block's keys.
template <int d, typename Lengths, typename Mask, typename Scale>
__device__ __forceinline__ void consume(KeyTiles<d>& shared, const Operands& operands,
                                        int consumer, const Mask& mask, Scale scale,
                                        float factor) {
  constexpr int queries = kQueriesOfTile<d>;
  int t = threadIdx.x % kWarpGroup, lane = t % 32, column = lane % 4 * 2;
  int first = consumer * kKeysOfGroup;
  int thread_key = first + t / 32 * 16 + lane / 4;  // the first of two, 8 apart
  // Which queries see all of these keys. Later keys are seen by later queries.
  auto queries_of = [&](int key, int last) -> Range {
    key += shared.work.first, last += shared.work.first;
    if (last >= mask.tokens_kv) return {0, 0};
    return {mask.queries_of(last, last).begin, mask.queries_of(key, key).end};
  };
  Range unmasked = queries_of(first, first + kKeysOfGroup - 1);
  float grad_k[d / 2] = {}, grad_v[d / 2] = {};
  uint64_t k = hopper::descriptor(shared.k, sizeof shared.k[0]),
           group_k = advanced(k, first * kRowBytes);
  uint64_t group_v =
      advanced(hopper::descriptor(shared.v, sizeof shared.v[0]), first * kRowBytes);
  PipelineState pipe;
  WorkTile work = shared.work;
  TileIterator& iterator = work.iterator;

  hopper::wait(shared.keys_full, 0);
  for (int step = 0; step < work.steps; ++step, pipe.advance(), iterator.advance()) {
    QueryTile<d>& stage = shared.stages[pipe.stage];
    uint64_t q = hopper::descriptor(stage.q, sizeof stage.q[0]);
    uint64_t grad = hopper::descriptor(stage.grad, sizeof stage.grad[0]);
    uint32_t ds[queries / 16][4];  // of two bfloat16 each, as p

    hopper::wait(shared.full[pipe.stage], pipe.parity);
#pragma unroll
    for (int from = 0; from < queries; from += kSubtile) {
      float s[kSubtile / 2], dp[kSubtile / 2];
      uint32_t p[kSubtile / 16][4];
      begin_scores<d>(s, group_k, advanced(q, from * kRowBytes));
      begin_scores<d>(dp, group_v, advanced(grad, from * kRowBytes));
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
      float2 shift, mean;  // of two queries, for both keys
#pragma unroll
      for (int i = 0; i < kSubtile / 2; i += 2) {
        if (i % 4 == 0)
          shift =
              *reinterpret_cast<const float2*>(&stage.logsumexp[from + i * 2 + column]);
        float first = exp2_approximate(s[i] * scale.scale - shift.x),
              second = exp2_approximate(s[i + 1] * scale.scale - shift.y);
        p[i / 8][i / 2 % 4] = packed<bfloat16>(first, second);
        s[i] = first * scale.slope(s[i]), s[i + 1] = second * scale.slope(s[i + 1]);
      }
      begin_sum<d>(grad_v, p, advanced(grad, from * kRowBytes));

      hopper::wgmma_wait_for<1>(dp);
      char* row = reinterpret_cast<char*>(
          shared.ds[step % 2][from / 64][first + t / 32 * 16 + lane % 16]);
#pragma unroll
      for (int i = 0; i < kSubtile / 2; i += 2) {
        if (i % 4 == 0)
          mean = *reinterpret_cast<const float2*>(&stage.delta[from + i * 2 + column]);
        uint32_t (&four)[4] = ds[from / 16 + i / 8];
        four[i / 2 % 4] =
            packed<bfloat16>(s[i] * (dp[i] - mean.x), s[i + 1] * (dp[i + 1] - mean.y));
        if (i % 8 == 6) {  // to its place in the swizzled rows
          hopper::store_matrices(row + ((i / 4 - 1 + lane / 16) ^ lane % 8) * 16, four);
        }
      }
    }
    hopper::fence_before_store();  // for wgmma as for TMA
    __syncwarp();
    if (lane == 0) hopper::arrive(shared.ds_full[step % 2]);

    hopper::wait(shared.ds_full[step % 2], step / 2 % 2);
    float grad_q[kSubtile / 2];
    // d = 128: all 64 queries and half of the columns. d = 64: half of the 128 queries
    // and all columns.
    uint64_t of_ds = hopper::descriptor(shared.ds[step % 2], 16), of_k = k;
    uint64_t& halved = d == 128 ? of_k : of_ds;
    halved = advanced(halved, consumer * kKeysOfBlock * kRowBytes);
    hopper::wgmma_fence();
#pragma unroll
    for (int i = 0; i < kKeysOfBlock / 16; ++i) {
      hopper::wgmma_shared<kSubtile, true, true>(grad_q, advanced(of_ds, rows_at(i)),
                                                 advanced(of_k, rows_at(i)), i > 0);
    }
    hopper::wgmma_commit();
    begin_sum<d>(grad_k, ds, q);
    hopper::wgmma_wait_for<1>(grad_q);
    hopper::wait(shared.grad_q_empty[consumer], step % 2 ^ 1);
#pragma unroll
    for (int i = 0; i < kSubtile / 8; ++i) {
      shared.grad_q[consumer][index_in_subtile(i)] = make_float4(
          grad_q[4 * i], grad_q[4 * i + 1], grad_q[4 * i + 2], grad_q[4 * i + 3]);
    }
    hopper::fence_before_store();
    __syncwarp();
    if (lane == 0) hopper::arrive(shared.grad_q_full[step % kAdders][consumer]);
    hopper::wgmma_wait_for<0>(grad_k);
    __syncwarp();
    if (lane == 0) hopper::arrive(shared.empty[pipe.stage]);
  }
  hopper::wgmma_wait_for<0>(grad_v);
  first += shared.work.first;
  int rows = mask.tokens_kv - first;
  auto write = [&](const float (&sum)[d / 2], bfloat16* to, const Strides& s,
                   float by) {
    to += Lengths::offset(shared.work.kv, s) + shared.work.head_kv * s.head +
          first * s.token;
    write_rows<d>(sum, to, s.token, rows, by);
  };
  write(grad_k, operands.grad_k, operands.of_grad_k, factor);
  write(grad_v, operands.grad_v, operands.of_grad_v, 1);
}

// -------------------------------------------------------------------------------------
// Kernels

template <int d, typename Lengths, typename Mask, typename Scale>
__global__ void __launch_bounds__(hopper::kThreads, 1)
    attention_hopper_backward_kernel(const __grid_constant__ Operands operands,
                                     Sizes size, Lengths of_q, Lengths of_kv,
                                     int heads_kv, int at_once, Mask mask, Scale scale,
                                     float factor) {
  extern __shared__ __align__(1024) char memory[];
  auto& shared = hopper::aligned<KeyTiles<d>>(memory);
  // A warp. Blocks of `at_once` heads alternate, if causal the longest first.
  auto work_of = [&](int block) -> WorkTile {
    constexpr int queries = kQueriesOfTile<d>;
    int numbers = of_kv.tiles(kKeysOfBlock),
        head = block / (numbers * at_once) * at_once;
    int heads = min(at_once, int(size.heads) / size.group - head);
    block -= head * numbers;
    head += block % heads;
    int number = block / heads, i = of_kv.sequence_of(number, kKeysOfBlock);
    Sequence q = of_q.sequence(head / heads_kv, i),
             kv = of_kv.sequence(head / heads_kv, i);
    int first = (number - of_kv.first_tile(i, kKeysOfBlock)) * kKeysOfBlock;
    Mask seen = mask;
    if constexpr (Lengths::packed) seen = mask.aligned(q.length, kv.length);
    Range range = seen.queries_of(first, first + kKeysOfBlock - 1);
    int begin = max(range.begin, 0) / queries,
        end = ceil_div(min(range.end, q.length), queries);
    bool none = Lengths::packed && (first < 0 || first >= kv.length);
    return {q,
            kv,
            head % heads_kv,
            first,
            none ? 0 : max(end - begin, 0) * size.group,
            {head * size.group, size.group, of_q.tiles(queries),
             of_q.first_tile(i, queries), end - 1, 0}};
  };
  if (threadIdx.x == 0) {
    hopper::init(shared.keys_full, 1);
    for (int stage = 0; stage < kStages; ++stage) {
      hopper::init(shared.full[stage], 1);
      hopper::init(shared.empty[stage], kConsumers * kWarpGroup / 32);
    }
    for (Barrier& full : shared.ds_full)
      hopper::init(full, kConsumers * kWarpGroup / 32);
    for (int consumer = 0; consumer < kConsumers; ++consumer) {
      hopper::init(shared.grad_q_empty[consumer], 1);
      for (auto& full : shared.grad_q_full)
        hopper::init(full[consumer], kWarpGroup / 32);
    }
    hopper::fence_init();
  }
  if (threadIdx.x < 32) {
    // Only for blocks that have begun may a block wait, and CUDA promises no order.
    int block = blockIdx.x;
    if (operands.begun && threadIdx.x == 0) block = atomicAdd(operands.begun, 1);
    WorkTile work = work_of(__shfl_sync(kAll, block, 0));
    if (threadIdx.x == 0) shared.work = work;
  }
  __syncthreads();  // no thread waits at a barrier before it is initialised
  if constexpr (Lengths::packed)
    mask = mask.aligned(shared.work.q.length, shared.work.kv.length);
  // The warp's group is the same in all lanes; read from one of them, the compiler
  // knows.
  int group = __shfl_sync(kAll, threadIdx.x / kWarpGroup, 0);
  if (group == 0) {
    hopper::dealloc_registers<24>();
    int warp = threadIdx.x / 32;
    if (warp == 0 && hopper::elected()) produce<Lengths>(shared, operands, shared.work);
    if (0 < warp && warp <= kAdders && hopper::elected())
      add_grad_q(shared, operands, warp - 1, shared.work, mask);
  } else {
    hopper::alloc_registers<240>();
    consume<d, Lengths>(shared, operands, group - 1, mask, scale, factor);
  }
}

constexpr int kThreadsOfTile = kConsumers * kWarpGroup;

// A block for each tile of queries: d / 8 threads for each row. rows: logsumexp and
// delta of the tile; sums, begun and turns: zeros.
template <int d, typename Lengths>
__global__ void __launch_bounds__(kThreadsOfTile) attention_hopper_rows_kernel(
    const bfloat16* __restrict__ grad, const bfloat16* __restrict__ out,
    const float* __restrict__ grad_logsumexp, const float* __restrict__ logsumexp,
    float* __restrict__ rows, float4* __restrict__ sums, int* __restrict__ begun,
    Strides of_grad, Strides of_out, Lengths lengths, int heads, int tokens) {
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
  if (begun && threadIdx.x == 0) {
    if (blockIdx.x == 0) *begun = 0;
    begun[1 + blockIdx.x] = 0;
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
    if (there) {
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
      to[queries] = there ? sum - grad_logsumexp[row] : 0;
    }
  }
}

// A block for each tile of queries: grad_q = factor * sums.
template <int d, typename Lengths>
__global__ void __launch_bounds__(kThreadsOfTile)
    attention_hopper_round_kernel(float* __restrict__ sums,
                                  bfloat16* __restrict__ grad_q, Strides of_grad_q,
                                  Lengths lengths, int heads, float factor) {
  int consumer = threadIdx.x / kWarpGroup;
  const float4* from = grad_q_subtile(sums, blockIdx.x, consumer);
  float sum[kSubtile / 2];
#pragma unroll
  for (int i = 0; i < kSubtile / 8; ++i) {
    float4 four = from[index_in_subtile(i)];
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
  write_rows<kSubtile>(sum, grad_q, of_grad_q.token, sequence.length - row, factor);
}

// -------------------------------------------------------------------------------------
// Launcher

template <int d, typename Lengths, typename Mask, typename Scale>
void launch_backward(const Tensor& grad, const Tensor& grad_logsumexp, const Tensor& q,
                     const Tensor& k, const Tensor& v, const Tensor& out,
                     const Tensor& logsumexp, Tensor& grad_q, Tensor& grad_k,
                     Tensor& grad_v, Sizes size, Lengths of_q, Lengths of_kv, Mask mask,
                     Scale score, double scale, bool deterministic) {
  constexpr int queries = kQueriesOfTile<d>, bytes = hopper::kSharedBytes<KeyTiles<d>>;
  static_assert(bytes <= 227 * 1024, "a block has at most 227 KB of shared memory");
  cudaStream_t stream = current_stream(q);
  int64_t tiles = of_q.tiles(queries), heads_kv = size.heads / size.group;
  unsigned blocks = grid_of(size.heads * tiles),
           blocks_kv = grid_of(heads_kv * of_kv.tiles(kKeysOfBlock));
  Tensor rows =
      torch::stable::new_empty(q, {size.heads * tiles, 2, queries}, ScalarType::Float);
  Tensor sums =
      torch::stable::new_empty(q, {size.heads * tiles, queries, d}, ScalarType::Float);
  Tensor turns = torch::stable::new_empty(
      q, {deterministic ? 1 + size.heads * tiles : 0}, ScalarType::Int);
  int* begun = deterministic ? data<int>(turns) : nullptr;
  attention_hopper_rows_kernel<d, Lengths><<<blocks, kThreadsOfTile, 0, stream>>>(
      data<bfloat16>(grad), data<bfloat16>(out), data<float>(grad_logsumexp),
      data<float>(logsumexp), data<float>(rows), data<float4>(sums), begun,
      strides(grad), strides(out), of_q, q.size(1), size.tokens);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  Operands operands = {of_q.map(q, queries),
                       of_q.map(grad, queries),
                       of_kv.map(k, kKeysOfBlock),
                       of_kv.map(v, kKeysOfBlock),
                       data<float>(rows),
                       data<float>(sums),
                       begun,
                       begun + 1,
                       data<bfloat16>(grad_k),
                       data<bfloat16>(grad_v),
                       strides(grad_k),
                       strides(grad_v)};
  int64_t of_head = int64_t(size.tokens) * d * 8;         // bytes of q, grad and sums
  int64_t l2_bytes = (deterministic ? 2 : 1) * kL2Bytes;  // more heads: shorter queues
  int at_once = std::clamp<int64_t>(l2_bytes / of_head, 1, heads_kv);
  auto kernel = attention_hopper_backward_kernel<d, Lengths, Mask, Scale>;
  allow_shared(kernel, bytes);
  kernel<<<blocks_kv, hopper::kThreads, bytes, stream>>>(
      operands, size, of_q, of_kv, k.size(1), at_once, mask, score, float(scale));
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  attention_hopper_round_kernel<d, Lengths><<<blocks, kThreadsOfTile, 0, stream>>>(
      data<float>(sums), data<bfloat16>(grad_q), strides(grad_q), of_q, q.size(1),
      float(scale));
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

// As attention_backward in attention.cu.
std::tuple<Tensor, Tensor, Tensor> attention_hopper_backward(
    const Tensor& given_grad, const Tensor& grad_logsumexp, const Tensor& given_q,
    const Tensor& given_k, const Tensor& given_v, const Tensor& given_out,
    const Tensor& logsumexp, bool causal, std::optional<double> given_scale,
    std::optional<int64_t> window_left, std::optional<int64_t> window_right,
    bool deterministic, double softcap, std::optional<Tensor> starts,
    std::optional<Tensor> starts_kv) {
  Sizes size = check_attention(given_q, given_k, given_v, true);
  check_input(given_q, "q", ScalarType::BFloat16, true);
  STD_TORCH_CHECK(size.d == 64 || size.d == 128, "q must have 64 or 128 columns, got ",
                  size.d, "; use attention_backward");
  check_results(given_grad, grad_logsumexp, given_q, given_out, logsumexp, true);
  double scale = checked_scale(given_scale.value_or(1 / std::sqrt(double(size.d))));
  auto guard = on_device_of(given_q);
  Tensor grad = with_rows(given_grad), q = with_rows(given_q), k = with_rows(given_k),
         v = with_rows(given_v), out = with_rows(given_out);
  // These also have the order of dimensions.
  Tensor grad_q = torch::stable::empty_like(q), grad_k = torch::stable::empty_like(k),
         grad_v = torch::stable::empty_like(v);
  if (q.numel() == 0 || k.numel() == 0) {  // a grid of 0 blocks is an error
    return {torch::stable::zero_(grad_q), torch::stable::zero_(grad_k),
            torch::stable::zero_(grad_v)};
  }
  with_scale(scale, softcap, [&](auto score) {
    auto launch = [&](auto of_q, auto of_kv, auto mask) {
      using L = decltype(of_q);
      using M = decltype(mask);
      using S = decltype(score);
      auto run =
          size.d == 64 ? launch_backward<64, L, M, S> : launch_backward<128, L, M, S>;
      run(grad, grad_logsumexp, q, k, v, out, logsumexp, grad_q, grad_k, grad_v, size,
          of_q, of_kv, mask, score, scale, deterministic);
    };
    with_sequences(q, k, size, causal, window_left, window_right, starts, starts_kv,
                   launch);
  });
  return {grad_q, grad_k, grad_v};
}

// -------------------------------------------------------------------------------------
// Registration: torch.ops.<name given to load>.attention_hopper_backward(grad, ...),
// for CUDA tensors

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def(
      "attention_hopper_backward(Tensor grad, Tensor grad_logsumexp, Tensor q, Tensor "
      "k, Tensor v, Tensor out, "
      "Tensor logsumexp, bool causal=False, float? scale=None, int? window_left=None, "
      "int? window_right=None, bool deterministic=False, float softcap=0.0, Tensor? "
      "starts=None, Tensor? starts_kv=None) -> (Tensor, Tensor, Tensor)");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("attention_hopper_backward", TORCH_BOX(&attention_hopper_backward));
}
