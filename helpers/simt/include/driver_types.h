// driver_types.h: replaces CUDA's header of this name: types and constants of the run-time API.
#pragma once

#include "simt/device_types.h"
#include "simt/runtime_types.h"
