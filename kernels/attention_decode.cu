// attention_decode.cu: attention of the last queries of each sequence, up to 16, to a
// long cache of keys and values: what a language model computes for each new token.
//
//   q, out      batch x heads x queries x d, float16 or bfloat16, d = 64, 96 or 128
//   k, v        batch x kv_heads x tokens x d; heads / kv_heads query heads share one
//   lengths     batch, int32: the tokens that each sequence has. All, if none are given
//   logsumexp   batch x heads x queries
//
// q, k and v may be views whose rows of d elements begin at multiples of 16 bytes, as
// of batch x tokens x heads x d. causal: query i is token length - queries + i of its
// sequence, and sees no later one.
//
// k and v move once, 4 * tokens * d bytes for each of their heads, and each of their
// elements is multiplied once for each query row that shares it: a few FLOPs per byte,
// where the tensor cores have time for hundreds. Memory bandwidth limits. So all SMs
// must load all the time:
//
//   equal shares    the tiles of keys of all sequences and heads are one line, and each
//                   block takes an equal part of it, wherever a head ends. Lengths are
//                   read on the GPU. An SM has one block
//   rings           each warp copies its own tiles (cp.async) into its own ring, and
//                   waits for no other warp: 32 to 64 KB of an SM are in flight. With
//                   twice as much, an H100 was 3% slower
//   16 rows         the query rows that share a head of k and v are the 16 rows of an
//                   mma.sync. If they are fewer, the others are computed for nothing
//
// A head that ends in another block than it began in leaves the state of its online
// softmax in each of them; a second kernel merges these in the order of the keys. There
// are no atomics: the same inputs give the same bits on GPUs with as many SMs.

#include "async_copy.h"
#include "attention.h"
#include "early_launch.h"
#include "mma_sync.h"

using namespace ladder;

constexpr int kWarps = 4, kThreads = 32 * kWarps;
constexpr int kRows = 16;     // of an mma.sync
constexpr int kQueries = 16;  // of a sequence, at most
constexpr int kStages = 2;    // of a warp's ring
constexpr int kMergers = 4;   // threads that merge the same columns
template <int d>
constexpr int kKeys = d > 64 ? 16 : 32;  // of a warp's tile
template <int d>
constexpr int kTile = kWarps * kKeys<d>;  // of a block's
using Four = Vector<float>;

// Rows are padded by 16 bytes, so that the 8 that ldmatrix reads at once are in
// different banks.
template <typename T, int d>
struct Ring {
  T k[kStages][kKeys<d>][d + 8], v[kStages][kKeys<d>][d + 8];
};

// The state of online softmax over a part of the keys, for each row; largest: in powers
// of 2. Padded likewise.
template <int d>
struct Part {
  float out[kRows][d + 8], largest[kRows], sum[kRows];
};

// The state of four columns of a row.
struct State {
  float largest = -INFINITY, sum = 0;
  Four out = {};

  __device__ void merge(const State& other) {
    float now = fmaxf(largest, other.largest), shift = finite_or_0(now);
    float mine = exp2_approximate(largest - shift),
          theirs = exp2_approximate(other.largest - shift);
    largest = now;
    sum = sum * mine + other.sum * theirs;
    for (int i = 0; i < Four::size; ++i)
      out.at[i] = out.at[i] * mine + other.out.at[i] * theirs;
  }
  template <int d>
  __device__ void merge(const Part<d>& part, int row, int four) {
    merge({part.largest[row], part.sum[row], Four::load(part.out[row], four)});
  }
};

template <typename T>
struct Operands {
  const T *q, *k, *v;
  T* out;
  float* logsumexp;
  const int* lengths;
  Strides of_q, of_k, of_v, of_out;
  int batches, heads_kv, group, queries, tokens;
  bool causal;
  float scale;  // log2(e) is in it

  __device__ int length(int batch) const {
    return lengths ? max(0, min(lengths[batch], tokens)) : tokens;
  }
  // Row r of those that share a head of k and v is of query r % queries, and of head
  // r / queries of the group.
  __device__ int rows() const { return group * queries; }
  __device__ int head(int head_kv, int row) const {
    return head_kv * group + row / queries;
  }
  __device__ int visible(int row, int length) const {
    return causal ? length - (queries - 1 - row % queries) : length;
  }

