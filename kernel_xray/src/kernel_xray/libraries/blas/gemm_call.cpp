// gemm_call.cpp: products of all types that cuBLAS combines. Operands narrower than the sum are widened into a copy.
#include "libraries/blas/gemm_call.h"

#include "simt/narrow_formats.h"

namespace simt::blas {
namespace {

struct Half {
  uint16_t bits;
};
struct Brain {
  uint16_t bits;
};
struct Int8Complex {
  int8_t real, imag;
};

// Calls body(T()) with the C++ type of a cudaDataType; false if there is none here.
template <typename Body>
bool with_type(cudaDataType type, Body body) {
  switch (type) {
    case CUDA_R_32F:
      return body(float()), true;
    case CUDA_R_64F:
      return body(double()), true;
    case CUDA_R_16F:
      return body(Half()), true;
    case CUDA_R_16BF:
      return body(Brain()), true;
    case CUDA_R_8I:
      return body(int8_t()), true;
    case CUDA_R_32I:
      return body(int32_t()), true;
    case CUDA_C_32F:
      return body(std::complex<float>()), true;
    case CUDA_C_64F:
      return body(std::complex<double>()), true;
    case CUDA_C_8I:
      return body(Int8Complex()), true;
    default:
      return false;
  }
}

size_t size_of(cudaDataType type) {
  size_t bytes = 0;
  with_type(type, [&](auto zero) { bytes = sizeof(zero); });
  return bytes;
}

template <typename Sum, typename T>
Sum widened(T x) {
  if constexpr (std::is_same_v<T, Half>)
    return Sum(Binary16::decode(x.bits));
  else if constexpr (std::is_same_v<T, Brain>)
    return Sum(Brain16::decode(x.bits));
  else if constexpr (std::is_same_v<T, Int8Complex>)
    return widened<Sum>(std::complex<float>(x.real, x.imag));
  else if constexpr (std::is_constructible_v<Sum, T>)
    return Sum(x);
  else
    return Sum();  // complex into real, which no combination of types asks for
}

template <typename T, typename Sum>
T narrowed(Sum x) {
  if constexpr (std::is_same_v<Sum, float> && std::is_same_v<T, Half>)
    return {Binary16::encode(x)};
  else if constexpr (std::is_same_v<Sum, float> && std::is_same_v<T, Brain>)
    return {Brain16::encode(x)};
  else if constexpr (std::is_same_v<Sum, T>)
    return x;
  else
    return T();  // as above
}

// A stored matrix in the type of the sum: itself, or a copy in `copy`.
template <typename Sum>
const Sum* in_type_of_sum(const void* data, cudaDataType type, int64_t rows, int64_t columns, int64_t& ld,
                          std::vector<Sum>& copy) {
  const void* out = nullptr;
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    if (std::is_same_v<T, Sum>) {
      out = data;
      return;
    }
    copy.resize(static_cast<size_t>(rows * columns));
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t i = 0; i < rows; ++i)
        copy[static_cast<size_t>(j * rows + i)] = widened<Sum>(static_cast<const T*>(data)[j * ld + i]);
    ld = std::max<int64_t>(1, rows);
    out = copy.data();
  });
  return static_cast<const Sum*>(out);
}

template <typename Sum>
Sum scalar(const Call& call, const char* name, const void* pointer, bool half) {
  if (half) return widened<Sum>(call.scalar(name, static_cast<const Half*>(pointer)));
  return call.scalar(name, static_cast<const Sum*>(pointer));
}

struct Shape {
  cublasOperation_t transa, transb;
  int64_t m, n, k;
};

const void* matrix(const Call& call, const char* name, const GemmOperand& operand, int i, int64_t rows,
                   int64_t columns) {
  const size_t size = size_of(operand.type);
  const void* at = operand.list
                       ? operand.list[i]
                       : static_cast<const char*>(operand.first) + operand.stride * i * static_cast<int64_t>(size);
  if (rows > 0 && columns > 0) call.operand(name, at, ((columns - 1) * operand.ld + rows) * size);
  return at;
}

