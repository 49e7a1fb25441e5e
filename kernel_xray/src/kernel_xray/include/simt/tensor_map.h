// tensor_map.h: tensor maps, which tell TMA where a tensor lies and what its tiles are, as the driver encodes them.
//
// A map's 128 bytes hold what encode was given, not what a GPU's map holds. cuTensorMapEncodeTiled has CUDA's rules for
// its arguments. What CUDA takes and the simulator does not is CUDA_ERROR_NOT_SUPPORTED: interleaved layouts, element
// strides other than 1, NaN in place of zeros outside the tensor, and Blackwell's packed types and swizzles. L2
// promotion does nothing.
#pragma once

#include "core.h"

using cuuint32_t = uint32_t;
using cuuint64_t = uint64_t;

struct alignas(64) CUtensorMap_st {
  cuuint64_t opaque[16];
};
using CUtensorMap = CUtensorMap_st;

enum CUtensorMapDataType {
  CU_TENSOR_MAP_DATA_TYPE_UINT8,
  CU_TENSOR_MAP_DATA_TYPE_UINT16,
  CU_TENSOR_MAP_DATA_TYPE_UINT32,
  CU_TENSOR_MAP_DATA_TYPE_INT32,
  CU_TENSOR_MAP_DATA_TYPE_UINT64,
  CU_TENSOR_MAP_DATA_TYPE_INT64,
  CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
  CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
  CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
  CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
  CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ,
  CU_TENSOR_MAP_DATA_TYPE_TFLOAT32,
  CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ,
  CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B,
  CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B,
  CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B,
};
enum CUtensorMapInterleave {
  CU_TENSOR_MAP_INTERLEAVE_NONE,
  CU_TENSOR_MAP_INTERLEAVE_16B,
  CU_TENSOR_MAP_INTERLEAVE_32B,
};
enum CUtensorMapSwizzle {
  CU_TENSOR_MAP_SWIZZLE_NONE,
  CU_TENSOR_MAP_SWIZZLE_32B,
  CU_TENSOR_MAP_SWIZZLE_64B,
  CU_TENSOR_MAP_SWIZZLE_128B,
  CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B,
  CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B,
  CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B,
};
enum CUtensorMapL2promotion {
  CU_TENSOR_MAP_L2_PROMOTION_NONE,
  CU_TENSOR_MAP_L2_PROMOTION_L2_64B,
  CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
  CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
};
enum CUtensorMapFloatOOBfill {
  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
  CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA,
};

namespace simt {

// Where the 16-byte pieces of a row of 32 << (swizzle - 1) bytes lie: bits of the row's number change the piece's.
SIMT_NOT_TRACED inline uint32_t swizzled(uint32_t at, unsigned swizzle) {
  return at ^ (at >> 7 & ((1u << swizzle) - 1)) << 4;
}

struct TensorMap {  // in the bytes of a CUtensorMap; dimension 0 is the innermost
  static constexpr int kMostDimensions = 5;
  static constexpr uint32_t kMark = 0x70616d74;

  char* data;
  int64_t sizes[kMostDimensions];    // elements; 1 beyond the tensor's dimensions, as in box
  int64_t strides[kMostDimensions];  // bytes
  uint16_t box[kMostDimensions];
  uint8_t dimensions, type, element_bytes, swizzle;  // type: a CUtensorMapDataType
  uint32_t mark;                                     // tells an encoded map from other memory

  SIMT_NOT_TRACED int row_bytes() const { return box[0] * element_bytes; }
  SIMT_NOT_TRACED int rows() const { return box[1] * box[2] * box[3] * box[4]; }
};
static_assert(sizeof(TensorMap) <= sizeof(CUtensorMap), "a tensor map has 128 bytes");

}  // namespace simt
