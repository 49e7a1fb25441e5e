// gemm_call.h: the one function behind cuBLAS's twelve forms of a product: any types, one matrix or a batch.
#pragma once

#include "libraries/blas/blas_call.h"

namespace simt::blas {

struct GemmOperand {
  cudaDataType type;
  int ld;
  const void* first;  // matrix 0 of the batch; the next is `stride` elements behind
  long long stride = 0;
  const void* const* list = nullptr;  // or: a list of all, in device memory
};

// C = alpha * op(A) * op(B) + beta * C, `count` times. alpha and beta have the type of the sum.
cublasStatus_t gemm_call(cublasHandle_t handle, const std::string& function, cublasOperation_t transa,
                         cublasOperation_t transb, int m, int n, int k, const void* alpha, const GemmOperand& a,
                         const GemmOperand& b, const void* beta, const GemmOperand& c, int count,
                         cublasComputeType_t compute);

}  // namespace simt::blas
