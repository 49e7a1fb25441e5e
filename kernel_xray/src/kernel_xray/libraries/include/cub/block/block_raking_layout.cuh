// block_raking_layout.cuh: where a block's values lie in shared memory of which each thread of one warp reads a segment.
#pragma once

#include "../util_type.cuh"

namespace cub {

template <typename T, int block_threads>
struct BlockRakingLayout {
  enum {
    SHARED_ELEMENTS = block_threads,
    MAX_RAKING_THREADS = block_threads < 32 ? block_threads : 32,
    SEGMENT_LENGTH = (SHARED_ELEMENTS + MAX_RAKING_THREADS - 1) / MAX_RAKING_THREADS,
    RAKING_THREADS = (SHARED_ELEMENTS + SEGMENT_LENGTH - 1) / SEGMENT_LENGTH,
    USE_SEGMENT_PADDING = SEGMENT_LENGTH % 2 == 0 && SEGMENT_LENGTH > 2,  // against conflicts of banks
    GRID_ELEMENTS = RAKING_THREADS * (SEGMENT_LENGTH + USE_SEGMENT_PADDING),
    UNGUARDED = SHARED_ELEMENTS % RAKING_THREADS == 0,
  };
  struct alignas(16) _TempStorage {
    T buff[GRID_ELEMENTS];
  };
  struct TempStorage : Uninitialized<_TempStorage> {};

  static T* PlacementPtr(TempStorage& storage, unsigned thread) {
    return storage.Alias().buff + thread + (USE_SEGMENT_PADDING ? thread / SEGMENT_LENGTH : 0);
  }
  static T* RakingPtr(TempStorage& storage, unsigned thread) {
    return storage.Alias().buff + thread * (SEGMENT_LENGTH + USE_SEGMENT_PADDING);
  }
};

}  // namespace cub
