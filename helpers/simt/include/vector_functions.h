// vector_functions.h: the make_* functions of CUDA's vector types.
#pragma once

#include "simt/vector_types.h"
