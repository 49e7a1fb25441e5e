// cudaTypedefs.h: replaces CUDA's header of this name, which declares the types of the driver interface's functions
// (PFN_cuInit, ...). Of these functions the simulator has one, whose type is here.
#pragma once
#define CUDATYPEDEFS_H

#include "cuda.h"

using PFN_cuTensorMapEncodeTiled_v12000 = decltype(&cuTensorMapEncodeTiled);
using PFN_cuTensorMapEncodeTiled = PFN_cuTensorMapEncodeTiled_v12000;
