// hopper.h: what compute capability 9.0 adds for matrix products, as functions. All PTX
// for it is in this file.
//
//   TMA         one thread requests a whole tile: load_tile. The unit computes the
//               addresses, writes zeros outside the matrix, and stores each row of 128
//               bytes "swizzled", so that a column is spread over all banks
//   mbarrier    a Barrier in shared memory counts arrivals and bytes, and completes a
//               phase when all have arrived. A waiting thread names the phase by its
//               parity: 0 first, then 1, 0, ...
//   wgmma       a warp group, 4 warps, multiplies two tiles straight from shared memory
//               and adds to registers. It runs while the threads go on: commit closes a
//               group of products, wait waits for groups
//   setmaxnreg  moves registers from warps that copy to warps that multiply
//   cluster     blocks that run at the same time, on SMs of the same part of the GPU:
//               one load can deliver a tile to all of them, and each can arrive at the
//               others' barriers
//
// In the simulator a tile is there when load_tile returns, a product when
// wgmma_64x256x16 does; an X-ray finds missing waits and fences, but not a missing
// wgmma_fence. Compiled for a GPU without sm_90a, the functions end the kernel.
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include <torch/csrc/stable/macros.h>
#include <torch/headeronly/util/Exception.h>

#if defined(__CUDA_ARCH_FEAT_SM90_ALL) || defined(__SIMT__)
#define HOPPER_ASM(...) asm volatile(__VA_ARGS__)
#else
#define HOPPER_ASM(...) __trap()
#endif

