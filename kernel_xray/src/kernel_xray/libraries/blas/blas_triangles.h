// blas_triangles.h: matrices of which half is stored: symmetric, hermitian and triangular ones.
#pragma once

#include "libraries/blas/blas_call.h"

namespace simt::blas {

// How the half of a matrix that is not stored follows from the other.
enum class Half { symmetric, hermitian, triangular };

// The n x n matrix that the half `uplo` of `a` describes, written out.
template <typename T, typename V = std::remove_const_t<T>>
std::vector<V> written_out(View<T> a, int64_t n, cublasFillMode_t uplo, Half half,
                           cublasDiagType_t diag = CUBLAS_DIAG_NON_UNIT) {
  std::vector<V> full(static_cast<size_t>(n * n));
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < n; ++i) {
      const bool stored = uplo == CUBLAS_FILL_MODE_LOWER ? i >= j : i <= j;
      V& value = full[j * n + i];
      if (i == j && diag == CUBLAS_DIAG_UNIT)
        value = V(1);
      else if (stored)
        value = i == j && half == Half::hermitian ? V(std::real(a(i, j))) : a(i, j);
      else if (half != Half::triangular)
        value = half == Half::hermitian ? conjugate(a(j, i)) : a(j, i);
    }
  return full;
}

// Overwrites x, n rows of `columns` columns, by the solution of op(A) * X = x for a triangular A.
template <typename V>
void solve(int64_t n, int64_t columns, View<const V> a, cublasFillMode_t uplo, cublasOperation_t op,
           cublasDiagType_t diag, View<V> x) {
  const View<const V> rows = op == CUBLAS_OP_N ? a : a.transposed();
  const bool forwards = (uplo == CUBLAS_FILL_MODE_LOWER) == (op == CUBLAS_OP_N);
  auto element = [&](int64_t i, int64_t j) { return op == CUBLAS_OP_C ? conjugate(rows(i, j)) : rows(i, j); };
  for (int64_t column = 0; column < columns; ++column)
    for (int64_t step = 0; step < n; ++step) {
      const int64_t i = forwards ? step : n - 1 - step;
      V value = x(i, column);
      for (int64_t j = forwards ? 0 : i + 1; j < (forwards ? i : n); ++j) value -= element(i, j) * x(j, column);
      x(i, column) = diag == CUBLAS_DIAG_UNIT ? value : value / element(i, i);
    }
}

}  // namespace simt::blas
