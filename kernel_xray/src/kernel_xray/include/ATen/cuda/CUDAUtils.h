// CUDAUtils.h: replaces PyTorch's header of this name: whether all tensors are on the device of this host thread, as
// every CPU tensor is.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAContext.h>

namespace at::cuda {

inline bool check_device(ArrayRef<Tensor> tensors) {
  for (const Tensor& tensor : tensors)
    if (!tensor.device().is_cpu()) return false;
  return true;
}

}  // namespace at::cuda
