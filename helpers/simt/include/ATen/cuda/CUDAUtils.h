// CUDAUtils.h: in place of PyTorch's header of this name: are tensors where this host thread's kernels run?
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
