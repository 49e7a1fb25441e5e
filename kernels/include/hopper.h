// hopper.h: what compute capability 9.0 adds for matrix products, as functions. The PTX is here, and nowhere else.
//
//   TMA       one thread asks for a whole tile: load_tile. The unit computes the addresses, writes zeros for what lies
//             outside the matrix, and stores each row of 128 bytes "swizzled", so that a column meets all banks
//   mbarrier  a Barrier in shared memory counts arrivals and bytes. It completes a phase when both are there; who waits
//             names the phase by its parity, 0 first, then 1, 0, ...
//   wgmma     a warp group, 4 warps, multiplies two tiles straight from shared memory and adds to registers. It goes on
//             while the threads do: commit closes a group of products, wait waits for groups
//   setmaxnreg  registers move from warps that copy to warps that multiply
//   cluster   blocks that run at the same time, on multiprocessors that lie together: one load can bring a tile to all
//             of them, and each can arrive at the others' barriers
//
// In the simulator hopper_simulated.h takes its place: the same functions, which decode the same descriptors and
// swizzles, so that a wrong one gives a wrong product there too; an X-ray finds missing waits and fences. Built without
// sm_90a, the functions end the kernel with an error.
#pragma once

#ifdef __SIMT__
#include "hopper_simulated.h"
#else

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include <torch/csrc/stable/macros.h>

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define HOPPER_ASM(...) asm volatile(__VA_ARGS__)
#else
#define HOPPER_ASM(...) __trap()
#endif

