// attention_hopper.cu: attention.cu's forward on Hopper's own units: TMA copies the
// tiles, wgmma multiplies them.
//
//   q, out      batch x heads x tokens x d, bfloat16, d = 64 or 128
//   k, v        batch x kv_heads x tokens_kv x d; heads / kv_heads query heads share
//               one of them
//   logsumexp   batch x heads x tokens
//
// q, k and v may be views whose rows of d elements begin at multiples of 16 bytes, as
// of batch x tokens x heads x d: the tensor maps know their strides. out has q's.
//
// causal: query i sees keys 0 to i, as with PyTorch's is_causal. A window is aligned to
// the end, as in FlashAttention: query i has key j = i + tokens_kv - tokens, and sees
// keys j - window_left to j + window_right, all on a side that is None. So window_right
// = 0 is a causal mask for queries at the end of the keys.
//
// starts, starts_kv: int32, where the sequences of a packed batch begin, and the last
// one ends (sequences.h). A window is aligned to the end of each.
//
// softcap: scores are softcap * tanh(scale * q @ k^T / softcap), unless it is 0.
//
// A block has 128 queries of a head: 64 for each of two warp groups, the consumers. A
// third, the producer, requests tiles: q once, then 128 keys at a time, k and v each in
// a ring of two stages. For a tile of keys a consumer computes:
//
//   scores = q @ k^T            wgmma, both from shared memory; the sums are in
//                               registers
//   probabilities               64 exponentials in each thread: as many clock cycles as
//                               half of a tile's products
//   out += probabilities @ v    wgmma with probabilities in registers: the sums of the
//                               first product lie as a factor of the second has to
//
// Tensor cores must not wait for exponentials, so products run during them, in two
// ways. A consumer begins the next tile's scores before out += probabilities @ v of
// this one, and computes the next probabilities while that runs. And the consumers are
// in ping-pong: one begins its products, then the other, so that one's exponentials run
// during the other's products.
//
// What limits it: power and the exponentials that nothing hides, in a block's prologue
// and epilogue.
//
// Needs compute capability 9.0: build with -gencode=arch=compute_90a,code=sm_90a.

#include <algorithm>

#include "attention.h"
#include "hopper_matmul.h"
#include "hopper_wgmma.h"
#include "sequences.h"

using namespace ladder;
using hopper::Barrier, hopper::bfloat16, hopper::kWarpGroup, hopper::TileMap;

constexpr int kRowsOfGroup = 64, kRowsOfBlock = hopper::kConsumers * kRowsOfGroup;
constexpr int kKeysOfTile = 128;
constexpr int kKvStages = 2;
constexpr int64_t kL2Bytes = 32 << 20;  // of the 50 MB of an H100 or H200, for k and v

// A tile is stored in panels of 64 columns.
template <int d>
struct HopperTiles {
  bfloat16 q[d / 64][kRowsOfBlock][64], k[kKvStages][d / 64][kKeysOfTile][64],
      v[kKvStages][d / 64][kKeysOfTile][64];
  Barrier q_full, k_full[kKvStages], k_empty[kKvStages], v_full[kKvStages],
      v_empty[kKvStages];
  Barrier ping_pong[hopper::kConsumers];  // whose turn it is to begin products
};

// Where tile number `tile` is in a ring: the stage, and the parity of its phase.
struct PipelineState {
  int stage, parity;
  __device__ explicit PipelineState(int tile)
      : stage(tile % kKvStages), parity(tile / kKvStages % 2) {}
};

// What a block works on: queries from `first` on of a head's sequence, and `tiles`
// tiles of its keys from key `begin` on.
struct WorkTile {
  Sequence q, kv;
  int head, head_kv, first, begin, tiles;
};

