// torch_bridge.h: the part of the run-time library that the replacements for PyTorch's CUDA headers need.
//
// PyTorch keeps a current stream for each host thread, and a pool of streams. Here they live in libsimt, so that all
// kernels that a process has loaded see the same ones.
#pragma once

#include "runtime_api.h"

namespace simt {

SIMT_API cudaStream_t current_stream();  // of this host thread; the default stream unless one was set
SIMT_API void set_current_stream(cudaStream_t stream);
SIMT_API cudaStream_t stream_from_pool(bool high_priority);  // 32 of each kind, round-robin

// The text of an exception for a failed call: "CUDA error: invalid argument", then the code's name, where it was found,
// and for some codes how to fix it.
SIMT_API std::string error_message(cudaError_t error, const char* function, const char* file, unsigned line);

// A device index as PyTorch gives it: 0, or -1 for "the current device" and for CPU tensors.
inline bool is_device_index(int index) { return index == 0 || index == -1; }

}  // namespace simt