  template <typename Pointer>
  __device__ Pointer at(Pointer p, const Strides& s, int batch, int head_kv,
                        int row) const {
    return p + batch * s.batch + head(head_kv, row) * s.head + row % queries * s.token;
  }

  __device__ void write(int batch, int head_kv, int row, int four,
                        const State& state) const {
    float factor = state.sum == 0 ? 0 : 1 / state.sum;  // 0: saw no key
    const float* x = state.out.at;
    uint2 both = {packed<T>(x[0] * factor, x[1] * factor),
                  packed<T>(x[2] * factor, x[3] * factor)};
    *reinterpret_cast<uint2*>(at(out, of_out, batch, head_kv, row) + 4 * four) = both;
    if (four == 0) {
      int64_t first =
          (int64_t(batch) * heads_kv * group + head(head_kv, row)) * queries;
      logsumexp[first + row % queries] = (state.largest + log2f(state.sum)) * kLn2;
    }
  }
};

// -------------------------------------------------------------------------------------
// The line of tiles, and its parts

// Sequence by sequence, and in these head by head. For whole warps.
template <typename T, int d>
struct Line {
  const Operands<T>& o;
  int64_t tiles;
  int parts;  // none is empty

  __device__ Line(const Operands<T>& o, int most)
      : o(o), tiles(before(o.batches)), parts(min(int64_t(most), tiles)) {}
  // A sequence without a token has a tile of which it sees nothing.
  __device__ int of_head(int batch) const {
    return max(1, int(ceil_div(o.length(batch), kTile<d>)));
  }
  __device__ int64_t before(int batch) const {
    int sum = 0;
    for (int i = threadIdx.x % 32; i < batch; i += 32) sum += of_head(i);
    for (int lane = 1; lane < 32; lane *= 2) sum += __shfl_xor_sync(kAll, sum, lane);
    return int64_t(sum) * o.heads_kv;
  }
  __device__ int64_t begin(int part) const { return tiles * part / parts; }
  // The sequence that has a tile.
  __device__ int sequence_of(int64_t tile) const {
    int from = 0;
    for (int to = o.batches; to - from > 1;) {
      int middle = (from + to) / 2;
      (before(middle) <= tile ? from : to) = middle;
    }
    return from;
  }
};

// Where a block leaves its part of a head: a block continues at most one head, and
// leaves at most one unfinished.
__device__ inline int64_t slot(int64_t block, bool continues) {
  return 2 * block + !continues;
}

// -------------------------------------------------------------------------------------
// A warp's tiles

// 16 rows of q as factors of mma.sync, and the state of their online softmax: a lane
// has two rows, 8 apart.
template <typename T, int d>
struct WarpState {
  uint32_t q[d / 16][4];
  float out[d / 8][4] = {}, largest[2] = {-INFINITY, -INFINITY}, sum[2] = {};

