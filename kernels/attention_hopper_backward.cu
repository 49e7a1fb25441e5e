#include <torch/csrc/stable/library.h>

#define LADDER_NO_OPERATORS
#include "attention.cu"
#undef LADDER_NO_OPERATORS

#include "hopper_bulk.h"
#include "hopper_matmul.h"
#include "hopper_wgmma.h"

#ifndef ORDER
#define ORDER 0
#endif
#ifndef BULK
#define BULK 0
#endif
#ifndef STAGES
#define STAGES 3
#endif
#ifndef ROTATE
#define ROTATE 1
#endif

namespace hopper_backward {

using hopper::Barrier;
using hopper::bfloat16;
using hopper::kRowBytes;
using hopper::TileMap;

constexpr int kWarpGroup = 128, kConsumers = 2, kThreads = (1 + kConsumers) * kWarpGroup;
constexpr int kKeys = 128;     // of a block, 64 for each consumer
constexpr int kStages = STAGES;
template <int d>
constexpr int kTile = 8192 / d;  // queries that come at a time: the gradient of a tile has 64 x 64 elements per consumer
template <int d>
constexpr int kPanels = d / 64;  // of 64 columns, 128 bytes

template <int d>
struct Stage {
  alignas(1024) bfloat16 q[kPanels<d>][kTile<d>][64];
  bfloat16 grad[kPanels<d>][kTile<d>][64];
  float logsumexp[kTile<d>], delta[kTile<d>];
};

template <int d>
struct Shared {
  bfloat16 k[kPanels<d>][kKeys][64], v[kPanels<d>][kKeys][64];
  bfloat16 ds[2][kTile<d> / 64][kKeys][64];
  Stage<d> stages[kStages];
#if BULK
  float sums[kConsumers][4][8][32][4];
#endif
  Barrier own, full[kStages], empty[kStages], written[2];
};

// The tiles of queries that a block takes: of the group's heads one after the other.
struct Walk {
  int64_t head;
  int begin, start, tiles, tile;
  __device__ Walk(int64_t head, int begin, int start, int tiles)
      : head(head), begin(begin), start(start), tiles(tiles), tile(start) {}
  __device__ void advance() {
    if (++tile == tiles) tile = begin;
    if (tile == start) ++head;
  }
  __device__ int64_t number() const { return head * tiles + tile; }
};

struct Place {
  int stage = 0, parity = 0;
  __device__ void advance() {
    if (++stage == kStages) stage = 0, parity ^= 1;
  }
};

struct Given {
  TileMap q, grad, k, v;
  const float* of_rows;
  float* sums;
  bfloat16 *grad_k, *grad_v;
};

__device__ __forceinline__ uint64_t beyond(uint64_t descriptor, int bytes) { return descriptor + (bytes >> 4); }
// Bytes from a tile's beginning to its columns 16 * i, where panels have `rows` rows.
__device__ constexpr int along_row(int i, int rows) { return i / 4 * rows * kRowBytes + i % 4 * 32; }
__device__ constexpr int down(int i) { return i * 16 * kRowBytes; }

template <int n>
__device__ __forceinline__ void write(const float (&sum)[n / 2], bfloat16* to, int pitch, int rows, float factor) {
  int t = threadIdx.x % kWarpGroup, row = t / 32 * 16 + t % 32 / 4, column = ladder::first_of_four();
#pragma unroll
  for (int j = 0; j < n / 8; j += 2) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float* left = &sum[4 * j + 2 * i];
      uint2 four = ladder::four_neighbours(packed<bfloat16>(left[0] * factor, left[1] * factor),
                                           packed<bfloat16>(left[4] * factor, left[5] * factor));
      if (row + 8 * i < rows) *reinterpret_cast<uint2*>(&to[int64_t(row + 8 * i) * pitch + column + 8 * j]) = four;
    }
  }
}