// Which work tile a block takes: those of `at_once` heads together, whose k and v fit
// in the L2 cache. Of these, the last queries come first: if causal, they take longest,
// and the short tiles at the end keep all SMs busy.
template <typename Lengths>
struct TileScheduler {
  Lengths of_q, of_kv;
  int at_once, of_batch;  // heads
  TileScheduler(Lengths of_q, Lengths of_kv, const Sizes& size, int of_batch)
      : of_q(of_q), of_kv(of_kv), of_batch(of_batch) {
    int64_t bytes = int64_t(size.tokens_kv) * size.d * 2 * sizeof(bfloat16);
    at_once =
        int(std::clamp<int64_t>(kL2Bytes / bytes * size.group, size.group, size.heads));
  }
  // A warp. Aligns the mask to packed sequences.
  template <typename Mask>
  __device__ WorkTile tile(int block, const Sizes& size, Mask& mask) const {
    int numbers = of_q.tiles(kRowsOfBlock),
        head = block / (numbers * at_once) * at_once;
    int heads = min(at_once, int(size.heads) - head);
    block -= head * numbers;
    head += block % heads;
    int number = block / heads, batch = head / of_batch;
    head -= batch * of_batch;
    int i = of_q.sequence_of(number, kRowsOfBlock);
    Sequence q = of_q.sequence(batch, i), kv = of_kv.sequence(batch, i);
    if constexpr (Lengths::packed) mask = mask.aligned(q.length, kv.length);
    int tile = number - of_q.first_tile(i, kRowsOfBlock);
    int first = (ceil_div(q.length, kRowsOfBlock) - 1 - tile) * kRowsOfBlock;
    Range keys = mask.keys_of(first, first + kRowsOfBlock - 1);
    int begin = keys.begin / kKeysOfTile * kKeysOfTile;
    int tiles = keys.end > begin ? ceil_div(keys.end - begin, kKeysOfTile) : 0;
    return {q, kv, head, head / size.group, first, begin, tiles};
  }
};

// -------------------------------------------------------------------------------------
// The producer

template <typename Lengths, int d>
__device__ void produce(HopperTiles<d>& shared, const TileMap& q, const TileMap& k,
                        const TileMap& v, const WorkTile& work) {
  hopper::arrive_and_expect(shared.q_full, sizeof shared.q);
  Lengths::load(shared.q, q, shared.q_full, work.q, work.head, work.first);
  for (int tile = 0; tile < work.tiles; ++tile) {
    PipelineState at(tile);
    int key = work.begin + tile * kKeysOfTile;
    // at first there is no phase to wait for.
    hopper::wait(shared.k_empty[at.stage], at.parity ^ 1);
    hopper::arrive_and_expect(shared.k_full[at.stage], sizeof shared.k[0]);
    Lengths::load(shared.k[at.stage], k, shared.k_full[at.stage], work.kv, work.head_kv,
                  key);
    hopper::wait(shared.v_empty[at.stage], at.parity ^ 1);
    hopper::arrive_and_expect(shared.v_full[at.stage], sizeof shared.v[0]);
    Lengths::load(shared.v[at.stage], v, shared.v_full[at.stage], work.kv, work.head_kv,
                  key);
  }
}

// -------------------------------------------------------------------------------------
// The consumers

// The state of online softmax of a thread's two rows of the 64, 8 apart. The sums are
// over the thread's own columns.
struct RowState {
  float largest[2] = {-INFINITY, -INFINITY}, sum[2] = {};

  // Turns scores into probabilities relative to the largest score so far, and adds them
  // up. correction: by what earlier sums must be multiplied. scale: log2(e) is in it.
  __device__ __forceinline__ void update(float (&scores)[kKeysOfTile / 2], float scale,
                                         float (&correction)[2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float before = largest[half], now = before;
#pragma unroll
      for (int i = 2 * half; i < kKeysOfTile / 2; i += 4)
        now = fmaxf(now, fmaxf(scores[i], scores[i + 1]));
      now = largest[half] = quad_max(now);
      float shift = finite_or_0(now * scale);
      correction[half] = exp2_approximate(before * scale - shift);
      sum[half] *= correction[half];
#pragma unroll
      for (int i = 2 * half; i < kKeysOfTile / 2; i += 4) {
        sum[half] += scores[i] = exp2_approximate(scores[i] * scale - shift);
        sum[half] += scores[i + 1] = exp2_approximate(scores[i + 1] * scale - shift);
      }
    }
  }
};

