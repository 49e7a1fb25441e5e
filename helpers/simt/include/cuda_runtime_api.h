// cuda_runtime_api.h: replaces CUDA's header of this name: the run-time API, without the device side.
#pragma once

#include "simt/runtime_api.h"
