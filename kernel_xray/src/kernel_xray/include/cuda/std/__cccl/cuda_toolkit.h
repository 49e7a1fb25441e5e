// cuda_toolkit.h: tells NVIDIA's libcu++ that no CUDA toolkit is there, so that its parts that call the driver stay out.
#pragma once

#include_next <cuda/std/__cccl/cuda_toolkit.h>

#undef _CCCL_HAS_CTK
#define _CCCL_HAS_CTK() 0
