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
// A block computes one work tile after the other (work_tiles.h): 128 or 192 queries of
// a head, 64 for each of two or three warp groups, the consumers. A warp of a last one,
// the producer, requests tiles: q, then 128 keys at a time; q, k and v each in a ring.
// For a tile of keys a consumer computes:
//
//   scores = q @ k^T            wgmma, k from shared memory, q from registers if there
//                               are enough; the sums are in registers
//   probabilities               64 exponentials in each thread: as many clock cycles as
//                               half of a tile's products, or all of them with d = 64
//   out += probabilities @ v    wgmma with probabilities in registers: the sums of the
//                               first product lie as a factor of the second has to
//
// Tensor cores must not wait for exponentials, so products run during them, in two
// ways. A consumer begins the next tile's scores before out += probabilities @ v of
// this one, and computes the next probabilities while that runs, also from one work
// tile to the next: a block has one prologue and one epilogue. And the consumers are in
// ping-pong: one begins its products, then the next, so that one's exponentials run
// during the others' products. With d = 64, three hide more of them than two.
//
// What limits it: power with d = 128, the exponentials with d = 64.
//
// Needs compute capability 9.0: build with -gencode=arch=compute_90a,code=sm_90a.

#include "attention.h"
#include "hopper_matmul.h"
#include "hopper_wgmma.h"
#include "mma_sync.h"
#include "work_tiles.h"

using namespace ladder;
using hopper::Barrier, hopper::bfloat16, hopper::kWarpGroup, hopper::TileMap;

constexpr int kRowsOfGroup = 64, kKeysOfTile = 128;

// What a block is.
template <int d_, int consumers_>
struct Shape {
  static constexpr int d = d_, consumers = consumers_, rows = consumers * kRowsOfGroup,
                       threads = (1 + consumers) * kWarpGroup,
                       kv_stages = d == 64 ? 4 : 2;
};

// A tile is stored in panels of 64 columns.
template <typename S>
struct HopperTiles {
  bfloat16 q[WorkTiles::stages][S::d / 64][S::rows][64],
      k[S::kv_stages][S::d / 64][kKeysOfTile][64],
      v[S::kv_stages][S::d / 64][kKeysOfTile][64];
  WorkTiles work_tiles;
  Barrier q_full[WorkTiles::stages], q_empty[WorkTiles::stages], k_full[S::kv_stages],
      k_empty[S::kv_stages], v_full[S::kv_stages], v_empty[S::kv_stages];
  Barrier ping_pong[S::consumers];  // whose turn it is to begin products
};

