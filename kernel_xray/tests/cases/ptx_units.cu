// ptx_units.cu: Hopper's units by inline PTX alone: tiles of tensor maps, and wgmma. Needs -arch=sm_90a.
#include <cuda.h>
#include <cudaTypedefs.h>

#include "case.h"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL) || defined(__SIMT__)
#define UNIT(...) asm volatile(__VA_ARGS__)
#else
#define UNIT(...) __trap()
#endif

// ---------------------------------------------------------------------------------------------------------------------
// Tiles. numbers: dimensions, type, swizzle, interleave, sizes and strides (in bytes, of dimensions 1 to 4), box, element
// strides, where a tile is loaded from, and where it is stored; five each, 1 or 0 beyond the dimensions

struct Places {
  int from[5], to[5];
};

CUresult encode(const Call& call, void* data, CUtensorMap* map) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found))
    throw std::runtime_error("cudaGetDriverEntryPointByVersion fails");
  cuuint64_t sizes[5], strides[4];
  cuuint32_t box[5], steps[5];
  for (size_t d = 0; d < 5; ++d) {
    sizes[d] = static_cast<cuuint64_t>(call.number(4 + d));
    if (d) strides[d - 1] = static_cast<cuuint64_t>(call.number(9 + d));
    box[d] = static_cast<cuuint32_t>(call.number(14 + d));
    steps[d] = static_cast<cuuint32_t>(call.number(19 + d));
  }
  return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function)(
      map, static_cast<CUtensorMapDataType>(call.number(1)), static_cast<cuuint32_t>(call.number(0)), data, sizes,
      strides, box, steps, static_cast<CUtensorMapInterleave>(call.number(3)),
      static_cast<CUtensorMapSwizzle>(call.number(2)), CU_TENSOR_MAP_L2_PROMOTION_NONE,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}
CASE(encode) {
  alignas(64) CUtensorMap map;
  call.data<int>(1)[0] = encode(call, call.data<char>(0) + call.number(24), &map);
}

CASE(no_such_function) {
  void* function = &function;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSuccess;
  cudaGetDriverEntryPointByVersion("cuNoSuchFunction", &function, 12000, cudaEnableDefault, &found);
  call.data<int>(0)[0] = found == cudaDriverEntryPointSymbolNotFound && !function;
}

