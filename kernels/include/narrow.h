// narrow.h: float16 and bfloat16 matrices, for the rungs on tensor cores: CUDA's types,
// and accesses of eight elements.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>

#include "matmul.h"

namespace ladder {

// CUDA's own type for PyTorch's Half or BFloat16: the same bits.
template <typename T>
using Device = std::conditional_t<std::is_same_v<T, Half>, __half, __nv_bfloat16>;

template <typename T>
using Eight = Vector<T, 16>;

inline void check_tensor_cores() {
  int major = device_attribute(cudaDevAttrComputeCapabilityMajor);
  STD_TORCH_CHECK(major >= 8,
                  "a must be on a GPU of compute capability 8.0 or newer, whose tensor "
                  "cores support bfloat16, ",
                  "got ", major, ".x; use matmul_tiled");
}

// PyTorch compiles kernels without the operators and implicit conversions of these
// types, so they are converted by name.
template <typename T>
__device__ T narrowed(float x) {
  if constexpr (std::is_same_v<T, __half>) {
    return __float2half(x);
  } else {
    return __float2bfloat16(x);
  }
}

// Inlined, so that an X-ray attributes the read of x to the caller's line.
template <typename T>
__device__ __forceinline__ float widened(T x) {
  if constexpr (std::is_same_v<T, __half>) {
    return __half2float(x);
  } else {
    return __bfloat162float(x);
  }
}

// Two neighbours, rounded, packed into 32 bits.
template <typename T>
__device__ uint32_t pair(float first, float second) {
  Vector<T, 4> both = {{narrowed<T>(first), narrowed<T>(second)}};
  uint32_t bits;
  memcpy(&bits, &both, 4);
  return bits;
}

// Tensor cores leave each lane two neighbours out of every 8 columns of a row. Written
// like that, 4 lanes write 16 bytes, half a sector. Out of 16 columns a lane has the
// pairs `left` and `right`. Lanes 2i and 2i + 1 exchange one pair, so that each has 4
// neighbours, which begin at column first_of_four(), and the 4 lanes together write a
// whole sector.
//
// The result is a uint2, since nvcc copies a struct of two __nv_bfloat162 in two
// accesses of 4 bytes: on an H200 that cost 5% of matmul_wgmma's speed.
__device__ inline uint2 four_neighbours(uint32_t left, uint32_t right) {
  int odd = threadIdx.x % 2;
  uint32_t other = __shfl_xor_sync(0xffffffff, odd ? left : right, 1);
  return odd ? make_uint2(other, right) : make_uint2(left, other);
}

__device__ inline int first_of_four() {
  return threadIdx.x % 2 * 8 + threadIdx.x % 4 / 2 * 4;
}

// Copies eight neighbours of a row of a matrix of rows x columns elements to shared
// memory; their first column is a multiple of 8. Zeros outside the matrix. wide: one
// access of 16 bytes, for which `columns` must be a multiple of 8 and p a multiple of
// 16 bytes.
template <bool wide, typename T>
__device__ void copy_eight(T* to, const T* p, int row, int column, int rows,
                           int columns) {
  const T* from = p + int64_t(row) * columns + column;
  if (wide) {
    uint4 word = {};
    if (row < rows && column < columns) word = *reinterpret_cast<const uint4*>(from);
    *reinterpret_cast<uint4*>(to) = word;
  } else {
    Eight<T> eight;
    for (int i = 0; i < 8; ++i)
      eight.at[i] = row < rows && column + i < columns ? from[i] : narrowed<T>(0.0f);
    eight.store(to, 0);
  }
}

template <bool wide, typename T>
__device__ void store_eight(const Eight<T>& eight, T* p, int row, int column, int rows,
                            int columns) {
  T* to = p + int64_t(row) * columns + column;
  if (wide) {
    if (row < rows && column < columns) eight.store(to, 0);
  } else {
    for (int i = 0; i < 8; ++i) {
      if (row < rows && column + i < columns) to[i] = eight.at[i];
    }
  }
}

// Calls run(std::true_type()) if copy_eight and store_eight may be wide for a, b and c,
// else run(std::false_type()).
template <typename T, typename Run>
void with_widest_eights(const T* a, const T* b, const T* c, MatmulSizes size, Run run) {
  if (size.k % 8 == 0 && size.n % 8 == 0 && all_aligned_to(16, a, b, c)) {
    run(std::true_type());
  } else {
    run(std::false_type());
  }
}

}  // namespace ladder
