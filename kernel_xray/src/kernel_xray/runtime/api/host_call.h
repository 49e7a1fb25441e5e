// host_call.h: what every function of the run-time API does first and last.
#pragma once

#include "../../include/simt/runtime_api.h"
#include "trace/trace.h"

namespace simt {

void host_only(const char* function);  // ends the kernel with a fault if a kernel calls the function
cudaError_t failed(cudaError_t code);  // remembers the error for cudaGetLastError, and returns it
cudaError_t pending_fault();           // the fault of an earlier kernel, or cudaSuccess

// From this call on, new work no longer clears a fault, as with CUDA: the device is lost until the process ends.
void keep_faults();
cudaError_t final_fault();  // the fault after which the device is lost, or cudaSuccess

// For a call that begins new work: clears an earlier fault. If the device is lost, returns the fault.
inline cudaError_t begin_work(const char* function) {
  host_only(function);
  reset_errors();
  trace::forget_kernel_before();
  return final_fault();
}

inline cudaError_t no_stream() { return failed(cudaErrorInvalidResourceHandle); }

}  // namespace simt
