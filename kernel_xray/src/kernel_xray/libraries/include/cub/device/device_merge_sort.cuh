// device_merge_sort.cuh: sorts whole arrays by a comparison; stable.
#pragma once

#include "device_radix_sort.cuh"

namespace cub {

struct DeviceMergeSort {
#define SIMT_CUB_SORT(prefix)                                                                                          \
  template <typename Keys, typename Count, typename Less>                                                              \
  static cudaError_t prefix##SortKeys(void* storage, size_t& bytes, Keys keys, Count count, Less less,                 \
                                      cudaStream_t stream = nullptr) {                                                 \
    return sort("cub::DeviceMergeSort::" #prefix "SortKeys", storage, bytes, keys, keys, nullptr, nullptr, count,      \
                less, stream);                                                                                         \
  }                                                                                                                    \
  template <typename Keys, typename Values, typename Count, typename Less>                                             \
  static cudaError_t prefix##SortPairs(void* storage, size_t& bytes, Keys keys, Values values, Count count, Less less, \
                                       cudaStream_t stream = nullptr) {                                                \
    return sort("cub::DeviceMergeSort::" #prefix "SortPairs", storage, bytes, keys, keys, values, values, count, less, \
                stream);                                                                                               \
  }
  SIMT_CUB_SORT()
  SIMT_CUB_SORT(Stable)
#undef SIMT_CUB_SORT
  template <typename KeysIn, typename KeysOut, typename Count, typename Less>
  static cudaError_t SortKeysCopy(void* storage, size_t& bytes, KeysIn in, KeysOut out, Count count, Less less,
                                  cudaStream_t stream = nullptr) {
    return sort("cub::DeviceMergeSort::SortKeysCopy", storage, bytes, in, out, nullptr, nullptr, count, less, stream);
  }
  template <typename KeysIn, typename ValuesIn, typename KeysOut, typename ValuesOut, typename Count, typename Less>
  static cudaError_t SortPairsCopy(void* storage, size_t& bytes, KeysIn keys_in, ValuesIn values_in, KeysOut keys_out,
                                   ValuesOut values_out, Count count, Less less, cudaStream_t stream = nullptr) {
    return sort("cub::DeviceMergeSort::SortPairsCopy", storage, bytes, keys_in, keys_out, values_in, values_out, count,
                less, stream);
  }

 private:
  template <typename KeysIn, typename KeysOut, typename ValuesIn, typename ValuesOut, typename Count, typename Less>
  static cudaError_t sort(const char* function, void* storage, size_t& bytes, KeysIn keys_in, KeysOut keys_out,
                          ValuesIn values_in, ValuesOut values_out, Count count, Less less, cudaStream_t stream) {
    return detail::device_call(function, storage, bytes, stream, [&] {
      detail::check_array(function, "the keys", keys_in, count);
      const auto order =
          detail::sorted_order(0, count, [&](int64_t a, int64_t b) { return less(keys_in[a], keys_in[b]); });
      if constexpr (!std::is_same_v<ValuesIn, std::nullptr_t>) detail::permute(values_in, values_out, 0, order);
      detail::permute(keys_in, keys_out, 0, order);
    });
  }
};

}  // namespace cub
