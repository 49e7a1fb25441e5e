// block_discontinuity.cuh: flags where a value differs from its neighbour, over the values of a block (blocked).
#pragma once

#include "../thread/thread_operators.cuh"

namespace cub {

template <typename T, int block_x, int block_y = 1, int block_z = 1, int = 0>
class BlockDiscontinuity {
  static constexpr int kThreads = block_x * block_y * block_z;

 public:
  struct TempStorage {
    detail::Uninitialized<T, kThreads> first, last;
  };

  BlockDiscontinuity() : storage_(detail::private_storage<TempStorage>()) {}
  explicit BlockDiscontinuity(TempStorage& storage) : storage_(storage) {}

  // A head is a value that op tells apart from the one before it; the block's first is one, unless the value before the
  // block is given and is like it.
  template <int items, typename Flag, typename Operator>
  void FlagHeads(Flag (&flags)[items], T (&input)[items], Operator op) {
    share(input);
    for (int i = 0; i < items; ++i)
      flags[i] = i > 0 ? op(input[i - 1], input[i]) : thread() == 0 || op(storage_.last[thread() - 1], input[0]);
  }
  template <int items, typename Flag, typename Operator>
  void FlagHeads(Flag (&flags)[items], T (&input)[items], Operator op, T before_block) {
    FlagHeads(flags, input, op);
    if (thread() == 0) flags[0] = op(before_block, input[0]);
  }
  template <int items, typename Flag, typename Operator>
  void FlagTails(Flag (&flags)[items], T (&input)[items], Operator op) {
    share(input);
    for (int i = 0; i < items; ++i)
      flags[i] = i < items - 1 ? op(input[i], input[i + 1])
                               : thread() == kThreads - 1 || op(input[i], storage_.first[thread() + 1]);
  }
  template <int items, typename Flag, typename Operator>
  void FlagTails(Flag (&flags)[items], T (&input)[items], Operator op, T after_block) {
    FlagTails(flags, input, op);
    if (thread() == kThreads - 1) flags[items - 1] = op(input[items - 1], after_block);
  }

 private:
  static int thread() { return detail::thread_in_block(); }
  template <int items>
  void share(T (&input)[items]) {
    storage_.first[thread()] = input[0];
    storage_.last[thread()] = input[items - 1];
    __syncthreads();
  }

  TempStorage& storage_;
};

}  // namespace cub