// A warp group. Begins scores = q @ k^T for its 64 rows of q.
template <int d>
__device__ __forceinline__ void begin_scores(float (&scores)[kKeysOfTile / 2],
                                             const HopperTiles<d>& shared, int consumer,
                                             int stage) {
  hopper::wgmma_fence();
#pragma unroll
  for (int i = 0; i < d; i += 16) {  // 32 bytes further in a panel's rows
    uint64_t a = hopper::descriptor(&shared.q[i / 64][consumer * kRowsOfGroup], 16) +
                 (i % 64 * 2 >> 4);
    uint64_t b = hopper::descriptor(&shared.k[stage][i / 64], 16) + (i % 64 * 2 >> 4);
    hopper::wgmma_shared<kKeysOfTile, false, false>(scores, a, b, i > 0);
  }
  hopper::wgmma_commit();
}

// A warp group. Begins out += probabilities @ v, or out = probabilities @ v.
template <int d>
__device__ __forceinline__ void begin_out(
    float (&out)[d / 2], const uint32_t (&probabilities)[kKeysOfTile / 16][4],
    const HopperTiles<d>& shared, int stage, bool add) {
  uint64_t v = hopper::descriptor(&shared.v[stage], sizeof(shared.v[stage][0]));
  hopper::wgmma_fence();
#pragma unroll
  for (int i = 0; i < kKeysOfTile / 16; ++i) {
    hopper::wgmma_registers<d, true>(
        out, probabilities[i], v + i * (16 * hopper::kRowBytes >> 4), add || i > 0);
  }
  hopper::wgmma_commit();
}

// A warp group: 64 of the block's queries.
template <int d, typename Mask, typename Scale>
__device__ void consume(HopperTiles<d>& shared, int consumer, const WorkTile& work,
                        const Mask& mask, bfloat16* to, int64_t pitch, float* logsumexp,
                        Scale scale) {
  int t = threadIdx.x % kWarpGroup, row = work.first + consumer * kRowsOfGroup;
  int thread_row = row + t / 32 * 16 + t % 32 / 4;  // the thread's first row
  bool leader = t == 0;
  RowState state;
  float scores[kKeysOfTile / 2], out[d / 2], correction[2];
  uint32_t probabilities[kKeysOfTile / 16][4];
  // Later queries see later keys, so all 64 see what the last one's range begins with
  // and the first one's ends with.
  Range unmasked = {mask.keys_of(row + kRowsOfGroup - 1, row + kRowsOfGroup - 1).begin,
                    mask.keys_of(row, row).end};
  auto cap_and_mask = [&](int tile) {
#pragma unroll
    for (int i = 0; i < kKeysOfTile / 2; ++i) scores[i] = scale.of(scores[i]);
    int key = work.begin + tile * kKeysOfTile;
    if (unmasked.begin <= key && key + kKeysOfTile <= unmasked.end) return;
    key += t % 4 * 2;  // the thread's first column
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      Range visible = mask.keys_of(thread_row + 8 * half, thread_row + 8 * half);
#pragma unroll
      for (int i = 0; i < kKeysOfTile / 4; ++i) {
        int column = i / 2 * 8 + i % 2;
        if (column < visible.begin - key || column >= visible.end - key)
          scores[i / 2 * 4 + 2 * half + i % 2] = -INFINITY;
      }
    }
  };
  auto convert = [&] {
#pragma unroll
    for (int i = 0; i < kKeysOfTile / 4; ++i) {
      probabilities[i / 4][i % 4] = packed<bfloat16>(scores[2 * i], scores[2 * i + 1]);
    }
  };

  // Prologue: the scores of the first tile.
  hopper::wait(shared.q_full, 0);
  hopper::wait(shared.k_full[0], 0);
  begin_scores(scores, shared, consumer, 0);
  hopper::wgmma_wait_for<0>(scores);
  if (leader) hopper::arrive(shared.k_empty[0]);
  cap_and_mask(0);
  state.update(scores, scale.scale, correction);
  convert();
  // region overlap
  for (int tile = 1; tile < work.tiles; ++tile) {
    PipelineState next(tile), now(tile - 1);
    hopper::wait(shared.k_full[next.stage], next.parity);
    // The first consumer begins.
    hopper::wait(shared.ping_pong[consumer], (tile - 1) % 2 ^ (consumer == 0));
    begin_scores(scores, shared, consumer, next.stage);
    hopper::wait(shared.v_full[now.stage], now.parity);
    begin_out(out, probabilities, shared, now.stage, tile > 1);
    if (t % 32 == 0) hopper::arrive(shared.ping_pong[1 - consumer]);
    hopper::wgmma_wait_for<1>(scores);
    if (leader) hopper::arrive(shared.k_empty[next.stage]);
    cap_and_mask(tile);
    state.update(scores, scale.scale, correction);
    hopper::wgmma_wait_for<0>(out);
    if (leader) hopper::arrive(shared.v_empty[now.stage]);
#pragma unroll
    for (int i = 0; i < d / 2; ++i) out[i] *= correction[i / 2 % 2];
    convert();
  }
  // endregion
  // Epilogue: the product of the last tile, then the results.
  PipelineState last(work.tiles - 1);
  hopper::wait(shared.v_full[last.stage], last.parity);
  begin_out(out, probabilities, shared, last.stage, work.tiles > 1);
  hopper::wgmma_wait_for<0>(out);

