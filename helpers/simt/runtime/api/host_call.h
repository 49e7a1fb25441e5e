// host_call.h: what every function of the run-time API does first and last.
#pragma once

#include "../../include/simt/runtime_api.h"

namespace simt {

void host_only(const char* function);  // ends the kernel with a fault if a kernel calls the function
cudaError_t failed(cudaError_t code);  // remembers the error for cudaGetLastError, and returns it
cudaError_t pending_fault();           // the fault of an earlier kernel, or cudaSuccess

// For a call that begins new work: clears an earlier fault.
inline void begin_work(const char* function) {
  host_only(function);
  reset_errors();
}

inline cudaError_t no_stream() { return failed(cudaErrorInvalidResourceHandle); }

}  // namespace simt
