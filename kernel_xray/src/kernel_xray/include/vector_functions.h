// vector_functions.h: the make_* functions of CUDA's vector types; see simt/vector_types.h.
#pragma once
#define __VECTOR_FUNCTIONS_H__

#include "vector_types.h"
