// driver_types.h: in place of CUDA's header of this name: types and constants of the run-time API.
#pragma once

#include "simt/device_types.h"
#include "simt/runtime_types.h"
