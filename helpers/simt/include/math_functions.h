// math_functions.h: CUDA's maths functions.
#pragma once

#include "simt/maths.h"
