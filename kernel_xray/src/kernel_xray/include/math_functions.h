// math_functions.h: CUDA's maths functions; see simt/maths.h for their accuracy.
#pragma once
#define __MATH_FUNCTIONS_H__

#include "simt/maths.h"
