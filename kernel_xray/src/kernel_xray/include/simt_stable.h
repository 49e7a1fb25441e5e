// simt_stable.h: the headers that most sources for PyTorch's stable ABI include, in one, so that they can be compiled
// once for all (kernel_xray/runtime/precompiled.py). Every translated source for the stable ABI includes it first.
#pragma once

#include "cuda_runtime.h"

#include <algorithm>
#include <string>
#include <tuple>

#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/Dispatch.h>
#include <torch/headeronly/core/ScalarType.h>
