// runtime_driver.h: how a program asks for functions of the driver interface. The simulator has those of cuda.h that it
// does not refuse: cuTensorMapEncodeTiled. Others are not found, whatever the version.
#pragma once

#include "runtime_types.h"

enum cudaDriverEntryPointQueryResult {
  cudaDriverEntryPointSuccess,
  cudaDriverEntryPointSymbolNotFound,
  cudaDriverEntryPointVersionNotSufficent,
};
constexpr unsigned long long cudaEnableDefault = 0, cudaEnableLegacyStream = 1, cudaEnablePerThreadDefaultStream = 2;

SIMT_API cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                             cudaDriverEntryPointQueryResult* status = nullptr);
SIMT_API cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned version,
                                                      unsigned long long flags,
                                                      cudaDriverEntryPointQueryResult* status = nullptr);
