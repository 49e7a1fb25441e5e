// blas_vectors.cpp: cuBLAS level 1. Sums are taken in the next wider type and rounded once.
#include <cmath>
#include <utility>

#include "libraries/blas/blas_call.h"

namespace simt::blas {
namespace {

template <typename T>
using WiderThan = std::conditional_t<std::is_same_v<T, float>, double, long double>;

template <typename T>
constexpr bool kReal = std::is_arithmetic_v<T>;

template <typename T>
auto magnitude(T x) {  // as BLAS has it: of a complex number, the sum of both parts
  if constexpr (kReal<T>)
    return std::abs(x);
  else
    return std::abs(x.real()) + std::abs(x.imag());
}

template <typename T>
std::string named_norm(const char* stem) {  // cublasSnrm2, cublasScnrm2
  constexpr bool single = std::is_same_v<typename RealOf<T>::type, float>;
  return kReal<T> ? named<T>(stem) : named<T>(stem, single ? "S" : "D");
}

template <typename T>
cublasStatus_t dot(cublasHandle_t handle, const std::string& name, int n, const T* x, int incx, const T* y, int incy,
                   T* result, bool conjugated) {
  return blas_call(handle, name, [&](Call& call) {
    auto a = call.vector("x", x, n, incx);
    auto b = call.vector("y", y, n, incy);
    auto& sum = call.result(result);
    if constexpr (kReal<T>) {
      std::conditional_t<std::is_same_v<T, float>, double, T> total = 0;
      for (int i = 0; i < n; ++i) total += static_cast<decltype(total)>(a[i]) * b[i];
      sum = static_cast<T>(total);
    } else {
      std::complex<double> total = 0;
      for (int i = 0; i < n; ++i)
        total += std::complex<double>(conjugated ? std::conj(a[i]) : a[i]) * std::complex<double>(b[i]);
      sum = Value<T>(total);
    }
  });
}

// The first index, from 1, of the element whose magnitude is `better` than that of all before it; 0 of no elements.
template <typename T, typename Better>
cublasStatus_t extremum(cublasHandle_t handle, const char* stem, int n, const T* x, int incx, int* result,
                        Better better) {
  return blas_call(handle, named<T>(stem, "I"), [&](Call& call) {
    auto a = call.vector("x", x, n, incx);
    int& place = call.result(result);
    int best = 0;
    for (int i = 1; i < n && incx > 0; ++i)
      if (better(magnitude(a[i]), magnitude(a[best]))) best = i;
    place = n > 0 && incx > 0 ? best + 1 : 0;
  });
}

template <typename T, typename Scalar>
cublasStatus_t scale(cublasHandle_t handle, const std::string& name, int n, const Scalar* alpha, T* x, int incx) {
  return blas_call(handle, name, [&](Call& call) {
    const auto factor = call.scalar("alpha", alpha);
    auto a = call.vector("x", x, n, incx);
    for (int i = 0; i < n && incx > 0; ++i) a[i] *= factor;
  });
}

}  // namespace

template <typename T>
cublasStatus_t Vectors<T>::axpy(cublasHandle_t handle, int n, const T* alpha, const T* x, int incx, T* y, int incy) {
  return blas_call(handle, named<T>("axpy"), [&](Call& call) {
    const auto factor = call.scalar("alpha", alpha);
    auto a = call.vector("x", x, n, incx);
    auto b = call.vector("y", y, n, incy);
    for (int i = 0; i < n; ++i) b[i] += factor * a[i];
  });
}

template <typename T>
cublasStatus_t Vectors<T>::copy(cublasHandle_t handle, int n, const T* x, int incx, T* y, int incy) {
  return blas_call(handle, named<T>("copy"), [&](Call& call) {
    auto a = call.vector("x", x, n, incx);
    auto b = call.vector("y", y, n, incy);
    for (int i = 0; i < n; ++i) b[i] = a[i];
  });
}

template <typename T>
cublasStatus_t Vectors<T>::swap(cublasHandle_t handle, int n, T* x, int incx, T* y, int incy) {
  return blas_call(handle, named<T>("swap"), [&](Call& call) {
    auto a = call.vector("x", x, n, incx);
    auto b = call.vector("y", y, n, incy);
    for (int i = 0; i < n; ++i) std::swap(a[i], b[i]);
  });
}

template <typename T>
cublasStatus_t Vectors<T>::scal(cublasHandle_t handle, int n, const T* alpha, T* x, int incx) {
  return scale(handle, named<T>("scal"), n, alpha, x, incx);
}
template <typename T>
cublasStatus_t Vectors<T>::scal_real(cublasHandle_t handle, int n, const Real* alpha, T* x, int incx) {
  const bool single = std::is_same_v<Real, float>;
  return scale(handle, single ? "cublasCsscal" : "cublasZdscal", n, alpha, x, incx);
}

template <typename T>
cublasStatus_t Vectors<T>::dotu(cublasHandle_t handle, int n, const T* x, int incx, const T* y, int incy, T* result) {
  return dot(handle, named<T>(kReal<T> ? "dot" : "dotu"), n, x, incx, y, incy, result, false);
}
template <typename T>
cublasStatus_t Vectors<T>::dotc(cublasHandle_t handle, int n, const T* x, int incx, const T* y, int incy, T* result) {
  return dot(handle, named<T>("dotc"), n, x, incx, y, incy, result, true);
}

template <typename T>
cublasStatus_t Vectors<T>::nrm2(cublasHandle_t handle, int n, const T* x, int incx, Real* result) {
  return blas_call(handle, named_norm<T>("nrm2"), [&](Call& call) {
    auto a = call.vector("x", x, n, incx);
    Real& norm = call.result(result);
    WiderThan<Real> sum = 0;
    for (int i = 0; i < n && incx > 0; ++i) {
      const WiderThan<Real> real = std::real(a[i]), imag = std::imag(a[i]);
      sum += real * real + imag * imag;
    }
    norm = static_cast<Real>(std::sqrt(sum));
  });
}

template <typename T>
cublasStatus_t Vectors<T>::asum(cublasHandle_t handle, int n, const T* x, int incx, Real* result) {
  return blas_call(handle, named_norm<T>("asum"), [&](Call& call) {
    auto a = call.vector("x", x, n, incx);
    Real& out = call.result(result);
    WiderThan<Real> sum = 0;
    for (int i = 0; i < n && incx > 0; ++i) sum += magnitude(a[i]);
    out = static_cast<Real>(sum);
  });
}

template <typename T>
cublasStatus_t Vectors<T>::amax(cublasHandle_t handle, int n, const T* x, int incx, int* result) {
  return extremum(handle, "amax", n, x, incx, result, [](Real a, Real b) { return a > b; });
}
template <typename T>
cublasStatus_t Vectors<T>::amin(cublasHandle_t handle, int n, const T* x, int incx, int* result) {
  return extremum(handle, "amin", n, x, incx, result, [](Real a, Real b) { return a < b; });
}

template <typename T>
cublasStatus_t Vectors<T>::rot(cublasHandle_t handle, int n, T* x, int incx, T* y, int incy, const Real* c,
                               const T* s) {
  return blas_call(handle, named<T>("rot"), [&](Call& call) {
    auto a = call.vector("x", x, n, incx);
    auto b = call.vector("y", y, n, incy);
    const Real cosine = call.scalar("c", c);
    const auto sine = call.scalar("s", s);
    for (int i = 0; i < n; ++i) {
      const auto before = a[i];
      a[i] = cosine * before + sine * b[i];
      b[i] = cosine * b[i] - conjugate(sine) * before;
    }
  });
}

template struct Vectors<float>;
template struct Vectors<double>;
template struct Vectors<cuComplex>;
template struct Vectors<cuDoubleComplex>;

}  // namespace simt::blas
