// Exception.h: includes PyTorch's header of this name, and lets the simulator's library write the message of a failed
// STD_TORCH_CHECK: see simt/failed_check.h.
#pragma once

#include_next <torch/headeronly/util/Exception.h>

#if defined(STD_TORCH_CHECK) && !defined(STRIP_ERROR_MESSAGES)
#include "../../../simt/failed_check.h"

#undef STD_TORCH_CHECK
#define STD_TORCH_CHECK(cond, ...)                                     \
  if (C10_UNLIKELY_OR_CONST(!(cond))) {                                \
    ::simt::check_failed(__func__, __FILE__, __LINE__, {__VA_ARGS__}); \
  }
#endif
