// warp_scan.cuh: prefix sums over the lanes of a logical warp, by shuffles.
#pragma once

#include "../thread/thread_operators.cuh"

namespace cub {

template <typename T, int logical_warp = 32, int = 0>
class WarpScan {
  static_assert(logical_warp >= 1 && logical_warp <= 32, "a logical warp has 1 to 32 threads");

 public:
  struct TempStorage {
    char unused;
  };

  WarpScan() = default;
  explicit WarpScan(TempStorage&) {}

  template <typename Operator>
  void InclusiveScan(T input, T& output, Operator op) {
    for (int offset = 1; offset < logical_warp; offset *= 2) {
      const T before = from(input, rank() >= offset ? rank() - offset : rank());
      if (rank() >= offset) input = op(before, input);
    }
    output = input;
  }
  template <typename Operator>
  void InclusiveScan(T input, T& output, Operator op, T& aggregate) {
    InclusiveScan(input, output, op);
    aggregate = from(output, logical_warp - 1);
  }
  template <typename Operator>  // the first lane's output is not defined
  void ExclusiveScan(T input, T& output, Operator op) {
    T inclusive;
    InclusiveScan(input, inclusive, op);
    output = from(inclusive, rank() > 0 ? rank() - 1 : 0);
  }
  template <typename Operator>
  void ExclusiveScan(T input, T& output, T initial, Operator op) {
    T before;
    ExclusiveScan(input, before, op);
    output = rank() == 0 ? initial : op(initial, before);
  }
  template <typename Operator>
  void ExclusiveScan(T input, T& output, T initial, Operator op, T& aggregate) {
    ExclusiveScan(input, output, initial, op);
    aggregate = from(op(output, input), logical_warp - 1);
  }
  template <typename Operator>
  void Scan(T input, T& inclusive, T& exclusive, Operator op) {
    InclusiveScan(input, inclusive, op);
    exclusive = from(inclusive, rank() > 0 ? rank() - 1 : 0);
  }

  void InclusiveSum(T input, T& output) { InclusiveScan(input, output, cub::Sum()); }
  void InclusiveSum(T input, T& output, T& aggregate) { InclusiveScan(input, output, cub::Sum(), aggregate); }
  void ExclusiveSum(T input, T& output) { ExclusiveScan(input, output, T(0), cub::Sum()); }
  void ExclusiveSum(T input, T& output, T& aggregate) { ExclusiveScan(input, output, T(0), cub::Sum(), aggregate); }

  T Broadcast(T input, unsigned source) { return from(input, static_cast<int>(source)); }

 private:
  static int rank() { return static_cast<int>(::simt::lane() % logical_warp); }
  static T from(T value, int source) {
    const unsigned first = ::simt::lane() / logical_warp * logical_warp;
    const unsigned mask = (logical_warp == 32 ? ~0u : (1u << logical_warp % 32) - 1) << first;
    return ::simt::detail::exchange(mask, value, first + static_cast<unsigned>(source));
  }
};

}  // namespace cub
