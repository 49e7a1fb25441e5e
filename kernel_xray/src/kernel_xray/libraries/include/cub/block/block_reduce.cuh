// block_reduce.cuh: the reduction of a value per thread of a block. The result is in thread 0, as in CUB.
//
// Warps reduce by shuffles and leave their results in shared memory; behind a barrier, thread 0 combines them. So the
// storage may be used again only behind a barrier of the caller's, as CUB asks.
#pragma once

#include "../warp/warp_reduce.cuh"

namespace cub {

enum BlockReduceAlgorithm {
  BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY,
  BLOCK_REDUCE_RAKING,
  BLOCK_REDUCE_WARP_REDUCTIONS,
};

template <typename T, int block_x, BlockReduceAlgorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int block_y = 1,
          int block_z = 1, int = 0>
class BlockReduce {
  static constexpr int kThreads = block_x * block_y * block_z, kWarps = (kThreads + 31) / 32;

 public:
  struct TempStorage {
    detail::Uninitialized<T, kWarps> partial;
  };

  BlockReduce() : storage_(detail::private_storage<TempStorage>()) {}
  explicit BlockReduce(TempStorage& storage) : storage_(storage) {}

  // Over the values of the first `valid` threads.
  template <typename Operator>
  T Reduce(T value, Operator op, int valid = kThreads) {
    const int thread = detail::thread_in_block(), warp = thread / 32;
    const int in_warp = valid - 32 * warp;
    value = WarpReduce<T>().Reduce(value, op, in_warp < 32 ? in_warp : 32);
    if (thread % 32 == 0) storage_.partial[warp] = value;
    __syncthreads();
    if (thread == 0)
      for (int w = 1; w < kWarps && 32 * w < valid; ++w) value = op(value, storage_.partial[w]);
    return value;
  }
  template <int items, typename Operator>
  T Reduce(T (&values)[items], Operator op) {
    T value = values[0];
    for (int i = 1; i < items; ++i) value = op(value, values[i]);
    return Reduce(value, op);
  }
  T Sum(T value, int valid = kThreads) { return Reduce(value, cub::Sum(), valid); }
  template <int items>
  T Sum(T (&values)[items]) {
    return Reduce(values, cub::Sum());
  }

 private:
  TempStorage& storage_;
};

}  // namespace cub
