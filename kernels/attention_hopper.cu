// attention_hopper.cu: attention.cu's forward on Hopper's own units: TMA copies the
// tiles, wgmma multiplies them.
//
//   q, out      batch x heads x tokens x d, bfloat16, d = 64, 72 ... 128
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
// ping-pong: one's exponentials run during the others' products. With d = 64, three
// hide more of them than two. What limits it: exponentials, and power with d = 128.
//
// Needs compute capability 9.0: build with -gencode=arch=compute_90a,code=sm_90a.

#include "attention_consumer.h"

using namespace ladder;
using hopper::PipelineStateOf, hopper::TileMap;

// -------------------------------------------------------------------------------------
// The producer

// A warp.
template <typename S, typename Lengths, typename Mask>
__device__ void produce(HopperTiles<S>& shared, const TileMap& q, const TileMap& k,
                        const TileMap& v, const Results& results,
                        const TileScheduler<S::rows, Lengths>& scheduler,
                        const Mask& mask) {
  PipelineStateOf<S::kv_stages> at;
  auto load = [&](const WorkTile& work, unsigned n) {
    int stage = n % S::q_stages;
    // at first there is no phase to wait for.
    hopper::wait(shared.q_empty[stage], n / S::q_stages % 2 ^ 1);
    hopper::arrive_and_expect(shared.q_full[stage], sizeof shared.q[0]);
    Lengths::load(shared.q[stage], q, shared.q_full[stage], work.q, work.head,
                  work.first);
    for (int key = work.begin; key < work.end; key += kKeysOfTile, at.advance()) {
      stage = at.stage;
      hopper::wait(shared.k_empty[stage], at.parity ^ 1);
      hopper::arrive_and_expect(shared.k_full[stage], sizeof shared.k[0]);
      Lengths::load(shared.k[stage], k, shared.k_full[stage], work.kv, work.head_kv,
                    key);
      hopper::wait(shared.v_empty[stage], at.parity ^ 1);
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

// A warp group: 64 queries of each of the block's work tiles.
template <typename Lengths, typename S, typename Mask, typename Scale>
__device__ void consume(HopperTiles<S>& shared, int number, const Mask& given_mask,
                        const Results& results, Scale scale) {
  constexpr int d = S::d;
  // The same in all lanes: what follows of it is in uniform registers.
  int consumer = __reduce_max_sync(kAll, number);
  int t = threadIdx.x % kWarpGroup, row_of_block = consumer * kRowsOfGroup;
  bool leader = t == 0;
  RowState state;
  float scores[kKeysOfTile / 2], out[d / 2], correction[2];
  uint32_t probabilities[kKeysOfTile / 16][4], q[d / 16][4];
  WorkTile work;
  Mask mask = given_mask;
  int thread_row;  // the thread's first
  Range unmasked;
  unsigned n = 0;  // the work tile's number; its q is in a ring, too
  PipelineStateOf<S::kv_stages> at;
  hopper::PingPong<S::consumers> turn = {consumer};

  auto release_q = [&] {
    __syncwarp();
    if (t % 32 == 0) hopper::arrive(shared.q_empty[n % S::q_stages]);
  };
  auto read_work = [&] {
    if (!shared.work_tiles.read(work, n)) return false;
    if constexpr (Lengths::packed)
      mask = given_mask.aligned(work.q.length, work.length_kv);
    // Later queries see later keys, so all 64 see what the last one's range begins
    // with and the first one's ends with.
    int row = work.first + row_of_block;
    unmasked = {mask.keys_of(row + kRowsOfGroup - 1, row + kRowsOfGroup - 1).begin,
                mask.keys_of(row, row).end};
    thread_row = row + t / 32 * 16 + t % 32 / 4;
    state = RowState();
    hopper::wait(shared.q_full[n % S::q_stages], n / S::q_stages % 2);
    if constexpr (S::q_in_registers) {
      hopper::load_factors<d>(q, shared.q[n % S::q_stages], row_of_block + t / 32 * 16);
      release_q();
    }
    return true;
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
  // region overlap
  // Computes the probabilities of the tile of keys from `key` on while the product with
  // those before runs: finish() has it. add: to the products before.
  auto step = [&](int key, bool add, auto finish) {
    auto before = at;
    at.advance();
    hopper::wait(shared.k_full[at.stage], at.parity);
    turn.wait();
    begin_scores(scores, shared, q, n % S::q_stages, row_of_block, at.stage);
    hopper::wait(shared.v_full[before.stage], before.parity);
    begin_out(out, probabilities, shared, before.stage, add);
    turn.pass_on();
    hopper::wgmma_wait_for<1>(scores);
    cap_and_mask(key);
    state.see(scores, scale.scale, correction);
    constexpr int early = S::early;  // of the thread's 64 exponentials
    state.template exponentiate<0, early>(scores, scale.scale);
    // nvcc would move the wait for out up, to before the exponentials. So k is released
    // by what they add up to, which is never negative.
    if (leader && !(state.sum[0] + state.sum[1] < 0))
      hopper::arrive(shared.k_empty[at.stage]);
    hopper::wgmma_wait_for<0>(out);
    if (leader) hopper::arrive(shared.v_empty[before.stage]);
    finish();  // is issued while the other exponentials take their time
    state.template exponentiate<early, kKeysOfTile / 2>(scores, scale.scale);
    convert(probabilities, scores);
  };
  // endregion
  auto rescale = [&] {
#pragma unroll
    for (int i = 0; i < d / 2; ++i) out[i] *= correction[i / 2 % 2];
  };

  // Prologue: the scores of the first tile.
  if (consumer == S::consumers - 1) turn.pass_on();  // the first one begins
  if (!read_work()) return;
  hopper::wait(shared.k_full[0], 0);
  begin_scores(scores, shared, q, n % S::q_stages, row_of_block, at.stage);
  hopper::wgmma_wait_for<0>(scores);
  if (leader) hopper::arrive(shared.k_empty[0]);
  cap_and_mask(work.begin);
  state.see(scores, scale.scale, correction);
  state.template exponentiate<0, kKeysOfTile / 2>(scores, scale.scale);
  convert(probabilities, scores);
  Rows rows;
  bool add;
  while (true) {
    for (int key = work.begin + kKeysOfTile; key < work.end; key += kKeysOfTile)
      step(key, key > work.begin + kKeysOfTile, rescale);
    if constexpr (!S::q_in_registers) release_q();
    ++n;
    rows = complete<Lengths>(results, work, thread_row, state, scale.scale);
    add = work.end > work.begin + kKeysOfTile;
    if (!read_work()) break;
    step(work.begin, add, [&] { write<S>(rows, out, results); });
  }
  // Epilogue: the product of the last tile, then the results.
  hopper::wait(shared.v_full[at.stage], at.parity);
  begin_out(out, probabilities, shared, at.stage, add);
  hopper::wgmma_wait_for<0>(out);
  write<S>(rows, out, results);
}

// -------------------------------------------------------------------------------------
// Kernel

template <typename S, typename Lengths, typename Mask, typename Scale>
__global__ void __launch_bounds__(S::threads, 1)
    attention_hopper_kernel(const __grid_constant__ TileMap q,
                            const __grid_constant__ TileMap k,
                            const __grid_constant__ TileMap v, Results results,
                            TileScheduler<S::rows, Lengths> scheduler, Mask mask,
                            Scale scale) {
  extern __shared__ __align__(1024) char memory[];
  auto& shared = hopper::aligned<HopperTiles<S>>(memory);
  if (threadIdx.x == 0) {
    hopper::prefetch(q);
    hopper::prefetch(k);
    hopper::prefetch(v);
    shared.init();
    hopper::fence_init();
  }
  __syncthreads();  // no thread waits at a barrier before it is initialised
  hopper::specialize_warp_groups<S::consumers>(
      [&] { produce(shared, q, k, v, results, scheduler, mask); },
      [&](int consumer) { consume<Lengths>(shared, consumer, mask, results, scale); });
}

// -------------------------------------------------------------------------------------
// Launcher

template <typename S, typename Lengths, typename Mask, typename Scale>
void launch_hopper(const Tensor& q, const Tensor& k, const Tensor& v, Tensor& out,
                   Tensor& logsumexp, Scale scale, Sizes size, Lengths of_q,
                   Lengths of_kv, Mask mask) {
  constexpr int bytes = hopper::kSharedBytes<HopperTiles<S>>;
  static_assert(bytes <= 227 * 1024, "a block has at most 227 KB of shared memory");
  TileScheduler<S::rows, Lengths> scheduler(of_q, of_kv, size, q.size(1), mask);
  std::optional<Tensor> taken;
  unsigned blocks = scheduler.blocks(mask, q, taken);
  Strides of_sum = {q.size(1) * size.tokens, size.tokens, 1};
  auto kernel = attention_hopper_kernel<S, Lengths, Mask, Scale>;
  allow_shared(kernel, bytes);
  kernel<<<blocks, S::threads, bytes, current_stream(q)>>>(
      of_q.map(q, S::rows), of_kv.map(k, kKeysOfTile), of_kv.map(v, kKeysOfTile),
      Results{data<bfloat16>(out), strides(out), data<float>(logsumexp), of_sum,
              size.d},
      scheduler, mask, scale);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

// As attention in attention.cu.
std::tuple<Tensor, Tensor> attention_hopper(
    const Tensor& q, const Tensor& k, const Tensor& v, bool causal,
    std::optional<double> scale, std::optional<int64_t> window_left,
    std::optional<int64_t> window_right, bool /*deterministic: always*/, double softcap,
    std::optional<Tensor> starts, std::optional<Tensor> starts_kv) {
  Sizes size = check_hopper(q, k, v, "attention");
  auto start = [&](auto& q, auto& k, auto& v, auto& out, auto& logsumexp,
                   double scale) {
    with_scale(scale, softcap, [&]<typename OfScores>(OfScores score) {
      auto launch = [&]<typename Visible>(auto of_q, auto of_kv, Visible mask) {
        auto run = [&]<typename S>(S, auto mask) {
          launch_hopper<S>(q, k, v, out, logsumexp, score, size, of_q, of_kv, mask);
        };
        constexpr bool scaled = std::is_same_v<OfScores, Scaled>;
        using Wide = Shape<64, 3, false>;  // a tile takes 1.3 times as long on an H200
        if (size.d == 128) return run(Shape<128, 2, scaled>(), mask);
        if constexpr (scaled && std::is_same_v<Visible, Mask>) {
          if (size.d == 96) return run(Shape<96, 2, true>(), mask);
          if (size.d == 64 &&
              1.3 * waves(size, mask, Wide::rows) < waves(size, mask, 128))
            return run(Wide(), mask);
        }
        if (size.d > 64) return run(Shape<128, 2, scaled, true>(), as_band(mask, size));
        run(Shape<64, 2, scaled>(), mask);
      };
      with_sequences(q, k, size, causal, window_left, window_right, starts, starts_kv,
                     launch);
    });
  };
  return run_attention(q, k, v, scale, start);
}

// -------------------------------------------------------------------------------------
// Registration: torch.ops.<name given to load>.attention_hopper(...), for CUDA tensors

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
