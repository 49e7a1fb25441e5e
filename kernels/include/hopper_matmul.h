// hopper_matmul.h: what Hopper's rungs of the matmul ladder share. c = a @ b in
// bfloat16, row-major.
//
// A block has three warp groups. The producer's first thread requests tiles of a and b;
// two consumers multiply them. Between them is a ring of kStages stages in shared
// memory, each with two barriers: `full` completes when the stage's tiles have arrived,
// `empty` when every consumer that reads the stage has finished with it.
#pragma once

#include <algorithm>

#include "hopper.h"
#include "hopper_epilogue.h"
#include "hopper_fp8.h"
#include "narrow.h"

namespace hopper {

// a block's tile of c; elements along k in a stage.
constexpr int kM = 128, kN = 256, kK = 64;
constexpr int kPanel = 64;  // columns of b that are stored together: 128 bytes
constexpr int kPanels = kN / kPanel;
constexpr int kStages = 4;
constexpr int kWarpGroup = 128, kConsumers = 2,
              kThreads = (1 + kConsumers) * kWarpGroup;
static_assert(kM == kConsumers * 64, "each consumer has the 64 rows of a wgmma");
static_assert(kK * sizeof(bfloat16) == kRowBytes,
              "a row of a stage's tile of a is one swizzled row");

// -------------------------------------------------------------------------------------
// The ring

template <int panels, int m = kM>
struct StageOf {
  bfloat16 a[m][kK];               // row-major
  bfloat16 b[panels][kK][kPanel];  // row-major within a panel
};
using Stage = StageOf<kPanels>;
static_assert(sizeof(Stage) % 1024 == 0,
              "stages begin where the swizzle's pattern begins");

template <typename Stage, int count>
struct RingOf {
  Stage stages[count];
  Barrier full[count], empty[count];

  // For one thread, before any other uses the ring. consumers: how many arrive when
  // they have finished with a stage.
  __device__ void init(int consumers) {
    for (int stage = 0; stage < count; ++stage) {
      hopper::init(full[stage], 1);
      hopper::init(empty[stage], consumers);
    }
  }
};
using Ring = RingOf<Stage, kStages>;

// A position in the ring: the stage, and the parity of the phase in which it is used
// (CUTLASS: PipelineState).
template <int count>
struct PipelineStateOf {
  int stage = 0, parity = 0;
  __device__ void advance() {
    if (++stage == count) {
      stage = 0;
      parity ^= 1;
    }
  }
};
using PipelineState = PipelineStateOf<kStages>;

// A kernel's shared memory as a T. Dynamic shared memory may begin below a multiple of
// 1,024 bytes, where the swizzle's pattern begins, so a block gets 1,024 bytes more
// than a T has.
template <typename T>
constexpr int kSharedBytes = sizeof(T) + 1024;

template <typename T>
__device__ inline T& aligned(char* memory) {
  uint32_t past = shared_address(memory) % 1024;
  return *reinterpret_cast<T*>(memory + (past ? 1024 - past : 0));
}

// A tensor of four dimensions, of which the last has its elements side by side, in
// tiles of box_rows neighbours of the third. Strides are multiples of 8.
inline TileMap tile_map_4d(const ladder::Tensor& t, int box_rows) {
  int64_t sizes[4], pitch[3];
  for (int i = 0; i < 4; ++i) sizes[3 - i] = t.size(i);
  for (int i = 0; i < 3; ++i) pitch[2 - i] = t.size(i) > 1 ? t.stride(i) : t.size(3);
  return encode_map<4>(t.const_data_ptr(), sizes, pitch, box_rows);
}

// -------------------------------------------------------------------------------------
// Tile scheduler and warp specialisation

// The order of the tile scheduler: which tile of c has this number, counted in tiles.
// Tiles are numbered in groups of `group` rows, column by column, so that blocks that
// run together share rows of a and columns of b in the L2 cache.
struct TileIndex {
  int row, column;
  __device__ TileIndex(int number, int rows, int columns, int group) {
    int first = number / (group * columns) * group, within = number - first * columns;
    int height = rows - first < group ? rows - first : group;
    row = first + within % height;
    column = within / height;
  }
};

// How many of `count` pieces of `size` rows or columns, from `begin` on, have some
// before `end`: the others need not be loaded.
__device__ inline int pieces_inside(int count, int size, int begin, int end) {
  return end <= begin ? 0 : min(count, (end - begin - 1) / size + 1);
}

// Warp specialisation: runs produce() in the first warp, and consume(0), consume(1) and
// so on in all threads of the other warp groups, 2 or 3. The consumers get the
// registers that the first warp group does not need.
template <int consumers, typename Produce, typename Consume>
__device__ __forceinline__ void specialize_warp_groups(Produce produce,
                                                       Consume consume) {
  static_assert(consumers == 2 || consumers == 3);
  int group = threadIdx.x / kWarpGroup;
  if (group == 0) {
    dealloc_registers<consumers == 2 ? 40 : 32>();
    if (threadIdx.x < 32) produce();
  } else {
    alloc_registers<consumers == 2 ? 232 : 160>();
    consume(group - 1);
  }
}

// The same with two consumers, and a producer of one thread.
template <typename Produce, typename Consume>
__device__ __forceinline__ void specialize_warps(Produce produce, Consume consume) {
  specialize_warp_groups<kConsumers>(
      [&] {
        if (elected()) produce();
      },
      consume);
}

// -------------------------------------------------------------------------------------
// The epilogue

// d: this thread's part of 64 rows of c, which begin at `row`, in the order of
// wgmma_64x256x16: two neighbours of each 8 of 2 * sums columns.
template <int sums, typename Epilogue = Identity>
__device__ inline void write(const float (&d)[sums], bfloat16* c, int row, int column,
                             int m, int n, const Epilogue& epilogue = {}) {
  int t = threadIdx.x % kWarpGroup, pair = column + t % 4 * 2;
  row += t / 32 * 16 + t % 32 / 4;
  column += ladder::first_of_four();
#pragma unroll
  for (int j = 0; j < sums / 4; j += 2) {  // 8 columns each
    auto of_left = epilogue.of_columns(pair + 8 * j),
         of_right = epilogue.of_columns(pair + 8 * j + 8);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float *left = &d[4 * j + 2 * i], *right = left + 4;
      uint2 four =
          ladder::four_neighbours(word_of(epilogue({left[0], left[1]}, of_left)),
                                  word_of(epilogue({right[0], right[1]}, of_right)));
      if (row + 8 * i < m && column + 8 * j < n) {
        *reinterpret_cast<uint2*>(&c[int64_t(row + 8 * i) * n + column + 8 * j]) = four;
      }
    }
  }
}

