// reduce.h: cooperative_groups::reduce over a tile or a coalesced group, and its operators.
//
// Every thread of the group gets the same result. Floating-point sums are added pairwise over the distances Size/2,
// ..., 2, 1; a GPU may add in another order.
#pragma once

#include "../cooperative_groups.h"

namespace cooperative_groups {

template <typename T>
struct plus {
  T operator()(const T& a, const T& b) const { return a + b; }
};
template <typename T>
struct less {  // the smaller of the two
  T operator()(const T& a, const T& b) const { return b < a ? b : a; }
};
template <typename T>
struct greater {  // the larger of the two
  T operator()(const T& a, const T& b) const { return a < b ? b : a; }
};
template <typename T>
struct bit_and {
  T operator()(const T& a, const T& b) const { return a & b; }
};
template <typename T>
struct bit_or {
  T operator()(const T& a, const T& b) const { return a | b; }
};
template <typename T>
struct bit_xor {
  T operator()(const T& a, const T& b) const { return a ^ b; }
};

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
