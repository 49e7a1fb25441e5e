// driver_memory.h: the driver interface's virtual memory and multicast objects, which devices share. Code that may run on
// one device alone names them, so they are refused when they are called, not where they stand.
#pragma once

#include "../cuda.h"

using CUmemGenericAllocationHandle = unsigned long long;

enum CUmemAllocationHandleType {
  CU_MEM_HANDLE_TYPE_NONE = 0,
  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1,
  CU_MEM_HANDLE_TYPE_FABRIC = 8,
};
enum CUmemAllocationType { CU_MEM_ALLOCATION_TYPE_INVALID = 0, CU_MEM_ALLOCATION_TYPE_PINNED = 1 };
enum CUmemLocationType {
  CU_MEM_LOCATION_TYPE_INVALID = 0,
  CU_MEM_LOCATION_TYPE_DEVICE = 1,
  CU_MEM_LOCATION_TYPE_HOST = 2
};
enum CUmemAccess_flags {
  CU_MEM_ACCESS_FLAGS_PROT_NONE = 0,
  CU_MEM_ACCESS_FLAGS_PROT_READ = 1,
  CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3
};
enum CUmemAllocationGranularity_flags {
  CU_MEM_ALLOC_GRANULARITY_MINIMUM = 0,
  CU_MEM_ALLOC_GRANULARITY_RECOMMENDED = 1
};
enum CUmulticastGranularity_flags { CU_MULTICAST_GRANULARITY_MINIMUM = 0, CU_MULTICAST_GRANULARITY_RECOMMENDED = 1 };

struct CUmemLocation {
  CUmemLocationType type;
  int id;
};
struct CUmemAllocationProp {
  CUmemAllocationType type;
  CUmemAllocationHandleType requestedHandleTypes;
  CUmemLocation location;
  void* win32HandleMetaData;
  struct {
    unsigned char compressionType, gpuDirectRDMACapable;
    unsigned short usage;
    unsigned char reserved[4];
  } allocFlags;
};
struct CUmemAccessDesc {
  CUmemLocation location;
  CUmemAccess_flags flags;
};
struct CUmulticastObjectProp {
  unsigned numDevices;
  size_t size;
  unsigned long long handleTypes, flags;
};

#define SIMT_REFUSED_MEMORY(name) SIMT_REFUSED_CALL(CUresult, name, "virtual memory of the driver interface")
SIMT_REFUSED_MEMORY(cuMemGetAllocationGranularity)
SIMT_REFUSED_MEMORY(cuMemCreate)
SIMT_REFUSED_MEMORY(cuMemRelease)
SIMT_REFUSED_MEMORY(cuMemMap)
SIMT_REFUSED_MEMORY(cuMemUnmap)
SIMT_REFUSED_MEMORY(cuMemAddressReserve)
SIMT_REFUSED_MEMORY(cuMemAddressFree)
SIMT_REFUSED_MEMORY(cuMemSetAccess)
SIMT_REFUSED_MEMORY(cuMemRetainAllocationHandle)
SIMT_REFUSED_MEMORY(cuMemExportToShareableHandle)
SIMT_REFUSED_MEMORY(cuMemImportFromShareableHandle)
SIMT_REFUSED_MEMORY(cuMulticastCreate)
SIMT_REFUSED_MEMORY(cuMulticastAddDevice)
SIMT_REFUSED_MEMORY(cuMulticastBindMem)
SIMT_REFUSED_MEMORY(cuMulticastUnbind)
SIMT_REFUSED_MEMORY(cuMulticastGetGranularity)
