// blas.cu: the functions of cuBLAS, each as a case. Its tensors are the function's pointers, and its numbers, from the
// third on, the other arguments, both in the order of the function.
//
// The first number is the element type: float, double, complex of float, complex of double. The second is the pointer
// mode: with 1, the scalars and the result are on the device.
#include <cublas_v2.h>

#include "case.h"

namespace {

void expect_blas(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw std::runtime_error(std::string(what) + " returned " + cublasGetStatusName(status));
}
#define EXPECT_BLAS(call) expect_blas((call), #call)

struct Handle {
  cublasHandle_t handle;
  explicit Handle(int64_t mode = 0) {
    EXPECT_BLAS(cublasCreate(&handle));
    EXPECT_BLAS(cublasSetPointerMode(handle, mode ? CUBLAS_POINTER_MODE_DEVICE : CUBLAS_POINTER_MODE_HOST));
  }
  ~Handle() { cublasDestroy(handle); }
  operator cublasHandle_t() const { return handle; }
};

template <typename... Parameters>
void run(const Call& call, cublasStatus_t (*function)(cublasHandle_t, Parameters...), const char* name) {
  const Handle handle(call.number(1));
  const Call own{call.tensors, {call.numbers.begin() + 2, call.numbers.end()}};
  void (*const parameters)(Parameters...) = nullptr;
  own.with_arguments_of(parameters, [&](auto... arguments) { expect_blas(function(handle, arguments...), name); });
}

}  // namespace

