// cuda_profiler_api.h: replaces CUDA's header of this name: cudaProfilerStart and cudaProfilerStop, which do nothing
// here.
#pragma once
#define __CUDA_PROFILER_API_H__

#include "simt/runtime_api.h"
