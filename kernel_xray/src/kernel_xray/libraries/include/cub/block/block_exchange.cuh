// block_exchange.cuh: moves the values of a block's threads between arrangements, through shared memory. Blocked: a
// thread has consecutive values. Striped: consecutive threads have consecutive values.
#pragma once

#include "../util_type.cuh"

namespace cub {

template <typename T, int block_x, int items, bool = false, int block_y = 1, int block_z = 1, int = 0>
class BlockExchange {
  static constexpr int kThreads = block_x * block_y * block_z;

 public:
  struct TempStorage {
    detail::Uninitialized<T, kThreads * items> values;
  };

  BlockExchange() : storage_(detail::private_storage<TempStorage>()) {}
  explicit BlockExchange(TempStorage& storage) : storage_(storage) {}

  template <typename U>
  void StripedToBlocked(const T (&input)[items], U (&output)[items]) {
    move(input, output, striped, blocked);
  }
  template <typename U>
  void BlockedToStriped(const T (&input)[items], U (&output)[items]) {
    move(input, output, blocked, striped);
  }
  template <typename U, typename Offset>
  void ScatterToBlocked(const T (&input)[items], U (&output)[items], Offset (&ranks)[items]) {
    move(input, output, [&](int i) { return static_cast<int>(ranks[i]); }, blocked);
  }
  template <typename U, typename Offset>
  void ScatterToStriped(const T (&input)[items], U (&output)[items], Offset (&ranks)[items]) {
    move(input, output, [&](int i) { return static_cast<int>(ranks[i]); }, striped);
  }

 private:
  static int blocked(int i) { return detail::thread_in_block() * items + i; }
  static int striped(int i) { return i * kThreads + detail::thread_in_block(); }

  template <typename U, typename To, typename From>
  void move(const T (&input)[items], U (&output)[items], To to, From from) {
    for (int i = 0; i < items; ++i) storage_.values[to(i)] = input[i];
    __syncthreads();
    for (int i = 0; i < items; ++i) output[i] = static_cast<U>(storage_.values[from(i)]);
  }

  TempStorage& storage_;
};

}  // namespace cub