#define LOAD(rank, coordinates)                                                                                     \
  UNIT("cp.async.bulk.tensor." rank                                                                                 \
       "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {" coordinates "}], [%2];" ::"r"(at), \
       "l"(&map), "r"(full), "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(from[3]), "r"(from[4]) : "memory")
#define STORE(rank, coordinates)                                                                                  \
  UNIT("cp.async.bulk.tensor." rank "d.global.shared::cta.bulk_group [%0, {" coordinates "}], [%1];" ::"l"(&out), \
       "r"(at), "r"(to[0]), "r"(to[1]), "r"(to[2]), "r"(to[3]), "r"(to[4]) : "memory")

__global__ void tile_kernel(const __grid_constant__ CUtensorMap map, const __grid_constant__ CUtensorMap out, char* raw,
                            int bytes, int dimensions, Places places) {
  extern __shared__ __align__(1024) char memory[];
  __shared__ uint64_t barrier;
  const int *from = places.from, *to = places.to;
  char* tile = memory + (1024 - shared_address(memory) % 1024) % 1024;
  [[maybe_unused]] const uint32_t at = shared_address(tile), full = shared_address(&barrier);
  if (threadIdx.x == 0) {
    UNIT("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
    UNIT("mbarrier.init.shared::cta.b64 [%0], 1;\nfence.mbarrier_init.release.cluster;" ::"r"(full) : "memory");
    UNIT("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(full), "r"(bytes) : "memory");
    if (dimensions == 1) LOAD("1", "%3");
    if (dimensions == 2) LOAD("2", "%3, %4");
    if (dimensions == 3) LOAD("3", "%3, %4, %5");
    if (dimensions == 4) LOAD("4", "%3, %4, %5, %6");
    if (dimensions == 5) LOAD("5", "%3, %4, %5, %6, %7");
  }
  __syncthreads();
  uint32_t done = 0;
  while (!done)
    UNIT("{\n.reg .pred p;\nmbarrier.test_wait.parity.shared::cta.b64 p, [%1], 0;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(
        done) : "r"(full) : "memory");
  for (int i = threadIdx.x; i < bytes; i += blockDim.x) raw[i] = tile[i];
  if (threadIdx.x == 0) {
    if (dimensions == 1) STORE("1", "%2");
    if (dimensions == 2) STORE("2", "%2, %3");
    if (dimensions == 3) STORE("3", "%2, %3, %4");
    if (dimensions == 4) STORE("4", "%2, %3, %4, %5");
    if (dimensions == 5) STORE("5", "%2, %3, %4, %5, %6");
    UNIT("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" :: : "memory");
  }
}
// tensors: the tensor, the bytes of the tile in shared memory, another tensor
CASE(tile) {
  alignas(64) CUtensorMap map, out;
  if (encode(call, call.data<char>(0), &map) || encode(call, call.data<char>(2), &out))
    throw std::runtime_error("the tensor map is refused");
  Places places;
  for (size_t d = 0; d < 5; ++d) {
    places.from[d] = static_cast<int>(call.number(24 + d));
    places.to[d] = static_cast<int>(call.number(29 + d));
  }
  tile_kernel<<<1, 64, call.size(1) + 1024>>>(map, out, call.data<char>(1), call.size(1),
                                              static_cast<int>(call.number(34)), places);
}

// Two blocks reduce a row of 4 numbers, block b's being b + 1, into a tensor: as a tile, or as plain memory.
__global__ void reduce_kernel(const __grid_constant__ CUtensorMap map, uint32_t* data, int how) {
  __shared__ alignas(128) uint32_t row[4];
  if (threadIdx.x < 4) row[threadIdx.x] = blockIdx.x + 1;
  UNIT("fence.proxy.async.shared::cta;" :: : "memory");
  __syncthreads();
  if (threadIdx.x > 0) return;
  [[maybe_unused]] const uint32_t at = shared_address(row);
  if (how == 0)
    UNIT("cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group [%0, {%1}], [%2];" ::"l"(&map), "r"(4),
         "r"(at) : "memory");
  if (how == 1)
    UNIT("cp.reduce.async.bulk.tensor.1d.global.shared::cta.max.bulk_group [%0, {%1}], [%2];" ::"l"(&map), "r"(0),
         "r"(at) : "memory");
  if (how == 2)
    UNIT("cp.reduce.async.bulk.global.shared::cta.bulk_group.or.b32 [%0], [%1], 16;" ::"l"(data), "r"(at) : "memory");
  UNIT("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" :: : "memory");
}
CASE(reduce) {
  alignas(64) CUtensorMap map;
  if (encode(call, call.data<char>(0), &map)) throw std::runtime_error("the tensor map is refused");
  reduce_kernel<<<2, 32>>>(map, call.data<uint32_t>(0), static_cast<int>(call.number(34)));
}

// data: bytes that TMA takes for a tensor map
__global__ void misplaced_map_kernel(const char* map) {
  UNIT("cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%0, {%1}], [%1];" ::"l"(map), "r"(0) : "memory");
}
CASE(misplaced_map) { misplaced_map_kernel<<<1, 1>>>(call.data<char>(0) + call.number(0)); }

// ---------------------------------------------------------------------------------------------------------------------
// wgmma. memory: what shared memory holds; a, b: descriptors, their addresses counted from there; left: of each thread
// four registers with elements of a; d: the registers of each thread's sums

#define SUMS_2 "+r"(d[0]), "+r"(d[1])
#define SUMS_4 SUMS_2, "+r"(d[2]), "+r"(d[3])
#define SUMS_8 SUMS_4, "+r"(d[4]), "+r"(d[5]), "+r"(d[6]), "+r"(d[7])
#define HALVES(types, rest)                                                                \
  UNIT("{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\nwgmma.mma_async.sync.aligned.m64n8" types \
       "{%0, %1}, %2, %3, p" rest ";\n}" : SUMS_2 : "l"(a), "l"(b), "r"(add))
#define SHARED(types, rest)                                                                \
  UNIT("{\n.reg .pred p;\nsetp.ne.b32 p, %6, 0;\nwgmma.mma_async.sync.aligned.m64n8" types \
       "{%0, %1, %2, %3}, %4, %5, p" rest ";\n}" : SUMS_4 : "l"(a), "l"(b), "r"(add))
#define REGISTERS(types, rest)                                                                             \
  UNIT("{\n.reg .pred p;\nsetp.ne.b32 p, %13, 0;\nwgmma.mma_async.sync.aligned.m64n16" types               \
       "{%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9, %10, %11}, %12, p" rest ";\n}" : SUMS_8 : "r"(left[0]), \
       "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(b), "r"(add))

template <int sums>
__device__ void multiply(uint32_t (&d)[sums], uint64_t a, uint64_t b, const uint32_t* left, int add, int form) {
  if constexpr (sums == 4) {
    if (form == 0) SHARED("k16.f32.f16.f16", ", 1, 1, 0, 0");
    if (form == 1) SHARED("k16.f32.bf16.bf16", ", 1, 1, 1, 0");
    if (form == 2) SHARED("k16.f32.f16.f16", ", 1, 1, 0, 1");
    if (form == 3) SHARED("k16.f32.bf16.bf16", ", -1, 1, 1, 1");
    if (form == 4) SHARED("k32.f32.e4m3.e4m3", ", 1, 1");
    if (form == 5) SHARED("k32.f32.e5m2.e4m3", ", 1, -1");
    if (form == 6) SHARED("k8.f32.tf32.tf32", ", -1, 1");
    if (form == 7) SHARED("k32.s32.s8.u8", "");
    if (form == 8) HALVES("k16.f16.f16.f16", ", 1, -1, 1, 0");
    if (form == 9) HALVES("k32.f16.e4m3.e5m2", ", 1, 1");
  } else {
    if (form == 10) REGISTERS("k16.f32.f16.f16", ", 1, 1, 0");
    if (form == 11) REGISTERS("k16.f32.bf16.bf16", ", 1, -1, 1");
    if (form == 12) REGISTERS("k32.f32.e4m3.e5m2", ", -1, -1");
    if (form == 13) REGISTERS("k8.f32.tf32.tf32", ", 1, 1");
    if (form == 14) REGISTERS("k32.s32.u8.s8", "");
  }
}

template <int sums>
__global__ void wgmma_kernel(const int4* memory, int pieces, uint64_t a, uint64_t b, const uint32_t* left,
                             uint32_t* out, int add, int form) {
  extern __shared__ __align__(1024) char shared[];
  char* base = shared + (1024 - shared_address(shared) % 1024) % 1024;
  for (int i = threadIdx.x; i < pieces; i += blockDim.x) reinterpret_cast<int4*>(base)[i] = memory[i];
  UNIT("fence.proxy.async.shared::cta;" :: : "memory");
  __syncthreads();
  uint32_t d[sums];
  for (int i = 0; i < sums; ++i) d[i] = out[threadIdx.x * sums + i];
  const uint64_t first = shared_address(base) >> 4;
  UNIT("wgmma.fence.sync.aligned;" :: : "memory");
  multiply(d, a + first, b + first, left + 4 * threadIdx.x, add, form);
  UNIT("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" :: : "memory");
  for (int i = 0; i < sums; ++i) out[threadIdx.x * sums + i] = d[i];
}
CASE(wgmma) {
  auto kernel = call.number(3) < 10 ? wgmma_kernel<4> : wgmma_kernel<8>;
  const int bytes = call.size(0);
  kernel<<<1, 128, bytes + 1024>>>(call.data<int4>(0), bytes / 16, static_cast<uint64_t>(call.number(0)),
                                   static_cast<uint64_t>(call.number(1)), call.data<uint32_t>(1), call.data<uint32_t>(2),
                                   static_cast<int>(call.number(2)), static_cast<int>(call.number(3)));
}
