// device_free.h: Thrust's own, for the memory of device_malloc.h.
#pragma once

#include <thrust/system/cpp/memory_resource.h>

#include_next <thrust/device_free.h>
