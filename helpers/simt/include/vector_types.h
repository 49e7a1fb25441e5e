// vector_types.h: CUDA's vector types, dim3 and the make_* functions.
#pragma once

#include "simt/vector_types.h"
