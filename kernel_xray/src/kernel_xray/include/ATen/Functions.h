// ATen/Functions.h: PyTorch's operators. The loader lists those that a source names (kernel_xray/build/torch_headers.py);
// without its list, PyTorch's own header has them all.
#pragma once

#if defined(AT_PER_OPERATOR_HEADERS) && __has_include(<simt_operators.h>)
#include <ATen/Context.h>
#include <ATen/DeviceGuard.h>
#include <ATen/TensorUtils.h>
#include <ATen/core/Tensor.h>
#include <simt_operators.h>
#else
#include_next <ATen/Functions.h>
#endif
