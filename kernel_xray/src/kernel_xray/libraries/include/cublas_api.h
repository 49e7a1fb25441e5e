// cublas_api.h: cuBLAS on the CPU: vectors (level 1), a matrix and a vector (level 2), matrices (level 3).
//
// The model. Matrices are column-major, as in cuBLAS. A call has done its work when it returns. It returns what cuBLAS
// documents: CUBLAS_STATUS_NOT_INITIALIZED for a handle that was not created, CUBLAS_STATUS_INVALID_VALUE for a bad
// argument; cublasGetStatusString then also names the argument of this thread's last such call. An operand that ends
// behind its allocation, or that is freed or null, raises a fault that names it; on a GPU that is an illegal access,
// reported later. Large products run on the BLAS of PyTorch if the process has loaded it, else on loops of our own.
//
// Deviations from cuBLAS: float and double results round like a CPU's, so last bits differ; products of 16-bit and
// 8-bit floating-point operands are summed in float and rounded once, for the compute types 16F too (cuBLAS may then
// sum in half); TF32 and the other fast modes compute in full precision; the algorithm is ignored. A function has its
// type's overload only, and each is a reference to a C++ function: extern "C" declarations of a program's own do not
// match. Banded and packed matrices, batched factorisations, cublasLt, cublasXt and the legacy interface are not there.
#pragma once

#include "cuComplex.h"
#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "library_types.h"
#include "simt/runtime_api.h"

struct cublasContext;
using cublasHandle_t = cublasContext*;
using cublasDataType_t = cudaDataType;

enum cublasStatus_t {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_ALLOC_FAILED = 3,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_ARCH_MISMATCH = 8,
  CUBLAS_STATUS_MAPPING_ERROR = 11,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
  CUBLAS_STATUS_INTERNAL_ERROR = 14,
  CUBLAS_STATUS_NOT_SUPPORTED = 15,
  CUBLAS_STATUS_LICENSE_ERROR = 16,
};
enum cublasOperation_t {
  CUBLAS_OP_N = 0,  // as stored
  CUBLAS_OP_T = 1,  // transposed
  CUBLAS_OP_C = 2,  // conjugated and transposed
  CUBLAS_OP_HERMITAN = CUBLAS_OP_C,
  CUBLAS_OP_CONJG = 3,
};
enum cublasFillMode_t { CUBLAS_FILL_MODE_LOWER = 0, CUBLAS_FILL_MODE_UPPER = 1, CUBLAS_FILL_MODE_FULL = 2 };
enum cublasDiagType_t { CUBLAS_DIAG_NON_UNIT = 0, CUBLAS_DIAG_UNIT = 1 };
enum cublasSideMode_t { CUBLAS_SIDE_LEFT = 0, CUBLAS_SIDE_RIGHT = 1 };
enum cublasPointerMode_t { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 };
enum cublasAtomicsMode_t { CUBLAS_ATOMICS_NOT_ALLOWED = 0, CUBLAS_ATOMICS_ALLOWED = 1 };
enum cublasMath_t {
  CUBLAS_DEFAULT_MATH = 0,
  CUBLAS_TENSOR_OP_MATH = 1,
  CUBLAS_PEDANTIC_MATH = 2,
  CUBLAS_TF32_TENSOR_OP_MATH = 3,
  CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16,
};
enum cublasComputeType_t {
  CUBLAS_COMPUTE_16F = 64,
  CUBLAS_COMPUTE_16F_PEDANTIC = 65,
  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_32F_PEDANTIC = 69,
  CUBLAS_COMPUTE_64F = 70,
  CUBLAS_COMPUTE_64F_PEDANTIC = 71,
  CUBLAS_COMPUTE_32I = 72,
  CUBLAS_COMPUTE_32I_PEDANTIC = 73,
  CUBLAS_COMPUTE_32F_FAST_16F = 74,
  CUBLAS_COMPUTE_32F_FAST_16BF = 75,
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77,
};
enum cublasGemmAlgo_t {
#define SIMT_ALGORITHMS(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12) F(13) F(14) F(15)
#define SIMT_ALGORITHM(i) CUBLAS_GEMM_ALGO##i = i, CUBLAS_GEMM_ALGO##i##_TENSOR_OP = 100 + i,
  SIMT_ALGORITHMS(SIMT_ALGORITHM)
#undef SIMT_ALGORITHM
#undef SIMT_ALGORITHMS
      CUBLAS_GEMM_ALGO16 = 16,
  CUBLAS_GEMM_ALGO17 = 17,
  CUBLAS_GEMM_ALGO18 = 18,
  CUBLAS_GEMM_ALGO19 = 19,
  CUBLAS_GEMM_ALGO20 = 20,
  CUBLAS_GEMM_ALGO21 = 21,
  CUBLAS_GEMM_ALGO22 = 22,
  CUBLAS_GEMM_ALGO23 = 23,
  CUBLAS_GEMM_DEFAULT = -1,
  CUBLAS_GEMM_DFALT = -1,
  CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99,
  CUBLAS_GEMM_DFALT_TENSOR_OP = 99,
  CUBLAS_GEMM_AUTOTUNE = 999,
};

