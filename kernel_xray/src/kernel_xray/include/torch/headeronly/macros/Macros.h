// Macros.h: includes PyTorch's header of this name and adds the launch bounds that it declares for nvcc alone. They do
// nothing, as __launch_bounds__ does nothing here.
#pragma once

#include_next <torch/headeronly/macros/Macros.h>

#ifdef __SIMTCC__
#define C10_MAX_THREADS_PER_BLOCK(threads) (threads)
#define C10_MIN_BLOCKS_PER_SM(threads, blocks) (blocks)
#define C10_LAUNCH_BOUNDS_0
#define C10_LAUNCH_BOUNDS_1(threads)
#define C10_LAUNCH_BOUNDS_2(threads, blocks)
#endif
