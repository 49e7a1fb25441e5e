// CUDAException.h: replaces PyTorch's header of this name: checks of run-time API calls and of launches.
//
// A failed check throws c10::AcceleratorError (torch.AcceleratorError, a RuntimeError, in Python) with CUDA's text for
// the code, its name, and the line of the check. A launch is checked at once: it has already run.
#pragma once

#include <c10/cuda/CUDAMacros.h>

#include <c10/macros/Macros.h>
#include <c10/util/Exception.h>
#include <c10/util/irange.h>  // which includes <algorithm>: extensions rely on it

#include <simt/torch_bridge.h>

#include <string>

namespace c10::cuda {

// Throws if `err` is an error. `include_device_assertions` has no meaning here: a device-side assert ends its launch.
inline void c10_cuda_check_implementation(int32_t err, const char* filename, const char* function_name,
                                          uint32_t line_number, bool /*include_device_assertions*/) {
  if (C10_LIKELY(err == cudaSuccess)) return;
  (void)cudaGetLastError();  // the exception reports it
  throw c10::AcceleratorError({function_name, filename, line_number}, err,
                              simt::error_message(static_cast<cudaError_t>(err), function_name, filename, line_number));
}

}  // namespace c10::cuda

#define C10_CUDA_CHECK(EXPR)                                                                  \
  do {                                                                                        \
    const cudaError_t __err = EXPR;                                                           \
    c10::cuda::c10_cuda_check_implementation(static_cast<int32_t>(__err), __FILE__, __func__, \
                                             static_cast<uint32_t>(__LINE__), true);          \
  } while (0)

#define C10_CUDA_CHECK_WARN(EXPR)                              \
  do {                                                         \
    const cudaError_t __err = EXPR;                            \
    if (C10_UNLIKELY(__err != cudaSuccess)) {                  \
      (void)cudaGetLastError();                                \
      TORCH_WARN("CUDA warning: ", cudaGetErrorString(__err)); \
    }                                                          \
  } while (0)

#define C10_CUDA_ERROR_HANDLED(EXPR) EXPR

#define C10_CUDA_IGNORE_ERROR(EXPR)                                   \
  do {                                                                \
    const cudaError_t __err = EXPR;                                   \
    if (C10_UNLIKELY(__err != cudaSuccess)) (void)cudaGetLastError(); \
  } while (0)

#define C10_CUDA_CLEAR_ERROR() \
  do {                         \
    (void)cudaGetLastError();  \
  } while (0)

#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
