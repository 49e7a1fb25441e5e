// stable_primitive_sort.h: how Thrust sorts numbers on the CPU: by merging, as one thread of a GPU does. Replaces the
// header of this name of NVIDIA's Thrust, whose radix sort puts negative ints behind positive ones (CCCL 3.0).
#pragma once

#include <thrust/detail/config.h>
#include <thrust/functional.h>
#include <thrust/iterator/iterator_traits.h>
#include <thrust/system/detail/sequential/execution_policy.h>
#include <thrust/system/detail/sequential/stable_merge_sort.h>

THRUST_NAMESPACE_BEGIN
namespace system {
namespace detail {
namespace sequential {

template <typename Policy, typename Keys>
void stable_primitive_sort(sequential::execution_policy<Policy>& exec, Keys first, Keys last) {
  const thrust::less<typename thrust::iterator_value<Keys>::type> less;
  thrust::system::detail::sequential::stable_merge_sort(exec, first, last, less);
}

template <typename Policy, typename Keys, typename Values>
void stable_primitive_sort_by_key(sequential::execution_policy<Policy>& exec, Keys first, Keys last, Values values) {
  const thrust::less<typename thrust::iterator_value<Keys>::type> less;
  thrust::system::detail::sequential::stable_merge_sort_by_key(exec, first, last, values, less);
}

}  // namespace sequential
}  // namespace detail
}  // namespace system
THRUST_NAMESPACE_END
