// device_atomic_functions.h: CUDA's atomic functions.
#pragma once

#include "simt/atomics.h"
