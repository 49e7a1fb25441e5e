// blas.cu: the functions of cuBLAS, each as a case that takes its operands as tensors and its integers as numbers.
//
// The first number is the element type: float, double, complex of float, complex of double. The last tensor but one
// and the last are the scalars alpha and beta, or the result; they are on the host unless the second number is 1, the
// pointer mode.
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

template <typename T>
struct Blas;
#define BLAS(T, Real, L, l, Norm)                                   \
  template <>                                                       \
  struct Blas<T> {                                                  \
    using real = Real;                                              \
    static constexpr auto axpy = &cublas##L##axpy;                  \
    static constexpr auto copy = &cublas##L##copy;                  \
    static constexpr auto swap = &cublas##L##swap;                  \
    static constexpr auto scal = &cublas##L##scal;                  \
    static constexpr auto rot = &cublas##L##rot;                    \
    static constexpr auto nrm2 = &cublas##Norm##nrm2;               \
    static constexpr auto asum = &cublas##Norm##asum;               \
    static constexpr auto amax = &cublasI##l##amax;                 \
    static constexpr auto amin = &cublasI##l##amin;                 \
    static constexpr auto gemv = &cublas##L##gemv;                  \
    static constexpr auto symv = &cublas##L##symv;                  \
    static constexpr auto syr = &cublas##L##syr;                    \
    static constexpr auto trsv = &cublas##L##trsv;                  \
    static constexpr auto trmv = &cublas##L##trmv;                  \
    static constexpr auto gemm = &cublas##L##gemm;                  \
    static constexpr auto batched = &cublas##L##gemmBatched;        \
    static constexpr auto strided = &cublas##L##gemmStridedBatched; \
    static constexpr auto geam = &cublas##L##geam;                  \
    static constexpr auto dgmm = &cublas##L##dgmm;                  \
    static constexpr auto symm = &cublas##L##symm;                  \
    static constexpr auto syrk = &cublas##L##syrk;                  \
    static constexpr auto trmm = &cublas##L##trmm;                  \
    static constexpr auto trsm = &cublas##L##trsm;                  \
  };
BLAS(float, float, S, s, S)
BLAS(double, double, D, d, D)
BLAS(cuComplex, float, C, c, Sc)
BLAS(cuDoubleComplex, double, Z, z, Dz)

// Calls body(handle, T()) with the element type that the call names.
template <typename Body>
void with_blas(const Call& call, Body body) {
  const Handle handle(call.number(1));
  with_type<float, double, cuComplex, cuDoubleComplex>(call.number(0), [&](auto zero) { body(handle, zero); });
}

int integer(const Call& call, size_t i) { return static_cast<int>(call.number(i)); }
cublasOperation_t operation(int64_t number) { return static_cast<cublasOperation_t>(number); }
cublasFillMode_t fill(int64_t number) { return static_cast<cublasFillMode_t>(number); }
cublasSideMode_t side(int64_t number) { return static_cast<cublasSideMode_t>(number); }
cublasDiagType_t diagonal(int64_t number) { return static_cast<cublasDiagType_t>(number); }

}  // namespace

// ------------------------------------------------------------------------------------------------------------------
// Level 1. Numbers: type, mode, n, incx, incy.

#define LEVEL_1(name, ...)                                                              \
  CASE(name) {                                                                          \
    with_blas(call, [&](cublasHandle_t handle, auto zero) {                             \
      using T = decltype(zero);                                                         \
      using Real = typename Blas<T>::real;                                              \
      const int n = integer(call, 2), incx = integer(call, 3), incy = integer(call, 4); \
      T* x = call.data<T>(0);                                                           \
      (void)x, (void)incy, (void)sizeof(Real);                                          \
      EXPECT_BLAS(Blas<T>::name(handle, n, __VA_ARGS__));                               \
    });                                                                                 \
  }
