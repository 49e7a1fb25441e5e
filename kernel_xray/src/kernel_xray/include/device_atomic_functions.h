// device_atomic_functions.h: an old name of CUDA's; its atomic functions are in simt/atomics.h.
#pragma once
#define __DEVICE_ATOMIC_FUNCTIONS_H__

#include "simt/atomics.h"
