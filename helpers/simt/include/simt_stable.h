// simt_stable.h: the first line of every translated source that is written for PyTorch's stable ABI. What most of them
// include anyway, in one header, so that it can be compiled once for all of them (helpers/simt/precompiled.py).
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
