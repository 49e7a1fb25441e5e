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

#include "decode_warp.h"
#include "early_launch.h"

using namespace ladder;

constexpr int kQueries = 16;  // of a sequence, at most
constexpr int kMergers = 4;   // threads that merge the same columns

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
    check_same_device(*lengths, "lengths", q, "q");
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
