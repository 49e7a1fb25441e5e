// matmul.h: the launcher that the rungs of the matmul ladder share. c = a @ b, with a
// of m x k, b of k x n elements.
//
// A rung has a kernel and a function that launches it. ladder::matmul does the rest:
// the checks, the device, the stream, the new matrix c in row-major order, the cases
// with nothing to add up or to write, and the launch check.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <string>
#include <type_traits>

#include <torch/csrc/stable/ops.h>
#include <torch/headeronly/core/ScalarType.h>
#include <torch/headeronly/util/BFloat16.h>
#include <torch/headeronly/util/Half.h>

#include "launch.h"
#include "vector.h"

namespace ladder {

using torch::headeronly::BFloat16;
using torch::headeronly::Half;

// The type of sums: T itself, but float for the 16-bit types. A half that has reached
// 2,048 does not change when 1 is added.
template <typename T>
using Sum = std::conditional_t<(sizeof(T) < 4), float, T>;

// region view
// A matrix in memory, which may be a transposed or sliced view: strides count elements.
// In a contiguous row-major matrix row_stride is the number of columns and
// column_stride is 1.
template <typename T>
struct MatrixView {
  const T* data;
  int64_t row_stride, column_stride;

  // The index in data of an element.
  __device__ int64_t at(int64_t row, int64_t column) const {
    return row * row_stride + column * column_stride;
  }
};
// endregion

struct MatmulSizes {
  int64_t m, n, k;
};

// The layouts that a rung's kernel can read.
enum class Layout { any, row_major };

// -------------------------------------------------------------------------------------
// Checks

template <typename T>
constexpr ScalarType kDtype = ScalarType::Undefined;
template <>
inline constexpr ScalarType kDtype<double> = ScalarType::Double;
template <>
inline constexpr ScalarType kDtype<float> = ScalarType::Float;
template <>
inline constexpr ScalarType kDtype<Half> = ScalarType::Half;
template <>
inline constexpr ScalarType kDtype<BFloat16> = ScalarType::BFloat16;

template <typename... Types>
bool is_one_of(ScalarType dtype) {
  return ((dtype == kDtype<Types>) || ...);
}

// The dtype to suggest for a conversion: float32 if it is one of these, else the last.
template <typename... Types>
ScalarType preferred_dtype() {
  const ScalarType dtypes[] = {kDtype<Types>...};
  return is_one_of<Types...>(ScalarType::Float) ? ScalarType::Float
                                                : dtypes[sizeof...(Types) - 1];
}

template <typename... Types>
std::string names_of_dtypes() {
  std::string text;
  ((text += (text.empty() ? "" : " or ") + std::string(dtype_name(kDtype<Types>))),
   ...);
  return text;
}

template <typename... Types>
void check_matrix(const Tensor& t, const char* name, Layout layout) {
  STD_TORCH_CHECK(t.is_cuda(), name, " must be a CUDA tensor; move it with ", name,
                  ".cuda()");
  STD_TORCH_CHECK(is_one_of<Types...>(t.scalar_type()), name, " must be ",
                  names_of_dtypes<Types...>(), ", got ", dtype_name(t.scalar_type()),
                  "; convert it with ", name, ".to(torch.",
                  dtype_name(preferred_dtype<Types...>()), ")");
  STD_TORCH_CHECK(t.dim() == 2, name, " must be a matrix, got shape ", shape_of(t),
                  "; give it two dimensions with ", name, ".view(rows, columns)");
  STD_TORCH_CHECK(layout == Layout::any || t.is_contiguous(), name,
                  " must be contiguous, but is a strided view of shape ", shape_of(t),
                  "; pass ", name, ".contiguous()");
}

template <typename... Types>
MatmulSizes check_matmul(const Tensor& a, const Tensor& b, Layout layout) {
  check_matrix<Types...>(a, "a", layout);
  check_matrix<Types...>(b, "b", layout);
  STD_TORCH_CHECK(a.scalar_type() == b.scalar_type(),
                  "a and b must have the same dtype, got ", dtype_name(a.scalar_type()),
                  " and ", dtype_name(b.scalar_type()), "; convert one of them");
  STD_TORCH_CHECK(a.size(1) == b.size(0),
                  "b must have as many rows as a has columns, got shapes ", shape_of(a),
                  " and ", shape_of(b), "; is one of them transposed?");
  check_same_device(a, "a", b, "b");
  return {a.size(0), b.size(1), a.size(1)};
}

// A grid has up to 2^31 - 1 blocks in x, but 65,535 in y.
inline dim3 matmul_grid(int64_t x, int64_t y, const char* name_of_y) {
  STD_TORCH_CHECK(y <= 65535, name_of_y,
                  " must fit a grid, which has at most 65,535 blocks in y, got ", y,
                  "; multiply it in parts");
  return dim3(static_cast<unsigned>(x), static_cast<unsigned>(y));
}

// How many tiles of tile_m x tile_n elements c has, for kernels that count rows,
// columns and tiles with an int.
inline int64_t tiles_in_grid(MatmulSizes size, int tile_m, int tile_n, int tile_k) {
  STD_TORCH_CHECK(size.m <= INT32_MAX - tile_m && size.n <= INT32_MAX - tile_n &&
                      size.k <= INT32_MAX - tile_k,
                  "a and b must have fewer than 2^31 rows and columns, got m, n, k = ",
                  size.m, ", ", size.n, ", ", size.k, "; multiply them in parts");
  int64_t tiles = ceil_div(size.m, tile_m) * ceil_div(size.n, tile_n);
  STD_TORCH_CHECK(tiles <= INT32_MAX,
                  "a and b must have a product of fewer than 2^31 tiles of ", tile_m,
                  " x ", tile_n, ", got ", tiles, "; multiply them in parts");
  return tiles;
}

// -------------------------------------------------------------------------------------
// For the rungs that take row-major float32 matrices: p has rows x columns elements.

__device__ inline float element_or_zero(const float* p, int64_t row, int64_t column,
                                        int64_t rows, int64_t columns) {
  return row < rows && column < columns ? p[row * columns + column] : 0.0f;
}

using Four = Vector<float, 16>;

// Four neighbours of a row; their first column is a multiple of 4. Zeros outside the
// matrix. wide: one access of 16 bytes, for which `columns` must be a multiple of 4 and
// p a multiple of 16 bytes.
template <bool wide>
__device__ Four load_four(const float* p, int64_t row, int64_t column, int64_t rows,
                          int64_t columns) {
  Four four = {};
  if (wide) {
    if (row < rows && column < columns)
      four = Four::load(p + row * columns + column, 0);
  } else {
    for (int i = 0; i < 4; ++i)
      four.at[i] = element_or_zero(p, row, column + i, rows, columns);
  }
  return four;
}

template <bool wide>
__device__ void store_four(const Four& four, float* p, int64_t row, int64_t column,
                           int64_t rows, int64_t columns) {
  if (wide) {
    if (row < rows && column < columns) four.store(p + row * columns + column, 0);
  } else {
    for (int i = 0; i < 4; ++i) {
      if (row < rows && column + i < columns)
        p[row * columns + column + i] = four.at[i];
    }
  }
}

// Calls run(std::true_type()) if load_four and store_four may be wide for a, b and c,
// else run(std::false_type()).
template <typename Run>
void with_widest_fours(const float* a, const float* b, const float* c, MatmulSizes size,
                       Run run) {
  if (size.k % 4 == 0 && size.n % 4 == 0 && all_aligned_to(16, a, b, c)) {
    run(std::true_type());
  } else {
    run(std::false_type());
  }
}

// -------------------------------------------------------------------------------------
// The launcher

template <typename T>
MatrixView<T> matrix_of(const Tensor& t) {
  return {t.const_data_ptr<T>(), t.stride(0), t.stride(1)};
}

// Types: the dtypes that the rung takes. run(MatrixView<T> a, MatrixView<T> b, T* c,
// MatmulSizes, cudaStream_t) launches its kernel; it is called only if m, n and k are
// at least 1. Returns c.
template <typename... Types, typename Run>
Tensor matmul(const Tensor& a, const Tensor& b, Layout layout, Run run) {
  MatmulSizes sizes = check_matmul<Types...>(a, b, layout);
  auto guard = on_device_of(a);
  Tensor c = torch::stable::new_empty(a, {sizes.m, sizes.n});
  if (sizes.m == 0 || sizes.n == 0) return c;
  if (sizes.k == 0) return torch::stable::zero_(c);  // the sum of no products
  auto run_if = [&](auto type) {
    using T = decltype(type);
    if (a.scalar_type() != kDtype<T>) return;
    run(matrix_of<T>(a), matrix_of<T>(b), c.mutable_data_ptr<T>(), sizes,
        current_stream(a));
  };
  (run_if(Types()), ...);
  STD_CUDA_KERNEL_LAUNCH_CHECK();
  return c;
}

}  // namespace ladder
