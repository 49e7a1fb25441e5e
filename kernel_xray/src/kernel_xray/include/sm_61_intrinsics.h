// sm_61_intrinsics.h: replaces CUDA's header of this name: __dp4a and __dp2a, which come with cuda_runtime.h.
#pragma once
#define __SM_61_INTRINSICS_H__

#include "simt/intrinsics.h"
