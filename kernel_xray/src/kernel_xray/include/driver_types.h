// driver_types.h: replaces CUDA's header of this name: types and constants of the run-time API.
#pragma once
#define __DRIVER_TYPES_H__

#include <limits.h>
#include <stddef.h>

#include "simt/device_types.h"
#include "simt/runtime_types.h"
#include "vector_types.h"
