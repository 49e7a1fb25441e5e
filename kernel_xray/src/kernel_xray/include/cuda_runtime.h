// cuda_runtime.h: the simulator's form of the header that nvcc includes in every .cu file.
//
// The keyword macros come last, after every library header.
#pragma once
#define __CUDA_RUNTIME_H__

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmath>
#include <new>
#include <utility>

#include "cuda_runtime_api.h"
#include "library_types.h"
#include "vector_types.h"

#include "simt/atomics.h"
#include "simt/conversions.h"
#include "simt/core.h"
#include "simt/dpx.h"
#include "simt/intrinsics.h"
#include "simt/maths.h"
#include "simt/nv_atomics.h"
#include "simt/warp.h"
#if __has_include("simt/textures.h")
#include "simt/textures.h"
#endif

#include "simt/keywords.h"