// Where a block's results go.
struct Results {
  bfloat16* out;
  Strides strides;
  float* logsumexp;
  Strides strides_of_sum;

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

// -------------------------------------------------------------------------------------
// The producer

// A warp. The results of a work tile's queries that see no key.
template <typename S, typename Lengths>
__device__ void write_nothing(const Results& results, const WorkTile& work) {
  bfloat16* to = results.out_of<Lengths>(work);
  float* logsumexp = results.logsumexp_of<Lengths>(work);
  int rows = min(S::rows, work.q.length - work.first), vectors = S::d / 8;
  for (int i = threadIdx.x % 32; i < rows * vectors; i += 32) {
    int row = work.first + i / vectors;
    reinterpret_cast<uint4*>(to + row * results.strides.token)[i % vectors] = {};
    if (i % vectors == 0) logsumexp[row] = -INFINITY;
  }
}

// A warp.
template <typename S, typename Lengths, typename Mask>
__device__ void produce(HopperTiles<S>& shared, const TileMap& q, const TileMap& k,
                        const TileMap& v, const Results& results,
                        const TileScheduler<S::rows, kKeysOfTile, Lengths>& scheduler,
                        const Mask& mask) {
  PipelineState<S::kv_stages> at;
  auto load = [&](const WorkTile& work, WorkTiles::State at_work) {
    int stage = at_work.stage();
    // at first there is no phase to wait for.
    hopper::wait(shared.q_empty[stage], at_work.parity() ^ 1);
    hopper::arrive_and_expect(shared.q_full[stage], sizeof shared.q[0]);
    Lengths::load(shared.q[stage], q, shared.q_full[stage], work.q, work.head,
                  work.first);
    for (int key = work.begin; key < work.end; key += kKeysOfTile, ++at.count) {
      stage = at.stage();
      hopper::wait(shared.k_empty[stage], at.parity() ^ 1);
      hopper::arrive_and_expect(shared.k_full[stage], sizeof shared.k[0]);
      Lengths::load(shared.k[stage], k, shared.k_full[stage], work.kv, work.head_kv,
                    key);
      hopper::wait(shared.v_empty[stage], at.parity() ^ 1);
      hopper::arrive_and_expect(shared.v_full[stage], sizeof shared.v[0]);
      Lengths::load(shared.v[stage], v, shared.v_full[stage], work.kv, work.head_kv,
                    key);
    }
  };
  shared.work_tiles.produce(scheduler, mask, load, [&](const WorkTile& work) {
    write_nothing<S, Lengths>(results, work);
  });
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

// A warp. Its 16 rows of q, from `row` of the block's on, as a factor of wgmma.
template <int d, int rows>
__device__ __forceinline__ void load_q(uint32_t (&q)[d / 16][4],
                                       const bfloat16 (&panels)[d / 64][rows][64],
                                       int row) {
  int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < d; i += 16) {  // TMA has swizzled the rows
    auto line = reinterpret_cast<const uint4*>(panels[i / 64][row + lane % 16]);
    load_matrices(q[i / 16], line + ((i % 64 / 8 + lane / 16) ^ lane % 8));
  }
}

// A warp group. Begins scores = q @ k^T for its 64 rows of q, in registers or, from
// row `row` of the block's on, in shared memory.
template <bool in_registers, typename S>
__device__ __forceinline__ void begin_scores(float (&scores)[kKeysOfTile / 2],
                                             const HopperTiles<S>& shared,
                                             const uint32_t (&q)[S::d / 16][4],
                                             int stage_of_q, int row, int stage) {
  hopper::wgmma_fence();
#pragma unroll
  for (int i = 0; i < S::d; i += 16) {  // 32 bytes further in a panel's rows
    uint64_t b = hopper::descriptor(&shared.k[stage][i / 64], 16) + (i % 64 * 2 >> 4);
    if constexpr (in_registers) {
      hopper::wgmma_registers<kKeysOfTile, false>(scores, q[i / 16], b, i > 0);
    } else {
      uint64_t a = hopper::descriptor(&shared.q[stage_of_q][i / 64][row], 16);
      hopper::wgmma_shared<kKeysOfTile, false, false>(scores, a + (i % 64 * 2 >> 4), b,
                                                      i > 0);
    }
  }
  hopper::wgmma_commit();
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

template <int d>
__device__ __forceinline__ void write(const Rows& rows, const float (&out)[d / 2],
                                      int64_t pitch) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    write_row<d>(rows.to, 8 * half, rows.left,
                 reinterpret_cast<const float (&)[d / 8][4]>(out), 2 * half,
                 rows.factor[half], pitch);
  }
}

