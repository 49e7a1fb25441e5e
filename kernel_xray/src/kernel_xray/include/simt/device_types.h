// device_types.h: the properties of the simulated device, as programs query them.
//
// The device is imaginary. Its limits are those that CUDA's programming guide gives for compute capability 9.0, with
// 108 SMs and 40 MB of L2 cache; its memory is a share of the host's. Clock rates and the width of the memory bus are
// 0, so that no program can derive a bandwidth or a time from them: the simulator has neither.
#pragma once

#include <cstddef>

#include "device_attributes.h"

struct cudaUUID_t {
  char bytes[16];
};

struct cudaDeviceProp {
  char name[256];
  cudaUUID_t uuid;
  size_t totalGlobalMem;     // bytes
  size_t sharedMemPerBlock;  // bytes, without opting in
  int regsPerBlock;
  int warpSize;
  size_t memPitch;
  int maxThreadsPerBlock;
  int maxThreadsDim[3];
  int maxGridSize[3];
  int clockRate;  // 0: not modelled
  size_t totalConstMem;
  int major, minor;  // compute capability
  size_t textureAlignment, texturePitchAlignment, surfaceAlignment;
  int maxTexture1D, maxTexture1DLinear, maxTexture2D[2], maxTexture3D[3], maxTexture1DLayered[2],
      maxTexture2DLayered[3];
  int maxSurface1D, maxSurface2D[2];
  int deviceOverlap;
  int multiProcessorCount;
  int kernelExecTimeoutEnabled;
  int integrated;
  int canMapHostMemory;
  int computeMode;
  int concurrentKernels;
  int ECCEnabled;
  int pciBusID, pciDeviceID, pciDomainID;
  int tccDriver;
  int asyncEngineCount;
  int unifiedAddressing;
  int memoryClockRate;  // 0: not modelled
  int memoryBusWidth;   // 0: not modelled
  int l2CacheSize;      // bytes
  int persistingL2CacheMaxSize;
  int maxThreadsPerMultiProcessor;
  int streamPrioritiesSupported;
  int globalL1CacheSupported, localL1CacheSupported;
  size_t sharedMemPerMultiprocessor;  // bytes
  int regsPerMultiprocessor;
  int managedMemory;
  int isMultiGpuBoard, multiGpuBoardGroupID;
  int hostNativeAtomicSupported;
  int singleToDoublePrecisionPerfRatio;
  int pageableMemoryAccess;
  int concurrentManagedAccess;
  int computePreemptionSupported;
  int canUseHostPointerForRegisteredMem;
  int cooperativeLaunch;
  size_t sharedMemPerBlockOptin;  // bytes, after cudaFuncSetAttribute
  int pageableMemoryAccessUsesHostPageTables;
  int directManagedMemAccessFromHost;
  int maxBlocksPerMultiProcessor;
  int accessPolicyMaxWindowSize;
  size_t reservedSharedMemPerBlock;  // bytes
  int hostRegisterSupported;
  int memoryPoolsSupported;
  int clusterLaunch;
};

enum cudaComputeMode {
  cudaComputeModeDefault = 0,
  cudaComputeModeExclusive = 1,
  cudaComputeModeProhibited = 2,
  cudaComputeModeExclusiveProcess = 3,
};

enum cudaDeviceAttr {
  cudaDevAttrIpcEventSupport = 125,  // which the simulator does not know
#define SIMT_ENUMERATOR(name, driver, number, property) cudaDevAttr##name = number,
  SIMT_DEVICE_ATTRIBUTES(SIMT_ENUMERATOR)
#undef SIMT_ENUMERATOR
};
