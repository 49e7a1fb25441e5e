// vector_types.h: CUDA's vector types, dim3 and the make_* functions; see simt/vector_types.h.
#pragma once
#define __VECTOR_TYPES_H__

#include "simt/vector_types.h"
