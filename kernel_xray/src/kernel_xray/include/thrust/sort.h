// sort.h: Thrust's own, and its policies: with nvcc, this header brings them, and programs rely on that.
#pragma once

#include_next <thrust/sort.h>

#include <thrust/execution_policy.h>
