// gemm.cpp: the products, by loops of our own or by a BLAS that the process has loaded.
//
// Our loops keep a tile of the result in registers, as a kernel on a GPU does: A is packed into panels of one vector of
// rows, B into panels of four columns, both along k, so the innermost loop reads each panel from front to back. Packing
// also transposes. A complex product is a real one of twice the rows and columns: (x + iy) is [x -y; y x].
#include "libraries/blas/gemm.h"

#include <dlfcn.h>

#include <algorithm>
#include <vector>

namespace simt::blas {
namespace {

constexpr int64_t kWorthBlas = 32 * 32 * 32;  // multiplications from which a call of BLAS pays

// store(i, j, sum over p < k of a(i, p) * b(p, j)) for all i < m and j < n.
template <typename T, typename A, typename B, typename Store>
void multiply(int64_t m, int64_t n, int64_t k, A a, B b, Store store) {
  constexpr int64_t kRows = 32 / sizeof(T), kColumns = 4;
  typedef T Vector __attribute__((vector_size(32), aligned(alignof(T))));
  std::vector<T> right(static_cast<size_t>((n + kColumns - 1) / kColumns * kColumns * k));
  for (int64_t j = 0; j < n; ++j)
    for (int64_t p = 0; p < k; ++p) right[(j / kColumns * k + p) * kColumns + j % kColumns] = b(p, j);
  std::vector<T> left(static_cast<size_t>(kRows * k));
  for (int64_t i = 0; i < m; i += kRows) {
    const int64_t rows = std::min(kRows, m - i);
    for (int64_t p = 0; p < k; ++p)
      for (int64_t r = 0; r < rows; ++r) left[p * kRows + r] = a(i + r, p);
    for (int64_t j = 0; j < n; j += kColumns) {
      Vector sums[kColumns] = {};
      const T *x = left.data(), *y = right.data() + j * k;
      for (int64_t p = 0; p < k; ++p, x += kRows, y += kColumns) {
        const Vector column = *reinterpret_cast<const Vector*>(x);
        for (int64_t s = 0; s < kColumns; ++s) sums[s] += column * y[s];
      }
      for (int64_t s = 0; s < std::min(kColumns, n - j); ++s)
        for (int64_t r = 0; r < rows; ++r) store(i + r, j + s, sums[s][r]);
    }
  }
}

template <typename T>
void multiply(int64_t m, int64_t n, int64_t k, T alpha, const Factor<T>& a, const Factor<T>& b, T* c, int64_t ldc) {
  if constexpr (std::is_arithmetic_v<T>) {
    multiply<T>(m, n, k, a, b, [=](int64_t i, int64_t j, T sum) { c[j * ldc + i] += alpha * sum; });
  } else {
    using Real = typename T::value_type;
    auto left = [&](int64_t i, int64_t p) {
      const T value = a(i / 2, p / 2);
      return i % 2 == p % 2 ? value.real() : i % 2 ? value.imag() : -value.imag();
    };
    auto right = [&](int64_t p, int64_t j) { return p % 2 ? b(p / 2, j).imag() : b(p / 2, j).real(); };
    multiply<Real>(2 * m, n, 2 * k, left, right, [=](int64_t i, int64_t j, Real sum) {
      c[j * ldc + i / 2] += alpha * (i % 2 ? T(0, sum) : T(sum, 0));
    });
  }
}

// A function of the Fortran interface. Integers are passed by address; those of 64 bits are right for a BLAS with
// integers of 32 bits too, on a machine whose low bytes come first.
template <typename T>
using FortranGemm = void (*)(const char*, const char*, const int64_t*, const int64_t*, const int64_t*, const T*,
                             const T*, const int64_t*, const T*, const int64_t*, const T*, T*, const int64_t*);

// PyTorch contains a BLAS, or depends on one; a program without PyTorch may be linked with one.
void* find_loaded(const char* name) {
  void* torch = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
  void* found = torch ? dlsym(torch, name) : nullptr;
  return found ? found : dlsym(RTLD_DEFAULT, name);
}

template <typename T>
constexpr const char* kFortranName = nullptr;
template <>
constexpr const char* kFortranName<float> = "sgemm_";
template <>
constexpr const char* kFortranName<double> = "dgemm_";
template <>
constexpr const char* kFortranName<std::complex<float>> = "cgemm_";
template <>
constexpr const char* kFortranName<std::complex<double>> = "zgemm_";

}  // namespace

template <typename T>
bool gemm_of_process(int64_t m, int64_t n, int64_t k, T alpha, const Factor<T>& a, const Factor<T>& b, T beta, T* c,
                     int64_t ldc) {
  if (!kFortranName<T>) return false;
  static const auto function = reinterpret_cast<FortranGemm<T>>(find_loaded(kFortranName<T>));
  if (!function) return false;
  const char* letters = "NTC";
  function(&letters[a.op], &letters[b.op], &m, &n, &k, &alpha, a.data, &a.ld, b.data, &b.ld, &beta, c, &ldc);
  return true;
}

template <typename T>
void gemm(int64_t m, int64_t n, int64_t k, T alpha, const Factor<T>& a, const Factor<T>& b, T beta, T* c, int64_t ldc) {
  const bool product = alpha != T(0) && m > 0 && n > 0 && k > 0;
  if (product && m * n * k >= kWorthBlas && gemm_of_process(m, n, k, alpha, a, b, beta, c, ldc)) return;
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < m; ++i) c[j * ldc + i] = beta == T(0) ? T(0) : beta * c[j * ldc + i];
  if (product) multiply(m, n, k, alpha, a, b, c, ldc);
}

#define SIMT_GEMM(T)                                                                                    \
  template void gemm(int64_t, int64_t, int64_t, T, const Factor<T>&, const Factor<T>&, T, T*, int64_t); \
  template bool gemm_of_process(int64_t, int64_t, int64_t, T, const Factor<T>&, const Factor<T>&, T, T*, int64_t);
SIMT_GEMM(float)
SIMT_GEMM(double)
SIMT_GEMM(int32_t)
SIMT_GEMM(std::complex<float>)
SIMT_GEMM(std::complex<double>)

}  // namespace simt::blas
