// reduce.h: Thrust's reduction on the CPU, in pairs of halves, as a GPU sums: in order, long sums of float would lose
// their last digits. Replaces the header of this name of NVIDIA's Thrust.
#pragma once

#include <thrust/detail/config.h>
#include <thrust/iterator/iterator_traits.h>
#include <thrust/system/cpp/detail/execution_policy.h>
#include <thrust/system/detail/sequential/reduce.h>

THRUST_NAMESPACE_BEGIN
namespace system {
namespace cpp {
namespace detail {

// Of count > 0 values.
template <typename Sum, typename Iterator, typename Distance, typename Operator>
Sum simt_reduce(Iterator begin, Distance count, Operator& op) {
  if (count > 32) {
    const Sum left = simt_reduce<Sum>(begin, count / 2, op);
    return op(left, simt_reduce<Sum>(begin + count / 2, count - count / 2, op));
  }
  Sum sum = *begin;
  while (--count > 0) {
    const Sum next = *++begin;
    sum = op(sum, next);
  }
  return sum;
}

template <typename Policy, typename Iterator, typename Sum, typename Operator>
Sum reduce(execution_policy<Policy>&, Iterator begin, Iterator end, Sum initial, Operator op) {
  const auto count = end - begin;
  return count > 0 ? static_cast<Sum>(op(initial, simt_reduce<Sum>(begin, count, op))) : initial;
}

}  // namespace detail
}  // namespace cpp
}  // namespace system
THRUST_NAMESPACE_END
