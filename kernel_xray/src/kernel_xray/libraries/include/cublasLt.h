// cublasLt.h: the names that code beside a product needs: handles and the types of descriptions. Programs include this
// header where they share one between sources, so products and what describes them are refused where they are called.
#pragma once

#include <cublas_api.h>

#include <cuda_fp16.h>

#include <stddef.h>
#include <stdint.h>

#include "simt/runtime_refused.h"

struct cublasLtContext {};
using cublasLtHandle_t = cublasLtContext*;

struct cublasLtMatmulAlgo_t {
  uint64_t data[8];
};
struct cublasLtMatrixLayoutOpaque_t {
  uint64_t data[8];
};
struct cublasLtMatmulDescOpaque_t {
  uint64_t data[32];
};
struct cublasLtMatrixTransformDescOpaque_t {
  uint64_t data[8];
};
struct cublasLtMatmulPreferenceOpaque_t {
  uint64_t data[8];
};
using cublasLtMatrixLayout_t = cublasLtMatrixLayoutOpaque_t*;
using cublasLtMatmulDesc_t = cublasLtMatmulDescOpaque_t*;
using cublasLtMatrixTransformDesc_t = cublasLtMatrixTransformDescOpaque_t*;
using cublasLtMatmulPreference_t = cublasLtMatmulPreferenceOpaque_t*;

struct cublasLtMatmulHeuristicResult_t {
  cublasLtMatmulAlgo_t algo;
  size_t workspaceSize;
  cublasStatus_t state;
  float wavesCount;
  int reserved[4];
};

enum cublasLtOrder_t {
  CUBLASLT_ORDER_COL = 0,
  CUBLASLT_ORDER_ROW = 1,
  CUBLASLT_ORDER_COL32 = 2,
  CUBLASLT_ORDER_COL4_4R2_8C = 3,
  CUBLASLT_ORDER_COL32_2R_4R4 = 4,
};
enum cublasLtEpilogue_t {
  CUBLASLT_EPILOGUE_DEFAULT = 1,
  CUBLASLT_EPILOGUE_RELU = 2,
  CUBLASLT_EPILOGUE_BIAS = 4,
  CUBLASLT_EPILOGUE_RELU_BIAS = 6,
  CUBLASLT_EPILOGUE_GELU = 32,
  CUBLASLT_EPILOGUE_GELU_BIAS = 36,
};

inline cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  static cublasLtContext context;
  if (!handle) return CUBLAS_STATUS_INVALID_VALUE;
  *handle = &context;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtDestroy(cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; }

#define SIMT_REFUSED_PRODUCT(name)                                            \
  template <typename... Arguments>                                            \
  SIMT_REFUSED("cuBLASLt: cublasGemmEx of cublas_v2.h has the same products") \
  cublasStatus_t name(const Arguments&...);

SIMT_REFUSED_PRODUCT(cublasLtMatmul)
SIMT_REFUSED_PRODUCT(cublasLtMatmulDescInit)
SIMT_REFUSED_PRODUCT(cublasLtMatmulDescCreate)
SIMT_REFUSED_PRODUCT(cublasLtMatmulDescDestroy)
SIMT_REFUSED_PRODUCT(cublasLtMatmulDescSetAttribute)
SIMT_REFUSED_PRODUCT(cublasLtMatmulDescGetAttribute)
SIMT_REFUSED_PRODUCT(cublasLtMatrixLayoutInit)
SIMT_REFUSED_PRODUCT(cublasLtMatrixLayoutCreate)
SIMT_REFUSED_PRODUCT(cublasLtMatrixLayoutDestroy)
SIMT_REFUSED_PRODUCT(cublasLtMatrixLayoutSetAttribute)
SIMT_REFUSED_PRODUCT(cublasLtMatrixLayoutGetAttribute)
SIMT_REFUSED_PRODUCT(cublasLtMatmulPreferenceInit)
SIMT_REFUSED_PRODUCT(cublasLtMatmulPreferenceCreate)
SIMT_REFUSED_PRODUCT(cublasLtMatmulPreferenceDestroy)
SIMT_REFUSED_PRODUCT(cublasLtMatmulPreferenceSetAttribute)
SIMT_REFUSED_PRODUCT(cublasLtMatmulAlgoGetHeuristic)
SIMT_REFUSED_PRODUCT(cublasLtMatmulAlgoGetIds)
SIMT_REFUSED_PRODUCT(cublasLtMatmulAlgoInit)
SIMT_REFUSED_PRODUCT(cublasLtMatmulAlgoCheck)
SIMT_REFUSED_PRODUCT(cublasLtMatmulAlgoCapGetAttribute)
SIMT_REFUSED_PRODUCT(cublasLtMatmulAlgoConfigSetAttribute)
SIMT_REFUSED_PRODUCT(cublasLtMatmulAlgoConfigGetAttribute)
SIMT_REFUSED_PRODUCT(cublasLtMatrixTransform)
SIMT_REFUSED_PRODUCT(cublasLtMatrixTransformDescInit)
SIMT_REFUSED_PRODUCT(cublasLtMatrixTransformDescCreate)
SIMT_REFUSED_PRODUCT(cublasLtMatrixTransformDescDestroy)
SIMT_REFUSED_PRODUCT(cublasLtMatrixTransformDescSetAttribute)
#undef SIMT_REFUSED_PRODUCT