#pragma unroll
  for (int half = 0; half < 2; ++half) {
    int query = thread_row + 8 * half;
    float sum = quad_sum(state.sum[half]);
    float factor = sum == 0 ? 0 : 1 / sum;  // 0: of no keys
    write_row<d>(to, query, work.q.length, reinterpret_cast<float (&)[d / 8][4]>(out),
                 2 * half, factor, pitch);
    if (query < work.q.length && t % 4 == 0) {
      logsumexp[query] =
          (finite_or_0(state.largest[half] * scale.scale) + log2f(sum)) * kLn2;
    }
  }
}

// All threads. The results of queries that see no key.
template <int d>
__device__ void write_nothing(const WorkTile& work, bfloat16* to, int64_t pitch,
                              float* logsumexp) {
  int rows = min(kRowsOfBlock, work.q.length - work.first), vectors = d / 8;
  for (int i = threadIdx.x; i < rows * vectors; i += hopper::kThreads) {
    int row = work.first + i / vectors;
    reinterpret_cast<uint4*>(to + row * pitch)[i % vectors] = {};
    if (i % vectors == 0) logsumexp[row] = -INFINITY;
  }
}

// -------------------------------------------------------------------------------------
// Kernel

template <int d, typename Lengths, typename Mask, typename Scale>
__global__ void __launch_bounds__(hopper::kThreads, 1)
    attention_hopper_kernel(const __grid_constant__ TileMap q,
                            const __grid_constant__ TileMap k,
                            const __grid_constant__ TileMap v,
                            bfloat16* __restrict__ out, Strides to,
                            float* __restrict__ logsumexp, Sizes size,
                            TileScheduler<Lengths> scheduler, Mask mask, Scale scale) {
  WorkTile work = scheduler.tile(blockIdx.x, size, mask);
  if (work.first < 0 || work.first >= work.q.length) return;  // a number of no tile
  extern __shared__ __align__(1024) char memory[];
  auto& shared = hopper::aligned<HopperTiles<d>>(memory);
  if (threadIdx.x == 0) {
    hopper::prefetch(q);
    hopper::prefetch(k);
    hopper::prefetch(v);
    hopper::init(shared.q_full, 1);
    for (int stage = 0; stage < kKvStages; ++stage) {
      hopper::init(shared.k_full[stage], 1);
      hopper::init(shared.v_full[stage], 1);
      hopper::init(shared.k_empty[stage], hopper::kConsumers);
      hopper::init(shared.v_empty[stage], hopper::kConsumers);
    }
    for (Barrier& barrier : shared.ping_pong) hopper::init(barrier, kWarpGroup / 32);
    hopper::fence_init();
  }
  __syncthreads();  // no thread waits at a barrier before it is initialised
  Strides of_sum = {int64_t(scheduler.of_batch) * size.tokens, size.tokens, 1};
  out += Lengths::offset(work.q, to) + work.head * to.head;
  logsumexp += Lengths::offset(work.q, of_sum) + work.head * of_sum.head;
  if (work.tiles == 0) return write_nothing<d>(work, out, to.token, logsumexp);
  hopper::specialize_warps([&] { produce<Lengths>(shared, q, k, v, work); },
                           [&](int consumer) {
                             consume(shared, consumer, work, mask, out, to.token,
                                     logsumexp, scale);
                           });
}

