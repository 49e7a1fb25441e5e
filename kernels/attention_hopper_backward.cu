// attention_hopper_backward.cu: attention_backward.cu's gradients on Hopper's own
// units: TMA copies the tiles, wgmma multiplies.
//
//   grad, q, out, grad_q    batch x heads x tokens x d, bfloat16, d = 64, 72 ... 128
//   k, v, grad_k, grad_v    batch x kv_heads x tokens_kv x d; heads / kv_heads query
//                           heads share one of them
//   grad_logsumexp, logsumexp   batch x heads x tokens, float32
//
// Views are taken as in attention_hopper.cu. grad_q, grad_k and grad_v have the order
// of dimensions of q, k and v. softcap, starts and starts_kv: as there.
//
// Three kernels. The first computes for each query what the second needs of it: its
// logsumexp in powers of two, and delta, logsumexp's gradient minus the sum of grad *
// out. In the second, a block has 128 keys: 64 for each of two warp groups, the
// consumers. A third, the producer, requests tiles of queries with their rows of grad,
// in a ring of two stages. With a row for each key, and P the probabilities, a
// consumer computes five products for a tile:
//
//   S = k @ q^T          dP = v @ grad^T          the sums are in registers; so are k
//                                                 and v with d = 64, the rest in shared
//                                                 memory
//   P = exp2(scale * S - logsumexp)               dS = P * (dP + delta)
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
// Tensor cores must not wait for exponentials: dP is computed during these, and then
// the other consumer's products, since the two take turns to begin S and dP: each when
// the other has its S.
//
// Needs compute capability 9.0: build with -gencode=arch=compute_90a,code=sm_90a.

#include "attention_key_consumer.h"

using namespace ladder;

// -------------------------------------------------------------------------------------
// Kernels

template <int d, bool padded, typename Lengths, typename Mask, typename Scale>
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
    PingPong<kConsumers> turn = {group - 1};
    if (turn.consumer == kConsumers - 1) turn.pass_on();  // the first one begins
    shared.for_each_work_tile([&](const WorkTile& work, unsigned i) {
      consume<d, padded, Lengths>(shared, operands, work, t, turn, i % 2, step,
                                  scheduler.size.group,
                                  scheduler.mask_of(work.q, work.kv), scale, factor);
      __syncwarp();
      if (t % 32 == 0) hopper::arrive(shared.work_empty[i % 2]);
    });
  }
}

// -------------------------------------------------------------------------------------
// Launcher

template <int d, bool padded, typename Lengths, typename Mask, typename Scale>
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
                       strides(grad_v),
                       size.d};
  int64_t of_head = int64_t(size.tokens) * d * 8;  // bytes of q, grad and sums
  int tiles = of_kv.tiles(kKeysOfBlock);
  int at_once = deterministic  // more heads: shorter queues
                    ? int(std::clamp<int64_t>(2 * kL2Bytes / of_head, 1, heads_kv))
                    : heads_at_once(heads_kv, of_head, tiles, uniform(mask));
  auto kernel = attention_hopper_backward_kernel<d, padded, Lengths, Mask, Scale>;
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
      auto run = [&](auto d, auto padded, auto mask) {
        launch_backward<d, padded>(grad, grad_logsumexp, q, k, v, out, logsumexp,
                                   grad_q, grad_k, grad_v, size, of_q, of_kv, mask,
                                   score, scale, deterministic);
      };
      if (size.d == 64) return run(Constant<64>(), Constant<false>(), mask);
      if (size.d == 128) return run(Constant<128>(), Constant<false>(), mask);
      run(Constant<128>(), Constant<true>(), as_band(mask, size));
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
