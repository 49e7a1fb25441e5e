// CUDAEvent.h: replaces PyTorch's header of this name: at::cuda::CUDAEvent, which is c10::cuda::CUDAEvent with its
// deviations.
#pragma once

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>