// A warp group: 64 queries of each of the block's work tiles.
template <typename Lengths, typename S, typename Mask, typename Scale>
__device__ void consume(HopperTiles<S>& shared, int consumer, const Mask& given_mask,
                        const Results& results, Scale scale) {
  constexpr int d = S::d;
  // q in registers, read once for all keys, takes less power, where there are enough.
  constexpr bool q_in_registers = S::consumers == 2 && std::is_same_v<Scale, Scaled>;
  int t = threadIdx.x % kWarpGroup, row_of_block = consumer * kRowsOfGroup;
  bool leader = t == 0;
  RowState state;
  float scores[kKeysOfTile / 2], out[d / 2], correction[2];
  uint32_t probabilities[kKeysOfTile / 16][4], q[d / 16][4];
  WorkTile work;
  Mask mask = given_mask;
  int thread_row;  // the thread's first
  Range unmasked;
  WorkTiles::State at_work;  // q is in the same place of its ring
  PipelineState<S::kv_stages> at;

  auto release_q = [&] {
    __syncwarp();
    if (t % 32 == 0) hopper::arrive(shared.q_empty[at_work.stage()]);
  };
  auto read_work = [&] {
    if (!shared.work_tiles.read(work, at_work)) return false;
    if constexpr (Lengths::packed)
      mask = given_mask.aligned(work.q.length, work.length_kv);
    // Later queries see later keys, so all 64 see what the last one's range begins
    // with and the first one's ends with.
    int row = work.first + row_of_block;
    unmasked = {mask.keys_of(row + kRowsOfGroup - 1, row + kRowsOfGroup - 1).begin,
                mask.keys_of(row, row).end};
    thread_row = row + t / 32 * 16 + t % 32 / 4;
    state = RowState();
    hopper::wait(shared.q_full[at_work.stage()], at_work.parity());
    if constexpr (q_in_registers) {
      load_q<d>(q, shared.q[at_work.stage()], row_of_block + t / 32 * 16);
      release_q();
    }
    return true;
  };
  auto begin_tile_scores = [&] {
    begin_scores<q_in_registers>(scores, shared, q, at_work.stage(), row_of_block,
                                 at.stage());
  };
  auto cap_and_mask = [&](int key) {
#pragma unroll
    for (int i = 0; i < kKeysOfTile / 2; ++i) scores[i] = scale.of(scores[i]);
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
  // region overlap
  // Computes the probabilities of the tile of keys from `key` on while the product with
  // those before runs: finish() has it. add: to the products before.
  auto step = [&](int key, bool add, auto finish) {
    auto before = at;
    ++at.count;
    hopper::wait(shared.k_full[at.stage()], at.parity());
    // A phase for each tile, and the first consumer begins.
    hopper::wait(shared.ping_pong[consumer], (at.count + (consumer > 0)) % 2);
    begin_tile_scores();
    hopper::wait(shared.v_full[before.stage()], before.parity());
    begin_out(out, probabilities, shared, before.stage(), add);
    if (t % 32 == 0) hopper::arrive(shared.ping_pong[(consumer + 1) % S::consumers]);
    hopper::wgmma_wait_for<1>(scores);
    if (leader) hopper::arrive(shared.k_empty[at.stage()]);
    cap_and_mask(key);
    state.update(scores, scale.scale, correction);
    hopper::wgmma_wait_for<0>(out);
    if (leader) hopper::arrive(shared.v_empty[before.stage()]);
    finish();
    convert();
  };
  // endregion
  auto rescale = [&] {
#pragma unroll
    for (int i = 0; i < d / 2; ++i) out[i] *= correction[i / 2 % 2];
  };

  // Prologue: the scores of the first tile.
  if (!read_work()) return;
  hopper::wait(shared.k_full[0], 0);
  begin_tile_scores();
  hopper::wgmma_wait_for<0>(scores);
  if (leader) hopper::arrive(shared.k_empty[0]);
  cap_and_mask(work.begin);
  state.update(scores, scale.scale, correction);
  convert();
  Rows rows;
  bool add;
  while (true) {
    for (int key = work.begin + kKeysOfTile; key < work.end; key += kKeysOfTile)
      step(key, key > work.begin + kKeysOfTile, rescale);
    if constexpr (!q_in_registers) release_q();
    ++at_work.count;
    rows = complete<Lengths>(results, work, thread_row, state, scale.scale);
    add = work.end > work.begin + kKeysOfTile;
    if (!read_work()) break;
    step(work.begin, add, [&] { write<d>(rows, out, results.strides.token); });
  }
  // Epilogue: the product of the last tile, then the results.
  hopper::wait(shared.v_full[at.stage()], at.parity());
  begin_out(out, probabilities, shared, at.stage(), add);
  hopper::wgmma_wait_for<0>(out);
  write<d>(rows, out, results.strides.token);
}

// -------------------------------------------------------------------------------------
// Kernel

template <typename S, typename Lengths, typename Mask, typename Scale>
__global__ void __launch_bounds__(S::threads, 1)
    attention_hopper_kernel(const __grid_constant__ TileMap q,
                            const __grid_constant__ TileMap k,
                            const __grid_constant__ TileMap v, Results results,
                            TileScheduler<S::rows, kKeysOfTile, Lengths> scheduler,
                            Mask mask, Scale scale) {
  extern __shared__ __align__(1024) char memory[];
  auto& shared = hopper::aligned<HopperTiles<S>>(memory);
  if (threadIdx.x == 0) {
    hopper::prefetch(q);
    hopper::prefetch(k);
    hopper::prefetch(v);
    shared.work_tiles.init(S::consumers * kWarpGroup / 32);
    for (int stage = 0; stage < WorkTiles::stages; ++stage) {
      hopper::init(shared.q_full[stage], 1);
      hopper::init(shared.q_empty[stage], S::consumers * kWarpGroup / 32);
    }
    for (int stage = 0; stage < S::kv_stages; ++stage) {
      hopper::init(shared.k_full[stage], 1);
      hopper::init(shared.v_full[stage], 1);
      hopper::init(shared.k_empty[stage], S::consumers);
      hopper::init(shared.v_empty[stage], S::consumers);
    }
    for (Barrier& barrier : shared.ping_pong) hopper::init(barrier, kWarpGroup / 32);
    hopper::fence_init();
  }
  __syncthreads();  // no thread waits at a barrier before it is initialised
  hopper::specialize_warp_groups<S::consumers>(
      [&] { produce(shared, q, k, v, results, scheduler, mask); },
      [&](int consumer) { consume<Lengths>(shared, consumer, mask, results, scale); });
}

// -------------------------------------------------------------------------------------
// Launcher

inline int sms() { return ladder::device_attribute(cudaDevAttrMultiProcessorCount); }

template <typename S, typename Lengths, typename Mask, typename Scale>
void launch_hopper(const Tensor& q, const Tensor& k, const Tensor& v, Tensor& out,
                   Tensor& logsumexp, Scale scale, Sizes size, Lengths of_q,
                   Lengths of_kv, Mask mask) {
  constexpr int bytes = hopper::kSharedBytes<HopperTiles<S>>;
  static_assert(bytes <= 227 * 1024, "a block has at most 227 KB of shared memory");
  TileScheduler<S::rows, kKeysOfTile, Lengths> scheduler(of_q, of_kv, size, q.size(1));
  unsigned blocks = grid_of(scheduler.numbers());
  std::optional<Tensor> taken;
  if (blocks > (uniform(mask) ? 1 : 2) * unsigned(sms())) {
    blocks = sms();
    if (!uniform(mask)) {
      taken = torch::stable::new_zeros(q, {1}, ScalarType::Int);
      scheduler.taken = data<int>(*taken);
    }
  }
  Strides of_sum = {q.size(1) * size.tokens, size.tokens, 1};
  auto kernel = attention_hopper_kernel<S, Lengths, Mask, Scale>;
  allow_shared(kernel, bytes);
  kernel<<<blocks, S::threads, bytes, current_stream(q)>>>(
      of_q.map(q, S::rows), of_kv.map(k, kKeysOfTile), of_kv.map(v, kKeysOfTile),
      Results{data<bfloat16>(out), strides(out), data<float>(logsumexp), of_sum},
      scheduler, mask, scale);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

// The time of all work tiles of `rows` rows, in those of one with all keys.
inline double waves(const Sizes& size, const Mask& mask, int rows) {
  double tiles = size.heads * ceil_div(int64_t(size.tokens), int64_t(rows));
  if (uniform(mask)) return std::ceil(tiles / sms());
  double seen = (size.tokens + rows + kKeysOfTile) / (2.0 * size.tokens);
  return std::max(1.0, tiles * seen / sms());
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
        using Narrow = Shape<64, 2>;
        using Wide = Shape<64, 3>;  // a tile takes 1.3 times as long on an H200
        auto run = size.d == 64 ? launch_hopper<Narrow, L, M, S>
                                : launch_hopper<Shape<128, 2>, L, M, S>;
        if constexpr (std::is_same_v<M, Mask> && std::is_same_v<S, Scaled>) {
          if (size.d == 64 &&
              1.3 * waves(size, mask, Wide::rows) < waves(size, mask, Narrow::rows))
            run = launch_hopper<Wide, L, M, S>;
        }
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
