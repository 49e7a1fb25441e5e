// device_launch_parameters.h: threadIdx and its kin come with cuda_runtime.h.
#pragma once

#include "cuda_runtime.h"