template <int d>
__device__ void produce(Shared<d>& shared, const Given& given, int64_t head_kv, int first, Walk walk, int turns) {
  constexpr int tile = kTile<d>;
  Place place;
  hopper::arrive_and_expect(shared.own, sizeof shared.k + sizeof shared.v);
  for (int p = 0; p < kPanels<d>; ++p) hopper::load_tile(shared.k[p], given.k, shared.own, head_kv, first, 64 * p);
  for (int p = 0; p < kPanels<d>; ++p) hopper::load_tile(shared.v[p], given.v, shared.own, head_kv, first, 64 * p);
  for (int turn = 0; turn < turns; ++turn, place.advance(), walk.advance()) {
    Stage<d>& stage = shared.stages[place.stage];
    Barrier& full = shared.full[place.stage];
    hopper::wait(shared.empty[place.stage], place.parity ^ 1);
    hopper::arrive_and_expect(full, sizeof stage.q + sizeof stage.grad + 2 * tile * sizeof(float));
    for (int p = 0; p < kPanels<d>; ++p) hopper::load_tile(stage.q[p], given.q, full, walk.head, walk.tile * tile, 64 * p);
    hopper::load_bytes(stage.logsumexp, given.of_rows + walk.number() * 2 * tile, 2 * tile * sizeof(float), full);
    for (int p = 0; p < kPanels<d>; ++p)
      hopper::load_tile(stage.grad[p], given.grad, full, walk.head, walk.tile * tile, 64 * p);
  }
}

template <int d>
__device__ __forceinline__ void consume(Shared<d>& shared, const Given& given, int which, int64_t head_kv, int first,
                                        Walk walk, int turns, const Sizes& size, bool causal, float scale) {
  constexpr int tile = kTile<d>, n = tile / 2;
  int t = threadIdx.x % kWarpGroup, warp = t / 32, lane = t % 32;
  int own = 64 * which + 16 * warp + lane / 4;  // the first of this thread's two keys, the other is 8 further
  int columns = lane % 4 * 2;
  float sum_k[d / 2], sum_v[d / 2], s[n];
  uint64_t of_k = hopper::descriptor(shared.k, sizeof shared.k[0]);
  uint64_t of_v = hopper::descriptor(shared.v, sizeof shared.v[0]);
  Place place;

  auto descriptor_q = [&](int stage) { return hopper::descriptor(shared.stages[stage].q, tile * kRowBytes); };
  auto descriptor_grad = [&](int stage) { return hopper::descriptor(shared.stages[stage].grad, tile * kRowBytes); };
  auto rows_times = [&](float (&sum)[n], uint64_t a, uint64_t b) {
    a = beyond(a, which * 64 * kRowBytes);
    hopper::wgmma_fence();
#pragma unroll
    for (int i = 0; i < d / 16; ++i)
      hopper::wgmma_shared<tile, false, false>(sum, beyond(a, along_row(i, kKeys)), beyond(b, along_row(i, tile)), i > 0);
    hopper::wgmma_commit();
  };
  auto add = [&](float (&sum)[d / 2], const uint32_t (&a)[tile / 16][4], uint64_t b, bool first) {
    hopper::wgmma_fence();
#pragma unroll
    for (int i = 0; i < tile / 16; ++i) hopper::wgmma_registers<d, true>(sum, a[i], beyond(b, down(i)), !first || i > 0);
    hopper::wgmma_commit();
  };
  auto begin_scores = [&] {
    hopper::wait(shared.full[place.stage], place.parity);
    rows_times(s, of_k, descriptor_q(place.stage));
  };
  auto release = [&](int stage) {
    if (t == 0) hopper::arrive(shared.empty[stage]);
  };
  auto step = [&](int turn, auto last) {
    int current = place.stage;
    Stage<d>& stage = shared.stages[current];
    float dp[n];
#if ORDER == 2
    begin_scores();
#endif
#if ORDER == 4
    hopper::wgmma_wait_for<0>(s);
    rows_times(dp, of_v, descriptor_grad(current));
#else
    rows_times(dp, of_v, descriptor_grad(current));
    hopper::wgmma_wait_for<1>(s);
#endif
#if ORDER == 0
    if (turn > 0) release(current > 0 ? current - 1 : kStages - 1);
#endif
    int query = walk.tile * tile, from = first + 64 * which;
    if (from + 63 >= size.tokens_kv || (causal && from + 63 > query)) {
#pragma unroll
      for (int i = 0; i < n; ++i) {
        int key = first + own + i % 4 / 2 * 8, at = query + i / 4 * 8 + columns + i % 2;
        if (key >= size.tokens_kv || (causal && key > at)) s[i] = -INFINITY;
      }
    }
    uint32_t p[tile / 16][4], ds[tile / 16][4];
#pragma unroll
    for (int j = 0; j < tile / 8; ++j) {
      float2 shift = *reinterpret_cast<const float2*>(&stage.logsumexp[8 * j + columns]);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float* at = &s[4 * j + 2 * i];
        at[0] = ladder::exp2_approximate(at[0] * scale - shift.x);
        at[1] = ladder::exp2_approximate(at[1] * scale - shift.y);
        p[j / 2][j % 2 * 2 + i] = packed<bfloat16>(at[0], at[1]);
      }
    }
    add(sum_v, p, descriptor_grad(current), turn == 0);
    hopper::wgmma_wait_for<1>(dp);
    char* to = reinterpret_cast<char*>(shared.ds[turn % 2]) + own * kRowBytes;
#pragma unroll
    for (int j = 0; j < tile / 8; ++j) {
      float2 mean = *reinterpret_cast<const float2*>(&stage.delta[8 * j + columns]);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float *of_p = &s[4 * j + 2 * i], *of_dp = &dp[4 * j + 2 * i];
        uint32_t both = packed<bfloat16>(of_p[0] * (of_dp[0] - mean.x), of_p[1] * (of_dp[1] - mean.y));
        ds[j / 2][j % 2 * 2 + i] = both;
        *reinterpret_cast<uint32_t*>(to + j / 8 * kKeys * kRowBytes + i * 8 * kRowBytes +
                                     ((j % 8 ^ lane / 4) * 16 + columns * 2)) = both;
      }
    }
    hopper::fence_before_store();
    __syncwarp();
    if (lane == 0) hopper::arrive(shared.written[turn % 2]);