  __device__ WarpState(const Operands<T>& o, int batch, int head_kv, int first) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int row = first + lane / 4 + 8 * half;
      const T* from = o.at(o.q, o.of_q, batch, head_kv, row) + lane % 4 * 2;
#pragma unroll
      for (int i = 0; i < d / 8; ++i) {
        q[i / 2][i % 2 * 2 + half] =
            row < o.rows() ? *reinterpret_cast<const uint32_t*>(from + 8 * i) : 0;
      }
    }
  }

  // k, v: tiles in shared memory, from key `key` on. visible: how many keys a row sees.
  __device__ void add(const T (&k)[kKeys<d>][d + 8], const T (&v)[kKeys<d>][d + 8],
                      int key, const int (&visible)[2], float scale) {
    constexpr int n = kKeys<d>;
    int lane = threadIdx.x % 32;
    float scores[n / 8][4] = {};
    uint32_t right[4];
#pragma unroll
    for (int i = 0; i < d / 16; ++i) {
#pragma unroll
      for (int x = 0; x < n / 8; x += 2) {
        load_matrices(right,
                      &k[8 * x + lane / 16 * 8 + lane % 8][16 * i + lane / 8 % 2 * 8]);
        multiply_add<T>(scores[x], q[i], right[0], right[1]);
        multiply_add<T>(scores[x + 1], q[i], right[2], right[3]);
      }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float before = largest[half], now = before;
#pragma unroll
      for (int i = 0; i < n / 4; ++i) {
        float& score = scores[i / 2][2 * half + i % 2];
        if (key + i / 2 * 8 + lane % 4 * 2 + i % 2 >= visible[half]) score = -INFINITY;
        now = fmaxf(now, score);
      }
      now = largest[half] = quad_max(now);
      float shift = finite_or_0(now * scale);
      float correction = exp2_approximate(before * scale - shift);
      sum[half] *= correction;
#pragma unroll
      for (int i = 0; i < d / 4; ++i) out[i / 2][2 * half + i % 2] *= correction;
#pragma unroll
      for (int i = 0; i < n / 4; ++i) {
        float& score = scores[i / 2][2 * half + i % 2];
        sum[half] += score = exp2_approximate(score * scale - shift);
      }
    }
#pragma unroll
    for (int i = 0; i < n / 8; i += 2) {
      uint32_t left[4];  // 16 rows by 16 keys: where the sums lie, a factor has to lie
#pragma unroll
      for (int j = 0; j < 4; ++j)
        left[j] =
            packed<T>(scores[i + j / 2][j % 2 * 2], scores[i + j / 2][j % 2 * 2 + 1]);
#pragma unroll
      for (int x = 0; x < d / 8; x += 2) {
        load_transposed(right, &v[8 * i + lane % 16][8 * x + lane / 16 * 8]);
        multiply_add<T>(out[x], left, right[0], right[1]);
        multiply_add<T>(out[x + 1], left, right[2], right[3]);
      }
    }
  }

  __device__ void write(Part<d>& to, float scale) const {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int row = lane / 4 + 8 * half;
#pragma unroll
      for (int x = 0; x < d / 8; ++x) {
        *reinterpret_cast<float2*>(&to.out[row][8 * x + lane % 4 * 2]) =
            make_float2(out[x][2 * half], out[x][2 * half + 1]);
      }
      float all = quad_sum(sum[half]);
      if (lane % 4 == 0) to.largest[row] = largest[half] * scale, to.sum[row] = all;
    }
  }
};

// A warp's share of `count` tiles of a head from tile `first` on; rows from `row` on.
template <typename T, int d>
__device__ void attend(const Operands<T>& o, Ring<T, d>& ring, Part<d>* to, int batch,
                       int head_kv, int row, int first, int count) {
  constexpr int vectors = d / 8;  // of a row, of 16 bytes
  int lane = threadIdx.x % 32, length = o.length(batch);
  const T *k = o.k + batch * o.of_k.batch + head_kv * o.of_k.head,
          *v = o.v + batch * o.of_v.batch + head_kv * o.of_v.head;
  int begin = first * kTile<d> + threadIdx.x / 32 * kKeys<d>;
  AsyncCopies copies;
  auto fill = [&](int step) {
    if (step < count) {
#pragma unroll
      for (int i = 0; i < kKeys<d> * vectors; i += 32) {
        int within = (i + lane) / vectors, column = (i + lane) % vectors * 8;
        int64_t key = begin + step * kTile<d> + within;
        copies.start<16>(&ring.k[step % kStages][within][column],
                         k + key * o.of_k.token + column, key < length);
        copies.start<16>(&ring.v[step % kStages][within][column],
                         v + key * o.of_v.token + column, key < length);
      }
    }
    copies.commit();
  };
  for (int step = 0; step < kStages - 1; ++step) fill(step);
  WarpState<T, d> state(o, batch, head_kv, row);
  row += lane / 4;
  int visible[2] = {o.visible(row, length), o.visible(row + 8, length)};
  for (int step = 0; step < count; ++step) {
    fill(step + kStages - 1);
    copies.wait<kStages - 1>();
    __syncwarp();  // all lanes' copies of this step are here
    state.add(ring.k[step % kStages], ring.v[step % kStages], begin + step * kTile<d>,
              visible, o.scale);
    __syncwarp();  // no lane still reads this stage
  }
  copies.wait<0>();
  __syncthreads();  // every warp has finished with its ring, whose memory `to` has
  state.write(to[threadIdx.x / 32], o.scale);
}

