// block_histogram.cuh: counts the values of a block's threads, in shared or global memory, by atomics.
#pragma once

#include "simt/atomics.h"
#include "../util_type.cuh"

namespace cub {

enum BlockHistogramAlgorithm { BLOCK_HISTO_SORT, BLOCK_HISTO_ATOMIC };

template <typename T, int block_x, int items, int bins, BlockHistogramAlgorithm = BLOCK_HISTO_SORT, int block_y = 1,
          int block_z = 1, int = 0>
class BlockHistogram {
 public:
  struct TempStorage {
    char unused;
  };

  BlockHistogram() = default;
  explicit BlockHistogram(TempStorage&) {}

  template <typename Counter>
  void InitHistogram(Counter (&histogram)[bins]) {
    for (int i = detail::thread_in_block(); i < bins; i += block_x * block_y * block_z) histogram[i] = 0;
  }
  template <typename Counter>
  void Histogram(T (&values)[items], Counter (&histogram)[bins]) {
    InitHistogram(histogram);
    __syncthreads();
    Composite(values, histogram);
  }
  template <typename Counter>
  void Composite(T (&values)[items], Counter (&histogram)[bins]) {
    for (int i = 0; i < items; ++i) atomicAdd(&histogram[values[i]], Counter(1));
  }
};

}  // namespace cub