#if WAITV
    hopper::wgmma_wait_for<0>(sum_v);
#endif
    auto begin_q = [&](float (&sum)[32]) {
      hopper::wait(shared.written[turn % 2], turn / 2 % 2);
      uint64_t a = hopper::descriptor(shared.ds[turn % 2], kKeys * kRowBytes), b = of_k;
      (d == 64 ? a : b) = beyond(d == 64 ? a : b, which * kKeys * kRowBytes);
      hopper::wgmma_fence();
#pragma unroll
      for (int i = 0; i < kKeys / 16; ++i)
        hopper::wgmma_shared<64, true, true>(sum, beyond(a, down(i)), beyond(b, down(i)), i > 0);
      hopper::wgmma_commit();
    };
    float sum_q[32];
    int64_t number = walk.number();
#if ORDER == 0 || ORDER >= 3
    begin_q(sum_q);
    add(sum_k, ds, descriptor_q(current), turn == 0);
#if PEEL
    if constexpr (!last) {
      place.advance(), walk.advance();
      begin_scores();
    }
    hopper::wgmma_wait_for<last ? 1 : 2>(sum_q);
#else
    place.advance(), walk.advance();
    if (!last) hopper::wait(shared.full[place.stage], place.parity);
    rows_times(s, of_k, descriptor_q(place.stage));
    hopper::wgmma_wait_for<2>(sum_q);
#endif
#elif ORDER == 1
    add(sum_k, ds, descriptor_q(current), turn == 0);
    place.advance(), walk.advance();
    if (!last) hopper::wait(shared.full[place.stage], place.parity);
    rows_times(s, of_k, descriptor_q(place.stage));
    begin_q(sum_q);
    hopper::wgmma_wait_for<0>(sum_q);
    release(current);
