// device_launch_parameters.h: threadIdx, blockIdx, blockDim and gridDim, which come with cuda_runtime.h.
#pragma once

#include "cuda_runtime.h"
