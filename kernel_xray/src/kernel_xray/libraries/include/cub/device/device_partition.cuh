// device_partition.cuh: moves the selected values to the front, in order, and the others to the back, in reverse order.
#pragma once

#include "device_call.cuh"

namespace cub {

struct DevicePartition {
  template <typename In, typename Flags, typename Out, typename Selected, typename Count>
  static cudaError_t Flagged(void* storage, size_t& bytes, In in, Flags flags, Out out, Selected selected, Count count,
                             cudaStream_t stream = nullptr) {
    return partition("cub::DevicePartition::Flagged", storage, bytes, in, out, selected, count, stream,
                     [=](Count i) { return static_cast<bool>(flags[i]); });
  }
  template <typename In, typename Out, typename Selected, typename Count, typename Predicate>
  static cudaError_t If(void* storage, size_t& bytes, In in, Out out, Selected selected, Count count,
                        Predicate predicate, cudaStream_t stream = nullptr) {
    return partition("cub::DevicePartition::If", storage, bytes, in, out, selected, count, stream,
                     [=](Count i) mutable { return static_cast<bool>(predicate(in[i])); });
  }

 private:
  template <typename In, typename Out, typename Selected, typename Count, typename Kept>
  static cudaError_t partition(const char* function, void* storage, size_t& bytes, In in, Out out, Selected selected,
                               Count count, cudaStream_t stream, Kept kept) {
    return detail::device_call(function, storage, bytes, stream, [&] {
      detail::check_array(function, "d_in", in, count);
      detail::check_array(function, "d_out", out, count);
      Count front = 0, back = count;
      for (Count i = 0; i < count; ++i) {
        if (kept(i))
          out[front++] = in[i];
        else
          out[--back] = in[i];
      }
      *selected = front;
    });
  }
};

}  // namespace cub
