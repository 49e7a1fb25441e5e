// mma_sync.h: the tensor cores' own instructions for a warp, as functions: ldmatrix and
// mma.sync. All PTX for them is in this file. Needs compute capability 8.0; compiled
// for older GPUs, the functions do nothing.
//
// A register of 32 bits holds two neighbouring 16-bit elements of a row. Of a matrix of
// 8 rows and 8 columns, lane l of the warp holds the elements in row l / 4, columns l %
// 4 * 2 and l % 4 * 2 + 1.
//
//   load_matrices       loads four such matrices from shared memory. Each lane passes
//                       the address of a row: lanes 0 to 7 for the rows of the first
//                       matrix, lanes 8 to 15 for those of the second, and so on
//   load_transposed     the same, but transposes each matrix: a row-major b gives
//                       columns
//   multiply_add        d += a * b, where d has 16 x 8, a 16 x 16 and b 16 x 8
//                       elements. As matrices of 8 x 8:
//
//                       a: a[0] a[2]    b: b0 (transposed)    d: d[0], d[1]
//                          a[1] a[3]       b1                    d[2], d[3]
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define LADDER_MMA(...) asm volatile(__VA_ARGS__)
#else
#define LADDER_MMA(...) (void)0
#endif

namespace ladder {

__device__ __forceinline__ void load_matrices(uint32_t (&to)[4], const void* row) {
  [[maybe_unused]] uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  LADDER_MMA(
      "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(to[0]),
      "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(at) : "memory");
}

__device__ __forceinline__ void load_transposed(uint32_t (&to)[4], const void* row) {
  [[maybe_unused]] uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  LADDER_MMA(
      "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(
          to[0]),
      "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(at) : "memory");
}

#define LADDER_MMA_16816(type)                                                         \
  LADDER_MMA(                                                                          \
      "mma.sync.aligned.m16n8k16.row.col.f32." type "." type                           \
      ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" : "+f"(   \
          d[0]),                                                                       \
      "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), \
      "r"(b0), "r"(b1))

template <typename T>
__device__ __forceinline__ void multiply_add(float (&d)[4], const uint32_t (&a)[4],
                                             uint32_t b0, uint32_t b1) {
  static_assert(std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>,
                "tensor cores multiply 16-bit types");
  if constexpr (std::is_same_v<T, __half>) {
    LADDER_MMA_16816("f16");
  } else {
    LADDER_MMA_16816("bf16");
  }
}

#undef LADDER_MMA_16816
#undef LADDER_MMA

}  // namespace ladder
