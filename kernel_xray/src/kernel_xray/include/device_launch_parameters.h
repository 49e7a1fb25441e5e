// device_launch_parameters.h: threadIdx, blockIdx, blockDim and gridDim, which come with cuda_runtime.h.
#pragma once
#define __DEVICE_LAUNCH_PARAMETERS_H__

#include "cuda_runtime.h"
