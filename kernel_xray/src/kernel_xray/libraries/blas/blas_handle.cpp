// blas_handle.cpp: cuBLAS handles, the frame of a call, statuses as text, and copies between host and device.
#include "libraries/blas/blas_call.h"

namespace simt::blas {
namespace {

constexpr int kVersion = 130000;  // that of the CUDA release whose interface this is

libraries::HandleTable<Context>& contexts() { return lasting<libraries::HandleTable<Context>>(); }

Context* find(cublasHandle_t handle) { return contexts().find(reinterpret_cast<uintptr_t>(handle)); }

thread_local std::string last_refusal;  // of a call that returned CUBLAS_STATUS_INVALID_VALUE

cublasStatus_t refused(const std::string& function, cublasStatus_t status, const std::string& reason) {
  last_refusal = function + ": " + reason;
  return status;
}

// Sets or reads a field of a live handle.
template <typename T>
cublasStatus_t set(cublasHandle_t handle, T Context::* field, T value, bool valid) {
  Context* context = find(handle);
  if (!context) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!valid) return CUBLAS_STATUS_INVALID_VALUE;
  context->*field = value;
  return CUBLAS_STATUS_SUCCESS;
}
template <typename T>
cublasStatus_t get(cublasHandle_t handle, T Context::* field, T* value) {
  Context* context = find(handle);
  if (!context) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!value) return CUBLAS_STATUS_INVALID_VALUE;
  *value = context->*field;
  return CUBLAS_STATUS_SUCCESS;
}

struct Description {
  cublasStatus_t status;
  const char *name, *text;
};
constexpr Description kDescriptions[] = {
    {CUBLAS_STATUS_SUCCESS, "CUBLAS_STATUS_SUCCESS", "the call succeeded"},
    {CUBLAS_STATUS_NOT_INITIALIZED, "CUBLAS_STATUS_NOT_INITIALIZED", "the handle was not created, or is destroyed"},
    {CUBLAS_STATUS_ALLOC_FAILED, "CUBLAS_STATUS_ALLOC_FAILED", "the library could not allocate memory"},
    {CUBLAS_STATUS_INVALID_VALUE, "CUBLAS_STATUS_INVALID_VALUE", "an argument has an invalid value"},
    {CUBLAS_STATUS_ARCH_MISMATCH, "CUBLAS_STATUS_ARCH_MISMATCH", "the device lacks a feature that the call needs"},
    {CUBLAS_STATUS_MAPPING_ERROR, "CUBLAS_STATUS_MAPPING_ERROR", "a copy to or from the device failed"},
    {CUBLAS_STATUS_EXECUTION_FAILED, "CUBLAS_STATUS_EXECUTION_FAILED", "the call failed on the device"},
    {CUBLAS_STATUS_INTERNAL_ERROR, "CUBLAS_STATUS_INTERNAL_ERROR", "an internal operation failed"},
    {CUBLAS_STATUS_NOT_SUPPORTED, "CUBLAS_STATUS_NOT_SUPPORTED", "this combination of types is not supported"},
    {CUBLAS_STATUS_LICENSE_ERROR, "CUBLAS_STATUS_LICENSE_ERROR", "the licence check failed"},
};

cublasStatus_t copied(cudaError_t error) {
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_MAPPING_ERROR;
}

cublasStatus_t copy_matrix(int rows, int cols, int elem, const void* a, int lda, void* b, int ldb, cudaMemcpyKind kind,
                           cudaStream_t stream) {
  if (rows < 0 || cols < 0 || elem <= 0 || lda < rows || ldb < rows || lda <= 0 || ldb <= 0)
    return CUBLAS_STATUS_INVALID_VALUE;
  const size_t bytes = static_cast<size_t>(elem);
  return copied(
      cudaMemcpy2DAsync(b, ldb * bytes, a, lda * bytes, rows * bytes, static_cast<size_t>(cols), kind, stream));
}

// A vector is a matrix of one row, with columns `inc` elements apart.
cublasStatus_t copy_vector(int n, int elem, const void* x, int incx, void* y, int incy, cudaMemcpyKind kind,
                           cudaStream_t stream) {
  if (n < 0 || incx <= 0 || incy <= 0) return CUBLAS_STATUS_INVALID_VALUE;
  return copy_matrix(1, n, elem, x, incx, y, incy, kind, stream);
}

}  // namespace

cublasStatus_t blas_call(cublasHandle_t handle, const std::string& function, void (*body)(Call&, void*),
                         void* closure) {
  begin_library_call(function.c_str());
  const Context* context = find(handle);
  if (!context) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!stream_exists(context->stream))
    return refused(function, CUBLAS_STATUS_EXECUTION_FAILED, "the stream of its handle was destroyed");
  try {
    Call call(*context, function);
    body(call, closure);
    return CUBLAS_STATUS_SUCCESS;
  } catch (const Refusal& refusal) {
    return refused(function, refusal.status, refusal.reason);
  }
}

