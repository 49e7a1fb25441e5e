// device_functions.h: an old name; the functions come with cuda_runtime.h.
#pragma once

#include "cuda_runtime.h"
