// device_segmented_reduce.cuh: a reduction of each segment of an array; segment i is [begins[i], ends[i]).
#pragma once

#include <limits>

#include "device_call.cuh"

namespace cub {

struct DeviceSegmentedReduce {
  template <typename In, typename Out, typename Begins, typename Ends, typename Operator, typename Initial>
  static cudaError_t Reduce(void* storage, size_t& bytes, In in, Out out, int segments, Begins begins, Ends ends,
                            Operator op, Initial initial, cudaStream_t stream = nullptr) {
    return detail::device_call("cub::DeviceSegmentedReduce::Reduce", storage, bytes, stream, [&] {
      for (int i = 0; i < segments; ++i) out[i] = detail::reduced_from(initial, in, begins[i], ends[i] - begins[i], op);
    });
  }
  template <typename In, typename Out, typename Begins, typename Ends>
  static cudaError_t Sum(void* storage, size_t& bytes, In in, Out out, int segments, Begins begins, Ends ends,
                         cudaStream_t stream = nullptr) {
    return Reduce(storage, bytes, in, out, segments, begins, ends, cub::Sum(), detail::ValueOf<In>(), stream);
  }
  template <typename In, typename Out, typename Begins, typename Ends>
  static cudaError_t Min(void* storage, size_t& bytes, In in, Out out, int segments, Begins begins, Ends ends,
                         cudaStream_t stream = nullptr) {
    return Reduce(storage, bytes, in, out, segments, begins, ends, cub::Min(),
                  std::numeric_limits<detail::ValueOf<In>>::max(), stream);
  }
  template <typename In, typename Out, typename Begins, typename Ends>
  static cudaError_t Max(void* storage, size_t& bytes, In in, Out out, int segments, Begins begins, Ends ends,
                         cudaStream_t stream = nullptr) {
    return Reduce(storage, bytes, in, out, segments, begins, ends, cub::Max(),
                  std::numeric_limits<detail::ValueOf<In>>::lowest(), stream);
  }
};

}  // namespace cub
