// THCAtomics.cuh: replaces PyTorch's header of this name: the old place of gpuAtomicAdd.
#pragma once

#include <ATen/cuda/Atomic.cuh>
