// Half.h: includes PyTorch's header of this name and, as that does for nvcc, CUDA's half type for .cu files.
#pragma once

#include_next <torch/headeronly/util/Half.h>
#ifdef __SIMTCC__
#include <cuda_fp16.h>
#endif
