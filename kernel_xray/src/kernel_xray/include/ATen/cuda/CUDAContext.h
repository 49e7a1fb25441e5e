// CUDAContext.h: replaces PyTorch's header of this name, with the includes that code relies on. CUDAContextLight.h says
// what the simulator lacks.
#pragma once

#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/cuda/Exceptions.h>
#include <c10/cuda/CUDAStream.h>

#include <ATen/Context.h>
#include <c10/util/Logging.h>
