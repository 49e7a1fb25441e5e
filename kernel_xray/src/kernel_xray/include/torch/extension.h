// torch/extension.h: replaces PyTorch's header of this name by the part that operators use: tensors and their
// functions, autograd, registration, pybind11.
//
// PyTorch's own also brings torch::nn, torch::optim, torch::data and torch::jit, which take as long again to parse. The
// loader defines SIMT_WHOLE_TORCH for sources that name one of these (kernel_xray/build/sources.py), and chooses among the
// rest (kernel_xray/build/torch_headers.py).
#pragma once

#ifdef SIMT_WHOLE_TORCH
#include_next <torch/extension.h>
#else
#include <torch/cuda.h>
#include <torch/enum.h>
#if __has_include(<torch/print.h>)  // since PyTorch 2.12
#include <torch/print.h>
#endif
#include <torch/types.h>
#include <torch/version.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
#if !defined(AT_PER_OPERATOR_HEADERS) || defined(SIMT_AUTOGRAD)
#include <torch/autograd.h>
#include <torch/utils.h>
#endif
#ifndef AT_PER_OPERATOR_HEADERS
#include <torch/fft.h>
#include <torch/special.h>
#endif
#endif