template <typename Sum>
void multiply(const Call& call, const Shape& s, Sum alpha, const GemmOperand& a, const GemmOperand& b, Sum beta,
              const GemmOperand& c, int count) {
  const int64_t a_rows = s.transa == CUBLAS_OP_N ? s.m : s.k, a_columns = s.transa == CUBLAS_OP_N ? s.k : s.m;
  const int64_t b_rows = s.transb == CUBLAS_OP_N ? s.k : s.n, b_columns = s.transb == CUBLAS_OP_N ? s.n : s.k;
  std::vector<Sum> a_copy, b_copy, c_copy;
  for (int i = 0; i < count; ++i) {
    int64_t lda = a.ld, ldb = b.ld, ldc = c.ld;
    const Sum* left =
        in_type_of_sum(matrix(call, "A", a, i, a_rows, a_columns), a.type, a_rows, a_columns, lda, a_copy);
    const Sum* right =
        in_type_of_sum(matrix(call, "B", b, i, b_rows, b_columns), b.type, b_rows, b_columns, ldb, b_copy);
    void* out = const_cast<void*>(matrix(call, "C", c, i, s.m, s.n));
    Sum* sums = const_cast<Sum*>(in_type_of_sum(out, c.type, s.m, s.n, ldc, c_copy));
    gemm<Sum>(s.m, s.n, s.k, alpha, {left, lda, s.transa}, {right, ldb, s.transb}, beta, sums, ldc);
    if (static_cast<void*>(sums) == out) continue;
    with_type(c.type, [&](auto zero) {
      using T = decltype(zero);
      for (int64_t j = 0; j < s.n; ++j)
        for (int64_t r = 0; r < s.m; ++r) static_cast<T*>(out)[j * c.ld + r] = narrowed<T>(sums[j * ldc + r]);
    });
  }
}

// The types that cuBLAS combines; A and B have the same.
struct Combination {
  cublasComputeType_t compute;
  cudaDataType factors, result;
};
constexpr Combination kCombinations[] = {
    {CUBLAS_COMPUTE_16F, CUDA_R_16F, CUDA_R_16F},   {CUBLAS_COMPUTE_32I, CUDA_R_8I, CUDA_R_32I},
    {CUBLAS_COMPUTE_32F, CUDA_R_16BF, CUDA_R_16BF}, {CUBLAS_COMPUTE_32F, CUDA_R_16F, CUDA_R_16F},
    {CUBLAS_COMPUTE_32F, CUDA_R_8I, CUDA_R_32F},    {CUBLAS_COMPUTE_32F, CUDA_R_16BF, CUDA_R_32F},
    {CUBLAS_COMPUTE_32F, CUDA_R_16F, CUDA_R_32F},   {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_32F},
    {CUBLAS_COMPUTE_32F, CUDA_C_8I, CUDA_C_32F},    {CUBLAS_COMPUTE_32F, CUDA_C_32F, CUDA_C_32F},
    {CUBLAS_COMPUTE_64F, CUDA_R_64F, CUDA_R_64F},   {CUBLAS_COMPUTE_64F, CUDA_C_64F, CUDA_C_64F},
};

bool is_supported(cublasComputeType_t compute, cudaDataType a, cudaDataType b, cudaDataType c) {
  for (const Combination& known : kCombinations)
    if (known.compute == compute && known.factors == a && known.factors == b && known.result == c) return true;
  return false;
}

cublasComputeType_t without_variant(cublasComputeType_t compute) {
  switch (compute) {
    case CUBLAS_COMPUTE_16F_PEDANTIC:
      return CUBLAS_COMPUTE_16F;
    case CUBLAS_COMPUTE_32I_PEDANTIC:
      return CUBLAS_COMPUTE_32I;
    case CUBLAS_COMPUTE_64F_PEDANTIC:
      return CUBLAS_COMPUTE_64F;
    case CUBLAS_COMPUTE_32F_PEDANTIC:
    case CUBLAS_COMPUTE_32F_FAST_16F:
    case CUBLAS_COMPUTE_32F_FAST_16BF:
    case CUBLAS_COMPUTE_32F_FAST_TF32:
      return CUBLAS_COMPUTE_32F;
    default:
      return compute;
  }
}

}  // namespace

