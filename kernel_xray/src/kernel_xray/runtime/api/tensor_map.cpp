// tensor_map.cpp: cuTensorMapEncodeTiled, with CUDA's rules for its arguments, and how programs get hold of it.
#include <cstring>
#include <new>

#include "../../include/cuda.h"
#include "api/host_call.h"

namespace simt {
namespace {

constexpr cuuint64_t kMostElements = cuuint64_t{1} << 32, kMostBytes = cuuint64_t{1} << 40;

unsigned bytes_of(CUtensorMapDataType type) {
  switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_UINT8:
      return 1;
    case CU_TENSOR_MAP_DATA_TYPE_UINT16:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
      return 2;
    case CU_TENSOR_MAP_DATA_TYPE_UINT64:
    case CU_TENSOR_MAP_DATA_TYPE_INT64:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT64:
      return 8;
    default:
      return 4;
  }
}

// The first rows of a tile must not be longer than the swizzle's pattern: 32, 64 or 128 bytes.
bool too_wide(unsigned row_bytes, CUtensorMapSwizzle swizzle) {
  return swizzle != CU_TENSOR_MAP_SWIZZLE_NONE && row_bytes > 16u << swizzle;
}

cudaError_t find(const char* symbol, void** function, cudaDriverEntryPointQueryResult* status) {
  if (!symbol || !function) return failed(cudaErrorInvalidValue);
  const bool found = std::strcmp(symbol, "cuTensorMapEncodeTiled") == 0;
  *function = found ? reinterpret_cast<void*>(&cuTensorMapEncodeTiled) : nullptr;
  if (status) *status = found ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return found || status ? cudaSuccess : failed(cudaErrorSymbolNotFound);
}

}  // namespace
}  // namespace simt

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t dimensions, void* data,
                                const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill fill) {
  simt::host_only("cuTensorMapEncodeTiled");
  const auto misplaced = [](const void* p, uintptr_t multiple) {
    return !p || reinterpret_cast<uintptr_t>(p) % multiple;
  };
  if (misplaced(map, alignof(CUtensorMap)) || misplaced(data, 16) || dimensions < 1 ||
      dimensions > simt::TensorMap::kMostDimensions || !sizes || !box || !element_strides ||
      (dimensions > 1 && !strides))
    return CUDA_ERROR_INVALID_VALUE;
  if (type > CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ || swizzle > CU_TENSOR_MAP_SWIZZLE_128B)
    return CUDA_ERROR_NOT_SUPPORTED;
  simt::TensorMap made{};
  made.data = static_cast<char*>(data);
  made.dimensions = static_cast<uint8_t>(dimensions);
  made.type = static_cast<uint8_t>(type);
  made.element_bytes = static_cast<uint8_t>(simt::bytes_of(type));
  made.swizzle = static_cast<uint8_t>(swizzle);
  made.mark = simt::TensorMap::kMark;
  for (unsigned d = 0; d < simt::TensorMap::kMostDimensions; ++d) {
    made.sizes[d] = made.box[d] = 1;
    made.strides[d] = made.element_bytes;
    if (d >= dimensions) continue;
    if (!sizes[d] || sizes[d] > simt::kMostElements || !box[d] || box[d] > 256 || !element_strides[d] ||
        element_strides[d] > 8 || (d && (strides[d - 1] % 16 || strides[d - 1] >= simt::kMostBytes)))
      return CUDA_ERROR_INVALID_VALUE;
    if (element_strides[d] != 1) return CUDA_ERROR_NOT_SUPPORTED;
    made.sizes[d] = static_cast<int64_t>(sizes[d]);
    made.box[d] = static_cast<uint16_t>(box[d]);
    if (d) made.strides[d] = static_cast<int64_t>(strides[d - 1]);
  }
  const auto row_bytes = static_cast<unsigned>(made.row_bytes());
  if (row_bytes % 16 || simt::too_wide(row_bytes, swizzle)) return CUDA_ERROR_INVALID_VALUE;
  if (interleave != CU_TENSOR_MAP_INTERLEAVE_NONE || fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)
    return CUDA_ERROR_NOT_SUPPORTED;
  new (map) simt::TensorMap(made);
  return CUDA_SUCCESS;
}

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long,
                                    cudaDriverEntryPointQueryResult* status) {
  simt::host_only("cudaGetDriverEntryPoint");
  return simt::find(symbol, function, status);
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* status) {
  simt::host_only("cudaGetDriverEntryPointByVersion");
  return simt::find(symbol, function, status);
}
