// THCDeviceUtils.cuh: replaces PyTorch's header of this name: the old place of WARP_SHFL_DOWN and the like.
#pragma once

#include <ATen/cuda/DeviceUtils.cuh>
