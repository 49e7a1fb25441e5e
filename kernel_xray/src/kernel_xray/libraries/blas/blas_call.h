// blas_call.h: the frame of every cuBLAS function: its handle, the checks of its arguments, its status.
//
//   return blas_call(handle, named<T>("axpy"), [&](Call& call) {
//     auto a = call.scalar("alpha", alpha);
//     auto in = call.vector("x", x, n, incx);
//     ...
//   });
#pragma once

#include <algorithm>
#include <complex>
#include <string>
#include <vector>

#include "simt/library_call.h"
#include "libraries/blas/gemm.h"
#include "libraries/handle_table.h"

namespace simt::blas {

struct Context {
  cudaStream_t stream = nullptr;
  cublasPointerMode_t pointer_mode = CUBLAS_POINTER_MODE_HOST;
  cublasAtomicsMode_t atomics_mode = CUBLAS_ATOMICS_NOT_ALLOWED;
  cublasMath_t math_mode = CUBLAS_DEFAULT_MATH;
};

struct Refusal {  // thrown by a check and caught by blas_call
  cublasStatus_t status;
  std::string reason;
};

// What this file computes with in place of cuComplex.
template <typename T>
struct ValueOf {
  using type = T;
};
template <>
struct ValueOf<cuComplex> {
  using type = std::complex<float>;
};
template <>
struct ValueOf<cuDoubleComplex> {
  using type = std::complex<double>;
};
template <typename T>
using Value = typename ValueOf<T>::type;

template <typename T>
Value<T>* values(T* p) {
  return reinterpret_cast<Value<T>*>(p);
}
template <typename T>
const Value<T>* values(const T* p) {
  return reinterpret_cast<const Value<T>*>(p);
}

inline float conjugate(float x) { return x; }
inline double conjugate(double x) { return x; }
template <typename T>
std::complex<T> conjugate(std::complex<T> x) {
  return std::conj(x);
}

template <typename T>
struct Strided {  // a vector
  T* first;
  int64_t step;
  T& operator[](int64_t i) const { return first[i * step]; }
};

template <typename T>
struct View {  // a matrix, or its transposed
  T* data;
  int64_t row_step, column_step;
  T& operator()(int64_t i, int64_t j) const { return data[i * row_step + j * column_step]; }
  View transposed() const { return {data, column_step, row_step}; }
};

// "cublasSaxpy"; with a letter before the type's: "cublasIsamax".
template <typename T>
std::string named(const char* stem, const std::string& before = "") {
  constexpr bool real = std::is_arithmetic_v<T>;
  constexpr bool single = std::is_same_v<Value<T>, float> || std::is_same_v<Value<T>, std::complex<float>>;
  const char letter = (before.empty() ? "ZDCS" : "zdcs")[2 * single + real];
  return "cublas" + before + letter + stem;
}

class Call {
 public:
  Call(const Context& context, const std::string& function) : context_(context), function_(function) {}

  void require(bool condition, const std::string& reason) const {
    if (!condition) throw Refusal{CUBLAS_STATUS_INVALID_VALUE, reason};
  }
  void size(const char* argument, int64_t value, int64_t least = 0) const {
    require(value >= least,
            std::string(argument) + " is " + std::to_string(value) + ", which is less than " + std::to_string(least));
  }
  void operation(const char* argument, cublasOperation_t op) const {
    require(op == CUBLAS_OP_N || op == CUBLAS_OP_T || op == CUBLAS_OP_C,
            std::string(argument) + " is not an operation");
  }
  void fill(cublasFillMode_t uplo) const {
    require(uplo == CUBLAS_FILL_MODE_LOWER || uplo == CUBLAS_FILL_MODE_UPPER, "uplo is neither lower nor upper");
  }
  void side(cublasSideMode_t side) const {
    require(side == CUBLAS_SIDE_LEFT || side == CUBLAS_SIDE_RIGHT, "side is neither left nor right");
  }
  void diagonal(cublasDiagType_t diag) const {
    require(diag == CUBLAS_DIAG_UNIT || diag == CUBLAS_DIAG_NON_UNIT, "diag is neither unit nor non-unit");
  }

  // Memory that the function may use; raises a fault.
  void operand(const char* argument, const void* pointer, size_t bytes) const {
    check_operand(function_, argument, pointer, bytes);
  }

  // A scalar that the host or the device keeps, as the pointer mode says.
  template <typename T>
  Value<T> scalar(const char* argument, const T* pointer) const {
    scalar_place(argument, pointer, sizeof(T));
    return *values(pointer);
  }
  template <typename T>
  Value<T>& result(T* pointer) const {
    scalar_place("result", pointer, sizeof(T));
    return *values(pointer);
  }

  template <typename T>
  auto vector(const char* argument, T* x, int64_t n, int64_t step) const {
    require(step != 0, std::string("inc") + argument + " is 0");
    if (n > 0) operand(argument, x, sizeof(T) * static_cast<size_t>(1 + (n - 1) * (step < 0 ? -step : step)));
    auto* first = values(x);
    return Strided<std::remove_pointer_t<decltype(first)>>{step < 0 && n > 0 ? first + (1 - n) * step : first, step};
  }

  // A matrix as it is stored.
  template <typename T>
  auto matrix(const char* argument, T* a, int64_t rows, int64_t columns, int64_t ld) const {
    leading(argument, rows, ld);
    if (rows > 0 && columns > 0) operand(argument, a, sizeof(T) * static_cast<size_t>((columns - 1) * ld + rows));
    auto* data = values(a);
    return View<std::remove_pointer_t<decltype(data)>>{data, 1, ld};
  }
  // op(A) with these numbers of rows and columns.
  template <typename T>
  Factor<Value<T>> factor(const char* argument, cublasOperation_t op, const T* a, int64_t rows, int64_t columns,
                          int64_t ld) const {
    if (op == CUBLAS_OP_N)
      matrix(argument, a, rows, columns, ld);
    else
      matrix(argument, a, columns, rows, ld);
    return {values(a), ld, op};
  }
  void leading(const char* argument, int64_t rows, int64_t ld) const {
    require(ld >= std::max<int64_t>(1, rows), std::string("ld") + argument + " is " + std::to_string(ld) +
                                                  ", which is less than the " + std::to_string(rows) + " rows that " +
                                                  argument + " has in memory");
  }

 private:
  void scalar_place(const char* argument, const void* pointer, size_t bytes) const;

  const Context& context_;
  const std::string& function_;
};

// Runs body(call) and returns the status of the cuBLAS function of that name.
cublasStatus_t blas_call(cublasHandle_t handle, const std::string& function, void (*body)(Call&, void*), void* closure);

template <typename Body>
cublasStatus_t blas_call(cublasHandle_t handle, const std::string& function, Body body) {
  return blas_call(handle, function, [](Call& call, void* closure) { (*static_cast<Body*>(closure))(call); }, &body);
}

}  // namespace simt::blas
