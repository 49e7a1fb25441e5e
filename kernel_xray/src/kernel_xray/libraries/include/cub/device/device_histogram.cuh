// device_histogram.cuh: counts the values of an array by bins. `levels` is the number of the bins' boundaries, one more
// than there are bins; values outside them are not counted.
#pragma once

#include <algorithm>

#include "device_call.cuh"

namespace cub {

struct DeviceHistogram {
  // Bins of equal width between lower (inclusive) and upper (exclusive).
  template <typename In, typename Counter, typename Level, typename Count>
  static cudaError_t HistogramEven(void* storage, size_t& bytes, In in, Counter* histogram, int levels, Level lower,
                                   Level upper, Count count, cudaStream_t stream = nullptr) {
    return fill("cub::DeviceHistogram::HistogramEven", storage, bytes, in, histogram, levels, count, stream,
                [=](auto value) -> int {
                  if (!(value >= lower && value < upper)) return -1;
                  if constexpr (std::is_integral_v<Level>)
                    return static_cast<int>(static_cast<uint64_t>(value - lower) * static_cast<uint64_t>(levels - 1) /
                                            static_cast<uint64_t>(upper - lower));
                  else
                    return std::min(levels - 2,
                                    static_cast<int>((value - lower) * (Level(levels - 1) / (upper - lower))));
                });
  }
  // Bins between neighbouring boundaries, which ascend.
  template <typename In, typename Counter, typename Level, typename Count>
  static cudaError_t HistogramRange(void* storage, size_t& bytes, In in, Counter* histogram, int levels,
                                    const Level* boundaries, Count count, cudaStream_t stream = nullptr) {
    return fill("cub::DeviceHistogram::HistogramRange", storage, bytes, in, histogram, levels, count, stream,
                [=](auto value) {
                  const auto bin = std::upper_bound(boundaries, boundaries + levels, value) - boundaries - 1;
                  return bin < levels - 1 ? static_cast<int>(bin) : -1;
                });
  }

 private:
  template <typename In, typename Counter, typename Count, typename Bin>
  static cudaError_t fill(const char* function, void* storage, size_t& bytes, In in, Counter* histogram, int levels,
                          Count count, cudaStream_t stream, Bin bin_of) {
    if (levels < 2) return cudaErrorInvalidValue;
    return detail::device_call(function, storage, bytes, stream, [&] {
      detail::check_array(function, "d_samples", in, count);
      detail::check_array(function, "d_histogram", histogram, levels - 1);
      std::fill(histogram, histogram + levels - 1, Counter(0));
      for (Count i = 0; i < count; ++i)
        if (const int bin = bin_of(in[i]); bin >= 0) ++histogram[bin];
    });
  }
};

}  // namespace cub
