// device_radix_sort.cuh: sorts whole arrays of keys, with values that follow them, by bits [begin, end); stable.
#pragma once

#include <algorithm>
#include <numeric>

#include "../block/radix_key.cuh"
#include "device_call.cuh"

namespace cub {

namespace detail {

// The order in which a stable sort puts [first, first + count).
template <typename Less>
std::vector<int64_t> sorted_order(int64_t first, int64_t count, Less less) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), first);
  std::stable_sort(order.begin(), order.end(), less);
  return order;
}

// Writes from[order[i]] to to[first + i]; both may be one array.
template <typename From, typename To>
void permute(From from, To to, int64_t first, const std::vector<int64_t>& order) {
  std::vector<ValueOf<From>> moved;
  moved.reserve(order.size());
  for (int64_t i : order) moved.push_back(from[i]);
  for (size_t i = 0; i < moved.size(); ++i) to[first + static_cast<int64_t>(i)] = moved[i];
}

template <typename Key, typename ValuesIn, typename ValuesOut>
void radix_sort(const Key* keys_in, Key* keys_out, ValuesIn values_in, ValuesOut values_out, int64_t first,
                int64_t count, int begin, int end, bool descending) {
  const auto order = sorted_order(first, count, [=](int64_t a, int64_t b) {
    return digits(keys_in[a], begin, end, descending) < digits(keys_in[b], begin, end, descending);
  });
  permute(keys_in, keys_out, first, order);
  if constexpr (!std::is_same_v<ValuesIn, NullType>) permute(values_in, values_out, first, order);
}

}  // namespace detail

struct DeviceRadixSort {
#define SIMT_CUB_SORT(suffix, descending)                                                                              \
  template <typename Key, typename Count>                                                                              \
  static cudaError_t SortKeys##suffix(void* storage, size_t& bytes, const Key* in, Key* out, Count count,              \
                                      int begin = 0, int end = 8 * sizeof(Key), cudaStream_t stream = nullptr) {       \
    return sort("cub::DeviceRadixSort::SortKeys" #suffix, storage, bytes, in, out, NullType(), NullType(), count,      \
                begin, end, descending, stream);                                                                       \
  }                                                                                                                    \
  template <typename Key, typename Value, typename Count>                                                              \
  static cudaError_t SortPairs##suffix(void* storage, size_t& bytes, const Key* keys_in, Key* keys_out,                \
                                       const Value* values_in, Value* values_out, Count count, int begin = 0,          \
                                       int end = 8 * sizeof(Key), cudaStream_t stream = nullptr) {                     \
    return sort("cub::DeviceRadixSort::SortPairs" #suffix, storage, bytes, keys_in, keys_out, values_in, values_out,   \
                count, begin, end, descending, stream);                                                                \
  }                                                                                                                    \
  template <typename Key, typename Count>                                                                              \
  static cudaError_t SortKeys##suffix(void* storage, size_t& bytes, DoubleBuffer<Key>& keys, Count count,              \
                                      int begin = 0, int end = 8 * sizeof(Key), cudaStream_t stream = nullptr) {       \
    const cudaError_t error = SortKeys##suffix(storage, bytes, static_cast<const Key*>(keys.Current()),                \
                                               keys.Alternate(), count, begin, end, stream);                           \
    if (storage && error == cudaSuccess) keys.selector ^= 1;                                                           \
    return error;                                                                                                      \
  }                                                                                                                    \
  template <typename Key, typename Value, typename Count>                                                              \
  static cudaError_t SortPairs##suffix(void* storage, size_t& bytes, DoubleBuffer<Key>& keys,                          \
                                       DoubleBuffer<Value>& values, Count count, int begin = 0,                        \
                                       int end = 8 * sizeof(Key), cudaStream_t stream = nullptr) {                     \
    const cudaError_t error =                                                                                          \
        SortPairs##suffix(storage, bytes, static_cast<const Key*>(keys.Current()), keys.Alternate(),                   \
                          static_cast<const Value*>(values.Current()), values.Alternate(), count, begin, end, stream); \
    if (storage && error == cudaSuccess) keys.selector ^= 1, values.selector ^= 1;                                     \
    return error;                                                                                                      \
  }
  SIMT_CUB_SORT(, false)
  SIMT_CUB_SORT(Descending, true)
#undef SIMT_CUB_SORT

 private:
  template <typename Key, typename ValuesIn, typename ValuesOut, typename Count>
  static cudaError_t sort(const char* function, void* storage, size_t& bytes, const Key* keys_in, Key* keys_out,
                          ValuesIn values_in, ValuesOut values_out, Count count, int begin, int end, bool descending,
                          cudaStream_t stream) {
    return detail::device_call(function, storage, bytes, stream, [&] {
      detail::check_array(function, "the keys", keys_in, count);
      detail::check_array(function, "the sorted keys", keys_out, count);
      detail::check_array(function, "the values", values_in, count);
      detail::check_array(function, "the sorted values", values_out, count);
      detail::radix_sort(keys_in, keys_out, values_in, values_out, 0, count, begin, end, descending);
    });
  }
};

}  // namespace cub