// -------------------------------------------------------------------------------------
// Kernels

template <typename T, int d>
union Shared {
  Ring<T, d> rings[kWarps];
  Part<d> parts[kWarps];
};

// row_tiles: how many times 16 rows share a head of k and v. That many neighbouring
// blocks have the same keys, which all but one find in the L2 cache.
template <typename T, int d>
__global__ void __launch_bounds__(kThreads)
    attention_decode_kernel(Operands<T> o, Part<d>* __restrict__ parts, int row_tiles) {
  extern __shared__ __align__(128) unsigned char memory[];
  auto& shared = *reinterpret_cast<Shared<T, d>*>(memory);
  let_next_kernel_begin();
  Line<T, d> line(o, gridDim.x / row_tiles);
  int part = blockIdx.x / row_tiles, row = blockIdx.x % row_tiles * kRows;
  int rows = min(kRows, o.rows() - row);
  if (part >= line.parts) return;
  int64_t at = line.begin(part), end = line.begin(part + 1);
  int batch = line.sequence_of(at);
  for (int64_t first = line.before(batch); at < end; ++batch) {
    int of_head = line.of_head(batch);
    int64_t next = first + int64_t(of_head) * o.heads_kv;
    while (at < min(next, end)) {
      int head_kv = (at - first) / of_head, tile = (at - first) % of_head;
      int count = min(int64_t(of_head - tile), end - at);
      attend(o, shared.rings[threadIdx.x / 32], shared.parts, batch, head_kv, row, tile,
             count);
      __syncthreads();  // every warp has written its part
      for (int i = threadIdx.x; i < rows * d / 4; i += kThreads) {
        int y = i / (d / 4), x = i % (d / 4);
        State state;
        for (const Part<d>& of_warp : shared.parts) state.merge(of_warp, y, x);
        if (count == of_head) {
          o.write(batch, head_kv, row + y, x, state);
        } else {
          Part<d>& to = parts[slot(blockIdx.x, tile > 0)];
          state.out.store(to.out[y], x);
          if (x == 0) to.largest[y] = state.largest, to.sum[y] = state.sum;
        }
      }
      __syncthreads();  // the next head's tiles may overwrite the parts
      at += count;
    }
    first = next;
  }
}

// Blocks as those of the kernel before, for each row: merges the parts of the head that
// such a block began and left unfinished. kMergers threads for each four of d columns.
template <typename T, int d>
__global__ void __launch_bounds__(d / 4 * kMergers)
    merge_parts_kernel(Operands<T> o, const Part<d>* __restrict__ parts,
                       int row_tiles) {
  __shared__ State states[kMergers][d / 4];
  Line<T, d> line(o, gridDim.x / row_tiles);
  wait_for_kernel_before();
  int part = blockIdx.x / row_tiles, row_tile = blockIdx.x % row_tiles;
  int row = row_tile * kRows + blockIdx.y;
  if (part + 1 >= line.parts || row >= o.rows()) return;
  int64_t next = line.begin(part + 1);
  int batch = line.sequence_of(next), of_head = line.of_head(batch);
  int64_t first = line.before(batch);
  int head_kv = (next - first) / of_head;
  first += int64_t(head_kv) * of_head;
  if (first == next || first < line.begin(part)) return;
  int x = threadIdx.x % (d / 4), y = threadIdx.x / (d / 4);
  State state;
  for (int i = part + y; i < line.parts && line.begin(i) < first + of_head;
       i += kMergers)
    state.merge(parts[slot(i * row_tiles + row_tile, i > part)], blockIdx.y, x);
  states[y][x] = state;
  __syncthreads();  // all states are there
  if (y > 0) return;
  for (int i = 1; i < kMergers; ++i) state.merge(states[i][x]);
  o.write(batch, head_kv, row, x, state);
}

// -------------------------------------------------------------------------------------
// Launcher

