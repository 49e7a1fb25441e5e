// CUDAEvent.h: in place of PyTorch's header of this name: at::cuda::CUDAEvent.
#pragma once

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>
