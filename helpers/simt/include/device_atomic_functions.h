// device_atomic_functions.h: an old name of CUDA's; its atomic functions are in simt/atomics.h.
#pragma once

#include "simt/atomics.h"
