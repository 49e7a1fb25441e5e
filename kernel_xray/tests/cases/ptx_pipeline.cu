// ptx_pipeline.cu: a product by every asynchronous unit of Hopper, in inline PTX alone: a producer warp copies tiles into a
// ring of two stages, a warp group multiplies them, and the sums leave by a bulk store. `wrong` plants one mistake.
// Needs -arch=sm_90a.
#include "case.h"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL) || defined(__SIMT__)
#define UNIT(...) asm volatile(__VA_ARGS__)
#else
#define UNIT(...) __trap()
#endif

// One line each where they are used, so that a report's line says which one it means.
#define COPY(to, from, barrier)                                                                         \
  UNIT("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"( \
           shared_address(to)),                                                                         \
       "l"(from), "r"(kTileBytes), "r"(barrier) : "memory")
#define COPY_TO_BOTH(to, from, barrier)                                                                             \
  UNIT(                                                                                                             \
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], " \
      "%4;" ::"r"(shared_address(to)),                                                                              \
      "l"(from), "r"(kTileBytes), "r"(barrier), "h"(uint16_t{3}) : "memory")
#define CP_ASYNC(to, from) \
  UNIT("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory")
#define STORE(to, from)                                                                                    \
  UNIT("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(shared_address(from)), \
       "r"(static_cast<int>(sizeof from)) : "memory")
#define MULTIPLY(d, a, b)                                                                                         \
  UNIT(                                                                                                           \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "                                                     \
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                   \
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "                         \
      "%32, %33, 1, 1, 1, 0, 0;" : "+f"(d[0]),                                                                    \
      "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), \
      "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]),     \
      "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]),     \
      "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]) : "l"(a), "l"(b) : "memory")
#define READ_PEER(value, address, rank)                                                                                \
  UNIT("{\n.reg .u32 r;\nmapa.shared::cluster.u32 r, %1, %2;\nld.shared::cluster.f32 %0, [r];\n}" : "=f"(value) : "r"( \
           shared_address(address)),                                                                                   \
       "r"(rank) : "memory")

#define TRY_WAIT(done, barrier, parity)                                                                            \
  UNIT("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}" : "=r"( \
           done) : "r"(barrier),                                                                                   \
       "r"(parity) : "memory")

enum Wrong {
  kNothing,
  kInitNotFenced,
  kFewBytes,
  kManyBytes,
  kNoWait,
  kWrongPhase,
  kManyArrivals,
  kReleasedEarly,
  kNoProductWait,
  kNoCommit,
  kNoProductFence,
  kNoProxyFence,
  kNoBarrier,
  kStoreReused,
  kStoreOutlives,
  kNoClusterBarrier,
  kNoLastBarrier,
  kOneReleases,
  kOneReleasesForAll,  // not a mistake: after a barrier of the others
};

constexpr int kStages = 2, kRows = 64, kDepth = 16, kTileBytes = kRows * kDepth * 2, kConsumers = 128;
constexpr int kCoreRows = 8 * 16, kNextK = kRows * 16;  // bytes: to the next 8 rows, and to the next 8 columns

__device__ void wait(uint32_t barrier, int parity) {
  uint32_t done = 0;
  while (!done) TRY_WAIT(done, barrier, parity);
}
__device__ void cluster_barrier() {
  UNIT("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" :: : "memory");
}
__device__ uint64_t descriptor(const void* tile) {  // not swizzled
  const auto field = [](uint64_t bytes) { return bytes >> 4 & 0x3fff; };
  return field(shared_address(tile)) | field(kNextK) << 16 | field(kCoreRows) << 32;
}