LEVEL_1(axpy, call.data<T>(2), x, incx, call.data<T>(1), incy)
LEVEL_1(copy, x, incx, call.data<T>(1), incy)
LEVEL_1(swap, x, incx, call.data<T>(1), incy)
LEVEL_1(scal, call.data<T>(1), x, incx)
LEVEL_1(rot, x, incx, call.data<T>(1), incy, call.data<Real>(2), call.data<T>(3))
LEVEL_1(nrm2, x, incx, call.data<Real>(1))
LEVEL_1(asum, x, incx, call.data<Real>(1))
LEVEL_1(amax, x, incx, call.data<int>(1))
LEVEL_1(amin, x, incx, call.data<int>(1))

// The scalar products: a real one, or a complex one without and with conjugation.
CASE(dot) {
  const Handle handle(call.number(1));
  const int n = integer(call, 2), incx = integer(call, 3), incy = integer(call, 4);
  auto run = [&](auto function, auto zero) {
    using T = decltype(zero);
    EXPECT_BLAS(function(handle, n, call.data<T>(0), incx, call.data<T>(1), incy, call.data<T>(2)));
  };
  const bool conjugated = call.number(5);
  if (call.number(0) == 0) run(&cublasSdot, float());
  if (call.number(0) == 1) run(&cublasDdot, double());
  if (call.number(0) == 2) run(conjugated ? &cublasCdotc : &cublasCdotu, cuComplex());
  if (call.number(0) == 3) run(conjugated ? &cublasZdotc : &cublasZdotu, cuDoubleComplex());
}

// ------------------------------------------------------------------------------------------------------------------
// Level 2

CASE(gemv) {  // trans, m, n, lda, incx, incy; A, x, y, alpha, beta
  with_blas(call, [&](cublasHandle_t handle, auto zero) {
    using T = decltype(zero);
    EXPECT_BLAS(Blas<T>::gemv(handle, operation(call.number(2)), integer(call, 3), integer(call, 4), call.data<T>(3),
                              call.data<T>(0), integer(call, 5), call.data<T>(1), integer(call, 6), call.data<T>(4),
                              call.data<T>(2), integer(call, 7)));
  });
}

CASE(ger) {  // conjugated, m, n, lda, incx, incy; x, y, A, alpha
  const Handle handle(call.number(1));
  auto run = [&](auto function, auto zero) {
    using T = decltype(zero);
    EXPECT_BLAS(function(handle, integer(call, 3), integer(call, 4), call.data<T>(3), call.data<T>(0), integer(call, 6),
                         call.data<T>(1), integer(call, 7), call.data<T>(2), integer(call, 5)));
  };
  const bool conjugated = call.number(2);
  if (call.number(0) == 0) run(&cublasSger, float());
  if (call.number(0) == 1) run(&cublasDger, double());
  if (call.number(0) == 2) run(conjugated ? &cublasCgerc : &cublasCgeru, cuComplex());
  if (call.number(0) == 3) run(conjugated ? &cublasZgerc : &cublasZgeru, cuDoubleComplex());
}

CASE(symv) {  // uplo, n, lda, incx, incy; A, x, y, alpha, beta
  with_blas(call, [&](cublasHandle_t handle, auto zero) {
    using T = decltype(zero);
    EXPECT_BLAS(Blas<T>::symv(handle, fill(call.number(2)), integer(call, 3), call.data<T>(3), call.data<T>(0),
                              integer(call, 4), call.data<T>(1), integer(call, 5), call.data<T>(4), call.data<T>(2),
                              integer(call, 6)));
  });
}

CASE(syr) {  // uplo, n, lda, incx; x, A, alpha
  with_blas(call, [&](cublasHandle_t handle, auto zero) {
    using T = decltype(zero);
    EXPECT_BLAS(Blas<T>::syr(handle, fill(call.number(2)), integer(call, 3), call.data<T>(2), call.data<T>(0),
                             integer(call, 5), call.data<T>(1), integer(call, 4)));
  });
}

CASE(triangular_vector) {  // solve or multiply, uplo, trans, diag, n, lda, incx; A, x
  with_blas(call, [&](cublasHandle_t handle, auto zero) {
    using T = decltype(zero);
    const auto function = call.number(2) ? Blas<T>::trsv : Blas<T>::trmv;
    EXPECT_BLAS(function(handle, fill(call.number(3)), operation(call.number(4)), diagonal(call.number(5)),
                         integer(call, 6), call.data<T>(0), integer(call, 7), call.data<T>(1), integer(call, 8)));
  });
}

