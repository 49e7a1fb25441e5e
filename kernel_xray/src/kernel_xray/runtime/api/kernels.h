// kernels.h: launches through a kernel's address, kept for later.
#pragma once

#include <optional>

#include "../../include/simt/runtime_api.h"
#include "threads/launch.h"

namespace simt {

// The launch of a kernel that has passed known(); copies the arguments that the pointers point to. Throws Fault for
// any other address.
cudaError_t prepare_launch(const detail::ConfigAt& at, const void* kernel, void** arguments, bool cooperative,
                           std::optional<StoredLaunch>& launch);

}  // namespace simt