#elif ORDER == 2
    begin_q(sum_q);
    add(sum_k, ds, descriptor_q(current), turn == 0);
    place.advance(), walk.advance();
    hopper::wgmma_wait_for<1>(sum_q);
#endif
    auto* sums = given.sums + ((number * kConsumers + which) * 4 + warp) * 1024;
#if BULK
    if (lane == 0) hopper::store_wait<0>();
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 8; ++i)
      *reinterpret_cast<float4*>(shared.sums[which][warp][i][lane]) =
          make_float4(sum_q[4 * i], sum_q[4 * i + 1], sum_q[4 * i + 2], sum_q[4 * i + 3]);
    hopper::fence_before_store();
    __syncwarp();
    if (lane == 0) {
      hopper::add_floats(sums, &shared.sums[which][warp][0][0][0], 4096);
      hopper::store_commit();
    }
#else
#pragma unroll
    for (int i = 0; i < 8; ++i)
      atomicAdd(reinterpret_cast<float4*>(sums) + 32 * i + lane,
                make_float4(sum_q[4 * i], sum_q[4 * i + 1], sum_q[4 * i + 2], sum_q[4 * i + 3]));
#endif
#if ORDER >= 3
#if PEEL
    hopper::wgmma_wait_for<last ? 0 : 1>(sum_k);
#else
    hopper::wgmma_wait_for<1>(sum_k);
#endif
    release(current);
#elif ORDER == 2
    hopper::wgmma_wait_for<0>(sum_k);
    release(current);
#endif
  };

  hopper::wait(shared.own, 0);
  if (turns > 0) {
#if ORDER != 2
    begin_scores();
#endif
#if PEEL
    for (int turn = 0; turn < turns - 1; ++turn) step(turn, std::false_type());
    step(turns - 1, std::true_type());
#else
    for (int turn = 0; turn < turns; ++turn) step(turn, turn == turns - 1);
#endif
  } else {
    for (int i = 0; i < d / 2; ++i) sum_k[i] = sum_v[i] = 0;
  }
  hopper::wgmma_wait_for<0>(sum_k);
  hopper::wgmma_wait_for<0>(sum_v);
  int rows = size.tokens_kv - first - 64 * which;
  int64_t at = (head_kv * size.tokens_kv + first + 64 * which) * d;
  write<d>(sum_k, given.grad_k + at, d, rows, scale * kLn2);
  write<d>(sum_v, given.grad_v + at, d, rows, 1);
#if BULK
  if (lane == 0) hopper::store_wait<0>();
#endif
}

template <int d>
__global__ void __launch_bounds__(kThreads, 1)
    attention_hopper_backward_kernel(const __grid_constant__ Given given, Sizes size, bool causal, float scale) {
  extern __shared__ __align__(1024) char memory[];
  auto& shared = hopper::aligned<Shared<d>>(memory);
  int blocks = ceil_div(size.tokens_kv, kKeys), tiles = ceil_div(size.tokens, kTile<d>);
  int block = blockIdx.x % blocks, first = block * kKeys;
  int64_t head_kv = blockIdx.x / blocks;
  int begin = causal ? min(first / kTile<d>, tiles) : 0;
  int turns = (tiles - begin) * size.group;
  Walk walk(head_kv * size.group, begin, causal || !ROTATE ? begin : int(int64_t(block) * tiles / blocks), tiles);
  if (threadIdx.x == 0) {
    hopper::init(shared.own, 1);
    for (int i = 0; i < kStages; ++i) {
      hopper::init(shared.full[i], 1);
      hopper::init(shared.empty[i], kConsumers);
    }
    for (Barrier& written : shared.written) hopper::init(written, kConsumers * 4);
    hopper::fence_init();
  }
  __syncthreads();
  int group = __shfl_sync(kAll, threadIdx.x / kWarpGroup, 0);
  if (group == 0) {
    hopper::keep_registers<24>();
    if (threadIdx.x == 0) produce<d>(shared, given, head_kv, first, walk, turns);
  } else {
    hopper::take_registers<240>();
    consume<d>(shared, given, group - 1, head_kv, first, walk, turns, size, causal, scale);
  }
}

