// block_scan.cuh: prefix sums over the values of a block's threads, one or several each (in blocked arrangement).
//
// Warps scan by shuffles and leave their totals in shared memory; behind a barrier, each thread combines those of the
// warps before its own. The storage may be used again behind a barrier of the caller's, as CUB asks.
#pragma once

#include "../warp/warp_scan.cuh"

namespace cub {

enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };

template <typename T, int block_x, BlockScanAlgorithm = BLOCK_SCAN_RAKING, int block_y = 1, int block_z = 1, int = 0>
class BlockScan {
  static constexpr int kThreads = block_x * block_y * block_z, kWarps = (kThreads + 31) / 32;

 public:
  struct TempStorage {
    detail::Uninitialized<T, kWarps> totals;
    detail::Uninitialized<T, 1> prefix;
  };

  BlockScan() : storage_(detail::private_storage<TempStorage>()) {}
  explicit BlockScan(TempStorage& storage) : storage_(storage) {}

  // ----- Any operation. `prefix` is a function object that warp 0 calls with the block's aggregate; what it returns in
  // lane 0 precedes the block's values.

  template <typename Operator>
  void InclusiveScan(T input, T& output, Operator op, T& aggregate) {
    T before;
    const bool any = scan(input, output, before, op, aggregate);
    if (any) output = op(before, output);
  }
  template <typename Operator>
  void InclusiveScan(T input, T& output, Operator op) {
    T aggregate;
    InclusiveScan(input, output, op, aggregate);
  }
  template <typename Operator, typename Prefix, typename = decltype(std::declval<Prefix&>()(std::declval<T>()))>
  void InclusiveScan(T input, T& output, Operator op, Prefix& prefix) {
    T aggregate;
    InclusiveScan(input, output, op, aggregate);
    output = op(shared_prefix(prefix, aggregate), output);
  }

  template <typename Operator>  // thread 0's output is not defined
  void ExclusiveScan(T input, T& output, Operator op, T& aggregate) {
    T inclusive, before;
    const bool any = scan(input, inclusive, before, op, aggregate);
    const T left = ::simt::detail::exchange(~0u, inclusive, lane() > 0 ? lane() - 1 : 0);
    output = lane() == 0 ? before : any ? op(before, left) : left;
  }
  template <typename Operator>
  void ExclusiveScan(T input, T& output, Operator op) {
    T aggregate;
    ExclusiveScan(input, output, op, aggregate);
  }
  template <typename Operator>
  void ExclusiveScan(T input, T& output, T initial, Operator op, T& aggregate) {
    ExclusiveScan(input, output, op, aggregate);
    output = thread() == 0 ? initial : op(initial, output);
  }
  template <typename Operator>
  void ExclusiveScan(T input, T& output, T initial, Operator op) {
    T aggregate;
    ExclusiveScan(input, output, initial, op, aggregate);
  }
  template <typename Operator, typename Prefix, typename = decltype(std::declval<Prefix&>()(std::declval<T>()))>
  void ExclusiveScan(T input, T& output, Operator op, Prefix& prefix) {
    T aggregate;
    ExclusiveScan(input, output, op, aggregate);
    const T first = shared_prefix(prefix, aggregate);
    output = thread() == 0 ? first : op(first, output);
  }

  // ----- Sums

  void InclusiveSum(T input, T& output) { InclusiveScan(input, output, cub::Sum()); }
  void InclusiveSum(T input, T& output, T& aggregate) { InclusiveScan(input, output, cub::Sum(), aggregate); }
  template <typename Prefix, typename = decltype(std::declval<Prefix&>()(std::declval<T>()))>
  void InclusiveSum(T input, T& output, Prefix& prefix) {
    InclusiveScan(input, output, cub::Sum(), prefix);
  }
  void ExclusiveSum(T input, T& output) { ExclusiveScan(input, output, T(0), cub::Sum()); }
  void ExclusiveSum(T input, T& output, T& aggregate) { ExclusiveScan(input, output, T(0), cub::Sum(), aggregate); }
  template <typename Prefix, typename = decltype(std::declval<Prefix&>()(std::declval<T>()))>
  void ExclusiveSum(T input, T& output, Prefix& prefix) {
    ExclusiveScan(input, output, cub::Sum(), prefix);
  }

