// CUDAContext.h: in place of PyTorch's header of this name, with the includes that code relies on.
#pragma once

#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/cuda/Exceptions.h>
#include <c10/cuda/CUDAStream.h>

#include <ATen/Context.h>
#include <c10/util/Logging.h>
