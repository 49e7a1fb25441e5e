// TensorAccessor.h: includes PyTorch's header of this name and adds RestrictPtrTraits, which it declares for nvcc alone.
#pragma once

#include_next <torch/headeronly/core/TensorAccessor.h>

namespace torch::headeronly {
template <typename T>
struct RestrictPtrTraits {
  typedef T* __restrict__ PtrType;
};
}  // namespace torch::headeronly
