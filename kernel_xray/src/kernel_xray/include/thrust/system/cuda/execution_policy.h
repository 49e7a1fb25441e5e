// execution_policy.h: Thrust's policies for CUDA; see thrust/execution_policy.h.
#pragma once

#include <thrust/execution_policy.h>
