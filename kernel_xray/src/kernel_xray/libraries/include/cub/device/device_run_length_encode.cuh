// device_run_length_encode.cuh: the runs of equal values of an array.
#pragma once

#include "device_call.cuh"

namespace cub {

struct DeviceRunLengthEncode {
  template <typename In, typename Unique, typename Lengths, typename Runs, typename Count>
  static cudaError_t Encode(void* storage, size_t& bytes, In in, Unique unique, Lengths lengths, Runs runs, Count count,
                            cudaStream_t stream = nullptr) {
    return encode("cub::DeviceRunLengthEncode::Encode", storage, bytes, in, count, stream, runs, 1,
                  [=](Count run, Count first, Count length) {
                    unique[run] = in[first];
                    lengths[run] = length;
                  });
  }
  // Where the runs of two and more values begin, and their lengths.
  template <typename In, typename Offsets, typename Lengths, typename Runs, typename Count>
  static cudaError_t NonTrivialRuns(void* storage, size_t& bytes, In in, Offsets offsets, Lengths lengths, Runs runs,
                                    Count count, cudaStream_t stream = nullptr) {
    return encode("cub::DeviceRunLengthEncode::NonTrivialRuns", storage, bytes, in, count, stream, runs, 2,
                  [=](Count run, Count first, Count length) {
                    offsets[run] = first;
                    lengths[run] = length;
                  });
  }

 private:
  template <typename In, typename Runs, typename Count, typename Store>
  static cudaError_t encode(const char* function, void* storage, size_t& bytes, In in, Count count, cudaStream_t stream,
                            Runs runs, Count least, Store store) {
    return detail::device_call(function, storage, bytes, stream, [&] {
      detail::check_array(function, "d_in", in, count);
      Count found = 0;
      for (Count first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && in[end] == in[first];) ++end;
        if (end - first >= least) store(found++, first, end - first);
      }
      *runs = found;
    });
  }
};

}  // namespace cub
