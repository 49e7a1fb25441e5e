// errors.cpp: names and texts of error codes, and the last error of each host thread.
//
// There are two kinds of error. An ordinary error is one that a call returned (an invalid argument); it stays until it
// is read. A fault is one that ended a kernel; it stays, read or not, until new work begins and calls reset_errors.
// With CUDA a fault stays until the process ends.
#include "api/host_call.h"

namespace simt {
namespace {

thread_local int ordinary = cudaSuccess;
thread_local int fault_code = cudaSuccess;

bool is_fault(int code) {
  switch (code) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
      return true;
    default:
      return false;
  }
}

}  // namespace

void set_last_error(int code) { (is_fault(code) ? fault_code : ordinary) = code; }

int last_error(bool clear) {
  if (fault_code != cudaSuccess) return fault_code;
  const int code = ordinary;
  if (clear) ordinary = cudaSuccess;
  return code;
}

void reset_errors() { fault_code = cudaSuccess; }

cudaError_t pending_fault() { return static_cast<cudaError_t>(fault_code); }

cudaError_t failed(cudaError_t code) {
  set_last_error(code);
  return code;
}

void host_only(const char* function) {
  if (in_kernel()) fault("host-call", std::string(function) + " is for host code, and was called in a kernel");
}

}  // namespace simt

const char* cudaGetErrorName(cudaError_t error) {
  switch (static_cast<int>(error)) {
#define SIMT_NAME(name, value, text) \
  case value:                        \
    return #name;
    SIMT_CUDA_ERRORS(SIMT_NAME)
#undef SIMT_NAME
    default:
      return "unrecognized error code";
  }
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (static_cast<int>(error)) {
#define SIMT_TEXT(name, value, text) \
  case value:                        \
    return text;
    SIMT_CUDA_ERRORS(SIMT_TEXT)
#undef SIMT_TEXT
    default:
      return "unrecognized error code";
  }
}

cudaError_t cudaGetLastError() { return static_cast<cudaError_t>(simt::last_error(true)); }
cudaError_t cudaPeekAtLastError() { return static_cast<cudaError_t>(simt::last_error(false)); }