template <int d>
__global__ void __launch_bounds__(256)
    attention_hopper_rows_kernel(const bfloat16* __restrict__ grad, const bfloat16* __restrict__ out,
                                 const float* __restrict__ grad_logsumexp, const float* __restrict__ logsumexp,
                                 float* __restrict__ of_rows, float4* __restrict__ sums, int tokens, int tiles) {
  constexpr int tile = kTile<d>, threads = d / 8;  // for each row
  int64_t head = blockIdx.x / tiles;
  int begin = blockIdx.x % tiles * tile;
  for (int i = threadIdx.x; i < tile * d / 4; i += 256) sums[blockIdx.x * int64_t(tile * d / 4) + i] = float4{};
#pragma unroll
  for (int within = threadIdx.x / threads; within < tile; within += 256 / threads) {
    int64_t row = head * tokens + begin + within;
    bool there = begin + within < tokens;
    float sum = 0;
    if (there) {
      auto x = ladder::Vector<uint32_t>::load(reinterpret_cast<const uint32_t*>(grad + row * d), threadIdx.x % threads);
      auto y = ladder::Vector<uint32_t>::load(reinterpret_cast<const uint32_t*>(out + row * d), threadIdx.x % threads);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        sum += __uint_as_float(x.at[i] << 16) * __uint_as_float(y.at[i] << 16) +
               __uint_as_float(x.at[i] & 0xffff0000) * __uint_as_float(y.at[i] & 0xffff0000);
      }
    }
    for (int lane = threads / 2; lane > 0; lane /= 2) sum += __shfl_xor_sync(kAll, sum, lane);
    if (threadIdx.x % threads == 0) {
      float* to = of_rows + blockIdx.x * int64_t(2 * tile) + within;
      to[0] = there ? logsumexp[row] * kLog2E : INFINITY;
      to[tile] = there ? sum - grad_logsumexp[row] : 0;
    }
  }
}

template <int d>
__global__ void __launch_bounds__(256)
    attention_hopper_grad_q_kernel(const float4* __restrict__ sums, bfloat16* __restrict__ grad_q, int tokens, int tiles,
                                   float factor) {
  int64_t head = blockIdx.x / tiles;
  int which = threadIdx.x / kWarpGroup, warp = threadIdx.x % kWarpGroup / 32, lane = threadIdx.x % 32;
  int row = blockIdx.x % tiles * kTile<d> + (d == 64 ? 64 * which : 0), column = d == 64 ? 0 : 64 * which;
  float sum[32];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    float4 four = sums[(((int64_t(blockIdx.x) * kConsumers + which) * 4 + warp) * 8 + i) * 32 + lane];
    sum[4 * i] = four.x, sum[4 * i + 1] = four.y, sum[4 * i + 2] = four.z, sum[4 * i + 3] = four.w;
  }
  write<64>(sum, grad_q + (head * tokens + row) * d + column, d, tokens - row, factor);
}

