// BFloat16.h: includes PyTorch's header of this name and, as that does for nvcc, CUDA's bfloat16 type for .cu files.
#pragma once

#include_next <torch/headeronly/util/BFloat16.h>
#ifdef __SIMTCC__
#include <cuda_bf16.h>
#endif
