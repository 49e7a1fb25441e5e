// errors.cpp: names and texts of error codes, and the last error of each host thread.
//
// There are two kinds of error. An ordinary error is one that a call returned (an invalid argument); it stays until it
// is read. A fault is one that ended a kernel; it stays, read or not, until new work begins and calls reset_errors.
// With CUDA a fault stays until the process ends; so it does in a program, which calls keep_faults when it starts.
#include <atomic>
#include <cstdio>
#include <initializer_list>

#include "api/host_call.h"

namespace simt {
namespace {

thread_local int ordinary = cudaSuccess;
thread_local int fault_code = cudaSuccess;

std::atomic<bool> faults_kept{false};
std::atomic<int> kept_fault{cudaSuccess};  // the first fault of a program; all its host threads see it

bool is_fault(int code) {
  for (cudaError_t fault : {cudaErrorIllegalAddress, cudaErrorLaunchTimeout, cudaErrorAssert,
                            cudaErrorHardwareStackError, cudaErrorIllegalInstruction, cudaErrorMisalignedAddress,
                            cudaErrorInvalidAddressSpace, cudaErrorInvalidPc, cudaErrorLaunchFailure})
    if (code == fault) return true;
  return false;
}

struct Description {
  int code;
  const char *name, *text;
};

Description described(int code) {
  static constexpr Description all[] = {
#define SIMT_DESCRIPTION(name, value, text) {value, #name, text},
      SIMT_CUDA_ERRORS(SIMT_DESCRIPTION)
#undef SIMT_DESCRIPTION
  };
  for (const Description& known : all)
    if (known.code == code) return known;
  return {code, "unrecognized error code", "unrecognized error code"};
}

}  // namespace

void keep_faults() { faults_kept = true; }
cudaError_t final_fault() { return static_cast<cudaError_t>(kept_fault.load()); }

void set_last_error(int code) {
  int none = cudaSuccess;
  if (!is_fault(code))
    ordinary = code;
  else if (faults_kept)
    kept_fault.compare_exchange_strong(none, code);
  else
    fault_code = code;
}

int last_error(bool clear) {
  if (cudaError_t fault = pending_fault()) return fault;
  const int code = ordinary;
  if (clear) ordinary = cudaSuccess;
  return code;
}

void reset_errors() { fault_code = cudaSuccess; }

cudaError_t pending_fault() { return faults_kept ? final_fault() : static_cast<cudaError_t>(fault_code); }

cudaError_t failed(cudaError_t code) {
  set_last_error(code);
  return code;
}

void refuse_call(const char* name, const char* reason) {
  host_only(name);
  std::fprintf(stderr, "%s is not supported by the simulator: %s\n", name, reason);
  set_last_error(cudaErrorNotSupported);
}

void host_only(const char* function) {
  if (in_kernel()) fault("host-call", std::string(function) + " is for host code, and was called in a kernel");
}

}  // namespace simt

const char* cudaGetErrorName(cudaError_t error) { return simt::described(error).name; }
const char* cudaGetErrorString(cudaError_t error) { return simt::described(error).text; }

// In a kernel: its own launches either succeed or end it.
cudaError_t cudaGetLastError() {
  return simt::in_kernel() ? cudaSuccess : static_cast<cudaError_t>(simt::last_error(true));
}
cudaError_t cudaPeekAtLastError() {
  return simt::in_kernel() ? cudaSuccess : static_cast<cudaError_t>(simt::last_error(false));
}
