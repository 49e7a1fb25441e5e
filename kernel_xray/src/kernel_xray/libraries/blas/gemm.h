// gemm.h: products of column-major matrices, for every element type that cuBLAS sums in.
#pragma once

#include <complex>
#include <cstdint>

#pragma GCC visibility push(default)  // a template for cuComplex is as visible as that type
#include "cublas_api.h"
#pragma GCC visibility pop

namespace simt::blas {

template <typename T>
struct Factor {  // op(data), where data is column-major with columns `ld` elements apart
  const T* data;
  int64_t ld;
  cublasOperation_t op;

  T operator()(int64_t i, int64_t j) const {
    const T value = op == CUBLAS_OP_N ? data[j * ld + i] : data[i * ld + j];
    if constexpr (!std::is_arithmetic_v<T>)
      if (op == CUBLAS_OP_C) return std::conj(value);
    return value;
  }
};

// C = alpha * A * B + beta * C for A of m rows and k columns, and B of k rows and n columns. If beta is 0, C is not
// read. T: float, double, int32_t, std::complex<float>, std::complex<double>.
template <typename T>
void gemm(int64_t m, int64_t n, int64_t k, T alpha, const Factor<T>& a, const Factor<T>& b, T beta, T* c, int64_t ldc);

// The same by a BLAS that this process has loaded, such as PyTorch's; false: there is none for this type.
template <typename T>
bool gemm_of_process(int64_t m, int64_t n, int64_t k, T alpha, const Factor<T>& a, const Factor<T>& b, T beta, T* c,
                     int64_t ldc);

}  // namespace simt::blas