// -------------------------------------------------------------------------------------
// Launcher

template <int d, typename Lengths, typename Mask, typename Scale>
void launch_hopper(const Tensor& q, const Tensor& k, const Tensor& v, Tensor& out,
                   Tensor& logsumexp, Scale scale, Sizes size, Lengths of_q,
                   Lengths of_kv, Mask mask) {
  constexpr int bytes = hopper::kSharedBytes<HopperTiles<d>>;
  static_assert(bytes <= 227 * 1024, "a block has at most 227 KB of shared memory");
  unsigned blocks = grid_of(size.heads * of_q.tiles(kRowsOfBlock));
  auto kernel = attention_hopper_kernel<d, Lengths, Mask, Scale>;
  allow_shared(kernel, bytes);
  kernel<<<blocks, hopper::kThreads, bytes, current_stream(q)>>>(
      of_q.map(q, kRowsOfBlock), of_kv.map(k, kKeysOfTile), of_kv.map(v, kKeysOfTile),
      data<bfloat16>(out), strides(out), data<float>(logsumexp), size,
      TileScheduler<Lengths>(of_q, of_kv, size, q.size(1)), mask, scale);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

// As attention in attention.cu.
std::tuple<Tensor, Tensor> attention_hopper(
    const Tensor& q, const Tensor& k, const Tensor& v, bool causal,
    std::optional<double> scale, std::optional<int64_t> window_left,
    std::optional<int64_t> window_right, bool /*deterministic: always*/, double softcap,
    std::optional<Tensor> starts, std::optional<Tensor> starts_kv) {
  Sizes size = check_attention(q, k, v, true);
  check_input(q, "q", ScalarType::BFloat16, true);
  STD_TORCH_CHECK(size.d == 64 || size.d == 128, "q must have 64 or 128 columns, got ",
                  size.d, "; use attention");
  auto start = [&](auto& q, auto& k, auto& v, auto& out, auto& logsumexp,
                   double scale) {
    with_scale(scale, softcap, [&](auto score) {
      auto launch = [&](auto of_q, auto of_kv, auto mask) {
        using L = decltype(of_q);
        using M = decltype(mask);
        using S = decltype(score);
        auto run =
            size.d == 64 ? launch_hopper<64, L, M, S> : launch_hopper<128, L, M, S>;
        run(q, k, v, out, logsumexp, score, size, of_q, of_kv, mask);
      };
      with_sequences(q, k, size, causal, window_left, window_right, starts, starts_kv,
                     launch);
    });
  };
  return run_attention(q, k, v, scale, start);
}

// -------------------------------------------------------------------------------------
// Registration: torch.ops.<name given to load>.attention_hopper(q, k, v), for CUDA
// tensors

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def(
      "attention_hopper(Tensor q, Tensor k, Tensor v, bool causal=False, float? "
      "scale=None, int? window_left=None, int? window_right=None, bool "
      "deterministic=False, float softcap=0.0, Tensor? starts=None, Tensor? "
      "starts_kv=None) -> (Tensor, Tensor)");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("attention_hopper", TORCH_BOX(&attention_hopper));
}
