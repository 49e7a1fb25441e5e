// device_functions.h: an old name of CUDA's; its functions come with cuda_runtime.h.
#pragma once
#define __DEVICE_FUNCTIONS_H__

#include "cuda_runtime.h"
