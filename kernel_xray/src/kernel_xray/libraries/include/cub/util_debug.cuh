// util_debug.cuh: CUB's checks of error codes.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "simt/runtime_api.h"

namespace cub {

inline cudaError_t Debug(cudaError_t error, const char* file, int line) {
  if (error != cudaSuccess)
    std::fprintf(stderr, "CUDA error %d [%s, %d]: %s\n", error, file, line, cudaGetErrorString(error));
  return error;
}

}  // namespace cub

#define CubDebug(error) ::cub::Debug((cudaError_t)(error), __FILE__, __LINE__)
#define CubDebugExit(error) \
  if (CubDebug(error)) std::exit(1)
