// warp_reduce.cuh: the reduction of a value per lane, by shuffles. The result is in the first lane of the logical warp,
// as in CUB; the other lanes hold parts of it.
#pragma once

#include "../thread/thread_operators.cuh"

namespace cub {

template <typename T, int logical_warp = 32, int = 0>
class WarpReduce {
  static_assert(logical_warp >= 1 && logical_warp <= 32, "a logical warp has 1 to 32 threads");

 public:
  struct TempStorage {
    char unused;
  };

  WarpReduce() = default;
  explicit WarpReduce(TempStorage&) {}

  // Over the first `valid` lanes.
  template <typename Operator>
  T Reduce(T value, Operator op, int valid = logical_warp) {
    for (int offset = 1; offset < logical_warp; offset *= 2) {
      const T other = ::simt::detail::exchange(mask(), value, partner(offset));
      if (rank() + offset < valid) value = op(value, other);
    }
    return value;
  }
  T Sum(T value, int valid = logical_warp) { return Reduce(value, cub::Sum(), valid); }
  T Max(T value, int valid = logical_warp) { return Reduce(value, cub::Max(), valid); }
  T Min(T value, int valid = logical_warp) { return Reduce(value, cub::Min(), valid); }

  // Over segments, each of which begins at a lane with a head flag, or ends at one with a tail flag; the result is in
  // a segment's first lane.
  template <typename Flag, typename Operator>
  T HeadSegmentedReduce(T value, Flag head, Operator op) {
    return segmented(value, __ballot_sync(mask(), head != 0) >> first() >> 1, op);
  }
  template <typename Flag, typename Operator>
  T TailSegmentedReduce(T value, Flag tail, Operator op) {
    return segmented(value, __ballot_sync(mask(), tail != 0) >> first(), op);
  }
  template <typename Flag>
  T HeadSegmentedSum(T value, Flag head) {
    return HeadSegmentedReduce(value, head, cub::Sum());
  }
  template <typename Flag>
  T TailSegmentedSum(T value, Flag tail) {
    return TailSegmentedReduce(value, tail, cub::Sum());
  }

 private:
  static int rank() { return static_cast<int>(::simt::lane() % logical_warp); }
  static unsigned first() { return ::simt::lane() / logical_warp * logical_warp; }
  static unsigned mask() { return (logical_warp == 32 ? ~0u : (1u << logical_warp % 32) - 1) << first(); }
  static unsigned partner(int offset) {
    return rank() + offset < logical_warp ? ::simt::lane() + static_cast<unsigned>(offset) : ::simt::lane();
  }
  // Bit i of `ends`: the segment of lane i ends there.
  template <typename Operator>
  T segmented(T value, unsigned ends, Operator op) {
    const unsigned after = ends >> rank();
    const int end = after ? rank() + __ffs(static_cast<int>(after)) : logical_warp;
    return Reduce(value, op, end < logical_warp ? end : logical_warp);
  }
};

}  // namespace cub
