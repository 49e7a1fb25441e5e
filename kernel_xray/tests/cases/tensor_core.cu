// tensor_core.cu: one product of tiles by wmma, for every shape, type and order of the operands.
#include <cuda_bf16.h>
#include <mma.h>

#include <type_traits>
#include <utility>

#include "case.h"

using namespace nvcuda;

template <int rows, int columns>
struct Shape {
  static constexpr int m = rows, n = columns;
};

template <int m, int n, typename A, typename B, typename T, typename C>
__global__ void product_kernel(const T* a, const T* b, const C* c, C* d, int lda, int ldb) {
  wmma::fragment<wmma::matrix_a, m, n, 16, T, A> fa;
  wmma::fragment<wmma::matrix_b, m, n, 16, T, B> fb;
  wmma::fragment<wmma::accumulator, m, n, 16, C> fc;
  wmma::load_matrix_sync(fa, a, lda);
  wmma::load_matrix_sync(fb, b, ldb);
  wmma::load_matrix_sync(fc, c, n, wmma::mem_row_major);
  wmma::mma_sync(fc, fa, fb, fc);
  wmma::store_matrix_sync(d, fc, n, wmma::mem_row_major);
}

template <bool row>
using Order = std::conditional_t<row, wmma::row_major, wmma::col_major>;

template <typename S, typename T, typename C>
void launch(const Call& call) {
  const bool row_a = call.number(2), row_b = call.number(3);
  with_type<std::false_type, std::true_type>(row_a, [&](auto in_rows_a) {
    with_type<std::false_type, std::true_type>(row_b, [&](auto in_rows_b) {
      using A = Order<decltype(in_rows_a)::value>;
      using B = Order<decltype(in_rows_b)::value>;
      product_kernel<S::m, S::n, A, B><<<1, 32>>>(call.data<T>(0), call.data<T>(1), call.data<C>(2), call.data<C>(3),
                                                  row_a ? 16 : S::m, row_b ? S::n : 16);
    });
  });
}

// tensors: a of m x 16 and b of 16 x n as they lie in memory, the addend, the result. numbers: the shape, the types,
// whether a and b lie in rows.
CASE(product) {
  using std::pair;
  with_type<Shape<16, 16>, Shape<32, 8>, Shape<8, 32>>(call.number(0), [&](auto shape) {
    with_type<pair<__nv_bfloat16, float>, pair<__half, float>, pair<__half, __half>, pair<signed char, int>,
              pair<unsigned char, int>>(call.number(1), [&](auto types) {
      launch<decltype(shape), decltype(types.first), decltype(types.second)>(call);
    });
  });
}

// Factors of single bits: declared by code that never multiplies them.
__global__ void bits_kernel() {
  using namespace wmma::experimental;
  wmma::fragment<wmma::accumulator, 8, 8, 128, int>* sums = nullptr;
  wmma::fragment<wmma::matrix_a, 8, 8, 128, precision::b1, wmma::row_major>* a = nullptr;
  wmma::fragment<wmma::matrix_b, 8, 8, 128, precision::b1, wmma::col_major>* b = nullptr;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  if (blockDim.x == 32) wmma::bmma_sync(*sums, *a, *b, *sums, bmmaBitOpAND, bmmaAccumulateOpPOPC);
#endif
}
CASE(bits) { bits_kernel<<<1, static_cast<unsigned>(call.number(0))>>>(); }
