// CUDAApplyUtils.cuh: replaces PyTorch's header of this name by what it includes. The functions CUDA_tensor_apply2 to
// CUDA_tensor_apply4 are missing; at::TensorIterator does their work on tensors of any layout.
#pragma once

#include <ATen/cuda/ApplyGridUtils.cuh>
#include <ATen/cuda/Atomic.cuh>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/detail/IndexUtils.cuh>
#include <ATen/ceil_div.h>
#include <ATen/core/TensorBase.h>
#include <c10/macros/Macros.h>

#include <math.h>
