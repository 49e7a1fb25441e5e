// attention_hopper_backward.cu: attention_backward.cu's gradients on Hopper's own
// units: TMA copies the tiles, wgmma multiplies.
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
//   S = k @ q^T          dP = v @ grad^T          the sums are in registers; so are k
//                                                 and v with d = 64, the rest in shared
//                                                 memory
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
// in shared memory, and the copy unit adds it while the consumer goes on
// (attention_grad_q.h). Blocks are persistent: while one writes its last results, the
// tiles of its next keys are in flight.
//
// Tensor cores must not wait for exponentials: dP is computed during these, grad_v's
// product while dS is computed and written, and the other consumer's products during
// both.
//
// Needs compute capability 9.0: build with -gencode=arch=compute_90a,code=sm_90a.

#include "attention_grad_q.h"

using namespace ladder;

// -------------------------------------------------------------------------------------
// The consumers

// A warp group: 64 of the work tile's keys. t: the thread. step: of the block's.
template <int d, typename Lengths, typename Mask, typename Scale>
__device__ __forceinline__ void consume(KeyTiles<d>& shared, const Operands& operands,
                                        const WorkTile& work, int t, int consumer,
                                        int parity, unsigned& step, int heads,
                                        const Mask& mask, Scale scale, float factor) {
  constexpr int queries = kQueriesOfTile<d>;
  // Rows of queries are read before a wait, so that nothing waits for them after it,
  // where there are registers for that.
  constexpr bool mean_early = std::is_same_v<Scale, Scaled>,
                 shift_early = mean_early && d == 64;
  int lane = t % 32, column = lane % 4 * 2, first = consumer * kKeysOfGroup;
  int thread_key = first + t / 32 * 16 + lane / 4;  // the first of two, 8 apart
  int tile = work.iterator.tile, head = 0;
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
  for (unsigned end = step + work.steps; step < end; ++step) {
    QueryTile<d>& stage = shared.stages[step % kStages];
    uint64_t q = hopper::descriptor(stage.q, sizeof stage.q[0]);
    uint64_t grad = hopper::descriptor(stage.grad, sizeof stage.grad[0]);
    uint32_t ds[queries / 16][4];  // of two bfloat16 each, as p

    hopper::wait(shared.full[step % kStages], step / kStages % 2);
#pragma unroll
    for (int from = 0; from < queries; from += kSubtile) {
      float s[kSubtile / 2], dp[kSubtile / 2];
      uint32_t p[kSubtile / 16][4];
      begin_scores<d>(s, k, advanced(q, from * kRowBytes));
      begin_scores<d>(dp, v, advanced(grad, from * kRowBytes));
      float2 shift[kSubtile / 8],
          mean[kSubtile / 8];  // of two queries, for both keys
      auto load = [&](float2(&to)[kSubtile / 8], const float* rows, int begin,
                      int end) {
#pragma unroll
        for (int i = begin; i < end; ++i)
          to[i] = *reinterpret_cast<const float2*>(&rows[from + 8 * i + column]);
      };
      if constexpr (shift_early) load(shift, stage.logsumexp, 0, kSubtile / 8);
      hopper::wgmma_wait_for<1>(s);
#pragma unroll
      for (int i = 0; i < kSubtile / 2; ++i) s[i] = scale.of(s[i]);
      int query = tile * queries + from;
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
      begin_sum<d>(grad_v, p, advanced(grad, from * kRowBytes));
      if constexpr (mean_early) load(mean, stage.delta, 0, kSubtile / 8);
      hopper::wgmma_wait_for<1>(dp);
      char* row = reinterpret_cast<char*>(
          shared.ds[step % 2][from / 64][first + t / 32 * 16 + lane % 16]);
#pragma unroll
      for (int i = 0; i < kSubtile / 2; i += 2) {
        if (!mean_early && i % 4 == 0) load(mean, stage.delta, i / 4, i / 4 + 1);
        uint32_t (&four)[4] = ds[from / 16 + i / 8];
        four[i / 2 % 4] = packed<bfloat16>(s[i] * (dp[i] - mean[i / 4].x),
                                           s[i + 1] * (dp[i + 1] - mean[i / 4].y));
        if (i % 8 == 6) {  // to its place in the swizzled rows
          hopper::store_matrices(row + ((i / 4 - 1 + lane / 16) ^ lane % 8) * 16, four);
        }
      }
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
    uint64_t& halved = d == 128 ? of_k : of_ds;
    halved = advanced(halved, consumer * kKeysOfBlock * kRowBytes);
    if constexpr (d == 64) wait_for_ds();
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
      shared.grad_q[consumer][index_in_subtile(t, i)] = make_float4(
          grad_q[4 * i], grad_q[4 * i + 1], grad_q[4 * i + 2], grad_q[4 * i + 3]);
    }
    hopper::fence_before_store();
    __syncwarp();
    if (lane == 0) hopper::arrive(shared.grad_q_full[step % kAdders][consumer]);
    hopper::wgmma_wait_for<0>(grad_k);
    __syncwarp();
    if (lane == 0) hopper::arrive(shared.empty[step % kStages]);
    if (++head == heads) head = 0, --tile;
  }
  hopper::wgmma_wait_for<0>(grad_v);
  __syncwarp();
  if (lane == 0) hopper::arrive(shared.keys_empty);
  int first_row = first + work.first, rows = mask.tokens_kv - first_row;
  auto write = [&](const float (&sum)[d / 2], bfloat16* to, const Strides& s,
                   float by) {
    to += Lengths::offset(work.kv, s) + work.head_kv * s.head + first_row * s.token;
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
                                     TileScheduler<d, Lengths, Mask> scheduler,
                                     Scale scale, float factor) {
  extern __shared__ __align__(1024) char memory[];
  auto& shared = hopper::aligned<KeyTiles<d>>(memory);
  if (threadIdx.x == 0) {
    shared.init();
    hopper::fence_init();
  }
  __syncthreads();  // no thread waits at a barrier before it is initialised
  // The warp's group is the same in all lanes; read from one of them, the compiler
  // knows.
  int group = __shfl_sync(kAll, threadIdx.x / kWarpGroup, 0);
  if (group == 0) {
    hopper::dealloc_registers<24>();
    int warp = threadIdx.x / 32;
    if (warp == 0) produce(shared, operands, scheduler);
    if (0 < warp && warp <= kAdders && hopper::elected())
      add_grad_q(shared, operands, warp - 1, scheduler);
  } else {
    hopper::alloc_registers<240>();
    int t = threadIdx.x % kWarpGroup;
    asm volatile("" : "+r"(t));  // else the compiler computes it anew in each step
    unsigned step = 0;
    shared.for_each_work_tile([&](const WorkTile& work, unsigned i) {
      consume<d, Lengths>(shared, operands, work, t, group - 1, i % 2, step,
                          scheduler.size.group, scheduler.mask_of(work.q, work.kv),
                          scale, factor);
      __syncwarp();
      if (t % 32 == 0) hopper::arrive(shared.work_empty[i % 2]);
    });
  }
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
  int64_t heads_kv = size.heads / size.group;
  SumsOfGradQ<d, Lengths> sums(grad, grad_logsumexp, q, out, logsumexp, size, of_q,
                               deterministic);
  Operands operands = {of_q.map(q, queries),
                       of_q.map(grad, queries),
                       of_kv.map(k, kKeysOfBlock),
                       of_kv.map(v, kKeysOfBlock),
                       data<float>(sums.rows),
                       data<float>(sums.sums),
                       sums.turns,
                       data<bfloat16>(grad_k),
                       data<bfloat16>(grad_v),
                       strides(grad_k),
                       strides(grad_v)};
  int64_t of_head = int64_t(size.tokens) * d * 8;  // bytes of q, grad and sums
  int tiles = of_kv.tiles(kKeysOfBlock),
      at_once = heads_at_once(heads_kv, of_head, tiles, uniform(mask));
  if (deterministic)  // more heads: shorter queues
    at_once = std::clamp<int64_t>(2 * kL2Bytes / of_head, 1, heads_kv);
  auto kernel = attention_hopper_backward_kernel<d, Lengths, Mask, Scale>;
  allow_shared(kernel, bytes);
  TileScheduler<d, Lengths, Mask> scheduler = {
      of_q, of_kv, size, int(k.size(1)), at_once, mask, sums.taken};
  // As many blocks as are on the GPU at a time take work tiles in turn.
  unsigned blocks = std::min(grid_of(heads_kv * tiles), unsigned(sms()));
  kernel<<<blocks, hopper::kThreads, bytes, current_stream(q)>>>(operands, scheduler,
                                                                 score, float(scale));
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  sums.round(grad_q, float(scale));
}

// As attention_backward in attention_backward.cu.
std::tuple<Tensor, Tensor, Tensor> attention_hopper_backward(
    const Tensor& given_grad, const Tensor& grad_logsumexp, const Tensor& given_q,
    const Tensor& given_k, const Tensor& given_v, const Tensor& given_out,
    const Tensor& logsumexp, bool causal, std::optional<double> given_scale,
    std::optional<int64_t> window_left, std::optional<int64_t> window_right,
    bool deterministic, double softcap, std::optional<Tensor> starts,
    std::optional<Tensor> starts_kv) {
  Sizes size = check_hopper(given_q, given_k, given_v, "attention_backward");
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
      auto run = [&](auto d) {
        launch_backward<d>(grad, grad_logsumexp, q, k, v, out, logsumexp, grad_q,
                           grad_k, grad_v, size, of_q, of_kv, mask, score, scale,
                           deterministic);
      };
      size.d == 64 ? run(Constant<64>()) : run(Constant<128>());
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
