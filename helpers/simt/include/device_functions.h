// device_functions.h: an old name of CUDA's; its functions come with cuda_runtime.h.
#pragma once

#include "cuda_runtime.h"