__global__ void __cluster_dims__(2, 1, 1)
    pipeline_kernel(const char* a, const char* b, float* c, float* of_peer, int steps, int wrong) {
  __shared__ alignas(128) char tile_a[kStages][kTileBytes], tile_b[kStages][kTileBytes];
  __shared__ alignas(128) float out[kRows * kRows];
  __shared__ uint64_t full[kStages], empty[kStages];
  const int t = static_cast<int>(threadIdx.x);
  if (t == 0) {
    for (int s = 0; s < kStages; ++s) {
      [[maybe_unused]] const int releases = wrong >= kOneReleases ? 1 : kConsumers + (wrong == kManyArrivals);
      UNIT("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&full[s])) : "memory");
      UNIT("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&empty[s])), "r"(releases) : "memory");
    }
    if (wrong != kInitNotFenced) UNIT("fence.mbarrier_init.release.cluster;" :: : "memory");
  }
  __syncthreads();

  if (t == kConsumers) {
    for (int k = 0; k < steps; ++k) {
      const int s = k % kStages;
      [[maybe_unused]] const uint32_t to = shared_address(&full[s]);
      [[maybe_unused]] const int bytes = 2 * kTileBytes + (wrong == kFewBytes ? -32 : wrong == kManyBytes ? 32 : 0);
      wait(shared_address(&empty[s]), k / kStages % 2 ^ 1);
      UNIT("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(to), "r"(bytes) : "memory");
      COPY(tile_a[s], a + k * kTileBytes, to);  // <- a
      COPY(tile_b[s], b + k * kTileBytes, to);  // <- b
    }
  } else if (t < kConsumers) {
    float d[32] = {};
    int corner = 0;
    for (int k = 0; k < steps; ++k) {
      const int s = k % kStages;
      const uint64_t of_a = descriptor(tile_a[s]), of_b = descriptor(tile_b[s]);
      const auto release = [&] {
        UNIT("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&empty[s])) : "memory");
      };
      if (wrong != kNoWait) wait(shared_address(&full[s]), k / kStages % 2 ^ (wrong == kWrongPhase));
      if (wrong != kNoProductFence) UNIT("wgmma.fence.sync.aligned;" :: : "memory");
      MULTIPLY(d, of_a, of_b);  // <- product
      if (wrong != kNoCommit) UNIT("wgmma.commit_group.sync.aligned;" :: : "memory");
      if (wrong == kReleasedEarly) release();
      if (wrong != kNoProductWait) UNIT("wgmma.wait_group.sync.aligned 0;" :: : "memory");
      corner += tile_a[s][16 * t];  // <- corner
      if (wrong == kOneReleasesForAll) UNIT("bar.sync 1, 128;" :: : "memory");
      if (wrong >= kOneReleases ? t == 0 : wrong != kReleasedEarly) release();
    }
    if (corner == 1 << 30) d[0] = 0;  // never
    for (int factor = 1; factor <= 2; ++factor) {
      for (int j = 0; j < 32; ++j) {
        const int row = t / 32 * 16 + t % 32 / 4 + j / 2 % 2 * 8, column = j / 4 * 8 + t % 4 * 2 + j % 2;
        out[row * kRows + column] = static_cast<float>(factor) * d[j];  // <- write
      }
      if (wrong != kNoProxyFence) UNIT("fence.proxy.async.shared::cta;" :: : "memory");
      if (wrong != kNoBarrier) UNIT("bar.sync 1, 128;" :: : "memory");
      if (t == 0) {
        [[maybe_unused]] float* to = c + (2 * blockIdx.x + factor - 1) * kRows * kRows;
        STORE(to, out);  // <- store
        UNIT("cp.async.bulk.commit_group;" :: : "memory");
        if (factor == 1 ? wrong != kStoreReused : wrong != kStoreOutlives)
          UNIT("cp.async.bulk.wait_group.read 0;" :: : "memory");
      }
      UNIT("bar.sync 1, 128;" :: : "memory");
    }
  }
  if (wrong != kNoClusterBarrier) cluster_barrier();
  if (t < kConsumers) {
    float value = 0;
    [[maybe_unused]] const uint32_t peer = blockIdx.x ^ 1;
    READ_PEER(value, &out[t], peer);  // <- peer
    of_peer[blockIdx.x * kConsumers + t] = value;
  }
  if (wrong != kNoLastBarrier) cluster_barrier();
}

// a and b: for each step, a tile of 64 x 16 in pieces of 8 x 8; c: the sums and twice the sums of each block; what each
// block's first threads read in the other one. The steps, and the mistake.
CASE(pipeline) {
  pipeline_kernel<<<2, kConsumers + 32>>>(call.data<char>(0), call.data<char>(1), call.data<float>(2),  // <- launch
                                          call.data<float>(3), static_cast<int>(call.number(0)),
                                          static_cast<int>(call.number(1)));
}

// One product whose tiles the threads of its warp group have copied themselves, in one of these ways.
enum Way { kFenced, kNotFenced, kPlainNotFenced, kNotOrdered, kStoredNotFenced, kTwoIntoOnePlace, kWaitedTooLate };

__global__ void copied_kernel(const char* a, const char* b, float* c, char* of_store, int way) {
  __shared__ alignas(128) char tile_a[kTileBytes], tile_b[kTileBytes];
  const int t = static_cast<int>(threadIdx.x), at = 16 * t;
  if (way == kPlainNotFenced) {
    *reinterpret_cast<int4*>(tile_a + at) = *reinterpret_cast<const int4*>(a + at);
    *reinterpret_cast<int4*>(tile_b + at) = *reinterpret_cast<const int4*>(b + at);
  } else {
    CP_ASYNC(tile_a + at, a + at);
    if (way == kTwoIntoOnePlace) CP_ASYNC(tile_a + (at ^ 16), a + at);  // <- again
    CP_ASYNC(tile_b + at, b + at);
    UNIT("cp.async.commit_group;" :: : "memory");
    if (way == kWaitedTooLate) __syncthreads();
    UNIT("cp.async.wait_group 0;" :: : "memory");  // <- wait for copies
  }
  if (way == kFenced) UNIT("fence.proxy.async.shared::cta;" :: : "memory");
  if (way != kNotOrdered && way != kWaitedTooLate) __syncthreads();
  float d[32] = {};
  [[maybe_unused]] const uint64_t of_a = descriptor(tile_a), of_b = descriptor(tile_b);
  UNIT("wgmma.fence.sync.aligned;" :: : "memory");
  MULTIPLY(d, of_a, of_b);  // <- product of copies
  UNIT("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" :: : "memory");
  for (int j = 0; j < 32; ++j) c[t * 32 + j] = d[j];
  if (way == kStoredNotFenced && t == 0) {
    STORE(of_store, tile_a);  // <- store of copies
    UNIT("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;" :: : "memory");
  }
}
CASE_OF(copied, 1, kConsumers)

// A tile for both blocks of a cluster, which counts on the mbarrier of each before the second block has used its own.
enum Init { kInitFenced, kInitOrdered, kInitNotOrdered };

__global__ void __cluster_dims__(2, 1, 1) multicast_kernel(const char* from, char* to, int init) {
  __shared__ alignas(128) char tile[kTileBytes];
  __shared__ uint64_t full;
  const int t = static_cast<int>(threadIdx.x);
  [[maybe_unused]] const uint32_t barrier = shared_address(&full);
  if (t == 0) {
    UNIT("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
    if (init == kInitFenced) UNIT("fence.mbarrier_init.release.cluster;" :: : "memory");
  }
  if (init != kInitNotOrdered) cluster_barrier();
  if (blockIdx.x == 0 && t == 0) COPY_TO_BOTH(tile, from, barrier);  // <- to both
  cluster_barrier();
  if (t == 0) UNIT("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(kTileBytes) : "memory");
  wait(barrier, 0);
  for (int i = t; i < kTileBytes; i += 32) to[blockIdx.x * kTileBytes + i] = tile[i];
}
CASE_OF(multicast, 2, 32)

// Three warp groups share the registers of a block: one gives some up, the others ask for more.
enum Share { kFits, kInTwoSteps, kOneAsks, kTooMany };

__device__ __forceinline__ void share_registers(float* out, int share) {
  const bool gives = threadIdx.x < 128;
  if (gives && share != kOneAsks) {
    if (share == kInTwoSteps) UNIT("setmaxnreg.dec.sync.aligned.u32 32;");
    if (share == kTooMany)
      UNIT("setmaxnreg.dec.sync.aligned.u32 32;");
    else
      UNIT("setmaxnreg.dec.sync.aligned.u32 24;");
  }
  if (!gives && (share != kOneAsks || threadIdx.x < 256)) UNIT("setmaxnreg.inc.sync.aligned.u32 240;");  // <- more
  out[threadIdx.x] = 1;
}
// nvcc ignores setmaxnreg where it does not know the registers with which threads begin: in the second and the third.
template <int kThreads>
__global__ void __launch_bounds__(kThreads, /*blocks=*/1) both_kernel(float* out, int share) {
  share_registers(out, share);
}
__global__ __launch_bounds__(384) void threads_kernel(float* out, int share) { share_registers(out, share); }
__global__ void plain_kernel(float* out, int share) { share_registers(out, share); }
__global__ void __maxnreg__(168) most_kernel(float* out, int share) { share_registers(out, share); }
CASE(registers) {
  void (*const kernels[])(float*, int) = {both_kernel<384>, threads_kernel, plain_kernel, most_kernel,
                                          both_kernel<512>};
  kernels[call.number(1)]<<<1, 384>>>(call.data<float>(0), call.n(0));
}
