// scan.h: cooperative_groups::inclusive_scan and exclusive_scan over a tile or a coalesced group, in the order of
// ranks.
//
// Floating-point values are added over the distances 1, 2, 4, ...; a GPU may add in another order.
#pragma once

#include "reduce.h"

namespace cooperative_groups {

template <typename Group, typename T, typename Operator>
std::decay_t<T> inclusive_scan(const Group& group, T&& value, Operator&& op) {
  std::decay_t<T> result = value;
  for (unsigned distance = 1; distance < group.num_threads(); distance *= 2) {
    const std::decay_t<T> before = group.shfl_up(result, distance);
    if (group.thread_rank() >= distance) result = op(before, result);
  }
  return result;
}
template <typename Group, typename T>
std::decay_t<T> inclusive_scan(const Group& group, T&& value) {
  return inclusive_scan(group, value, plus<std::decay_t<T>>());
}

// Rank 0 gets T(), as in CUDA's sum.
template <typename Group, typename T, typename Operator>
std::decay_t<T> exclusive_scan(const Group& group, T&& value, Operator&& op) {
  const std::decay_t<T> inclusive = inclusive_scan(group, value, op);
  const std::decay_t<T> before = group.shfl_up(inclusive, 1);
  return group.thread_rank() == 0 ? std::decay_t<T>() : before;
}
template <typename Group, typename T>
std::decay_t<T> exclusive_scan(const Group& group, T&& value) {
  return exclusive_scan(group, value, plus<std::decay_t<T>>());
}

}  // namespace cooperative_groups