// ------------------------------------------------------------------------------------------------------------------
// Level 3

// form (one, strided, batched), transa, transb, m, n, k, lda, ldb, ldc, count; A, B, C, alpha, beta, and for a batch
// the lists of the matrices' addresses
CASE(gemm) {
  with_blas(call, [&](cublasHandle_t handle, auto zero) {
    using T = decltype(zero);
    const cublasOperation_t transa = operation(call.number(3)), transb = operation(call.number(4));
    const int m = integer(call, 5), n = integer(call, 6), k = integer(call, 7);
    const int lda = integer(call, 8), ldb = integer(call, 9), ldc = integer(call, 10), count = integer(call, 11);
    T *a = call.data<T>(0), *b = call.data<T>(1), *c = call.data<T>(2), *alpha = call.data<T>(3),
      *beta = call.data<T>(4);
    if (call.number(2) == 0)
      EXPECT_BLAS(Blas<T>::gemm(handle, transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc));
    if (call.number(2) == 1)
      EXPECT_BLAS(Blas<T>::strided(handle, transa, transb, m, n, k, alpha, a, lda, call.size(0) / count, b, ldb,
                                   call.size(1) / count, beta, c, ldc, call.size(2) / count, count));
    if (call.number(2) == 2)
      EXPECT_BLAS(Blas<T>::batched(handle, transa, transb, m, n, k, alpha, call.data<T*>(5), lda, call.data<T*>(6), ldb,
                                   beta, call.data<T*>(7), ldc, count));
  });
}

// form, transa, transb, m, n, k, lda, ldb, ldc, count, A's and B's type, C's type, compute type; tensors as above. The
// first number only says how the caller counts.
CASE(gemm_ex) {
  const Handle handle(call.number(1));
  const cublasOperation_t transa = operation(call.number(3)), transb = operation(call.number(4));
  const int m = integer(call, 5), n = integer(call, 6), k = integer(call, 7);
  const int lda = integer(call, 8), ldb = integer(call, 9), ldc = integer(call, 10), count = integer(call, 11);
  const auto type = static_cast<cudaDataType>(call.number(12)), result = static_cast<cudaDataType>(call.number(13));
  const auto compute = static_cast<cublasComputeType_t>(call.number(14));
  void *a = call.data<void>(0), *b = call.data<void>(1), *c = call.data<void>(2), *alpha = call.data<void>(3),
       *beta = call.data<void>(4);
  if (call.number(2) == 0)
    EXPECT_BLAS(cublasGemmEx(handle, transa, transb, m, n, k, alpha, a, type, lda, b, type, ldb, beta, c, result, ldc,
                             compute, CUBLAS_GEMM_DEFAULT));
  if (call.number(2) == 1)
    EXPECT_BLAS(cublasGemmStridedBatchedEx(handle, transa, transb, m, n, k, alpha, a, type, lda, call.size(0) / count,
                                           b, type, ldb, call.size(1) / count, beta, c, result, ldc,
                                           call.size(2) / count, count, compute, CUBLAS_GEMM_DEFAULT));
  if (call.number(2) == 2)
    EXPECT_BLAS(cublasGemmBatchedEx(handle, transa, transb, m, n, k, alpha, call.data<const void*>(5), type, lda,
                                    call.data<const void*>(6), type, ldb, beta, call.data<void*>(7), result, ldc, count,
                                    compute, CUBLAS_GEMM_DEFAULT));
}

CASE(hgemm) {  // transa, transb, m, n, k, lda, ldb, ldc; A, B, C, alpha, beta
  const Handle handle(call.number(1));
  EXPECT_BLAS(cublasHgemm(handle, operation(call.number(2)), operation(call.number(3)), integer(call, 4),
                          integer(call, 5), integer(call, 6), call.data<__half>(3), call.data<__half>(0),
                          integer(call, 7), call.data<__half>(1), integer(call, 8), call.data<__half>(4),
                          call.data<__half>(2), integer(call, 9)));
}

