// cuda_runtime_api.h: replaces CUDA's header of this name: the run-time API, without the device side.
#pragma once
#define __CUDA_RUNTIME_API_H__

#include "driver_types.h"
#include "simt/runtime_api.h"
