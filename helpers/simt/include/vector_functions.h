// vector_functions.h: the make_* functions of CUDA's vector types; see simt/vector_types.h.
#pragma once

#include "simt/vector_types.h"
