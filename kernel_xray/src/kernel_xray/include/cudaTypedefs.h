// cudaTypedefs.h: replaces CUDA's header of this name, which declares the types of the driver interface's functions
// (PFN_cuInit, ...). The simulator has none of these functions, so only the types in cuda.h are here.
#pragma once
#define CUDATYPEDEFS_H

#include "cuda.h"
