// cuda_profiler_api.h: in place of CUDA's header of this name: cudaProfilerStart and cudaProfilerStop.
#pragma once

#include "simt/runtime_api.h"
