// device_malloc.h: Thrust's own, with memory that kernels may use.
#pragma once

#include <thrust/system/cpp/memory_resource.h>

#include_next <thrust/device_malloc.h>
