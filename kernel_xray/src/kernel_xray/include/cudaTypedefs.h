// cudaTypedefs.h: replaces CUDA's header of this name, which declares the types of the driver interface's functions
// (PFN_cuInit, ...). Here are those of the functions that encode tensor maps. Of these the simulator has the first; the
// second is not found at run time.
#pragma once
#define CUDATYPEDEFS_H

#include "cuda.h"

using PFN_cuTensorMapEncodeTiled_v12000 = decltype(&cuTensorMapEncodeTiled);
using PFN_cuTensorMapEncodeTiled = PFN_cuTensorMapEncodeTiled_v12000;

using PFN_cuTensorMapEncodeIm2col_v12000 = CUresult (*)(CUtensorMap* map, CUtensorMapDataType type,
                                                        cuuint32_t dimensions, void* data, const cuuint64_t* sizes,
                                                        const cuuint64_t* strides, const int* lower_corner,
                                                        const int* upper_corner, cuuint32_t channels, cuuint32_t pixels,
                                                        const cuuint32_t* element_strides,
                                                        CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                                        CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill);
using PFN_cuTensorMapEncodeIm2col = PFN_cuTensorMapEncodeIm2col_v12000;