// The same in float32, for sums of a part of k: to rows of `columns` elements that all
// exist.
template <int sums>
__device__ inline void write_sums(const float (&d)[sums], float* c, int row, int column,
                                  int columns) {
  int t = threadIdx.x % kWarpGroup;
  c += (row + t / 32 * 16 + t % 32 / 4) * columns + column + t % 4 * 2;
#pragma unroll
  for (int j = 0; j < sums / 4; ++j) {  // 8 columns each
    for (int i = 0; i < 2; ++i)
      *reinterpret_cast<float2*>(&c[8 * i * columns + 8 * j]) =
          make_float2(d[4 * j + 2 * i], d[4 * j + 2 * i + 1]);
  }
}

// -------------------------------------------------------------------------------------
// The launcher

inline void check_rows(const void* data, const char* name, int64_t columns) {
  STD_TORCH_CHECK(columns % 8 == 0, name,
                  " must have rows of whole 16 bytes: a multiple of 8 columns, got ",
                  columns, "; pad it, or use matmul_mma");
  STD_TORCH_CHECK(ladder::aligned_to_16(data), name,
                  " must have rows of whole 16 bytes, but begins ",
                  reinterpret_cast<uintptr_t>(data) % 16,
                  " bytes after a multiple of 16; pass ", name,
                  ".clone(), or use matmul_mma");
}

struct Operands {
  TileMap a, b;
  bfloat16* c;
  ladder::MatmulSizes size;
};

// How many clusters of a kernel run at once, at least 1.
template <typename Kernel>
int resident_clusters(Kernel* kernel, int blocks, int threads, int shared_bytes) {
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = blocks;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {dim3(blocks), dim3(threads), size_t(shared_bytes),
                               nullptr,      &cluster,      1};
  int count = 0;
  STD_CUDA_CHECK(cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes));
  STD_CUDA_CHECK(cudaOccupancyMaxActiveClusters(&count, kernel, &config));
  return std::max(1, count);
}

// Checks a and b, makes c, and calls launch(Operands, SMs of the GPU, stream). tile_m:
// rows of c that a block or a cluster computes at a time. box_a, box_b: rows of a and
// of b in one request. kernel gets kSharedBytes<Shared> bytes of shared memory, more
// than the 48 KB it has by default. e4m3: two neighbours along k are one element of 16
// bits for the maps and for launch, and b lies column by column.
template <typename Shared, bool e4m3 = false, typename Kernel, typename Launch>
ladder::Tensor matmul(const ladder::Tensor& a, const ladder::Tensor& b, int tile_m,
                      Kernel kernel, Launch launch, int box_a = kM, int box_b = kK) {
  static_assert(kSharedBytes<Shared> <= 227 * 1024,
                "a block has at most 227 KB of shared memory");
  auto run = [&](const void* a, const void* b, void* c, ladder::MatmulSizes size,
                 cudaStream_t stream) {
    ladder::tiles_in_grid(size, tile_m, kN, kK);  // the kernels count with int
    STD_CUDA_CHECK(cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes<Shared>));
    Operands operands = {
        tile_map(a, size.m, size.k, box_a),
        e4m3 ? tile_map(b, size.n, size.k, box_b) : tile_map(b, size.k, size.n, box_b),
        reinterpret_cast<bfloat16*>(c), size};
    launch(operands, ladder::device_attribute(cudaDevAttrMultiProcessorCount), stream);
  };
  if constexpr (e4m3) {
    return matmul_fp8(a, b, run);
  } else {
    auto checked = [&](auto a, auto b, auto* c, ladder::MatmulSizes size,
                       cudaStream_t stream) {
      check_rows(a.data, "a", size.k);
      check_rows(b.data, "b", size.n);
      run(a.data, b.data, c, size, stream);
    };
    return ladder::matmul<ladder::BFloat16>(a, b, ladder::Layout::row_major, checked);
  }
}

// Whose turn it is to begin products: a named barrier for each consumer, at which it
// waits and the one before it arrives. Barrier 0 is that of __syncthreads().
template <int consumers>
struct PingPong {
  int consumer;
  __device__ void wait() const {
    HOPPER_ASM("bar.sync %0, %1;" ::"r"(1 + consumer), "n"(2 * kWarpGroup) : "memory");
  }
  __device__ void pass_on() const {
    HOPPER_ASM("bar.arrive %0, %1;" ::"r"(1 + (consumer + 1) % consumers),
               "n"(2 * kWarpGroup) : "memory");
  }
};

}  // namespace hopper
