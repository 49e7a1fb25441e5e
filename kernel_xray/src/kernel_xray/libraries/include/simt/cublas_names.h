// cublas_names.h: cuBLAS's names for the functions of cublas_api.h: cublasSaxpy is simt::blas::Vectors<float>::axpy.
// Included by cublas_api.h.
#pragma once

#include "../cublas_api.h"

#define SIMT_BLAS_NAME(name, function)    \
  inline constexpr auto& name = function; \
  inline constexpr auto& name##_v2 = function;
#define SIMT_BLAS_REAL(Level, name)                               \
  SIMT_BLAS_NAME(cublasS##name, ::simt::blas::Level<float>::name) \
  SIMT_BLAS_NAME(cublasD##name, ::simt::blas::Level<double>::name)
#define SIMT_BLAS_COMPLEX(Level, name)                                \
  SIMT_BLAS_NAME(cublasC##name, ::simt::blas::Level<cuComplex>::name) \
  SIMT_BLAS_NAME(cublasZ##name, ::simt::blas::Level<cuDoubleComplex>::name)
#define SIMT_BLAS_ALL(Level, name) SIMT_BLAS_REAL(Level, name) SIMT_BLAS_COMPLEX(Level, name)
// Where the letters are not a prefix: cublasIsamax, cublasScnrm2.
#define SIMT_BLAS_LETTERS(s, d, c, z, function)                         \
  SIMT_BLAS_NAME(cublas##s, ::simt::blas::Vectors<float>::function)     \
  SIMT_BLAS_NAME(cublas##d, ::simt::blas::Vectors<double>::function)    \
  SIMT_BLAS_NAME(cublas##c, ::simt::blas::Vectors<cuComplex>::function) \
  SIMT_BLAS_NAME(cublas##z, ::simt::blas::Vectors<cuDoubleComplex>::function)

SIMT_BLAS_ALL(Vectors, axpy)
SIMT_BLAS_ALL(Vectors, copy)
SIMT_BLAS_ALL(Vectors, swap)
SIMT_BLAS_ALL(Vectors, scal)
SIMT_BLAS_ALL(Vectors, rot)
SIMT_BLAS_COMPLEX(Vectors, dotu)
SIMT_BLAS_COMPLEX(Vectors, dotc)
SIMT_BLAS_NAME(cublasSdot, ::simt::blas::Vectors<float>::dotu)
SIMT_BLAS_NAME(cublasDdot, ::simt::blas::Vectors<double>::dotu)
SIMT_BLAS_NAME(cublasCsscal, ::simt::blas::Vectors<cuComplex>::scal_real)
SIMT_BLAS_NAME(cublasZdscal, ::simt::blas::Vectors<cuDoubleComplex>::scal_real)
SIMT_BLAS_LETTERS(Snrm2, Dnrm2, Scnrm2, Dznrm2, nrm2)
SIMT_BLAS_LETTERS(Sasum, Dasum, Scasum, Dzasum, asum)
SIMT_BLAS_LETTERS(Isamax, Idamax, Icamax, Izamax, amax)
SIMT_BLAS_LETTERS(Isamin, Idamin, Icamin, Izamin, amin)

SIMT_BLAS_ALL(MatrixVector, gemv)
SIMT_BLAS_ALL(MatrixVector, symv)
SIMT_BLAS_ALL(MatrixVector, syr)
SIMT_BLAS_ALL(MatrixVector, trsv)
SIMT_BLAS_ALL(MatrixVector, trmv)
SIMT_BLAS_COMPLEX(MatrixVector, geru)
SIMT_BLAS_COMPLEX(MatrixVector, gerc)
SIMT_BLAS_NAME(cublasSger, ::simt::blas::MatrixVector<float>::geru)
SIMT_BLAS_NAME(cublasDger, ::simt::blas::MatrixVector<double>::geru)

SIMT_BLAS_ALL(MatrixMatrix, gemm)
SIMT_BLAS_ALL(MatrixMatrix, gemmBatched)
SIMT_BLAS_ALL(MatrixMatrix, gemmStridedBatched)
SIMT_BLAS_ALL(MatrixMatrix, geam)
SIMT_BLAS_ALL(MatrixMatrix, dgmm)
SIMT_BLAS_ALL(MatrixMatrix, symm)
SIMT_BLAS_ALL(MatrixMatrix, syrk)
SIMT_BLAS_ALL(MatrixMatrix, trmm)
SIMT_BLAS_ALL(MatrixMatrix, trsm)
SIMT_BLAS_COMPLEX(MatrixMatrix, hemm)
SIMT_BLAS_COMPLEX(MatrixMatrix, herk)

#undef SIMT_BLAS_NAME
#undef SIMT_BLAS_REAL
#undef SIMT_BLAS_COMPLEX
#undef SIMT_BLAS_ALL
#undef SIMT_BLAS_LETTERS

#define cublasCreate_v2 cublasCreate
#define cublasDestroy_v2 cublasDestroy
#define cublasGetVersion_v2 cublasGetVersion
#define cublasSetStream_v2 cublasSetStream
#define cublasGetStream_v2 cublasGetStream
#define cublasSetWorkspace_v2 cublasSetWorkspace
#define cublasSetPointerMode_v2 cublasSetPointerMode
#define cublasGetPointerMode_v2 cublasGetPointerMode

// ---------------------------------------------------------------------------------------------------------------
// Names for products whose types are fixed

inline cublasStatus_t cublasHgemm(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,
                                  int n, int k, const __half* alpha, const __half* A, int lda, const __half* B, int ldb,
                                  const __half* beta, __half* C, int ldc) {
  return cublasGemmEx(handle, transa, transb, m, n, k, alpha, A, CUDA_R_16F, lda, B, CUDA_R_16F, ldb, beta, C,
                      CUDA_R_16F, ldc, CUBLAS_COMPUTE_16F, CUBLAS_GEMM_DEFAULT);
}

inline cublasStatus_t cublasHgemmBatched(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
                                         int m, int n, int k, const __half* alpha, const __half* const A[], int lda,
                                         const __half* const B[], int ldb, const __half* beta, __half* const C[],
                                         int ldc, int count) {
  return cublasGemmBatchedEx(handle, transa, transb, m, n, k, alpha, reinterpret_cast<const void* const*>(A),
                             CUDA_R_16F, lda, reinterpret_cast<const void* const*>(B), CUDA_R_16F, ldb, beta,
                             reinterpret_cast<void* const*>(C), CUDA_R_16F, ldc, count, CUBLAS_COMPUTE_16F,
                             CUBLAS_GEMM_DEFAULT);
}

inline cublasStatus_t cublasHgemmStridedBatched(cublasHandle_t handle, cublasOperation_t transa,
                                                cublasOperation_t transb, int m, int n, int k, const __half* alpha,
                                                const __half* A, int lda, long long strideA, const __half* B, int ldb,
                                                long long strideB, const __half* beta, __half* C, int ldc,
                                                long long strideC, int count) {
  return cublasGemmStridedBatchedEx(handle, transa, transb, m, n, k, alpha, A, CUDA_R_16F, lda, strideA, B, CUDA_R_16F,
                                    ldb, strideB, beta, C, CUDA_R_16F, ldc, strideC, count, CUBLAS_COMPUTE_16F,
                                    CUBLAS_GEMM_DEFAULT);
}

inline cublasStatus_t cublasSgemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,
                                    int n, int k, const float* alpha, const void* A, cudaDataType Atype, int lda,
                                    const void* B, cudaDataType Btype, int ldb, const float* beta, void* C,
                                    cudaDataType Ctype, int ldc) {
  return cublasGemmEx(handle, transa, transb, m, n, k, alpha, A, Atype, lda, B, Btype, ldb, beta, C, Ctype, ldc,
                      CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}