#define CASE_OF_TYPES(name, s, d, c, z)      \
  CASE(name) {                               \
    const int64_t type = call.number(0);     \
    type == 0   ? run(call, &cublas##s, #s)  \
    : type == 1 ? run(call, &cublas##d, #d)  \
    : type == 2 ? run(call, &cublas##c, #c)  \
                : run(call, &cublas##z, #z); \
  }
#define CASE_OF_ALL(name) CASE_OF_TYPES(name, S##name, D##name, C##name, Z##name)

// Level 1
CASE_OF_ALL(axpy)
CASE_OF_ALL(copy)
CASE_OF_ALL(swap)
CASE_OF_ALL(scal)
CASE_OF_ALL(rot)
CASE_OF_TYPES(nrm2, Snrm2, Dnrm2, Scnrm2, Dznrm2)
CASE_OF_TYPES(asum, Sasum, Dasum, Scasum, Dzasum)
CASE_OF_TYPES(amax, Isamax, Idamax, Icamax, Izamax)
CASE_OF_TYPES(amin, Isamin, Idamin, Icamin, Izamin)
CASE_OF_TYPES(dotu, Sdot, Ddot, Cdotu, Zdotu)
CASE_OF_TYPES(dotc, Sdot, Ddot, Cdotc, Zdotc)
// Level 2
CASE_OF_ALL(gemv)
CASE_OF_TYPES(geru, Sger, Dger, Cgeru, Zgeru)
CASE_OF_TYPES(gerc, Sger, Dger, Cgerc, Zgerc)
CASE_OF_ALL(symv)
CASE_OF_ALL(syr)
CASE_OF_ALL(trmv)
CASE_OF_ALL(trsv)
// Level 3
CASE_OF_ALL(gemm)
CASE_OF_ALL(gemmStridedBatched)
CASE_OF_ALL(gemmBatched)
CASE_OF_ALL(geam)
CASE_OF_ALL(dgmm)
CASE_OF_ALL(symm)
CASE_OF_TYPES(hemm, Ssymm, Dsymm, Chemm, Zhemm)
CASE_OF_ALL(syrk)
CASE_OF_ALL(trmm)
CASE_OF_ALL(trsm)
CASE(hgemm) { run(call, &cublasHgemm, "Hgemm"); }
CASE(herk) { run(call, &cublasZherk, "Zherk"); }

// form (one, strided, batched), transa, transb, m, n, k, lda, ldb, ldc, count, A's and B's type, C's type, compute type;
// alpha, A, B, beta, C, of a batch the lists of addresses. Their functions have overloads, so they are called by hand.
CASE(gemm_ex) {
  const Handle handle(call.number(1));
  const auto transa = static_cast<cublasOperation_t>(call.number(3));
  const auto transb = static_cast<cublasOperation_t>(call.number(4));
  const int m = call.n(5), n = call.n(6), k = call.n(7), lda = call.n(8), ldb = call.n(9), ldc = call.n(10);
  const int count = call.n(11);
  const auto type = static_cast<cudaDataType>(call.number(12)), result = static_cast<cudaDataType>(call.number(13));
  const auto compute = static_cast<cublasComputeType_t>(call.number(14));
  void *alpha = call.data<void>(0), *a = call.data<void>(1), *b = call.data<void>(2), *beta = call.data<void>(3);
  void* c = call.data<void>(4);
  if (call.number(2) == 0)
    EXPECT_BLAS(cublasGemmEx(handle, transa, transb, m, n, k, alpha, a, type, lda, b, type, ldb, beta, c, result, ldc,
                             compute, CUBLAS_GEMM_DEFAULT));
  if (call.number(2) == 1)
    EXPECT_BLAS(cublasGemmStridedBatchedEx(handle, transa, transb, m, n, k, alpha, a, type, lda, call.size(1) / count,
                                           b, type, ldb, call.size(2) / count, beta, c, result, ldc,
                                           call.size(4) / count, count, compute, CUBLAS_GEMM_DEFAULT));
  if (call.number(2) == 2)
    EXPECT_BLAS(cublasGemmBatchedEx(handle, transa, transb, m, n, k, alpha, call.data<const void*>(1), type, lda,
                                    call.data<const void*>(2), type, ldb, beta, call.data<void*>(4), result, ldc, count,
                                    compute, CUBLAS_GEMM_DEFAULT));
}

// ------------------------------------------------------------------------------------------------------------------
// Handles, statuses, copies

CASE(handles) {
  cublasHandle_t handle = nullptr;
  const float one = 1;
  float* device;
  EXPECT_SUCCESS(cudaMalloc(&device, 64 * sizeof(float)));
  EXPECT(cublasSscal(handle, 1, &one, device, 1) == CUBLAS_STATUS_NOT_INITIALIZED);
  EXPECT_BLAS(cublasCreate(&handle));
  cudaStream_t stream, now;
  EXPECT_SUCCESS(cudaStreamCreate(&stream));
  EXPECT_BLAS(cublasGetStream(handle, &now));
  EXPECT(now == nullptr);
  EXPECT_BLAS(cublasSetStream(handle, stream));
  EXPECT_BLAS(cublasGetStream(handle, &now));
  EXPECT(now == stream);
  cublasPointerMode_t pointer;
  EXPECT_BLAS(cublasGetPointerMode(handle, &pointer));
  EXPECT(pointer == CUBLAS_POINTER_MODE_HOST);
  cublasMath_t math;
  EXPECT_BLAS(cublasSetMathMode(handle, CUBLAS_TF32_TENSOR_OP_MATH));
  EXPECT_BLAS(cublasGetMathMode(handle, &math));
  EXPECT(math == CUBLAS_TF32_TENSOR_OP_MATH);
  int version = 0, major = 0;
  EXPECT_BLAS(cublasGetVersion(handle, &version));
  EXPECT_BLAS(cublasGetProperty(MAJOR_VERSION, &major));
  EXPECT(version >= 120000 && version / 10000 == major);
  EXPECT(cublasGetCudartVersion() / 1000 == CUDART_VERSION / 1000);
#ifdef __SIMT__  // cuBLAS has the name since CUDA 13
  static_assert(CUBLAS_GEMM_AUTOTUNE == 999);
#endif
  EXPECT(std::string(cublasGetStatusName(CUBLAS_STATUS_NOT_SUPPORTED)) == "CUBLAS_STATUS_NOT_SUPPORTED");
  EXPECT(!std::string(cublasGetStatusString(CUBLAS_STATUS_NOT_SUPPORTED)).empty());

  // Bad arguments
  auto gemm = [&](cublasOperation_t op, int m, int n, int k, int lda, int ldb, int ldc) {
    return cublasSgemm(handle, op, CUBLAS_OP_N, m, n, k, &one, device, lda, device, ldb, &one, device, ldc);
  };
  EXPECT(gemm(CUBLAS_OP_N, 2, 3, 4, 2, 4, 2) == CUBLAS_STATUS_SUCCESS);
  EXPECT(gemm(CUBLAS_OP_T, 2, 3, 4, 4, 4, 2) == CUBLAS_STATUS_SUCCESS);
  EXPECT(gemm(CUBLAS_OP_N, 0, 3, 4, 1, 4, 1) == CUBLAS_STATUS_SUCCESS);
  EXPECT(gemm(CUBLAS_OP_N, -1, 3, 4, 2, 4, 2) == CUBLAS_STATUS_INVALID_VALUE);
  EXPECT(gemm(CUBLAS_OP_N, 2, 3, 4, 1, 4, 2) == CUBLAS_STATUS_INVALID_VALUE);
  EXPECT(gemm(CUBLAS_OP_T, 2, 3, 4, 2, 4, 2) == CUBLAS_STATUS_INVALID_VALUE);
  EXPECT(gemm(CUBLAS_OP_N, 2, 3, 4, 2, 3, 2) == CUBLAS_STATUS_INVALID_VALUE);
  EXPECT(gemm(CUBLAS_OP_N, 2, 3, 4, 2, 4, 1) == CUBLAS_STATUS_INVALID_VALUE);
  EXPECT(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, device, CUDA_R_32F, 1, device, CUDA_R_64F, 1,
                      &one, device, CUDA_R_32F, 1, CUBLAS_COMPUTE_32F,
                      CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_NOT_SUPPORTED);

  // A 3 x 2 matrix with columns 4 apart goes to the device with columns 5 apart, and comes back as it was.
  float there[8] = {1, 2, 3, -1, 4, 5, 6, -1}, back[8] = {};
  EXPECT_BLAS(cublasSetMatrix(3, 2, sizeof(float), there, 4, device, 5));
  EXPECT_BLAS(cublasGetMatrix(3, 2, sizeof(float), device, 5, back, 4));
  for (int i = 0; i < 7; ++i) EXPECT(i == 3 ? back[i] == 0 : back[i] == there[i]);
  float every_second[4] = {};
  EXPECT_BLAS(cublasSetVector(4, sizeof(float), there, 2, device, 3));
  EXPECT_BLAS(cublasGetVector(4, sizeof(float), device, 3, every_second, 1));
  for (int i = 0; i < 4; ++i) EXPECT(every_second[i] == there[2 * i]);
  EXPECT(cublasSetVector(1, sizeof(float), there, 0, device, 1) == CUBLAS_STATUS_INVALID_VALUE);

  EXPECT_BLAS(cublasDestroy(handle));
  EXPECT_SUCCESS(cudaStreamDestroy(stream));
  EXPECT_SUCCESS(cudaFree(device));
}

#ifdef __SIMT__
// What a GPU reports later or not at all.
CASE(mistakes) {
  const Handle handle;
  float* device;
  EXPECT_SUCCESS(cudaMalloc(&device, 10 * sizeof(float)));
  const float one = 1;
  const int64_t which = call.number(0);
  if (which == 0) cublasSscal(handle, 11, &one, device, 1);
  if (which == 1) cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 6, &one, device, 2, device, 6, &one, device, 2);
  if (which == 2) cublasSgemv(handle, CUBLAS_OP_N, 2, 2, &one, nullptr, 2, device, 1, &one, device, 1);
  if (which == 3) {
    cudaFree(device);
    cublasSscal(handle, 10, &one, device, 1);
  }
  if (which == 4) {
    EXPECT(cublasSscal(handle, 10, device, device, 1) == CUBLAS_STATUS_INVALID_VALUE);
    throw std::runtime_error(cublasGetStatusString(CUBLAS_STATUS_INVALID_VALUE));
  }
  if (which == 5) {
    EXPECT(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, device, 1, device, 2, &one, device, 2) ==
           CUBLAS_STATUS_INVALID_VALUE);
    throw std::runtime_error(cublasGetStatusString(CUBLAS_STATUS_INVALID_VALUE));
  }
}

__global__ void call_in_kernel(cublasHandle_t handle, float* x) {
  const float one = 1;
  cublasSscal(handle, 1, &one, x, 1);
}

CASE(in_kernel) {
  const Handle handle;
  call_in_kernel<<<1, 1>>>(handle.handle, call.data<float>(0));
}
#endif
