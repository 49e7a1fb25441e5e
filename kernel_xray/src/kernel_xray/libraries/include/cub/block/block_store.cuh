// block_store.cuh: stores the values of a block's threads as a tile; see block_load.cuh.
#pragma once

#include "block_exchange.cuh"

namespace cub {

enum BlockStoreAlgorithm {
  BLOCK_STORE_DIRECT,
  BLOCK_STORE_STRIPED,
  BLOCK_STORE_VECTORIZE,
  BLOCK_STORE_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED,
};

// The first `valid` values of the tile.
template <typename T, int items, typename Iterator>
void StoreDirectBlocked(int thread, Iterator to, T (&values)[items], int valid = detail::kAll) {
  for (int i = 0; i < items; ++i)
    if (thread * items + i < valid) to[thread * items + i] = values[i];
}
template <int threads, typename T, int items, typename Iterator>
void StoreDirectStriped(int thread, Iterator to, T (&values)[items], int valid = detail::kAll) {
  for (int i = 0; i < items; ++i)
    if (i * threads + thread < valid) to[i * threads + thread] = values[i];
}

template <typename T, int block_x, int items, BlockStoreAlgorithm algorithm = BLOCK_STORE_DIRECT, int block_y = 1,
          int block_z = 1, int = 0>
class BlockStore {
  static constexpr int kThreads = block_x * block_y * block_z;
  static constexpr bool kTransposes = algorithm >= BLOCK_STORE_TRANSPOSE;
  using Exchange = BlockExchange<T, block_x, items, false, block_y, block_z>;
  struct Nothing {};

 public:
  using TempStorage = std::conditional_t<kTransposes, typename Exchange::TempStorage, Nothing>;

  BlockStore() : storage_(detail::private_storage<TempStorage>()) {}
  explicit BlockStore(TempStorage& storage) : storage_(storage) {}

  template <typename Iterator>
  void Store(Iterator to, T (&values)[items], int valid = detail::kAll) {
    const int thread = detail::thread_in_block();
    if constexpr (kTransposes) Exchange(storage_).BlockedToStriped(values, values);
    if constexpr (algorithm == BLOCK_STORE_DIRECT || algorithm == BLOCK_STORE_VECTORIZE)
      StoreDirectBlocked(thread, to, values, valid);
    else
      StoreDirectStriped<kThreads>(thread, to, values, valid);
  }

 private:
  TempStorage& storage_;
};

}  // namespace cub
