// device_segmented_radix_sort.cuh: sorts each segment of an array; segment i is [begins[i], ends[i]). Stable.
#pragma once

#include "device_radix_sort.cuh"

namespace cub {

struct DeviceSegmentedRadixSort {
#define SIMT_CUB_SORT(suffix, descending)                                                                             \
  template <typename Key, typename Begins, typename Ends>                                                             \
  static cudaError_t SortKeys##suffix(void* storage, size_t& bytes, const Key* in, Key* out, int count, int segments, \
                                      Begins begins, Ends ends, int begin = 0, int end = 8 * sizeof(Key),             \
                                      cudaStream_t stream = nullptr) {                                                \
    return sort("cub::DeviceSegmentedRadixSort::SortKeys" #suffix, storage, bytes, in, out, NullType(), NullType(),   \
                count, segments, begins, ends, begin, end, descending, stream);                                       \
  }                                                                                                                   \
  template <typename Key, typename Value, typename Begins, typename Ends>                                             \
  static cudaError_t SortPairs##suffix(void* storage, size_t& bytes, const Key* keys_in, Key* keys_out,               \
                                       const Value* values_in, Value* values_out, int count, int segments,            \
                                       Begins begins, Ends ends, int begin = 0, int end = 8 * sizeof(Key),            \
                                       cudaStream_t stream = nullptr) {                                               \
    return sort("cub::DeviceSegmentedRadixSort::SortPairs" #suffix, storage, bytes, keys_in, keys_out, values_in,     \
                values_out, count, segments, begins, ends, begin, end, descending, stream);                           \
  }
  SIMT_CUB_SORT(, false)
  SIMT_CUB_SORT(Descending, true)
#undef SIMT_CUB_SORT

 private:
  template <typename Key, typename ValuesIn, typename ValuesOut, typename Begins, typename Ends>
  static cudaError_t sort(const char* function, void* storage, size_t& bytes, const Key* keys_in, Key* keys_out,
                          ValuesIn values_in, ValuesOut values_out, int count, int segments, Begins begins, Ends ends,
                          int begin, int end, bool descending, cudaStream_t stream) {
    return detail::device_call(function, storage, bytes, stream, [&] {
      detail::check_array(function, "the keys", keys_in, count);
      detail::check_array(function, "the sorted keys", keys_out, count);
      for (int i = 0; i < segments; ++i)
        detail::radix_sort(keys_in, keys_out, values_in, values_out, begins[i], ends[i] - begins[i], begin, end,
                           descending);
    });
  }
};

}  // namespace cub
