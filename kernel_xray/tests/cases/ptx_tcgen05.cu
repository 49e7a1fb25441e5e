// ptx_tcgen05.cu: Blackwell's tensor memory by inline PTX alone: products of one block and of a pair, and the shapes of
// loads and stores. `wrong` plants one mistake. Needs -arch=sm_100a.
#include "case.h"

#if defined(__CUDA_ARCH_FEAT_SM100_ALL) || defined(__SIMT__)
#define UNIT(...) asm volatile(__VA_ARGS__)
#else
#define UNIT(...) __trap()
#endif

// One line each where they are used, so that a report's line says which one it means.
#define ALLOCATE(pair, to, columns)                                                                          \
  UNIT("tcgen05.alloc.cta_group::" pair ".sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(shared_address(to)), \
       "r"(columns) : "memory")
#define FREE(pair, address, columns) \
  UNIT("tcgen05.dealloc.cta_group::" pair ".sync.aligned.b32 %0, %1;" ::"r"(address), "r"(columns) : "memory")
#define RELINQUISH(pair) UNIT("tcgen05.relinquish_alloc_permit.cta_group::" pair ".sync.aligned;" :: : "memory")
#define MULTIPLY(pair, kind, d, a, b, types, add)                                             \
  UNIT("{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\ntcgen05.mma.cta_group::" pair ".kind::" kind \
       " [%0], %1, %2, %3, p;\n}" ::"r"(d),                                                   \
       "l"(a), "l"(b), "r"(types), "r"(add) : "memory")
#define MULTIPLY_FROM(d, a, b, types)                                                                                  \
  UNIT(                                                                                                                \
      "{\n.reg .pred p;\nsetp.ne.b32 p, 0, 0;\ntcgen05.mma.cta_group::1.kind::f16 [%0], [%1], %2, %3, p;\n}" ::"r"(d), \
      "r"(a), "l"(b), "r"(types) : "memory")
#define COMMIT(barrier) \
  UNIT("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(barrier) : "memory")
#define COMMIT_BOTH(barrier)                                                                                       \
  UNIT("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"( \
           barrier),                                                                                               \
       "h"(static_cast<uint16_t>(3)) : "memory")
#define LOAD(shape, r, address, split)                                                                        \
  UNIT("tcgen05.ld.sync.aligned." shape ".b32 {%0, %1, %2, %3}, [%4]" split ";" : "=r"((r)[0]), "=r"((r)[1]), \
       "=r"((r)[2]), "=r"((r)[3]) : "r"(address) : "memory")
#define STORE(shape, address, split, r)                                                                      \
  UNIT("tcgen05.st.sync.aligned." shape ".b32 [%0]" split ", {%1, %2, %3, %4};" ::"r"(address), "r"((r)[0]), \
       "r"((r)[1]), "r"((r)[2]), "r"((r)[3]) : "memory")
#define WAIT(what) UNIT("tcgen05.wait::" what ".sync.aligned;" :: : "memory")
#define BEFORE_SYNC UNIT("tcgen05.fence::before_thread_sync;" :: : "memory")
#define AFTER_SYNC UNIT("tcgen05.fence::after_thread_sync;" :: : "memory")

__device__ void wait_for(uint32_t barrier, int parity) {
  uint32_t done = 0;
  while (!done)
    UNIT("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(
             done) : "r"(barrier),
         "r"(parity) : "memory");
}

// ---------------------------------------------------------------------------------------------------------------------
// Products. memory: what each block's shared memory holds; a, b: descriptors, their addresses counted from there, and what
// one step along k adds to them; out: for each block and lane its columns

enum Wrong {
  kNothing,
  kNotFenced,
  kNotWaited,
  kOverwritten,
  kBeyond,
  kNotFreed,
  kNotCommitted,
  kTwiceUnordered,
  kTwice,
  kOtherLanes,
};

struct Factors {
  uint64_t a, b;
  int a_step, b_step, steps, kind;
  uint32_t types;
};

template <bool pair>
__device__ void multiply(uint32_t d, const Factors& f, uint64_t base, uint32_t done, int wrong) {
  for (int step = 0; step < f.steps; ++step) {
    const uint64_t a = f.a + base + f.a_step * step, b = f.b + base + f.b_step * step;
    if constexpr (pair) {
      MULTIPLY("2", "f16", d, a, b, f.types, step);
    } else {
      if (f.kind == 0) MULTIPLY("1", "f16", d, a, b, f.types, step);  // <- product
      if (f.kind == 1) MULTIPLY("1", "tf32", d, a, b, f.types, step);
      if (f.kind == 2) MULTIPLY("1", "f8f6f4", d, a, b, f.types, step);
      if (f.kind == 3) MULTIPLY("1", "i8", d, a, b, f.types, step);
    }
  }
  if constexpr (pair) {
    COMMIT_BOTH(done);
  } else {
    if (wrong != kNotCommitted) COMMIT(done);
  }
}

template <bool pair>
__device__ void sum(const int4* memory, int pieces, const Factors& f, int columns, uint32_t* out, int wrong) {
  extern __shared__ __align__(1024) char shared[];
  __shared__ uint64_t barrier;
  __shared__ uint32_t place;
  char* base = shared + (1024 - shared_address(shared) % 1024) % 1024;
  const uint64_t first = shared_address(base) >> 4 & 0x3fff;
  const uint32_t done = shared_address(&barrier);
  uint32_t rank = 0;
  if (pair) UNIT("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  for (int i = threadIdx.x; i < pieces; i += blockDim.x) reinterpret_cast<int4*>(base)[i] = memory[pieces * rank + i];
  if (wrong != kNotFenced) UNIT("fence.proxy.async.shared::cta;" :: : "memory");
  if (threadIdx.x == 0)
    UNIT("mbarrier.init.shared::cta.b64 [%0], 1;\nfence.mbarrier_init.release.cluster;" ::"r"(done) : "memory");
  if (threadIdx.x < 32) {
    if constexpr (pair)
      ALLOCATE("2", &place, columns);
    else
      ALLOCATE("1", &place, columns);  // <- allocation
  }
  BEFORE_SYNC;
  __syncthreads();
  if (pair) UNIT("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" :: : "memory");
  AFTER_SYNC;
  const uint32_t d = place;
  if (threadIdx.x == 0 && rank == 0) multiply<pair>(d, f, first, done, wrong);
  if (wrong == kOverwritten) base[threadIdx.x] = 0;  // <- overwrite
  if (wrong != kNotWaited && wrong != kNotCommitted) wait_for(done, 0);
  AFTER_SYNC;
  uint32_t r[4];
  uint32_t lanes = threadIdx.x / 32 * 32 << 16;
  if (wrong == kOtherLanes) lanes = 0;
  for (int c = 0; c < columns; c += 4) {
    LOAD("32x32b.x4", r, d + lanes + c + (wrong == kBeyond ? 32 : 0), "");  // <- load
    WAIT("ld");
    for (int i = 0; i < 4; ++i) out[((rank * 128) + threadIdx.x) * columns + c + i] = r[i];
  }
  BEFORE_SYNC;
  if (wrong != kTwiceUnordered) __syncthreads();
  if (wrong == kTwice || wrong == kTwiceUnordered) {
    if (threadIdx.x == 0) multiply<pair>(d, f, first, done, wrong);
    wait_for(done, 1);
  }
  __syncthreads();
  AFTER_SYNC;
  if (pair) UNIT("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" :: : "memory");
  if (threadIdx.x < 32) {
    if constexpr (pair) {
      RELINQUISH("2");
      FREE("2", d, columns);
    } else {
      RELINQUISH("1");
      if (wrong != kNotFreed) FREE("1", d, columns);
    }
  }
}

__global__ void product_kernel(const int4* memory, int pieces, Factors f, int columns, uint32_t* out, int wrong) {
  sum<false>(memory, pieces, f, columns, out, wrong);
}
__global__ void __cluster_dims__(2, 1, 1)
    pair_kernel(const int4* memory, int pieces, Factors f, int columns, uint32_t* out, int wrong) {
  sum<true>(memory, pieces, f, columns, out, wrong);
}

CASE(product) {  // tensors: memory, out. numbers: of Factors; columns; blocks; the mistake
  const Factors f = {static_cast<uint64_t>(call.number(0)),
                     static_cast<uint64_t>(call.number(1)),
                     call.n(2),
                     call.n(3),
                     call.n(4),
                     call.n(5),
                     static_cast<uint32_t>(call.number(6))};
  const int blocks = call.n(8), bytes = call.size(0) / blocks, shared = bytes + 1024;
  constexpr auto kLimit = cudaFuncAttributeMaxDynamicSharedMemorySize;
  EXPECT_SUCCESS(cudaFuncSetAttribute(blocks == 2 ? pair_kernel : product_kernel, kLimit, shared));
  const auto* memory = call.data<int4>(0);
  auto* out = call.data<uint32_t>(1);
  if (blocks == 2)
    pair_kernel<<<2, 128, shared>>>(memory, bytes / 16, f, call.n(7), out, call.n(9));
  else
    product_kernel<<<1, 128, shared>>>(memory, bytes / 16, f, call.n(7), out, call.n(9));
}

// a, 128 rows of 16 halves, from tensor memory: 8 registers of each thread.
__global__ void from_cells_kernel(const uint32_t* a, const int4* memory, int pieces, Factors f, uint32_t* out) {
  __shared__ __align__(1024) int4 shared[1024];
  __shared__ uint64_t barrier;
  __shared__ uint32_t place;
  const uint32_t done = shared_address(&barrier), lanes = threadIdx.x / 32 * 32 << 16;
  for (int i = threadIdx.x; i < pieces; i += blockDim.x) shared[i] = memory[i];
  UNIT("fence.proxy.async.shared::cta;" :: : "memory");
  if (threadIdx.x == 0) UNIT("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(done) : "memory");
  if (threadIdx.x < 32) ALLOCATE("1", &place, 64);
  __syncthreads();
  const uint32_t d = place, cells = place + 32;
  for (int i = 0; i < 8; i += 4) STORE("32x32b.x4", cells + lanes + i, "", a + 8 * threadIdx.x + i);
  WAIT("st");
  BEFORE_SYNC;
  __syncthreads();
  AFTER_SYNC;
  if (threadIdx.x == 0) {
    MULTIPLY_FROM(d, cells, f.b + (shared_address(shared) >> 4), f.types);
    COMMIT(done);
  }
  wait_for(done, 0);
  AFTER_SYNC;
  for (int c = 0; c < 32; c += 4) LOAD("32x32b.x4", out + 32 * threadIdx.x + c, d + lanes + c, "");
  WAIT("ld");
  BEFORE_SYNC;
  __syncthreads();
  AFTER_SYNC;
  if (threadIdx.x < 32) FREE("1", place, 64);
}
CASE(from_cells) {
  const Factors f = {0, static_cast<uint64_t>(call.number(0)), 0, 0, 1, 0, static_cast<uint32_t>(call.number(1))};
  from_cells_kernel<<<1, 128>>>(call.data<uint32_t>(0), call.data<int4>(1), call.size(1) / 16, f,
                                call.data<uint32_t>(2));
}

// ---------------------------------------------------------------------------------------------------------------------
// A cluster of more blocks than every GPU allows

__global__ void rank_kernel(int* ranks) {
  uint32_t rank = 0, address = 0;
  __shared__ int one;
  UNIT("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  UNIT("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(shared_address(&one)), "r"(rank));
  ranks[blockIdx.x] = address == shared_address(&one) ? static_cast<int>(address >> 24) : -1;
}
CASE(large_cluster) {
  cudaLaunchAttribute size{};
  size.id = cudaLaunchAttributeClusterDimension;
  size.val.clusterDim = {16, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(16);
  config.blockDim = dim3(32);
  config.attrs = &size;
  config.numAttrs = 1;
  EXPECT(cudaLaunchKernelEx(&config, rank_kernel, call.ints(0)) == cudaErrorInvalidClusterSize);
  cudaGetLastError();
  EXPECT_SUCCESS(cudaFuncSetAttribute(rank_kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  EXPECT_SUCCESS(cudaLaunchKernelEx(&config, rank_kernel, call.ints(0)));
}

// ---------------------------------------------------------------------------------------------------------------------
// Shapes. cells: 128 lanes of 16 columns; registers: four of each thread. Cells are loaded as registers, or registers
// stored as cells

__global__ void shapes_kernel(uint32_t* cells, uint32_t* registers, int form, bool loads) {
  __shared__ uint32_t place;
  if (threadIdx.x < 32) ALLOCATE("1", &place, 32);
  __syncthreads();
  const uint32_t at = place + (threadIdx.x / 32 * 32 << 16);
  uint32_t r[4];
  for (int c = 0; c < 16; c += 4) STORE("32x32b.x4", at + c, "", cells + 16 * threadIdx.x + c);
  for (int i = 0; i < 4; ++i) r[i] = registers[4 * threadIdx.x + i];
  if (form == 0 && loads) LOAD("32x32b.x4", r, at, "");
  if (form == 0 && !loads) STORE("32x32b.x4", at, "", r);
  if (form == 1 && loads) LOAD("16x64b.x4", r, at, "");
  if (form == 1 && !loads) STORE("16x64b.x4", at, "", r);
  if (form == 2 && loads) LOAD("16x128b.x2", r, at, "");
  if (form == 2 && !loads) STORE("16x128b.x2", at, "", r);
  if (form == 3 && loads) LOAD("16x256b.x1", r, at, "");
  if (form == 3 && !loads) STORE("16x256b.x1", at, "", r);
  if (form == 4 && loads) LOAD("16x32bx2.x4", r, at, ", 8");
  if (form == 4 && !loads) STORE("16x32bx2.x4", at, ", 8", r);
  if (form == 5 && loads) LOAD("32x32b.x4.pack::16b", r, at, "");
  if (form == 5 && !loads) STORE("32x32b.x4.unpack::16b", at, "", r);
  if (form == 6 && loads) LOAD("16x256b.x1.pack::16b", r, at, "");
  if (form == 6 && !loads) STORE("16x256b.x1.unpack::16b", at, "", r);
  if (loads)
    WAIT("ld");
  else
    WAIT("st");
  for (int i = 0; i < 4; ++i) registers[4 * threadIdx.x + i] = r[i];
  for (int c = 0; c < 16; c += 4) LOAD("32x32b.x4", cells + 16 * threadIdx.x + c, at + c, "");
  WAIT("ld");
  __syncthreads();
  if (threadIdx.x < 32) FREE("1", place, 32);
}
CASE(shapes) { shapes_kernel<<<1, 128>>>(call.data<uint32_t>(0), call.data<uint32_t>(1), call.n(0), call.n(1)); }