namespace hopper {

constexpr int kRowBytes = 128;  // of a tile in shared memory: 64 numbers of 2 bytes
using bfloat16 = __nv_bfloat16;

__device__ inline uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

// ---------------------------------------------------------------------------------------------------------------------
// mbarrier

struct Barrier {
  uint64_t word;
};

__device__ inline void init(Barrier& barrier, int arrivals) {
  [[maybe_unused]] uint32_t at = shared_address(&barrier);
  HOPPER_ASM("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(arrivals));
}

// Makes initialised barriers visible to the other threads and to TMA, together with a __syncthreads or a cluster_sync.
__device__ inline void fence_init() { HOPPER_ASM("fence.mbarrier_init.release.cluster;" :: : "memory"); }

__device__ inline void arrive(Barrier& barrier) {
  [[maybe_unused]] uint32_t at = shared_address(&barrier);
  HOPPER_ASM("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
}

// Arrives, and says how many bytes of tiles this phase has to wait for.
__device__ inline void arrive_and_expect(Barrier& barrier, int bytes) {
  [[maybe_unused]] uint32_t at = shared_address(&barrier);
  HOPPER_ASM("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes) : "memory");
}

// Returns once the phase of this parity is complete.
__device__ inline void wait(Barrier& barrier, int parity) {
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

// ---------------------------------------------------------------------------------------------------------------------
// Clusters: of a kernel declared with __cluster_dims__. Each block has a rank, 0 first.

__device__ inline int cluster_rank() {
  uint32_t rank = 0;
  HOPPER_ASM("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// All threads of all blocks wait for each other. What they wrote before, initialised barriers too, is visible after.
__device__ inline void cluster_sync() {
  HOPPER_ASM("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" :: : "memory");
}

// Arrives at the barrier that the block of this rank has where this block has `barrier`. That block must be running. It
// learns from this that something is done, as reading a stage; data written by this thread it might not see: for that
// the arrival would need .release.cluster, which waits for all writes to reach the L2 cache.
__device__ inline void arrive_at(int rank, Barrier& barrier) {
  [[maybe_unused]] uint32_t at = shared_address(&barrier);
  HOPPER_ASM(
      "{\n"
      ".reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
      "}\n" ::"r"(at),
      "r"(rank) : "memory");
}

// ---------------------------------------------------------------------------------------------------------------------
// TMA

using TileMap = CUtensorMap;  // where a matrix is, and in what tiles it is loaded; a __grid_constant__ of a kernel

// data: rows x columns numbers in row-major order, at a multiple of 16 bytes; columns a multiple of 8. Tiles have
// box_rows rows (at most 256) of 64 numbers.
inline TileMap tile_map(const void* data, int64_t rows, int64_t columns, int box_rows) {
  static const auto encode = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found;
    STD_CUDA_CHECK(
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found));
    STD_TORCH_CHECK(found == cudaDriverEntryPointSuccess, "this driver has no cuTensorMapEncodeTiled; update it");
    return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function);
  }();
  TileMap map;
  const cuuint64_t size[] = {cuuint64_t(columns), cuuint64_t(rows)}, pitch[] = {cuuint64_t(columns) * 2};
  const cuuint32_t box[] = {kRowBytes / 2, cuuint32_t(box_rows)}, steps[] = {1, 1};
  CUresult result = encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<void*>(data), size, pitch, box, steps,
                           CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                           CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  STD_TORCH_CHECK(result == CUDA_SUCCESS, "cuTensorMapEncodeTiled refuses a matrix of ", rows, " x ", columns,
                  " with error ", int(result));
  return map;
}

// Fetches what a map says before the first load needs it.
__device__ inline void prefetch(const TileMap& map) { HOPPER_ASM("prefetch.tensormap [%0];" ::"l"(&map) : "memory"); }

// Asks for the tile whose first number is at (row, column); column is a multiple of 8, and both may be negative. Its
// bytes count on the barrier when they are there. Zeros, for what lies outside the matrix, cost what numbers cost.
__device__ inline void load_tile(void* to, const TileMap& map, Barrier& barrier, int row, int column) {
  [[maybe_unused]] uint32_t at = shared_address(to), bar = shared_address(&barrier);
  HOPPER_ASM(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::
          "r"(at),
      "l"(&map), "r"(bar), "r"(column), "r"(row) : "memory");
}

// The same for every block whose rank is a bit of `blocks`: each gets the tile where this block would have it, and its
// bytes on the barrier that is where this block's is.
__device__ inline void load_tile_for(uint16_t blocks, void* to, const TileMap& map, Barrier& barrier, int row,
                                     int column) {
  [[maybe_unused]] uint32_t at = shared_address(to), bar = shared_address(&barrier);
  HOPPER_ASM(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%3, %4}], [%2], %5;" ::"r"(at),
      "l"(&map), "r"(bar), "r"(column), "r"(row), "h"(blocks) : "memory");
}

// Asks for the tile in shared memory to be written to the matrix, less what lies outside on the right and below; it may
// not begin before the matrix (CUDA: an illegal instruction). Those who wrote the tile must have called
// fence_before_store since; the one who asks waits for them first.
__device__ inline void store_tile(const TileMap& map, const void* from, int row, int column) {
  [[maybe_unused]] uint32_t at = shared_address(from);
  HOPPER_ASM("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&map), "r"(at),
             "r"(column), "r"(row) : "memory");
}

__device__ inline void fence_before_store() { HOPPER_ASM("fence.proxy.async.shared::cta;" :: : "memory"); }

// Closes a group of this thread's stores.
__device__ inline void store_commit() { HOPPER_ASM("cp.async.bulk.commit_group;" :: : "memory"); }
// Waits until at most `groups` of this thread have not been read out of shared memory.
template <int groups>
__device__ inline void store_wait() {
  HOPPER_ASM("cp.async.bulk.wait_group.read %0;" ::"n"(groups) : "memory");
}

// Where byte `at` of a tile of such rows lies, counted from a multiple of 1,024 bytes: the pieces of 16 bytes of a row
// change places by the row's number.
__device__ inline uint32_t swizzled(uint32_t at) { return at ^ (at >> 7 & 7) << 4; }

// ---------------------------------------------------------------------------------------------------------------------
// wgmma

// What wgmma needs to know of a swizzled tile of bfloat16 whose rows have 128 bytes and which begins at `p`; tiles begin
// at multiples of 1,024 bytes, where the swizzle's pattern begins anew. 8 rows lie 1,024 bytes after the 8 before them.
// `next_panel`: bytes from 64 columns to the 64 columns after them, where columns are what is not added over.
__device__ inline uint64_t descriptor(const void* p, int next_panel) {
  constexpr uint64_t swizzle_128 = uint64_t(1) << 62, next_8_rows = uint64_t(1024 >> 4) << 32;
  return swizzle_128 | next_8_rows | uint64_t(next_panel >> 4) << 16 | (shared_address(p) & 0x3ffff) >> 4;
}

__device__ inline void wgmma_fence() { HOPPER_ASM("wgmma.fence.sync.aligned;" :: : "memory"); }
__device__ inline void wgmma_commit() { HOPPER_ASM("wgmma.commit_group.sync.aligned;" :: : "memory"); }
template <int groups>  // that may still be under way
__device__ inline void wgmma_wait() {
  HOPPER_ASM("wgmma.wait_group.sync.aligned %0;" ::"n"(groups) : "memory");
}

#define HOPPER_8(i)                                                                                           \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), \
      "+f"(d[i + 7])
#define HOPPER_32(i) HOPPER_8(i), HOPPER_8(i + 8), HOPPER_8(i + 16), HOPPER_8(i + 24)

// d += a * b, or d = a * b with add = 0. a: 64 rows of 16 numbers, each row's beside each other ("K-major"); b: 16 rows of
// 256 numbers ("N-major"). Thread t of the warp group has in d[4 * j + 2 * i + c] the number of row 16 * (t / 32) +
// t % 32 / 4 + 8 * i, column 8 * j + t % 4 * 2 + c.
__device__ inline void wgmma_64x256x16(float (&d)[128], uint64_t a, uint64_t b, int add) {
  HOPPER_ASM(
      "{\n"
      ".reg .pred add;\n"
      "setp.ne.b32 add, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%"
      "30,"
      "%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,"
      "%59,"
      "%60,%61,%62,%63,%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,"
      "%88,"
      "%89,%90,%91,%92,%93,%94,%95,%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%"
      "113,"
      "%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127}, %128, %129, add, 1, 1, 0, 1;\n"
      "}\n" : HOPPER_32(0),
      HOPPER_32(32), HOPPER_32(64), HOPPER_32(96) : "l"(a), "l"(b), "r"(add));
}

// Waits for all groups. d is an operand, so that the compiler moves nothing that reads d to before the wait.
__device__ inline void wgmma_wait_for(float (&d)[128]) {
  HOPPER_ASM("wgmma.wait_group.sync.aligned 0;" : HOPPER_32(0), HOPPER_32(32), HOPPER_32(64), HOPPER_32(96)::"memory");
}

#undef HOPPER_8
#undef HOPPER_32

// ---------------------------------------------------------------------------------------------------------------------
// Registers: of each thread of the warp group, from now on. A multiple of 8.

template <int registers>
__device__ inline void keep_registers() {
  HOPPER_ASM("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}
template <int registers>
__device__ inline void take_registers() {
  HOPPER_ASM("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

}  // namespace hopper
#endif
