// math_functions.h: CUDA's maths functions; see simt/maths.h for their accuracy.
#pragma once

#include "simt/maths.h"