namespace hopper {

constexpr int kRowBytes = 128;  // of a tile in shared memory: 64 elements of 2 bytes
using bfloat16 = __nv_bfloat16;

__device__ __forceinline__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// -------------------------------------------------------------------------------------
// mbarrier

struct Barrier {
  uint64_t word;
};

__device__ __forceinline__ void init(Barrier& barrier, int arrivals) {
  [[maybe_unused]] uint32_t at = shared_address(&barrier);
  HOPPER_ASM("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(arrivals));
}

// Makes initialised barriers visible to the other threads and to TMA, together with a
// __syncthreads or a cluster_sync.
__device__ __forceinline__ void fence_init() {
  HOPPER_ASM("fence.mbarrier_init.release.cluster;" :: : "memory");
}

__device__ __forceinline__ void arrive(Barrier& barrier) {
  [[maybe_unused]] uint32_t at = shared_address(&barrier);
  HOPPER_ASM("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
}

// Arrives, and tells the barrier how many bytes of tiles to expect in this phase.
__device__ __forceinline__ void arrive_and_expect(Barrier& barrier, int bytes) {
  [[maybe_unused]] uint32_t at = shared_address(&barrier);
  HOPPER_ASM("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at),
             "r"(bytes) : "memory");
}

// Returns once the phase of this parity is complete.
__device__ __forceinline__ void wait(Barrier& barrier, int parity) {
  [[maybe_unused]] uint32_t at = shared_address(&barrier);
  HOPPER_ASM(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n"
      "}\n" ::"r"(at),
      "r"(parity) : "memory");
}

// Whether wait would return at once. For logs, not for loops: in the simulator no other
// thread runs meanwhile, and what others wrote before they arrived is visible after a
// wait alone.
__device__ __forceinline__ bool test(const Barrier& barrier, int parity) {
  [[maybe_unused]] uint32_t at = shared_address(&barrier);
  uint32_t done = 0;
  HOPPER_ASM(
      "{\n"
      ".reg .pred done;\n"
      "mbarrier.test_wait.parity.shared::cta.b64 done, [%1], %2;\n"
      "selp.u32 %0, 1, 0, done;\n"
      "}\n" : "=r"(done) : "r"(at),
      "r"(parity) : "memory");
  return done;
}

// -------------------------------------------------------------------------------------
// Clusters, for kernels declared with __cluster_dims__. The blocks of a cluster have
// ranks 0, 1, ...

__device__ __forceinline__ int cluster_rank() {
  uint32_t rank = 0;
  HOPPER_ASM("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// All threads of all blocks wait for each other. Earlier writes, of initialised
// barriers too, are visible afterwards.
__device__ __forceinline__ void cluster_sync() {
  HOPPER_ASM(
      "barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" :: : "memory");
}

// Arrives at the barrier that the block of this rank has at the address of `barrier` in
// this block. That block must be running. The arrival tells it that this thread has
// done something, such as reading a stage. It does not make this thread's writes
// visible there: for that it would need .release.cluster, which waits until all writes
// reach the L2 cache.
__device__ __forceinline__ void arrive_at(int rank, Barrier& barrier) {
  [[maybe_unused]] uint32_t at = shared_address(&barrier);
  HOPPER_ASM(
      "{\n"
      ".reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
      "}\n" ::"r"(at),
      "r"(rank) : "memory");
}

// -------------------------------------------------------------------------------------
// TMA

// Where matrices are, and their tiles' shape; passed to a kernel as a
// __grid_constant__.
using TileMap = CUtensorMap;

// data: elements of `dimensions` dimensions, sizes[0] of them side by side at a
// multiple of 16 bytes. pitch: how many elements lie between two neighbours of
// dimensions 1, 2, ...: multiples of 8. Tiles have box_rows neighbours of dimension 1
// (at most 256), of 64 elements each.
template <int dimensions>
TileMap encode_map(const void* data, const int64_t (&sizes)[dimensions],
                   const int64_t (&pitch)[dimensions - 1], int box_rows) {
  static const auto encode = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found;
    STD_CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function,
                                                    12000, cudaEnableDefault, &found));
    STD_TORCH_CHECK(found == cudaDriverEntryPointSuccess,
                    "this driver has no cuTensorMapEncodeTiled; update it");
    return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function);
  }();
  TileMap map;
  cuuint64_t size[dimensions], bytes[dimensions - 1];
  cuuint32_t box[dimensions], steps[dimensions];
  for (int i = 0; i < dimensions; ++i) {
    size[i] = sizes[i];
    if (i > 0) bytes[i - 1] = pitch[i - 1] * 2;
    box[i] = i == 0 ? kRowBytes / 2 : i == 1 ? box_rows : 1;
    steps[i] = 1;
  }
  // The L2 cache reads ahead to 256 bytes where rows begin at whole lines; elsewhere
  // most of that would be for nothing.
  bool lines = true;
  for (cuuint64_t pitch : bytes) lines &= pitch % 128 == 0;
  CUresult result = encode(
      &map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, dimensions, const_cast<void*>(data), size,
      bytes, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
      lines ? CU_TENSOR_MAP_L2_PROMOTION_L2_256B : CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  STD_TORCH_CHECK(result == CUDA_SUCCESS, "cuTensorMapEncodeTiled refuses a matrix of ",
                  sizes[1], " x ", sizes[0], " with error ", int(result));
  return map;
}

// One matrix of rows x columns elements, or several, one after the other in row-major
// order.
inline TileMap tile_map(const void* data, int64_t rows, int64_t columns, int box_rows) {
  return encode_map<2>(data, {columns, rows}, {columns}, box_rows);
}
inline TileMap tile_map_3d(const void* data, int64_t matrices, int64_t rows,
                           int64_t columns, int box_rows) {
  return encode_map<3>(data, {columns, rows, matrices}, {columns, columns * rows},
                       box_rows);
}

// Fetches a map before the first load needs it.
__device__ __forceinline__ void prefetch(const TileMap& map) {
  HOPPER_ASM("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// Requests the tile whose first element is at (row, column); column is a multiple of 8,
// and both may be negative. Its bytes count on the barrier when they arrive. Zeros
// outside the matrix take as long as elements.
__device__ __forceinline__ void load_tile(void* to, const TileMap& map,
                                          Barrier& barrier, int row, int column) {
  [[maybe_unused]] uint32_t at = shared_address(to), bar = shared_address(&barrier);
  HOPPER_ASM(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::"
      "bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(at),
      "l"(&map), "r"(bar), "r"(column), "r"(row) : "memory");
}

// The same from one of the matrices of a tile_map_3d: rows beyond its end are zeros,
// not rows of the next matrix.
__device__ __forceinline__ void load_tile(void* to, const TileMap& map,
                                          Barrier& barrier, int matrix, int row,
                                          int column) {
  [[maybe_unused]] uint32_t at = shared_address(to), bar = shared_address(&barrier);
  HOPPER_ASM(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::"
      "bytes [%0], [%1, {%3, %4, %5}], "
      "[%2];" ::"r"(at),
      "l"(&map), "r"(bar), "r"(column), "r"(row), "r"(matrix) : "memory");
}

// The same from a matrix of a map of four dimensions.
__device__ __forceinline__ void load_tile(void* to, const TileMap& map,
                                          Barrier& barrier, int batch, int matrix,
                                          int row, int column) {
  [[maybe_unused]] uint32_t at = shared_address(to), bar = shared_address(&barrier);
  HOPPER_ASM(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::"
      "bytes [%0], [%1, {%3, %4, %5, %6}], "
      "[%2];" ::"r"(at),
      "l"(&map), "r"(bar), "r"(column), "r"(row), "r"(matrix), "r"(batch) : "memory");
}

// `rows` rows of it from `row` on, in panels of 64 columns.
template <int panels, int rows>
__device__ __forceinline__ void load_panels(bfloat16 (&to)[panels][rows][64],
                                            const TileMap& map, Barrier& barrier,
                                            int batch, int matrix, int row) {
  for (int p = 0; p < panels; ++p)
    load_tile(to[p], map, barrier, batch, matrix, row, 64 * p);
}

// load_tile for every block whose rank is a set bit of `blocks`: each receives the tile
// at the address that it would have in this block, and its bytes count on that block's
// own barrier.
__device__ __forceinline__ void load_tile_for(uint16_t blocks, void* to,
                                              const TileMap& map, Barrier& barrier,
                                              int row, int column) {
  [[maybe_unused]] uint32_t at = shared_address(to), bar = shared_address(&barrier);
  HOPPER_ASM(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::"
      "bytes.multicast::cluster "
      "[%0], [%1, {%3, %4}], [%2], %5;" ::"r"(at),
      "l"(&map), "r"(bar), "r"(column), "r"(row), "h"(blocks) : "memory");
}

// Requests the store of a tile in shared memory to the matrix. The parts to the right
// of the matrix and below it are not stored; the tile must not begin above or left of
// it (CUDA: an illegal instruction). Every thread that wrote to the tile must have
// called fence_before_store since, and the requesting thread must have waited for them.
__device__ __forceinline__ void store_tile(const TileMap& map, const void* from,
                                           int row, int column) {
  [[maybe_unused]] uint32_t at = shared_address(from);
  HOPPER_ASM(
      "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], "
      "[%1];" ::"l"(&map),
      "r"(at), "r"(column), "r"(row) : "memory");
}

// Makes this thread's writes to shared memory visible to TMA.
__device__ __forceinline__ void fence_before_store() {
  HOPPER_ASM("fence.proxy.async.shared::cta;" :: : "memory");
}

// Closes a group of this thread's stores.
__device__ __forceinline__ void store_commit() {
  HOPPER_ASM("cp.async.bulk.commit_group;" :: : "memory");
}
// Waits until TMA has read all but the latest `groups` groups of this thread's stores
// out of shared memory.
template <int groups>
__device__ __forceinline__ void store_wait() {
  HOPPER_ASM("cp.async.bulk.wait_group.read %0;" ::"n"(groups) : "memory");
}

// Where byte `at` of a tile is stored, counted from a multiple of 1,024 bytes: the
// 16-byte pieces of a row change places depending on the row.
__device__ inline uint32_t swizzled(uint32_t at) { return at ^ (at >> 7 & 7) << 4; }

// -------------------------------------------------------------------------------------
// wgmma

// Describes to wgmma a swizzled tile of bfloat16 that begins at `p` and has rows of 128
// bytes. Tiles begin at multiples of 1,024 bytes, where the swizzle's pattern begins
// anew; each 8 rows begin 1,024 bytes after the 8 rows before. next_panel: bytes from
// 64 columns to the next 64, for a tile whose columns are not the dimension of the sum.
__device__ inline uint64_t descriptor(const void* p, int next_panel) {
  constexpr uint64_t swizzle_128 = uint64_t(1) << 62, next_8_rows = uint64_t(1024 >> 4)
                                                                    << 32;
  return swizzle_128 | next_8_rows | uint64_t(next_panel >> 4) << 16 |
         (shared_address(p) & 0x3ffff) >> 4;
}

__device__ __forceinline__ void wgmma_fence() {
  HOPPER_ASM("wgmma.fence.sync.aligned;" :: : "memory");
}
__device__ __forceinline__ void wgmma_commit() {
  HOPPER_ASM("wgmma.commit_group.sync.aligned;" :: : "memory");
}
template <int groups>  // how many may still be running
__device__ __forceinline__ void wgmma_wait() {
  HOPPER_ASM("wgmma.wait_group.sync.aligned %0;" ::"n"(groups) : "memory");
}

#define HOPPER_8(i)                                                           \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), \
      "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define HOPPER_32(i) HOPPER_8(i), HOPPER_8(i + 8), HOPPER_8(i + 16), HOPPER_8(i + 24)

// d += a * b, or d = a * b with add = 0. a: 64 rows of 16 elements, row by row
// ("K-major"); b: 16 rows of 256 elements ("N-major"). In thread t of the warp group,
// d[4 * j + 2 * i + c] is the element in column 8 * j + t % 4 * 2 + c and row 16 * (t /
// 32) + t % 32 / 4 + 8 * i.
__device__ __forceinline__ void wgmma_64x256x16(float (&d)[128], uint64_t a, uint64_t b,
                                                int add) {
  HOPPER_ASM(
      "{\n"
      ".reg .pred add;\n"
      "setp.ne.b32 add, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%"
      "22,%23,%24,%25,%26,%27,%28,%29,%"
      "30,"
      "%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,"
      "%51,%52,%53,%54,%55,%56,%57,%58,"
      "%59,"
      "%60,%61,%62,%63,%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,"
      "%80,%81,%82,%83,%84,%85,%86,%87,"
      "%88,"
      "%89,%90,%91,%92,%93,%94,%95,%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%"
      "107,%108,%109,%110,%111,%112,%"
      "113,"
      "%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127}, %128, "
      "%129, add, 1, 1, 0, 1;\n"
      "}\n" : HOPPER_32(0),
      HOPPER_32(32), HOPPER_32(64), HOPPER_32(96) : "l"(a), "l"(b), "r"(add));
}

// wgmma_wait for all groups. d is an operand, so that the compiler moves no read of d
// before the wait.
__device__ __forceinline__ void wgmma_wait_for(float (&d)[128]) {
  HOPPER_ASM("wgmma.wait_group.sync.aligned 0;" : HOPPER_32(0), HOPPER_32(32),
             HOPPER_32(64), HOPPER_32(96)::"memory");
}

#undef HOPPER_8
#undef HOPPER_32

// -------------------------------------------------------------------------------------
// Registers of each thread of the warp group, from here on: a multiple of 8.

template <int registers>
__device__ __forceinline__ void dealloc_registers() {
  HOPPER_ASM("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}
template <int registers>
__device__ __forceinline__ void alloc_registers() {
  HOPPER_ASM("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

// True for one lane of a warp that calls it as a whole, and always the same. What one
// thread does alone, such as requests to TMA, belongs behind it: their operands are the
// same for a warp, and behind a comparison of threadIdx.x nvcc puts each into a loop
// over lanes that may differ, of 100 cycles and more.
__device__ __forceinline__ bool elected() {
  uint32_t one = 0;
  HOPPER_ASM(
      "{\n"
      ".reg .pred one;\n"
      "elect.sync _|one, 0xffffffff;\n"
      "selp.u32 %0, 1, 0, one;\n"
      "}\n" : "=r"(one));
  return one;
}

// A warp. Stores four matrices of 8 x 8 elements of 16 bits, as wgmma and mma.sync
// leave them: thread t has two neighbours of row t / 4 of each. It names the 16 bytes
// where column t % 8 of matrix t / 8 goes.
__device__ __forceinline__ void store_columns(void* to, const uint32_t (&from)[4]) {
  [[maybe_unused]] uint32_t at = shared_address(to);
  HOPPER_ASM(
      "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
          at),
      "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(from[3]) : "memory");
}

// -------------------------------------------------------------------------------------
// TMA from maps of five dimensions: sequences.h says what for.

// load_tile, and load_panels, from a matrix in place (outer, batch, matrix) of a map.
__device__ __forceinline__ void load_tile(void* to, const TileMap& map,
                                          Barrier& barrier, int outer, int batch,
                                          int matrix, int row, int column) {
  [[maybe_unused]] uint32_t at = shared_address(to), bar = shared_address(&barrier);
  HOPPER_ASM(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::"
      "bytes [%0], [%1, {%3, %4, %5, %6, %7}], "
      "[%2];" ::"r"(at),
      "l"(&map), "r"(bar), "r"(column), "r"(row), "r"(matrix), "r"(batch),
      "r"(outer) : "memory");
}

template <int panels, int rows>
__device__ __forceinline__ void load_panels(bfloat16 (&to)[panels][rows][64],
                                            const TileMap& map, Barrier& barrier,
                                            int outer, int batch, int matrix, int row) {
  for (int p = 0; p < panels; ++p)
    load_tile(to[p], map, barrier, outer, batch, matrix, row, 64 * p);
}

}  // namespace hopper