cublasStatus_t gemm_call(cublasHandle_t handle, const std::string& function, cublasOperation_t transa,
                         cublasOperation_t transb, int m, int n, int k, const void* alpha, const GemmOperand& a,
                         const GemmOperand& b, const void* beta, const GemmOperand& c, int count,
                         cublasComputeType_t compute) {
  return blas_call(handle, function, [&](Call& call) {
    call.operation("transa", transa);
    call.operation("transb", transb);
    call.size("m", m);
    call.size("n", n);
    call.size("k", k);
    call.size("the batch", count);
    call.leading("a", transa == CUBLAS_OP_N ? m : k, a.ld);
    call.leading("b", transb == CUBLAS_OP_N ? k : n, b.ld);
    call.leading("c", m, c.ld);
    const cublasComputeType_t sum = without_variant(compute);
    if (!is_supported(sum, a.type, b.type, c.type))
      throw Refusal{CUBLAS_STATUS_NOT_SUPPORTED, "cuBLAS does not combine these types"};
    if (m == 0 || n == 0 || count == 0) return;
    for (const GemmOperand* operand : {&a, &b, &c})
      if (operand->list) call.operand("a list of matrices", operand->list, sizeof(void*) * static_cast<size_t>(count));
    const bool half = sum == CUBLAS_COMPUTE_16F, complex = c.type == CUDA_C_32F || c.type == CUDA_C_64F;
    const Shape shape{transa, transb, m, n, k};
    auto run = [&](auto zero) {
      using Sum = decltype(zero);
      multiply<Sum>(call, shape, scalar<Sum>(call, "alpha", alpha, half), a, b, scalar<Sum>(call, "beta", beta, half),
                    c, count);
    };
    if (sum == CUBLAS_COMPUTE_32I) return run(int32_t());
    if (sum == CUBLAS_COMPUTE_64F) return complex ? run(std::complex<double>()) : run(double());
    return complex ? run(std::complex<float>()) : run(float());
  });
}

}  // namespace simt::blas

using simt::blas::gemm_call;

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
                            int k, const void* alpha, const void* A, cudaDataType Atype, int lda, const void* B,
                            cudaDataType Btype, int ldb, const void* beta, void* C, cudaDataType Ctype, int ldc,
                            simt::blas::SumType compute, cublasGemmAlgo_t) {
  return gemm_call(handle, "cublasGemmEx", transa, transb, m, n, k, alpha, {Atype, lda, A}, {Btype, ldb, B}, beta,
                   {Ctype, ldc, C}, 1, compute.type);
}

cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,
                                   int n, int k, const void* alpha, const void* const A[], cudaDataType Atype, int lda,
                                   const void* const B[], cudaDataType Btype, int ldb, const void* beta,
                                   void* const C[], cudaDataType Ctype, int ldc, int count, simt::blas::SumType compute,
                                   cublasGemmAlgo_t) {
  return gemm_call(handle, "cublasGemmBatchedEx", transa, transb, m, n, k, alpha, {Atype, lda, nullptr, 0, A},
                   {Btype, ldb, nullptr, 0, B}, beta, {Ctype, ldc, nullptr, 0, C}, count, compute.type);
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
                                          int m, int n, int k, const void* alpha, const void* A, cudaDataType Atype,
                                          int lda, long long strideA, const void* B, cudaDataType Btype, int ldb,
                                          long long strideB, const void* beta, void* C, cudaDataType Ctype, int ldc,
                                          long long strideC, int count, simt::blas::SumType compute, cublasGemmAlgo_t) {
  return gemm_call(handle, "cublasGemmStridedBatchedEx", transa, transb, m, n, k, alpha, {Atype, lda, A, strideA},
                   {Btype, ldb, B, strideB}, beta, {Ctype, ldc, C, strideC}, count, compute.type);
}
