// blas_matrix_matrix.cpp: cuBLAS level 3. The functions for half-stored matrices write them out and multiply in full.
#include "libraries/blas/blas_triangles.h"
#include "libraries/blas/gemm_call.h"

namespace simt::blas {
namespace {

template <typename T>
constexpr cudaDataType kType = CUDA_R_32F;
template <>
constexpr cudaDataType kType<double> = CUDA_R_64F;
template <>
constexpr cudaDataType kType<cuComplex> = CUDA_C_32F;
template <>
constexpr cudaDataType kType<cuDoubleComplex> = CUDA_C_64F;
template <typename T>
constexpr cublasComputeType_t kSum =
    std::is_same_v<typename RealOf<T>::type, float> ? CUBLAS_COMPUTE_32F : CUBLAS_COMPUTE_64F;

// C = alpha * A * B + beta * C, or B * A, where A is described by one half.
template <typename T>
cublasStatus_t half_product(cublasHandle_t handle, const std::string& name, Half half, cublasSideMode_t side,
                            cublasFillMode_t uplo, int m, int n, const T* alpha, const T* A, int lda, const T* B,
                            int ldb, const T* beta, T* C, int ldc) {
  return blas_call(handle, name, [&](Call& call) {
    call.side(side);
    call.fill(uplo);
    call.size("m", m);
    call.size("n", n);
    const bool left = side == CUBLAS_SIDE_LEFT;
    const int64_t order = left ? m : n;
    const auto full = written_out(call.matrix("a", A, order, order, lda), order, uplo, half);
    const Factor<Value<T>> a{full.data(), std::max<int64_t>(1, order), CUBLAS_OP_N};
    const auto b = call.factor("b", CUBLAS_OP_N, B, m, n, ldb);
    auto c = call.matrix("c", C, m, n, ldc);
    gemm(m, n, order, call.scalar("alpha", alpha), left ? a : b, left ? b : a, call.scalar("beta", beta), c.data, ldc);
  });
}

// Checks what describes a triangular factor of an m x n matrix; its order.
int64_t triangle_order(Call& call, cublasSideMode_t side, cublasFillMode_t uplo, cublasOperation_t trans,
                       cublasDiagType_t diag, int m, int n) {
  call.side(side);
  call.fill(uplo);
  call.operation("trans", trans);
  call.diagonal(diag);
  call.size("m", m);
  call.size("n", n);
  return side == CUBLAS_SIDE_LEFT ? m : n;
}

// One half of C = alpha * op(A) * op(A)' + beta * C, of n rows; ' conjugates for the hermitian form.
template <typename T, typename Scalar>
cublasStatus_t square(cublasHandle_t handle, const std::string& name, Half half, cublasFillMode_t uplo,
                      cublasOperation_t trans, int n, int k, const Scalar* alpha, const T* A, int lda,
                      const Scalar* beta, T* C, int ldc) {
  return blas_call(handle, name, [&](Call& call) {
    using V = Value<T>;
    const bool hermitian = half == Half::hermitian;
    call.fill(uplo);
    const bool transposed =
        std::is_arithmetic_v<T> ? trans != CUBLAS_OP_N : trans == (hermitian ? CUBLAS_OP_C : CUBLAS_OP_T);
    call.require(transposed || trans == CUBLAS_OP_N, "trans is not an operation that this function has");
    call.size("n", n);
    call.size("k", k);
    const auto a = call.factor("a", trans, A, n, k, lda);
    Factor<V> other = a;
    other.op = transposed ? CUBLAS_OP_N : hermitian ? CUBLAS_OP_C : CUBLAS_OP_T;
    auto c = call.matrix("c", C, n, n, ldc);
    const auto scale = call.scalar("beta", beta);
    std::vector<V> sum(static_cast<size_t>(n) * n);
    gemm<V>(n, n, k, V(call.scalar("alpha", alpha)), a, other, V(0), sum.data(), std::max(1, n));
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = 0; i < n; ++i) {
        if (uplo == CUBLAS_FILL_MODE_LOWER ? i < j : i > j) continue;
        V value = sum[j * n + i];
        if (scale != Value<Scalar>(0)) value += scale * c(i, j);
        c(i, j) = hermitian && i == j ? V(std::real(value)) : value;
      }
  });
}

template <typename V>
V at(const Factor<V>& a, V scale, int64_t i, int64_t j) {  // a matrix times 0 is not read
  return scale == V(0) ? V(0) : scale * a(i, j);
}

}  // namespace

