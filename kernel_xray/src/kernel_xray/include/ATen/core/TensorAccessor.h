// TensorAccessor.h: includes PyTorch's header of this name and adds at::RestrictPtrTraits, which it has for nvcc alone.
#pragma once

#include_next <ATen/core/TensorAccessor.h>

namespace at {
using torch::headeronly::RestrictPtrTraits;
}
