// device_call.cuh: the frame of CUB's functions for whole arrays. They run on the host, and are done when they return.
//
// As in CUB, a call with a null pointer for temporary storage gives the number of bytes that it needs. Nothing is kept
// there, but it must be memory of that size.
#pragma once

#include <cstddef>
#include <iterator>
#include <vector>

#include "simt/library_call.h"
#include "simt/runtime_api.h"
#include "../thread/thread_operators.cuh"

namespace cub::detail {

inline constexpr size_t kTemporaryBytes = 256;

template <typename Iterator>
using ValueOf = typename std::iterator_traits<Iterator>::value_type;

// Checks the array of an iterator that is a pointer.
template <typename Iterator>
void check_array(const char* function, const char* name, Iterator iterator, int64_t count) {
  if constexpr (std::is_pointer_v<Iterator>)
    ::simt::check_operand(function, name, iterator, static_cast<size_t>(count) * sizeof(*iterator));
}

template <typename Work>
cudaError_t device_call(const char* function, void* storage, size_t& bytes, cudaStream_t stream, Work work) {
  if (!storage) {
    bytes = kTemporaryBytes;
    return cudaSuccess;
  }
  if (bytes < kTemporaryBytes) return cudaErrorInvalidValue;
  ::simt::begin_library_call(function);
  if (!::simt::stream_exists(stream)) return cudaErrorInvalidResourceHandle;
  ::simt::check_operand(function, "d_temp_storage", storage, bytes);
  work();
  return cudaSuccess;
}

// The reduction of count > 0 values, in pairs of halves: a sum in order would lose the last bits of long sums.
template <typename Sum, typename Iterator, typename Operator>
Sum reduced(Iterator in, int64_t first, int64_t count, Operator op) {
  if (count > 32) {
    const Sum left = reduced<Sum>(in, first, count / 2, op);
    return op(left, reduced<Sum>(in, first + count / 2, count - count / 2, op));
  }
  Sum sum = in[first];
  for (int64_t i = first + 1; i < first + count; ++i) sum = op(sum, in[i]);
  return sum;
}

template <typename Initial, typename Iterator, typename Operator>
auto reduced_from(Initial initial, Iterator in, int64_t first, int64_t count, Operator op) {
  using Sum = std::decay_t<std::invoke_result_t<Operator, Initial, ValueOf<Iterator>>>;
  return count > 0 ? static_cast<Sum>(op(initial, reduced<Sum>(in, first, count, op))) : static_cast<Sum>(initial);
}

}  // namespace cub::detail
