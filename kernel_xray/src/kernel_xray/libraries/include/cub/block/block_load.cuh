// block_load.cuh: loads a tile of consecutive values into the threads of a block, and block_store.cuh stores one.
//
// The algorithm says which thread reads what: DIRECT and VECTORIZE read a thread's own consecutive values, STRIPED one
// value of each stripe, TRANSPOSE reads stripes, coalesced, and turns them into consecutive values in shared memory.
#pragma once

#include "block_exchange.cuh"

namespace cub {

enum BlockLoadAlgorithm {
  BLOCK_LOAD_DIRECT,
  BLOCK_LOAD_STRIPED,
  BLOCK_LOAD_VECTORIZE,
  BLOCK_LOAD_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED,
};

// The first `valid` values of the tile; the others stay as they are.
template <typename T, int items, typename Iterator>
void LoadDirectBlocked(int thread, Iterator from, T (&values)[items], int valid = detail::kAll) {
  for (int i = 0; i < items; ++i)
    if (thread * items + i < valid) values[i] = from[thread * items + i];
}
template <int threads, typename T, int items, typename Iterator>
void LoadDirectStriped(int thread, Iterator from, T (&values)[items], int valid = detail::kAll) {
  for (int i = 0; i < items; ++i)
    if (i * threads + thread < valid) values[i] = from[i * threads + thread];
}

template <typename T, int block_x, int items, BlockLoadAlgorithm algorithm = BLOCK_LOAD_DIRECT, int block_y = 1,
          int block_z = 1, int = 0>
class BlockLoad {
  static constexpr int kThreads = block_x * block_y * block_z;
  static constexpr bool kTransposes = algorithm >= BLOCK_LOAD_TRANSPOSE;
  using Exchange = BlockExchange<T, block_x, items, false, block_y, block_z>;
  struct Nothing {};

 public:
  using TempStorage = std::conditional_t<kTransposes, typename Exchange::TempStorage, Nothing>;

  BlockLoad() : storage_(detail::private_storage<TempStorage>()) {}
  explicit BlockLoad(TempStorage& storage) : storage_(storage) {}

  template <typename Iterator>
  void Load(Iterator from, T (&values)[items], int valid = detail::kAll) {
    const int thread = detail::thread_in_block();
    if constexpr (algorithm == BLOCK_LOAD_DIRECT || algorithm == BLOCK_LOAD_VECTORIZE)
      LoadDirectBlocked(thread, from, values, valid);
    else
      LoadDirectStriped<kThreads>(thread, from, values, valid);
    if constexpr (kTransposes) Exchange(storage_).StripedToBlocked(values, values);
  }
  template <typename Iterator, typename Default>
  void Load(Iterator from, T (&values)[items], int valid, Default otherwise) {
    for (int i = 0; i < items; ++i) values[i] = static_cast<T>(otherwise);
    Load(from, values, valid);
  }

 private:
  TempStorage& storage_;
};

}  // namespace cub