// ---------------------------------------------------------------------------------------------------------------
// The handle, and copies between host and device. Sizes in elements, except elemSize in bytes.

SIMT_API cublasStatus_t cublasCreate(cublasHandle_t* handle);
SIMT_API cublasStatus_t cublasDestroy(cublasHandle_t handle);
SIMT_API cublasStatus_t cublasGetVersion(cublasHandle_t handle, int* version);
SIMT_API cublasStatus_t cublasGetProperty(libraryPropertyType type, int* value);
inline size_t cublasGetCudartVersion() { return CUDART_VERSION; }
SIMT_API const char* cublasGetStatusName(cublasStatus_t status);
SIMT_API const char* cublasGetStatusString(cublasStatus_t status);
SIMT_API cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream);
SIMT_API cublasStatus_t cublasGetStream(cublasHandle_t handle, cudaStream_t* stream);
SIMT_API cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void* workspace, size_t bytes);  // not used
SIMT_API cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode);
SIMT_API cublasStatus_t cublasGetPointerMode(cublasHandle_t handle, cublasPointerMode_t* mode);
SIMT_API cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode);
SIMT_API cublasStatus_t cublasGetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t* mode);
SIMT_API cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);
SIMT_API cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode);

SIMT_API cublasStatus_t cublasSetVector(int n, int elemSize, const void* x, int incx, void* y, int incy);
SIMT_API cublasStatus_t cublasGetVector(int n, int elemSize, const void* x, int incx, void* y, int incy);
SIMT_API cublasStatus_t cublasSetMatrix(int rows, int cols, int elemSize, const void* A, int lda, void* B, int ldb);
SIMT_API cublasStatus_t cublasGetMatrix(int rows, int cols, int elemSize, const void* A, int lda, void* B, int ldb);
SIMT_API cublasStatus_t cublasSetVectorAsync(int n, int elemSize, const void* x, int incx, void* y, int incy,
                                             cudaStream_t stream);
SIMT_API cublasStatus_t cublasGetVectorAsync(int n, int elemSize, const void* x, int incx, void* y, int incy,
                                             cudaStream_t stream);
SIMT_API cublasStatus_t cublasSetMatrixAsync(int rows, int cols, int elemSize, const void* A, int lda, void* B, int ldb,
                                             cudaStream_t stream);
SIMT_API cublasStatus_t cublasGetMatrixAsync(int rows, int cols, int elemSize, const void* A, int lda, void* B, int ldb,
                                             cudaStream_t stream);

// ---------------------------------------------------------------------------------------------------------------
// The functions, once for all element types; the names with a type's letter follow below. Scalars and results of
// level 1 are in host or device memory, as the handle's pointer mode says.

