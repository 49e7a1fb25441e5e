// cuda_profiler_api.h: replaces CUDA's header of this name: cudaProfilerStart and cudaProfilerStop, which do nothing
// here.
#pragma once

#include "simt/runtime_api.h"