template <int d>
void launch(const Tensor& grad, const Tensor& grad_logsumexp, const Tensor& q, const Tensor& k, const Tensor& v,
            const Tensor& out, const Tensor& logsumexp, Tensor& grad_q, Tensor& grad_k, Tensor& grad_v, Sizes size,
            bool causal, double scale) {
  cudaStream_t stream = ladder::current_stream(q);
  int64_t tiles = ceil_div(size.tokens, kTile<d>), all = size.heads * tiles, heads_kv = size.heads / size.group;
  Tensor of_rows = torch::stable::new_empty(q, {all, 2, kTile<d>}, ScalarType::Float);
  Tensor sums = torch::stable::new_empty(q, {all, kTile<d>, d}, ScalarType::Float);
  attention_hopper_rows_kernel<d><<<grid_of(all), 256, 0, stream>>>(
      data<bfloat16>(grad), data<bfloat16>(out), data<float>(grad_logsumexp), data<float>(logsumexp),
      data<float>(of_rows), data<float4>(sums), size.tokens, tiles);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  auto map = [&](const Tensor& t, int64_t heads, int rows, int box) {
    return hopper::tile_map_3d(t.const_data_ptr(), heads, rows, d, box);
  };
  Given given = {map(q, size.heads, size.tokens, kTile<d>),
                 map(grad, size.heads, size.tokens, kTile<d>),
                 map(k, heads_kv, size.tokens_kv, kKeys),
                 map(v, heads_kv, size.tokens_kv, kKeys),
                 data<float>(of_rows),
                 data<float>(sums),
                 data<bfloat16>(grad_k),
                 data<bfloat16>(grad_v)};
  constexpr int bytes = hopper::kSharedBytes<Shared<d>>;
  static_assert(bytes <= 227 * 1024, "a block has at most 227 KB of shared memory");
  allow_shared(attention_hopper_backward_kernel<d>, bytes);
  attention_hopper_backward_kernel<d><<<grid_of(heads_kv * ceil_div(size.tokens_kv, kKeys)), kThreads, bytes, stream>>>(
      given, size, causal, float(scale * kLog2E));
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  attention_hopper_grad_q_kernel<d><<<grid_of(all), 256, 0, stream>>>(
      data<float4>(sums), data<bfloat16>(grad_q), size.tokens, tiles, float(scale));
  STD_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace hopper_backward

std::tuple<Tensor, Tensor, Tensor> attention_hopper_backward(const Tensor& grad, const Tensor& grad_logsumexp,
                                                             const Tensor& q, const Tensor& k, const Tensor& v,
                                                             const Tensor& out, const Tensor& logsumexp, bool causal,
                                                             std::optional<double> scale) {
  Sizes size = check_attention(q, k, v);
  ladder::check_input(q, "q", ScalarType::BFloat16);
  STD_TORCH_CHECK(size.d == 64 || size.d == 128, "q must have 64 or 128 columns, the last dimension, got ", size.d,
                  "; use attention_backward");
  ladder::check_input(grad, "grad", q.scalar_type());
  ladder::check_input(out, "out", q.scalar_type());
  ladder::check_input(grad_logsumexp, "grad_logsumexp", ScalarType::Float);
  ladder::check_input(logsumexp, "logsumexp", ScalarType::Float);
  ladder::check_same(grad, "grad", q, "q");
  ladder::check_same(out, "out", q, "q");
  ladder::check_same(grad_logsumexp, "grad_logsumexp", logsumexp, "logsumexp");
  STD_TORCH_CHECK(logsumexp.dim() == 3 && logsumexp.numel() == size.heads * size.tokens,
                  "logsumexp must have a value for each row of q, got shapes ", ladder::shape_of(logsumexp), " and ",
                  ladder::shape_of(q));
  auto guard = ladder::on_device_of(q);
  Tensor grad_q = torch::stable::empty_like(q), grad_k = torch::stable::empty_like(k),
         grad_v = torch::stable::empty_like(v);
  if (q.numel() == 0 || k.numel() == 0) {
    return {torch::stable::zero_(grad_q), torch::stable::zero_(grad_k), torch::stable::zero_(grad_v)};
  }
#ifdef ONLY
  auto run = hopper_backward::launch<ONLY>;
#else
  auto run = size.d == 64 ? hopper_backward::launch<64> : hopper_backward::launch<128>;
#endif
  run(aligned(grad), grad_logsumexp, aligned(q), aligned(k), aligned(v), aligned(out), logsumexp, grad_q, grad_k,
      grad_v, size, causal, checked_scale(scale.value_or(1 / std::sqrt(double(size.d)))));
  return {grad_q, grad_k, grad_v};
}

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def(
      "attention_hopper_backward(Tensor grad, Tensor grad_logsumexp, Tensor q, Tensor k, Tensor v, Tensor out, "
      "Tensor logsumexp, bool causal=False, float? scale=None) -> (Tensor, Tensor, Tensor)");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("attention_hopper_backward", TORCH_BOX(&attention_hopper_backward));
}
