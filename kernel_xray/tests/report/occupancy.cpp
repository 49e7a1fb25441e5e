// Prints how many blocks fit on a SM by NVIDIA's own header, for many kernels: capability, threads,
// registers, bytes of shared memory, blocks.
#include <cstdio>
#include <cstring>
#include <initializer_list>

#include <cuda_occupancy.h>

struct Gpu {
  const char* capability;
  int major, minor, warps;
  size_t shared, shared_per_block, reserved;
};

int main() {
  constexpr size_t kib = 1024;
  const Gpu gpus[] = {
      {"7.0", 7, 0, 64, 96 * kib, 96 * kib, 0},       {"7.5", 7, 5, 32, 64 * kib, 64 * kib, 0},
      {"8.0", 8, 0, 64, 164 * kib, 163 * kib, kib},   {"8.6", 8, 6, 48, 100 * kib, 99 * kib, kib},
      {"8.9", 8, 9, 48, 100 * kib, 99 * kib, kib},    {"9.0", 9, 0, 64, 228 * kib, 227 * kib, kib},
      {"10.0", 10, 0, 64, 228 * kib, 227 * kib, kib}, {"12.0", 12, 0, 48, 100 * kib, 99 * kib, kib},
  };
  for (const Gpu& gpu : gpus)
    for (int threads : {1, 31, 32, 33, 64, 96, 128, 160, 256, 384, 512, 768, 992, 1000, 1024})
      for (int registers : {1, 16, 32, 33, 40, 48, 63, 64, 65, 96, 127, 128, 129, 168, 200, 255})
        for (size_t shared : {0, 1, 1000, 4096, 16384, 33000, 49152, 70000, 101376, 166912, 200000}) {
          cudaOccDeviceProp device;
          std::memset(&device, 0, sizeof device);
          device.computeMajor = gpu.major, device.computeMinor = gpu.minor;
          device.maxThreadsPerBlock = 1024, device.maxThreadsPerMultiprocessor = gpu.warps * 32;
          device.regsPerBlock = device.regsPerMultiprocessor = 65536;
          device.warpSize = 32, device.numSms = 100;
          device.sharedMemPerBlock = 48 * kib, device.sharedMemPerMultiprocessor = gpu.shared;
          device.sharedMemPerBlockOptin = gpu.shared_per_block, device.reservedSharedMemPerBlock = gpu.reserved;
          cudaOccFuncAttributes kernel;
          std::memset(&kernel, 0, sizeof kernel);
          kernel.maxThreadsPerBlock = 1024, kernel.numRegs = registers, kernel.numBlockBarriers = 1;
          kernel.partitionedGCConfig = PARTITIONED_GC_OFF;
          kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN, kernel.maxDynamicSharedSizeBytes = shared;
          cudaOccDeviceState state;
          std::memset(&state, 0, sizeof state);
          state.cacheConfig = CACHE_PREFER_SHARED, state.carveoutConfig = 100;
          cudaOccResult result;
          if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state, threads, shared)) return 1;
          std::printf("%s %d %d %zu %d\n", gpu.capability, threads, registers, shared,
                      result.activeBlocksPerMultiprocessor);
        }
}
