// cuda_runtime.h: the simulator's form of the header that nvcc includes in every .cu file.
//
// The keyword macros come last, after every library header.
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simt/atomics.h"
#include "simt/conversions.h"
#include "simt/core.h"
#include "simt/intrinsics.h"
#include "simt/maths.h"
#include "simt/vector_types.h"
#include "simt/warp.h"
#if __has_include("simt/runtime_api.h")
#include "simt/runtime_api.h"
#include "simt/textures.h"
#endif

// The rewriter's name for `assert` in a kernel's text.
#if defined(NDEBUG)
#define simt_assert(...) static_cast<void>(0)
#else
#define simt_assert(...)                                 \
  (static_cast<bool>(__VA_ARGS__) ? static_cast<void>(0) \
                                  : ::simt::assert_failed(#__VA_ARGS__, __FILE__, __LINE__, __func__))
#endif

#include "simt/keywords.h"
