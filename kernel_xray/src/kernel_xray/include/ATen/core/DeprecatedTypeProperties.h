// DeprecatedTypeProperties.h: includes PyTorch's header of this name and gives its class, the result of x.type(), a member
// is_cpu(): the rewriter turns x.type().is_cuda() into it.
#pragma once

#include <ATen/core/DeprecatedTypePropertiesRegistry.h>
#include <ATen/core/Generator.h>
#include <c10/core/Backend.h>
#include <c10/core/Layout.h>
#include <c10/core/ScalarType.h>
#include <c10/core/Storage.h>
#include <c10/core/TensorOptions.h>

#define is_cuda()                                             \
  is_cpu() const { return device_type() == DeviceType::CPU; } \
  bool is_cuda()
#include_next <ATen/core/DeprecatedTypeProperties.h>
#undef is_cuda