template <typename T>
cublasStatus_t MatrixMatrix<T>::gemm(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,
                                     int n, int k, const T* alpha, const T* A, int lda, const T* B, int ldb,
                                     const T* beta, T* C, int ldc) {
  return gemm_call(handle, named<T>("gemm"), transa, transb, m, n, k, alpha, {kType<T>, lda, A}, {kType<T>, ldb, B},
                   beta, {kType<T>, ldc, C}, 1, kSum<T>);
}

template <typename T>
cublasStatus_t MatrixMatrix<T>::gemmBatched(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
                                            int m, int n, int k, const T* alpha, const T* const A[], int lda,
                                            const T* const B[], int ldb, const T* beta, T* const C[], int ldc,
                                            int count) {
  auto list = [](const T* const* matrices) { return reinterpret_cast<const void* const*>(matrices); };
  return gemm_call(handle, named<T>("gemmBatched"), transa, transb, m, n, k, alpha,
                   {kType<T>, lda, nullptr, 0, list(A)}, {kType<T>, ldb, nullptr, 0, list(B)}, beta,
                   {kType<T>, ldc, nullptr, 0, list(C)}, count, kSum<T>);
}

template <typename T>
cublasStatus_t MatrixMatrix<T>::gemmStridedBatched(cublasHandle_t handle, cublasOperation_t transa,
                                                   cublasOperation_t transb, int m, int n, int k, const T* alpha,
                                                   const T* A, int lda, long long strideA, const T* B, int ldb,
                                                   long long strideB, const T* beta, T* C, int ldc, long long strideC,
                                                   int count) {
  return gemm_call(handle, named<T>("gemmStridedBatched"), transa, transb, m, n, k, alpha, {kType<T>, lda, A, strideA},
                   {kType<T>, ldb, B, strideB}, beta, {kType<T>, ldc, C, strideC}, count, kSum<T>);
}

template <typename T>
cublasStatus_t MatrixMatrix<T>::geam(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,
                                     int n, const T* alpha, const T* A, int lda, const T* beta, const T* B, int ldb,
                                     T* C, int ldc) {
  return blas_call(handle, named<T>("geam"), [&](Call& call) {
    call.operation("transa", transa);
    call.operation("transb", transb);
    call.size("m", m);
    call.size("n", n);
    const auto one = call.scalar("alpha", alpha), two = call.scalar("beta", beta);
    auto factor = [&](const char* name, cublasOperation_t op, const T* data, int ld, Value<T> scale) {
      if (scale == Value<T>(0)) return Factor<Value<T>>{values(data), ld, op};  // not read, so any pointer is good
      call.require(data != C || (op == CUBLAS_OP_N && ld == ldc), "C overwrites a matrix that is transposed");
      return call.factor(name, op, data, m, n, ld);
    };
    const auto a = factor("a", transa, A, lda, one), b = factor("b", transb, B, ldb, two);
    auto c = call.matrix("c", C, m, n, ldc);
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = 0; i < m; ++i) c(i, j) = at(a, one, i, j) + at(b, two, i, j);
  });
}

template <typename T>
cublasStatus_t MatrixMatrix<T>::dgmm(cublasHandle_t handle, cublasSideMode_t mode, int m, int n, const T* A, int lda,
                                     const T* x, int incx, T* C, int ldc) {
  return blas_call(handle, named<T>("dgmm"), [&](Call& call) {
    call.side(mode);
    call.size("m", m);
    call.size("n", n);
    const auto a = call.matrix("a", A, m, n, lda);
    auto scales = call.vector("x", x, mode == CUBLAS_SIDE_LEFT ? m : n, incx);
    auto c = call.matrix("c", C, m, n, ldc);
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = 0; i < m; ++i) c(i, j) = a(i, j) * scales[mode == CUBLAS_SIDE_LEFT ? i : j];
  });
}