namespace simt::blas {

template <typename T>
struct RealOf {
  using type = T;
};
template <>
struct RealOf<cuComplex> {
  using type = float;
};
template <>
struct RealOf<cuDoubleComplex> {
  using type = double;
};

// Level 1. Vectors of n elements, `inc` elements apart; a negative increment goes backwards from the last element.
template <typename T>
struct SIMT_API Vectors {
  using Real = typename RealOf<T>::type;
  static cublasStatus_t axpy(cublasHandle_t handle, int n, const T* alpha, const T* x, int incx, T* y, int incy);
  static cublasStatus_t copy(cublasHandle_t handle, int n, const T* x, int incx, T* y, int incy);
  static cublasStatus_t swap(cublasHandle_t handle, int n, T* x, int incx, T* y, int incy);
  static cublasStatus_t scal(cublasHandle_t handle, int n, const T* alpha, T* x, int incx);
  static cublasStatus_t scal_real(cublasHandle_t handle, int n, const Real* alpha, T* x, int incx);
  static cublasStatus_t dotu(cublasHandle_t handle, int n, const T* x, int incx, const T* y, int incy, T* result);
  static cublasStatus_t dotc(cublasHandle_t handle, int n, const T* x, int incx, const T* y, int incy, T* result);
  static cublasStatus_t nrm2(cublasHandle_t handle, int n, const T* x, int incx, Real* result);
  static cublasStatus_t asum(cublasHandle_t handle, int n, const T* x, int incx, Real* result);
  static cublasStatus_t amax(cublasHandle_t handle, int n, const T* x, int incx, int* result);  // counts from 1
  static cublasStatus_t amin(cublasHandle_t handle, int n, const T* x, int incx, int* result);
  static cublasStatus_t rot(cublasHandle_t handle, int n, T* x, int incx, T* y, int incy, const Real* c, const T* s);
};

// Level 2.
template <typename T>
struct SIMT_API MatrixVector {
  static cublasStatus_t gemv(cublasHandle_t handle, cublasOperation_t trans, int m, int n, const T* alpha, const T* A,
                             int lda, const T* x, int incx, const T* beta, T* y, int incy);
  static cublasStatus_t geru(cublasHandle_t handle, int m, int n, const T* alpha, const T* x, int incx, const T* y,
                             int incy, T* A, int lda);
  static cublasStatus_t gerc(cublasHandle_t handle, int m, int n, const T* alpha, const T* x, int incx, const T* y,
                             int incy, T* A, int lda);
  static cublasStatus_t symv(cublasHandle_t handle, cublasFillMode_t uplo, int n, const T* alpha, const T* A, int lda,
                             const T* x, int incx, const T* beta, T* y, int incy);
  static cublasStatus_t syr(cublasHandle_t handle, cublasFillMode_t uplo, int n, const T* alpha, const T* x, int incx,
                            T* A, int lda);
  static cublasStatus_t trsv(cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans,
                             cublasDiagType_t diag, int n, const T* A, int lda, T* x, int incx);
  static cublasStatus_t trmv(cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans,
                             cublasDiagType_t diag, int n, const T* A, int lda, T* x, int incx);
};

// Level 3.
template <typename T>
struct SIMT_API MatrixMatrix {
  using Real = typename RealOf<T>::type;
  static cublasStatus_t gemm(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
                             int k, const T* alpha, const T* A, int lda, const T* B, int ldb, const T* beta, T* C,
                             int ldc);
  static cublasStatus_t gemmBatched(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,
                                    int n, int k, const T* alpha, const T* const A[], int lda, const T* const B[],
                                    int ldb, const T* beta, T* const C[], int ldc, int count);
  static cublasStatus_t gemmStridedBatched(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
                                           int m, int n, int k, const T* alpha, const T* A, int lda, long long strideA,
                                           const T* B, int ldb, long long strideB, const T* beta, T* C, int ldc,
                                           long long strideC, int count);
  static cublasStatus_t geam(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
                             const T* alpha, const T* A, int lda, const T* beta, const T* B, int ldb, T* C, int ldc);
  static cublasStatus_t dgmm(cublasHandle_t handle, cublasSideMode_t mode, int m, int n, const T* A, int lda,
                             const T* x, int incx, T* C, int ldc);
  static cublasStatus_t symm(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo, int m, int n,
                             const T* alpha, const T* A, int lda, const T* B, int ldb, const T* beta, T* C, int ldc);
  static cublasStatus_t hemm(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo, int m, int n,
                             const T* alpha, const T* A, int lda, const T* B, int ldb, const T* beta, T* C, int ldc);
  static cublasStatus_t syrk(cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans, int n, int k,
                             const T* alpha, const T* A, int lda, const T* beta, T* C, int ldc);
  static cublasStatus_t herk(cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans, int n, int k,
                             const Real* alpha, const T* A, int lda, const Real* beta, T* C, int ldc);
  static cublasStatus_t trmm(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo,
                             cublasOperation_t trans, cublasDiagType_t diag, int m, int n, const T* alpha, const T* A,
                             int lda, const T* B, int ldb, T* C, int ldc);
  static cublasStatus_t trsm(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo,
                             cublasOperation_t trans, cublasDiagType_t diag, int m, int n, const T* alpha, const T* A,
                             int lda, T* B, int ldb);
};

// The type of a sum, which was a cudaDataType before CUDA 11. Calls refuse those that no cublasComputeType_t stands for.
struct SumType {
  cublasComputeType_t type;
  SumType(cublasComputeType_t type_) : type(type_) {}
  SumType(cudaDataType of)
      : type(of == CUDA_R_16F                       ? CUBLAS_COMPUTE_16F
             : of == CUDA_R_32F || of == CUDA_C_32F ? CUBLAS_COMPUTE_32F
             : of == CUDA_R_64F || of == CUDA_C_64F ? CUBLAS_COMPUTE_64F
             : of == CUDA_R_32I                     ? CUBLAS_COMPUTE_32I
                                                    : static_cast<cublasComputeType_t>(-1)) {}
};

}  // namespace simt::blas

// Products with types given as values. Type combinations are those that cuBLAS documents; others return
// CUBLAS_STATUS_NOT_SUPPORTED. alpha and beta have the type of the sum: half, float, double, int or complex.
SIMT_API cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,
                                     int n, int k, const void* alpha, const void* A, cudaDataType Atype, int lda,
                                     const void* B, cudaDataType Btype, int ldb, const void* beta, void* C,
                                     cudaDataType Ctype, int ldc, simt::blas::SumType compute, cublasGemmAlgo_t algo);
SIMT_API cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
                                            int m, int n, int k, const void* alpha, const void* const A[],
                                            cudaDataType Atype, int lda, const void* const B[], cudaDataType Btype,
                                            int ldb, const void* beta, void* const C[], cudaDataType Ctype, int ldc,
                                            int count, simt::blas::SumType compute, cublasGemmAlgo_t algo);
SIMT_API cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transa,
                                                   cublasOperation_t transb, int m, int n, int k, const void* alpha,
                                                   const void* A, cudaDataType Atype, int lda, long long strideA,
                                                   const void* B, cudaDataType Btype, int ldb, long long strideB,
                                                   const void* beta, void* C, cudaDataType Ctype, int ldc,
                                                   long long strideC, int count, simt::blas::SumType compute,
                                                   cublasGemmAlgo_t algo);

#include "simt/cublas_names.h"
