// device_select.cuh: keeps some values of an array, in order; their number goes to `selected`.
#pragma once

#include "device_call.cuh"

namespace cub {

struct DeviceSelect {
  template <typename In, typename Flags, typename Out, typename Selected, typename Count>
  static cudaError_t Flagged(void* storage, size_t& bytes, In in, Flags flags, Out out, Selected selected, Count count,
                             cudaStream_t stream = nullptr) {
    return select("cub::DeviceSelect::Flagged", storage, bytes, in, out, selected, count, stream,
                  [=](Count i) { return static_cast<bool>(flags[i]); });
  }
  template <typename Data, typename Flags, typename Selected, typename Count>  // in place
  static cudaError_t Flagged(void* storage, size_t& bytes, Data data, Flags flags, Selected selected, Count count,
                             cudaStream_t stream = nullptr) {
    return Flagged(storage, bytes, data, flags, data, selected, count, stream);
  }
  template <typename In, typename Out, typename Selected, typename Count, typename Predicate>
  static cudaError_t If(void* storage, size_t& bytes, In in, Out out, Selected selected, Count count,
                        Predicate predicate, cudaStream_t stream = nullptr) {
    return select("cub::DeviceSelect::If", storage, bytes, in, out, selected, count, stream,
                  [=](Count i) mutable { return static_cast<bool>(predicate(in[i])); });
  }
  template <typename Data, typename Selected, typename Count, typename Predicate,
            typename = decltype(std::declval<Predicate&>()(*std::declval<Data&>()))>  // in place
  static cudaError_t If(void* storage, size_t& bytes, Data data, Selected selected, Count count, Predicate predicate,
                        cudaStream_t stream = nullptr) {
    return If(storage, bytes, data, data, selected, count, predicate, stream);
  }
  template <typename In, typename Out, typename Selected, typename Count>  // the first of each run
  static cudaError_t Unique(void* storage, size_t& bytes, In in, Out out, Selected selected, Count count,
                            cudaStream_t stream = nullptr) {
    return select("cub::DeviceSelect::Unique", storage, bytes, in, out, selected, count, stream,
                  [=](Count i) { return i == 0 || !(in[i - 1] == in[i]); });
  }
  template <typename KeysIn, typename ValuesIn, typename KeysOut, typename ValuesOut, typename Selected, typename Count>
  static cudaError_t UniqueByKey(void* storage, size_t& bytes, KeysIn keys_in, ValuesIn values_in, KeysOut keys_out,
                                 ValuesOut values_out, Selected selected, Count count, cudaStream_t stream = nullptr) {
    return detail::device_call("cub::DeviceSelect::UniqueByKey", storage, bytes, stream, [&] {
      Count found = 0;
      for (Count i = 0; i < count; ++i) {
        if (i > 0 && keys_in[i - 1] == keys_in[i]) continue;
        keys_out[found] = keys_in[i];
        values_out[found] = values_in[i];
        ++found;
      }
      *selected = found;
    });
  }

 private:
  template <typename In, typename Out, typename Selected, typename Count, typename Kept>
  static cudaError_t select(const char* function, void* storage, size_t& bytes, In in, Out out, Selected selected,
                            Count count, cudaStream_t stream, Kept kept) {
    return detail::device_call(function, storage, bytes, stream, [&] {
      detail::check_array(function, "d_in", in, count);
      std::vector<detail::ValueOf<In>> found;
      for (Count i = 0; i < count; ++i)
        if (kept(i)) found.push_back(in[i]);
      for (size_t i = 0; i < found.size(); ++i) out[i] = found[i];
      *selected = static_cast<Count>(found.size());
    });
  }
};

}  // namespace cub