  // ----- Several values in each thread: a scan of the threads' own totals, then of the values behind what precedes them.
  // `more` is what the forms above take after the input and the output.

  template <int items, typename... More>
  void InclusiveSum(T (&input)[items], T (&output)[items], More&... more) {
    inclusive_items(input, output, cub::Sum(), [&](T total, T& before) { ExclusiveSum(total, before, more...); }, true);
  }
  template <int items, typename... More>
  void ExclusiveSum(T (&input)[items], T (&output)[items], More&... more) {
    exclusive_items(input, output, cub::Sum(), [&](T total, T& before) { ExclusiveSum(total, before, more...); });
  }
  template <int items, typename Operator, typename... More>
  void InclusiveScan(T (&input)[items], T (&output)[items], Operator op, More&... more) {
    constexpr bool has_prefix = (std::is_invocable_v<More&, T> || ...);
    inclusive_items(
        input, output, op, [&](T total, T& before) { ExclusiveScan(total, before, op, more...); },
        has_prefix || thread() > 0);
  }
  template <int items, typename Operator, typename... More>
  void ExclusiveScan(T (&input)[items], T (&output)[items], T initial, Operator op, More&... more) {
    exclusive_items(input, output, op, [&](T total, T& before) { ExclusiveScan(total, before, initial, op, more...); });
  }
  template <int items, typename Operator, typename Prefix,
            typename = decltype(std::declval<Prefix&>()(std::declval<T>()))>
  void ExclusiveScan(T (&input)[items], T (&output)[items], Operator op, Prefix& prefix) {
    exclusive_items(input, output, op, [&](T total, T& before) { ExclusiveScan(total, before, op, prefix); });
  }

 private:
  static int thread() { return detail::thread_in_block(); }
  static unsigned lane() { return ::simt::lane(); }

  // The scan in the warp, the total of the warps before it (true: there are some), and that of the block.
  template <typename Operator>
  bool scan(T input, T& inclusive, T& before, Operator op, T& aggregate) {
    const int warp = thread() / 32;
    WarpScan<T>().InclusiveScan(input, inclusive, op);
    if (lane() == 31 || thread() == kThreads - 1) storage_.totals[warp] = inclusive;
    __syncthreads();
    before = aggregate = storage_.totals[0];
    for (int w = 1; w < kWarps; ++w) {
      if (w == warp) before = aggregate;
      aggregate = op(aggregate, storage_.totals[w]);
    }
    return warp > 0;
  }

  template <typename Prefix>
  T shared_prefix(Prefix& prefix, T aggregate) {
    if (thread() < 32) {
      const T first = prefix(aggregate);
      if (thread() == 0) storage_.prefix[0] = first;
    }
    __syncthreads();
    return storage_.prefix[0];
  }

  template <int items, typename Operator, typename Scan>
  void inclusive_items(T (&input)[items], T (&output)[items], Operator op, Scan scan_totals, bool has_before) {
    T before;
    scan_totals(total_of(input, op), before);
    T running = has_before ? op(before, input[0]) : input[0];
    for (int i = 0; i < items; ++i) {
      if (i > 0) running = op(running, input[i]);
      output[i] = running;
    }
  }
  template <int items, typename Operator, typename Scan>
  void exclusive_items(T (&input)[items], T (&output)[items], Operator op, Scan scan_totals) {
    T running;
    scan_totals(total_of(input, op), running);
    for (int i = 0; i < items; ++i) {
      const T value = input[i];  // input and output may be one array
      output[i] = running;
      running = op(running, value);
    }
  }
  template <int items, typename Operator>
  static T total_of(T (&input)[items], Operator op) {
    T total = input[0];
    for (int i = 1; i < items; ++i) total = op(total, input[i]);
    return total;
  }

  TempStorage& storage_;
};

}  // namespace cub
