// reduce.h: cooperative_groups::reduce over a tile or a coalesced group, and its operators.
//
// Every thread of the group gets the same result. Floating-point sums are added pairwise over the distances Size/2,
// ..., 2, 1; a GPU may add in another order.
#pragma once

#include "../cooperative_groups.h"

namespace cooperative_groups {

#define SIMT_OPERATOR(name, expression)                               \
  template <typename T>                                               \
  struct name {                                                       \
    T operator()(const T& a, const T& b) const { return expression; } \
  };
SIMT_OPERATOR(plus, a + b)
SIMT_OPERATOR(less, b < a ? b : a)     // the smaller of the two
SIMT_OPERATOR(greater, a < b ? b : a)  // the larger of the two
SIMT_OPERATOR(bit_and, (a & b))
SIMT_OPERATOR(bit_or, a | b)
SIMT_OPERATOR(bit_xor, a ^ b)
#undef SIMT_OPERATOR

template <unsigned Size, typename Parent, typename T, typename Operator>
std::decay_t<T> reduce(const thread_block_tile<Size, Parent>& group, T&& value, Operator&& op) {
  std::decay_t<T> result = value;
  for (unsigned distance = Size / 2; distance > 0; distance /= 2) {
    const std::decay_t<T> other = group.shfl_xor(result, distance);
    // The same order on both sides, so that all threads get the same bits with any operator.
    result = (group.thread_rank() & distance) == 0 ? op(result, other) : op(other, result);
  }
  return result;
}

template <typename T, typename Operator>
std::decay_t<T> reduce(const coalesced_group& group, T&& value, Operator&& op) {
  const std::decay_t<T> mine = value;
  std::decay_t<T> result = group.shfl(mine, 0);
  for (unsigned rank = 1; rank < group.num_threads(); ++rank) result = op(result, group.shfl(mine, rank));
  return result;
}

}  // namespace cooperative_groups