template <typename T>
cublasStatus_t MatrixMatrix<T>::symm(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo, int m, int n,
                                     const T* alpha, const T* A, int lda, const T* B, int ldb, const T* beta, T* C,
                                     int ldc) {
  return half_product(handle, named<T>("symm"), Half::symmetric, side, uplo, m, n, alpha, A, lda, B, ldb, beta, C, ldc);
}
template <typename T>
cublasStatus_t MatrixMatrix<T>::hemm(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo, int m, int n,
                                     const T* alpha, const T* A, int lda, const T* B, int ldb, const T* beta, T* C,
                                     int ldc) {
  return half_product(handle, named<T>("hemm"), Half::hermitian, side, uplo, m, n, alpha, A, lda, B, ldb, beta, C, ldc);
}

template <typename T>
cublasStatus_t MatrixMatrix<T>::syrk(cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans, int n,
                                     int k, const T* alpha, const T* A, int lda, const T* beta, T* C, int ldc) {
  return square(handle, named<T>("syrk"), Half::symmetric, uplo, trans, n, k, alpha, A, lda, beta, C, ldc);
}
template <typename T>
cublasStatus_t MatrixMatrix<T>::herk(cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans, int n,
                                     int k, const Real* alpha, const T* A, int lda, const Real* beta, T* C, int ldc) {
  return square(handle, named<T>("herk"), Half::hermitian, uplo, trans, n, k, alpha, A, lda, beta, C, ldc);
}

template <typename T>
cublasStatus_t MatrixMatrix<T>::trmm(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo,
                                     cublasOperation_t trans, cublasDiagType_t diag, int m, int n, const T* alpha,
                                     const T* A, int lda, const T* B, int ldb, T* C, int ldc) {
  return blas_call(handle, named<T>("trmm"), [&](Call& call) {
    using V = Value<T>;
    const bool left = side == CUBLAS_SIDE_LEFT;
    const int64_t order = triangle_order(call, side, uplo, trans, diag, m, n);
    const auto full = written_out(call.matrix("a", A, order, order, lda), order, uplo, Half::triangular, diag);
    const Factor<V> a{full.data(), std::max<int64_t>(1, order), trans};
    const auto b = call.factor("b", CUBLAS_OP_N, B, m, n, ldb);
    auto c = call.matrix("c", C, m, n, ldc);
    std::vector<V> copy(static_cast<size_t>(m) * n);  // C may be B
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = 0; i < m; ++i) copy[j * m + i] = b(i, j);
    const Factor<V> kept{copy.data(), std::max(1, m), CUBLAS_OP_N};
    blas::gemm(m, n, order, call.scalar("alpha", alpha), left ? a : kept, left ? kept : a, V(0), c.data, ldc);
  });
}

template <typename T>
cublasStatus_t MatrixMatrix<T>::trsm(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo,
                                     cublasOperation_t trans, cublasDiagType_t diag, int m, int n, const T* alpha,
                                     const T* A, int lda, T* B, int ldb) {
  return blas_call(handle, named<T>("trsm"), [&](Call& call) {
    using V = Value<T>;
    const bool left = side == CUBLAS_SIDE_LEFT;
    const int64_t order = triangle_order(call, side, uplo, trans, diag, m, n);
    const auto scale = call.scalar("alpha", alpha);
    const auto a = call.matrix("a", A, order, order, lda);
    auto b = call.matrix("b", B, m, n, ldb);
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = 0; i < m; ++i) b(i, j) = scale == V(0) ? V(0) : scale * b(i, j);
    if (scale == V(0)) return;
    // X * op(A) = B is op(A)' * X' = B' with both transposed. A stored half seen transposed is the other half.
    if (left) return solve<V>(order, n, a, uplo, trans, diag, b);
    const auto other = uplo == CUBLAS_FILL_MODE_LOWER ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
    solve<V>(order, m, a.transposed(), other, trans, diag, b.transposed());
  });
}

template struct MatrixMatrix<float>;
template struct MatrixMatrix<double>;
template struct MatrixMatrix<cuComplex>;
template struct MatrixMatrix<cuDoubleComplex>;

}  // namespace simt::blas