template <typename T, int d>
void launch(const Operands<T>& o, const Tensor& q) {
  constexpr int bytes = sizeof(Shared<T, d>);
  int row_tiles = ceil_div(o.group * o.queries, kRows);
  int64_t tiles = int64_t(o.batches) * o.heads_kv * ceil_div(o.tokens, kTile<d>);
  int64_t shares = device_attribute(cudaDevAttrMultiProcessorCount) / row_tiles;
  unsigned blocks = grid_of(std::clamp<int64_t>(shares, 1, tiles) * row_tiles);
  Tensor parts = torch::stable::new_empty(
      q, {2 * blocks, int64_t(sizeof(Part<d>) / sizeof(float))}, ScalarType::Float);
  auto* to = reinterpret_cast<Part<d>*>(parts.mutable_data_ptr());
  cudaStream_t stream = current_stream(q);
  allow_shared(attention_decode_kernel<T, d>, bytes);
  attention_decode_kernel<T, d><<<blocks, kThreads, bytes, stream>>>(o, to, row_tiles);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  EarlyLaunch merge(dim3(blocks, std::min(kRows, o.group * o.queries)),
                    d / 4 * kMergers, 0, stream);
  STD_CUDA_CHECK(cudaLaunchKernelEx(&merge.config, merge_parts_kernel<T, d>, o,
                                    static_cast<const Part<d>*>(to), row_tiles));
}

std::tuple<Tensor, Tensor> attention_decode(const Tensor& q, const Tensor& k,
                                            const Tensor& v, bool causal,
                                            std::optional<double> scale,
                                            std::optional<Tensor> lengths) {
  Sizes size = check_attention(q, k, v, true);
  ScalarType dtype = q.scalar_type();
  STD_TORCH_CHECK(dtype == ScalarType::Half || dtype == ScalarType::BFloat16,
                  "q must be float16 or bfloat16, got ", dtype_name(dtype),
                  "; use attention");
  STD_TORCH_CHECK(size.d == 64 || size.d == 96 || size.d == 128,
                  "q must have 64, 96 or 128 columns, got ", size.d, "; use attention");
  STD_TORCH_CHECK(size.tokens <= kQueries, "q must have at most ", kQueries,
                  " tokens, got ", size.tokens, "; use attention");
  if (lengths) {
    check_input(*lengths, "lengths", ScalarType::Int);
    STD_TORCH_CHECK(lengths->dim() == 1 && lengths->size(0) == q.size(0),
                    "lengths must have one element for each sequence of q, got shapes ",
                    shape_of(*lengths), " and ", shape_of(q));
    STD_TORCH_CHECK(lengths->get_device_index() == q.get_device_index(),
                    "lengths and q must be on the same device, got cuda:",
                    lengths->get_device_index(), " and cuda:", q.get_device_index());
  }
  auto start = [&](auto& q, auto& k, auto& v, auto& out, auto& logsumexp,
                   double scale) {
    int major = device_attribute(cudaDevAttrComputeCapabilityMajor);
    STD_TORCH_CHECK(major >= 8,
                    "q must be on a GPU of compute capability 8.0 or newer, got ",
                    major, ".x; use attention");
    auto run = [&](auto* type, auto d) {
      using T = std::remove_pointer_t<decltype(type)>;
      launch<T, d.value>(
          {data<T>(q), data<T>(k), data<T>(v), data<T>(out), data<float>(logsumexp),
           lengths ? data<int>(*lengths) : nullptr, strides(q), strides(k), strides(v),
           strides(out), int(q.size(0)), int(k.size(1)), size.group, size.tokens,
           size.tokens_kv, causal, float(scale * kLog2E)},
          q);
    };
    auto with_d = [&](auto* type) {
      if (size.d == 64) run(type, Constant<64>());
      if (size.d == 96) run(type, Constant<96>());
      if (size.d == 128) run(type, Constant<128>());
    };
    if (dtype == ScalarType::Half) {
      with_d(static_cast<__half*>(nullptr));
    } else {
      with_d(static_cast<__nv_bfloat16*>(nullptr));
    }
  };
  return run_attention(q, k, v, scale, start);
}

// -------------------------------------------------------------------------------------
// Registration: torch.ops.<name given to load>.attention_decode(q, k, v), for CUDA
// tensors

STABLE_TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {
  m.def(
      "attention_decode(Tensor q, Tensor k, Tensor v, bool causal=False, float? "
      "scale=None, Tensor? lengths=None) -> (Tensor, Tensor)");
}

STABLE_TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {
  m.impl("attention_decode", TORCH_BOX(&attention_decode));
}
