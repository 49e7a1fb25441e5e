// device_attributes.h: the attributes of a device that the simulator knows, with CUDA's own numbers.
//
// A list to expand: X(name, driver, number, property) once for each: cudaDevAttr<name> of the run-time API,
// CU_DEVICE_ATTRIBUTE_<driver> of the driver interface, and the field of cudaDeviceProp that holds the value.
#pragma once

// clang-format off
#define SIMT_DEVICE_ATTRIBUTES(X) \
  X(MaxThreadsPerBlock, MAX_THREADS_PER_BLOCK, 1, maxThreadsPerBlock) \
  X(MaxBlockDimX, MAX_BLOCK_DIM_X, 2, maxThreadsDim[0]) \
  X(MaxBlockDimY, MAX_BLOCK_DIM_Y, 3, maxThreadsDim[1]) \
  X(MaxBlockDimZ, MAX_BLOCK_DIM_Z, 4, maxThreadsDim[2]) \
  X(MaxGridDimX, MAX_GRID_DIM_X, 5, maxGridSize[0]) \
  X(MaxGridDimY, MAX_GRID_DIM_Y, 6, maxGridSize[1]) \
  X(MaxGridDimZ, MAX_GRID_DIM_Z, 7, maxGridSize[2]) \
  X(MaxSharedMemoryPerBlock, MAX_SHARED_MEMORY_PER_BLOCK, 8, sharedMemPerBlock) \
  X(TotalConstantMemory, TOTAL_CONSTANT_MEMORY, 9, totalConstMem) \
  X(WarpSize, WARP_SIZE, 10, warpSize) \
  X(MaxPitch, MAX_PITCH, 11, memPitch) \
  X(MaxRegistersPerBlock, MAX_REGISTERS_PER_BLOCK, 12, regsPerBlock) \
  X(ClockRate, CLOCK_RATE, 13, clockRate) \
  X(TextureAlignment, TEXTURE_ALIGNMENT, 14, textureAlignment) \
  X(GpuOverlap, GPU_OVERLAP, 15, deviceOverlap) \
  X(MultiProcessorCount, MULTIPROCESSOR_COUNT, 16, multiProcessorCount) \
  X(KernelExecTimeout, KERNEL_EXEC_TIMEOUT, 17, kernelExecTimeoutEnabled) \
  X(Integrated, INTEGRATED, 18, integrated) \
  X(CanMapHostMemory, CAN_MAP_HOST_MEMORY, 19, canMapHostMemory) \
  X(ComputeMode, COMPUTE_MODE, 20, computeMode) \
  X(ConcurrentKernels, CONCURRENT_KERNELS, 31, concurrentKernels) \
  X(EccEnabled, ECC_ENABLED, 32, ECCEnabled) \
  X(MemoryClockRate, MEMORY_CLOCK_RATE, 36, memoryClockRate) \
  X(GlobalMemoryBusWidth, GLOBAL_MEMORY_BUS_WIDTH, 37, memoryBusWidth) \
  X(L2CacheSize, L2_CACHE_SIZE, 38, l2CacheSize) \
  X(MaxThreadsPerMultiProcessor, MAX_THREADS_PER_MULTIPROCESSOR, 39, maxThreadsPerMultiProcessor) \
  X(AsyncEngineCount, ASYNC_ENGINE_COUNT, 40, asyncEngineCount) \
  X(UnifiedAddressing, UNIFIED_ADDRESSING, 41, unifiedAddressing) \
  X(ComputeCapabilityMajor, COMPUTE_CAPABILITY_MAJOR, 75, major) \
  X(ComputeCapabilityMinor, COMPUTE_CAPABILITY_MINOR, 76, minor) \
  X(StreamPrioritiesSupported, STREAM_PRIORITIES_SUPPORTED, 78, streamPrioritiesSupported) \
  X(MaxSharedMemoryPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 81, sharedMemPerMultiprocessor) \
  X(MaxRegistersPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR, 82, regsPerMultiprocessor) \
  X(ManagedMemory, MANAGED_MEMORY, 83, managedMemory) \
  X(PageableMemoryAccess, PAGEABLE_MEMORY_ACCESS, 88, pageableMemoryAccess) \
  X(ConcurrentManagedAccess, CONCURRENT_MANAGED_ACCESS, 89, concurrentManagedAccess) \
  X(CooperativeLaunch, COOPERATIVE_LAUNCH, 95, cooperativeLaunch) \
  X(MaxSharedMemoryPerBlockOptin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97, sharedMemPerBlockOptin) \
  X(HostRegisterSupported, HOST_REGISTER_SUPPORTED, 99, hostRegisterSupported) \
  X(MaxBlocksPerMultiprocessor, MAX_BLOCKS_PER_MULTIPROCESSOR, 106, maxBlocksPerMultiProcessor) \
  X(ReservedSharedMemoryPerBlock, RESERVED_SHARED_MEMORY_PER_BLOCK, 111, reservedSharedMemPerBlock) \
  X(MemoryPoolsSupported, MEMORY_POOLS_SUPPORTED, 115, memoryPoolsSupported) \
  X(ClusterLaunch, CLUSTER_LAUNCH, 120, clusterLaunch)
// clang-format on
