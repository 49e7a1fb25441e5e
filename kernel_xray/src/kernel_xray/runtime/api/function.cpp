// function.cpp: attributes of kernels, and occupancy by the formula of CUDA's occupancy calculator.
//
// The resident blocks of an SM are limited by its threads (in whole warps), its registers, its shared memory and a
// fixed number of blocks. The formula assumes 32 registers per thread and no static shared memory, because only a
// compiler for GPUs knows either.
#include <map>
#include <mutex>

#include "../../include/simt/lasting.h"
#include "api/device.h"
#include "api/devices.h"
#include "api/host_call.h"
#include "threads/block.h"

namespace simt {
namespace {

constexpr int kAssumedRegisters = 32;  // per thread
constexpr int kRegisterUnit = 256;     // a warp's registers are allocated in multiples of this
constexpr size_t kSharedUnit = 128;    // bytes; a block's shared memory is allocated in multiples of this

struct Function {
  size_t dynamic_limit = kSharedPerBlock;
  int carveout = cudaSharedmemCarveoutDefault;
  bool large_clusters = false;
};

struct Functions {
  std::mutex mutex;
  std::map<const void*, Function> of_device[kMostDevices];  // those with an attribute set

  std::map<const void*, Function>& known() { return of_device[current_device()]; }
};

Functions& functions() { return lasting<Functions>(); }

int ceil_divide(int a, int b) { return (a + b - 1) / b; }

}  // namespace

int resident_blocks(int block_size, size_t dynamic_bytes) {
  const int warps = ceil_divide(block_size, static_cast<int>(kWarpSize));
  const int warp_registers =
      ceil_divide(kAssumedRegisters * static_cast<int>(kWarpSize), kRegisterUnit) * kRegisterUnit;
  const size_t shared = (dynamic_bytes + kSharedReserved + kSharedUnit - 1) / kSharedUnit * kSharedUnit;
  int blocks = kBlocksPerSm;
  for (int limit : {kThreadsPerSm / static_cast<int>(kWarpSize) / warps, kRegistersPerSm / warp_registers / warps,
                    static_cast<int>(kSharedPerSm / shared)})
    if (limit < blocks) blocks = limit;
  return blocks;
}

unsigned most_cluster_blocks(const void* function) {
  const std::lock_guard<std::mutex> lock(functions().mutex);
  for (const auto& [known, attributes] : functions().known())
    if ((function == known || !function) && attributes.large_clusters) return kMaxClusterBlocks;
  return kPortableClusterBlocks;
}

size_t dynamic_shared_limit(const void* function) {
  const std::lock_guard<std::mutex> lock(functions().mutex);
  size_t limit = kSharedPerBlock;
  for (const auto& [known, attributes] : functions().known())
    if (function == known || (!function && attributes.dynamic_limit > limit)) limit = attributes.dynamic_limit;
  return limit;
}

void forget_functions(int device) {
  const std::lock_guard<std::mutex> lock(functions().mutex);
  functions().of_device[device].clear();
}

namespace detail {

cudaError_t set_attribute(const void* function, cudaFuncAttribute attribute, int value) {
  if (!function) return failed(cudaErrorInvalidDeviceFunction);
  const std::lock_guard<std::mutex> lock(functions().mutex);
  switch (attribute) {
    case cudaFuncAttributeMaxDynamicSharedMemorySize:
      if (value < 0 || static_cast<size_t>(value) > kSharedPerBlockOptin) return failed(cudaErrorInvalidValue);
      functions().known()[function].dynamic_limit = static_cast<size_t>(value);
      return cudaSuccess;
    case cudaFuncAttributePreferredSharedMemoryCarveout:
      if (value < -1 || value > 100) return failed(cudaErrorInvalidValue);
      functions().known()[function].carveout = value;
      return cudaSuccess;
    case cudaFuncAttributeNonPortableClusterSizeAllowed:
      if (value != 0 && value != 1) return failed(cudaErrorInvalidValue);
      functions().known()[function].large_clusters = value;
      return cudaSuccess;
    default:
      return failed(cudaErrorInvalidValue);
  }
}

cudaError_t get_attributes(cudaFuncAttributes* attributes, const void* function) {
  if (!attributes) return failed(cudaErrorInvalidValue);
  if (!function) return failed(cudaErrorInvalidDeviceFunction);
  const std::lock_guard<std::mutex> lock(functions().mutex);
  const auto it = functions().known().find(function);
  const Function known = it == functions().known().end() ? Function{} : it->second;
  *attributes = {};
  attributes->maxThreadsPerBlock = kThreadsPerBlock;
  attributes->numRegs = kAssumedRegisters;
  attributes->ptxVersion = attributes->binaryVersion = 10 * compute_capability();
  attributes->maxDynamicSharedSizeBytes = static_cast<int>(known.dynamic_limit);
  attributes->preferredShmemCarveout = known.carveout;
  return cudaSuccess;
}

cudaError_t active_blocks(int* blocks, const void* function, int block_size, size_t dynamic_bytes) {
  if (!blocks || block_size <= 0) return failed(cudaErrorInvalidValue);
  if (!function) return failed(cudaErrorInvalidDeviceFunction);
  const bool launchable = block_size <= kThreadsPerBlock && dynamic_bytes <= dynamic_shared_limit(function);
  *blocks = launchable ? resident_blocks(block_size, dynamic_bytes) : 0;
  return cudaSuccess;
}

cudaError_t potential_block_size(int* min_grid_size, int* block_size, const void* function,
                                 size_t (*dynamic_bytes)(int, const void*), const void* context, int limit) {
  if (!min_grid_size || !block_size || limit < 0) return failed(cudaErrorInvalidValue);
  if (!function) return failed(cudaErrorInvalidDeviceFunction);
  if (limit == 0 || limit > kThreadsPerBlock) limit = kThreadsPerBlock;
  const int warp = static_cast<int>(kWarpSize);
  int best_threads = 0, best_blocks = 0, best_size = 0;
  for (int size = ceil_divide(limit, warp) * warp; size > 0; size -= warp) {  // the largest wins a tie
    const int tried = size < limit ? size : limit;
    int blocks = 0;
    if (cudaError_t error = active_blocks(&blocks, function, tried, dynamic_bytes(tried, context))) return error;
    if (blocks * tried <= best_threads) continue;
    best_threads = blocks * tried;
    best_blocks = blocks;
    best_size = tried;
  }
  *min_grid_size = best_blocks * kSms;
  *block_size = best_size;
  return cudaSuccess;
}

}  // namespace detail
}  // namespace simt
