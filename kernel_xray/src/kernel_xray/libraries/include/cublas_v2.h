// cublas_v2.h: cuBLAS on the CPU; see cublas_api.h.
#pragma once

#include "cublas_api.h"
