// cuda_runtime_api.h: in place of CUDA's header of this name: the run-time API, without the device side.
#pragma once

#include "simt/runtime_api.h"
