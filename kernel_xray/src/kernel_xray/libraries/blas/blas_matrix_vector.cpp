// blas_matrix_vector.cpp: cuBLAS level 2. A product with a vector is one with a matrix of one column.
#include "libraries/blas/blas_triangles.h"

namespace simt::blas {
namespace {

template <typename V>
std::vector<V> gathered(Strided<const V> x, int64_t n) {
  std::vector<V> out(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) out[i] = x[i];
  return out;
}

// y = alpha * op(A) * x + beta * y
template <typename V>
void product(int64_t rows, int64_t columns, V alpha, const Factor<V>& a, Strided<const V> x, V beta, Strided<V> y) {
  std::vector<V> in = gathered(x, columns), out(static_cast<size_t>(rows));
  for (int64_t i = 0; i < rows && beta != V(0); ++i) out[i] = y[i];
  gemm<V>(rows, 1, columns, alpha, a, {in.data(), std::max<int64_t>(1, columns), CUBLAS_OP_N}, beta, out.data(),
          std::max<int64_t>(1, rows));
  for (int64_t i = 0; i < rows; ++i) y[i] = out[i];
}

template <typename T>
cublasStatus_t outer(cublasHandle_t handle, const std::string& name, int m, int n, const T* alpha, const T* x, int incx,
                     const T* y, int incy, T* A, int lda, bool conjugated) {
  return blas_call(handle, name, [&](Call& call) {
    call.size("m", m);
    call.size("n", n);
    const auto factor = call.scalar("alpha", alpha);
    auto a = call.matrix("a", A, m, n, lda);
    auto column = call.vector("x", x, m, incx);
    auto row = call.vector("y", y, n, incy);
    for (int j = 0; j < n; ++j)
      for (int i = 0; i < m; ++i) a(i, j) += factor * column[i] * (conjugated ? conjugate(row[j]) : row[j]);
  });
}

}  // namespace

template <typename T>
cublasStatus_t MatrixVector<T>::gemv(cublasHandle_t handle, cublasOperation_t trans, int m, int n, const T* alpha,
                                     const T* A, int lda, const T* x, int incx, const T* beta, T* y, int incy) {
  return blas_call(handle, named<T>("gemv"), [&](Call& call) {
    call.operation("trans", trans);
    call.size("m", m);
    call.size("n", n);
    const int rows = trans == CUBLAS_OP_N ? m : n, columns = trans == CUBLAS_OP_N ? n : m;
    const auto a = call.factor("a", trans, A, rows, columns, lda);
    if (m == 0 || n == 0) return;
    product(rows, columns, call.scalar("alpha", alpha), a, call.vector("x", x, columns, incx),
            call.scalar("beta", beta), call.vector("y", y, rows, incy));
  });
}

template <typename T>
cublasStatus_t MatrixVector<T>::geru(cublasHandle_t handle, int m, int n, const T* alpha, const T* x, int incx,
                                     const T* y, int incy, T* A, int lda) {
  return outer(handle, named<T>(std::is_arithmetic_v<T> ? "ger" : "geru"), m, n, alpha, x, incx, y, incy, A, lda,
               false);
}
template <typename T>
cublasStatus_t MatrixVector<T>::gerc(cublasHandle_t handle, int m, int n, const T* alpha, const T* x, int incx,
                                     const T* y, int incy, T* A, int lda) {
  return outer(handle, named<T>("gerc"), m, n, alpha, x, incx, y, incy, A, lda, true);
}

template <typename T>
cublasStatus_t MatrixVector<T>::symv(cublasHandle_t handle, cublasFillMode_t uplo, int n, const T* alpha, const T* A,
                                     int lda, const T* x, int incx, const T* beta, T* y, int incy) {
  return blas_call(handle, named<T>("symv"), [&](Call& call) {
    call.fill(uplo);
    call.size("n", n);
    const auto full = written_out(call.matrix("a", A, n, n, lda), n, uplo, Half::symmetric);
    product<Value<T>>(n, n, call.scalar("alpha", alpha), {full.data(), std::max(1, n), CUBLAS_OP_N},
                      call.vector("x", x, n, incx), call.scalar("beta", beta), call.vector("y", y, n, incy));
  });
}

template <typename T>
cublasStatus_t MatrixVector<T>::syr(cublasHandle_t handle, cublasFillMode_t uplo, int n, const T* alpha, const T* x,
                                    int incx, T* A, int lda) {
  return blas_call(handle, named<T>("syr"), [&](Call& call) {
    call.fill(uplo);
    call.size("n", n);
    const auto factor = call.scalar("alpha", alpha);
    auto a = call.matrix("a", A, n, n, lda);
    auto v = call.vector("x", x, n, incx);
    for (int j = 0; j < n; ++j)
      for (int i = uplo == CUBLAS_FILL_MODE_LOWER ? j : 0; i < (uplo == CUBLAS_FILL_MODE_LOWER ? n : j + 1); ++i)
        a(i, j) += factor * v[i] * v[j];
  });
}

template <typename T>
cublasStatus_t MatrixVector<T>::trsv(cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans,
                                     cublasDiagType_t diag, int n, const T* A, int lda, T* x, int incx) {
  return blas_call(handle, named<T>("trsv"), [&](Call& call) {
    call.fill(uplo);
    call.operation("trans", trans);
    call.diagonal(diag);
    call.size("n", n);
    const auto a = call.matrix("a", A, n, n, lda);
    auto v = call.vector("x", x, n, incx);
    solve<Value<T>>(n, 1, a, uplo, trans, diag, {v.first, v.step, 0});
  });
}

template <typename T>
cublasStatus_t MatrixVector<T>::trmv(cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans,
                                     cublasDiagType_t diag, int n, const T* A, int lda, T* x, int incx) {
  return blas_call(handle, named<T>("trmv"), [&](Call& call) {
    using V = Value<T>;
    call.fill(uplo);
    call.operation("trans", trans);
    call.diagonal(diag);
    call.size("n", n);
    const auto full = written_out(call.matrix("a", A, n, n, lda), n, uplo, Half::triangular, diag);
    auto v = call.vector("x", x, n, incx);
    product<V>(n, n, V(1), {full.data(), std::max(1, n), trans}, {v.first, v.step}, V(0), v);
  });
}

template struct MatrixVector<float>;
template struct MatrixVector<double>;
template struct MatrixVector<cuComplex>;
template struct MatrixVector<cuDoubleComplex>;

}  // namespace simt::blas
