// block_radix_sort.cuh: sorts the keys of a block's threads, with values that follow them.
//
// The result is that of CUB: by bits [begin, end) of the keys, and stable. The way is another: the threads sort the
// keys with their places in a bitonic network in shared memory, so its traffic is not that of a radix sort.
#pragma once

#include "radix_key.cuh"

namespace cub {

template <typename Key, int block_x, int items, typename Value = NullType, int = 4, bool = true, int = 0, int = 0,
          int block_y = 1, int block_z = 1, int = 0>
class BlockRadixSort {
  static constexpr int kThreads = block_x * block_y * block_z, kCount = kThreads * items;
  static constexpr int kBits = 8 * sizeof(Key);

 public:
  struct TempStorage {
    detail::Uninitialized<Key, kCount> keys;
    detail::Uninitialized<Value, kCount> values;
    uint64_t digits[kCount];
    int places[kCount];  // where the key was
  };

  BlockRadixSort() : storage_(detail::private_storage<TempStorage>()) {}
  explicit BlockRadixSort(TempStorage& storage) : storage_(storage) {}

#define SIMT_CUB_SORT(name, descending, striped)                                        \
  void name(Key(&keys)[items], int begin = 0, int end = kBits) {                        \
    sort(keys, Nothing(), begin, end, descending, striped);                             \
  }                                                                                     \
  void name(Key(&keys)[items], Value(&values)[items], int begin = 0, int end = kBits) { \
    sort(keys, values, begin, end, descending, striped);                                \
  }
  SIMT_CUB_SORT(Sort, false, false)
  SIMT_CUB_SORT(SortDescending, true, false)
  SIMT_CUB_SORT(SortBlockedToStriped, false, true)
  SIMT_CUB_SORT(SortDescendingBlockedToStriped, true, true)
#undef SIMT_CUB_SORT

 private:
  struct Nothing {};

  bool precedes(int a, int b) const {
    return storage_.digits[a] < storage_.digits[b] ||
           (storage_.digits[a] == storage_.digits[b] && storage_.places[a] < storage_.places[b]);
  }
  // Each element meets the one whose index differs by `change`; the smaller goes to the lower index.
  void compare(int change) {
    for (int i = detail::thread_in_block(); i < kCount; i += kThreads) {
      const int other = i ^ change;
      if (other <= i || other >= kCount || !precedes(other, i)) continue;
      const uint64_t digits = storage_.digits[i];
      const int place = storage_.places[i];
      storage_.digits[i] = storage_.digits[other];
      storage_.places[i] = storage_.places[other];
      storage_.digits[other] = digits;
      storage_.places[other] = place;
    }
    __syncthreads();
  }

  template <typename Values>
  void sort(Key (&keys)[items], Values&& values, int begin, int end, bool descending, bool striped) {
    constexpr bool kPairs = !std::is_same_v<std::decay_t<Values>, Nothing>;
    const int first = detail::thread_in_block() * items;
    for (int i = 0; i < items; ++i) {
      storage_.keys[first + i] = keys[i];
      if constexpr (kPairs) storage_.values[first + i] = values[i];
      storage_.digits[first + i] = detail::digits(keys[i], begin, end, descending);
      storage_.places[first + i] = first + i;
    }
    __syncthreads();
    for (int sorted = 2; sorted < 2 * kCount; sorted *= 2) {
      compare(sorted - 1);  // the first meets the last, and so on
      for (int distance = sorted / 4; distance > 0; distance /= 2) compare(distance);
    }
    for (int i = 0; i < items; ++i) {
      const int from = storage_.places[striped ? i * kThreads + detail::thread_in_block() : first + i];
      keys[i] = storage_.keys[from];
      if constexpr (kPairs) values[i] = storage_.values[from];
    }
  }

  TempStorage& storage_;
};

}  // namespace cub
