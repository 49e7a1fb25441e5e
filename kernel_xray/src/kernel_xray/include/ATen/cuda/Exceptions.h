// Exceptions.h: replaces PyTorch's header of this name: AT_CUDA_CHECK. The checks for cuBLAS, cuSPARSE and cuSOLVER are
// missing, because the simulator has none of these libraries.
#pragma once

#include <c10/cuda/CUDAException.h>

#define AT_CUDA_CHECK(EXPR) C10_CUDA_CHECK(EXPR)
