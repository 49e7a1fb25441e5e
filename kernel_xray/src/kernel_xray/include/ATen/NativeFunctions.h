// ATen/NativeFunctions.h: how PyTorch implements its operators. ATen/ATen.h includes it; a source that names none of
// these functions does not need them (kernel_xray/build/torch_headers.py).
#pragma once

#if !defined(AT_PER_OPERATOR_HEADERS) || !__has_include(<simt_operators.h>)
#include_next <ATen/NativeFunctions.h>
#endif