CASE(geam) {  // transa, transb, m, n, lda, ldb, ldc; A, B, C, alpha, beta
  with_blas(call, [&](cublasHandle_t handle, auto zero) {
    using T = decltype(zero);
    EXPECT_BLAS(Blas<T>::geam(handle, operation(call.number(2)), operation(call.number(3)), integer(call, 4),
                              integer(call, 5), call.data<T>(3), call.data<T>(0), integer(call, 6), call.data<T>(4),
                              call.data<T>(1), integer(call, 7), call.data<T>(2), integer(call, 8)));
  });
}

CASE(dgmm) {  // side, m, n, lda, incx, ldc; A, x, C
  with_blas(call, [&](cublasHandle_t handle, auto zero) {
    using T = decltype(zero);
    EXPECT_BLAS(Blas<T>::dgmm(handle, side(call.number(2)), integer(call, 3), integer(call, 4), call.data<T>(0),
                              integer(call, 5), call.data<T>(1), integer(call, 6), call.data<T>(2), integer(call, 7)));
  });
}

CASE(symm) {  // hermitian, side, uplo, m, n, lda, ldb, ldc; A, B, C, alpha, beta
  const Handle handle(call.number(1));
  auto run = [&](auto function, auto zero) {
    using T = decltype(zero);
    EXPECT_BLAS(function(handle, side(call.number(3)), fill(call.number(4)), integer(call, 5), integer(call, 6),
                         call.data<T>(3), call.data<T>(0), integer(call, 7), call.data<T>(1), integer(call, 8),
                         call.data<T>(4), call.data<T>(2), integer(call, 9)));
  };
  const bool hermitian = call.number(2);
  if (call.number(0) == 0) run(&cublasSsymm, float());
  if (call.number(0) == 1) run(&cublasDsymm, double());
  if (call.number(0) == 2) run(hermitian ? &cublasChemm : &cublasCsymm, cuComplex());
  if (call.number(0) == 3) run(hermitian ? &cublasZhemm : &cublasZsymm, cuDoubleComplex());
}

CASE(syrk) {  // uplo, trans, n, k, lda, ldc; A, C, alpha, beta
  with_blas(call, [&](cublasHandle_t handle, auto zero) {
    using T = decltype(zero);
    EXPECT_BLAS(Blas<T>::syrk(handle, fill(call.number(2)), operation(call.number(3)), integer(call, 4),
                              integer(call, 5), call.data<T>(2), call.data<T>(0), integer(call, 6), call.data<T>(3),
                              call.data<T>(1), integer(call, 7)));
  });
}

CASE(herk) {  // as syrk; alpha and beta are real
  const Handle handle(call.number(1));
  EXPECT_BLAS(cublasZherk(handle, fill(call.number(2)), operation(call.number(3)), integer(call, 4), integer(call, 5),
                          call.data<double>(2), call.data<cuDoubleComplex>(0), integer(call, 6), call.data<double>(3),
                          call.data<cuDoubleComplex>(1), integer(call, 7)));
}

CASE(trmm) {  // side, uplo, trans, diag, m, n, lda, ldb, ldc; A, B, C, alpha
  with_blas(call, [&](cublasHandle_t handle, auto zero) {
    using T = decltype(zero);
    EXPECT_BLAS(Blas<T>::trmm(handle, side(call.number(2)), fill(call.number(3)), operation(call.number(4)),
                              diagonal(call.number(5)), integer(call, 6), integer(call, 7), call.data<T>(3),
                              call.data<T>(0), integer(call, 8), call.data<T>(1), integer(call, 9), call.data<T>(2),
                              integer(call, 10)));
  });
}

CASE(trsm) {  // side, uplo, trans, diag, m, n, lda, ldb; A, B, alpha
  with_blas(call, [&](cublasHandle_t handle, auto zero) {
    using T = decltype(zero);
    EXPECT_BLAS(Blas<T>::trsm(handle, side(call.number(2)), fill(call.number(3)), operation(call.number(4)),
                              diagonal(call.number(5)), integer(call, 6), integer(call, 7), call.data<T>(2),
                              call.data<T>(0), integer(call, 8), call.data<T>(1), integer(call, 9)));
  });
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
  EXPECT(cublasSetVector(-1, sizeof(float), there, 1, device, 1) == CUBLAS_STATUS_INVALID_VALUE);

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