void Call::scalar_place(const char* argument, const void* pointer, size_t bytes) const {
  require(pointer != nullptr, std::string(argument) + " is a null pointer");
  cudaPointerAttributes attributes;
  const bool on_host = context_.pointer_mode == CUBLAS_POINTER_MODE_HOST;
  if (on_host && cudaPointerGetAttributes(&attributes, pointer) == cudaSuccess)
    require(attributes.type != cudaMemoryTypeDevice,
            std::string(argument) + " is on the device, and the pointer mode is CUBLAS_POINTER_MODE_HOST");
  operand(argument, pointer, bytes);
}

}  // namespace simt::blas

using simt::blas::Context;

cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  simt::begin_library_call("cublasCreate");
  if (!handle) return CUBLAS_STATUS_INVALID_VALUE;
  *handle = reinterpret_cast<cublasHandle_t>(simt::blas::contexts().add({}));
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  const bool alive = simt::blas::contexts().remove(reinterpret_cast<uintptr_t>(handle));
  return alive ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}
cublasStatus_t cublasGetVersion(cublasHandle_t, int* version) {  // cuBLAS also takes a null handle here
  if (!version) return CUBLAS_STATUS_INVALID_VALUE;
  *version = simt::blas::kVersion;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetProperty(libraryPropertyType type, int* value) {
  if (!value || type < MAJOR_VERSION || type > PATCH_LEVEL) return CUBLAS_STATUS_INVALID_VALUE;
  *value = type == MAJOR_VERSION ? simt::blas::kVersion / 10000 : 0;
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasGetStatusName(cublasStatus_t status) {
  for (const auto& known : simt::blas::kDescriptions)
    if (known.status == status) return known.name;
  return "unknown cuBLAS status";
}
const char* cublasGetStatusString(cublasStatus_t status) {
  const std::string& reason = simt::blas::last_refusal;
  if (status == CUBLAS_STATUS_INVALID_VALUE && !reason.empty()) return reason.c_str();
  for (const auto& known : simt::blas::kDescriptions)
    if (known.status == status) return known.text;
  return "unknown cuBLAS status";
}

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  return simt::blas::set(handle, &Context::stream, stream, simt::stream_exists(stream));
}
cublasStatus_t cublasGetStream(cublasHandle_t handle, cudaStream_t* stream) {
  return simt::blas::get(handle, &Context::stream, stream);
}
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void*, size_t) {
  return simt::blas::find(handle) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}
cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode) {
  const bool valid = mode == CUBLAS_POINTER_MODE_HOST || mode == CUBLAS_POINTER_MODE_DEVICE;
  return simt::blas::set(handle, &Context::pointer_mode, mode, valid);
}
cublasStatus_t cublasGetPointerMode(cublasHandle_t handle, cublasPointerMode_t* mode) {
  return simt::blas::get(handle, &Context::pointer_mode, mode);
}
cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode) {
  const bool valid = mode == CUBLAS_ATOMICS_NOT_ALLOWED || mode == CUBLAS_ATOMICS_ALLOWED;
  return simt::blas::set(handle, &Context::atomics_mode, mode, valid);
}
cublasStatus_t cublasGetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t* mode) {
  return simt::blas::get(handle, &Context::atomics_mode, mode);
}
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  const int base = mode & ~CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
  return simt::blas::set(handle, &Context::math_mode, mode, base >= 0 && base <= CUBLAS_TF32_TENSOR_OP_MATH);
}
cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode) {
  return simt::blas::get(handle, &Context::math_mode, mode);
}

#define SIMT_COPIES(Direction, kind)                                                                               \
  cublasStatus_t cublas##Direction##VectorAsync(int n, int elemSize, const void* x, int incx, void* y, int incy,   \
                                                cudaStream_t stream) {                                             \
    return simt::blas::copy_vector(n, elemSize, x, incx, y, incy, kind, stream);                                   \
  }                                                                                                                \
  cublasStatus_t cublas##Direction##Vector(int n, int elemSize, const void* x, int incx, void* y, int incy) {      \
    return simt::blas::copy_vector(n, elemSize, x, incx, y, incy, kind, nullptr);                                  \
  }                                                                                                                \
  cublasStatus_t cublas##Direction##MatrixAsync(int rows, int cols, int elemSize, const void* A, int lda, void* B, \
                                                int ldb, cudaStream_t stream) {                                    \
    return simt::blas::copy_matrix(rows, cols, elemSize, A, lda, B, ldb, kind, stream);                            \
  }                                                                                                                \
  cublasStatus_t cublas##Direction##Matrix(int rows, int cols, int elemSize, const void* A, int lda, void* B,      \
                                           int ldb) {                                                              \
    return simt::blas::copy_matrix(rows, cols, elemSize, A, lda, B, ldb, kind, nullptr);                           \
  }
SIMT_COPIES(Set, cudaMemcpyHostToDevice)
SIMT_COPIES(Get, cudaMemcpyDeviceToHost)
#undef SIMT_COPIES
