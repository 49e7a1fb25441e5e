// thread_operators.cuh: CUB's function objects. CUDA 13 has cuda::std::plus and the like in place of the first ones.
#pragma once

#include "../util_type.cuh"

namespace cub {

#define SIMT_CUB_OPERATOR(name, symbol)             \
  struct name {                                     \
    template <typename T, typename U>               \
    auto operator()(const T& a, const U& b) const { \
      return a symbol b;                            \
    }                                               \
  };
SIMT_CUB_OPERATOR(Equality, ==)
SIMT_CUB_OPERATOR(Inequality, !=)
SIMT_CUB_OPERATOR(Sum, +)
SIMT_CUB_OPERATOR(Difference, -)
#undef SIMT_CUB_OPERATOR

struct Max {
  template <typename T, typename U>
  std::common_type_t<T, U> operator()(const T& a, const U& b) const {
    return a < b ? b : a;
  }
};
struct Min {
  template <typename T, typename U>
  std::common_type_t<T, U> operator()(const T& a, const U& b) const {
    return b < a ? b : a;
  }
};
// Of pairs of an index and a value; of equal values, the lower index.
struct ArgMax {
  template <typename T, typename Offset>
  KeyValuePair<Offset, T> operator()(const KeyValuePair<Offset, T>& a, const KeyValuePair<Offset, T>& b) const {
    return b.value > a.value || (a.value == b.value && b.key < a.key) ? b : a;
  }
};
struct ArgMin {
  template <typename T, typename Offset>
  KeyValuePair<Offset, T> operator()(const KeyValuePair<Offset, T>& a, const KeyValuePair<Offset, T>& b) const {
    return b.value < a.value || (a.value == b.value && b.key < a.key) ? b : a;
  }
};

}  // namespace cub
