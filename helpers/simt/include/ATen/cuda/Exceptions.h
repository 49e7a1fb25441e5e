// Exceptions.h: in place of PyTorch's header of this name: AT_CUDA_CHECK. There are no cuBLAS, cuSPARSE or cuSOLVER.
#pragma once

#include <c10/cuda/CUDAException.h>

#define AT_CUDA_CHECK(EXPR) C10_CUDA_CHECK(EXPR)
