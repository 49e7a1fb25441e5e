// device_scan.cuh: prefix sums of whole arrays, also within runs of equal keys.
#pragma once

#include "device_call.cuh"

namespace cub {

struct DeviceScan {
  template <typename In, typename Out, typename Operator, typename Initial, typename Count>
  static cudaError_t ExclusiveScan(void* storage, size_t& bytes, In in, Out out, Operator op, Initial initial,
                                   Count count, cudaStream_t stream = nullptr) {
    return scan("cub::DeviceScan::ExclusiveScan", storage, bytes, nothing, in, out, op, stream, count, nothing,
                [=] { return initial; });
  }
  template <typename In, typename Out, typename Operator, typename Initial, typename Count>
  static cudaError_t InclusiveScanInit(void* storage, size_t& bytes, In in, Out out, Operator op, Initial initial,
                                       Count count, cudaStream_t stream = nullptr) {
    return detail::device_call("cub::DeviceScan::InclusiveScanInit", storage, bytes, stream, [&] {
      using Sum = std::decay_t<std::invoke_result_t<Operator, Initial, detail::ValueOf<In>>>;
      Sum sum = initial;
      for (Count i = 0; i < count; ++i) out[i] = sum = op(sum, in[i]);
    });
  }
  template <typename In, typename Out, typename Operator, typename Count>
  static cudaError_t InclusiveScan(void* storage, size_t& bytes, In in, Out out, Operator op, Count count,
                                   cudaStream_t stream = nullptr) {
    return scan("cub::DeviceScan::InclusiveScan", storage, bytes, nothing, in, out, op, stream, count, nothing,
                nothing);
  }
  template <typename In, typename Out, typename Count>
  static cudaError_t ExclusiveSum(void* storage, size_t& bytes, In in, Out out, Count count,
                                  cudaStream_t stream = nullptr) {
    return ExclusiveScan(storage, bytes, in, out, cub::Sum(), detail::ValueOf<In>(), count, stream);
  }
  template <typename In, typename Out, typename Count>
  static cudaError_t InclusiveSum(void* storage, size_t& bytes, In in, Out out, Count count,
                                  cudaStream_t stream = nullptr) {
    return InclusiveScan(storage, bytes, in, out, cub::Sum(), count, stream);
  }
  // In place.
  template <typename Data, typename Count>
  static cudaError_t ExclusiveSum(void* storage, size_t& bytes, Data data, Count count) {
    return ExclusiveSum(storage, bytes, data, data, count);
  }
  template <typename Data, typename Count>
  static cudaError_t InclusiveSum(void* storage, size_t& bytes, Data data, Count count) {
    return InclusiveSum(storage, bytes, data, data, count);
  }

  // Anew at each key that differs from the one before it.
  template <typename Keys, typename In, typename Out, typename Count, typename Equal = Equality>
  static cudaError_t ExclusiveSumByKey(void* storage, size_t& bytes, Keys keys, In in, Out out, Count count,
                                       Equal equal = {}, cudaStream_t stream = nullptr) {
    return ExclusiveScanByKey(storage, bytes, keys, in, out, cub::Sum(), detail::ValueOf<In>(), count, equal, stream);
  }
  template <typename Keys, typename In, typename Out, typename Count, typename Equal = Equality>
  static cudaError_t InclusiveSumByKey(void* storage, size_t& bytes, Keys keys, In in, Out out, Count count,
                                       Equal equal = {}, cudaStream_t stream = nullptr) {
    return InclusiveScanByKey(storage, bytes, keys, in, out, cub::Sum(), count, equal, stream);
  }
  template <typename Keys, typename In, typename Out, typename Operator, typename Initial, typename Count,
            typename Equal = Equality>
  static cudaError_t ExclusiveScanByKey(void* storage, size_t& bytes, Keys keys, In in, Out out, Operator op,
                                        Initial initial, Count count, Equal equal = {}, cudaStream_t stream = nullptr) {
    return scan("cub::DeviceScan::ExclusiveScanByKey", storage, bytes, keys, in, out, op, stream, count, equal,
                [=] { return initial; });
  }
  template <typename Keys, typename In, typename Out, typename Operator, typename Count, typename Equal = Equality>
  static cudaError_t InclusiveScanByKey(void* storage, size_t& bytes, Keys keys, In in, Out out, Operator op,
                                        Count count, Equal equal = {}, cudaStream_t stream = nullptr) {
    return scan("cub::DeviceScan::InclusiveScanByKey", storage, bytes, keys, in, out, op, stream, count, equal,
                nothing);
  }

 private:
  struct Nothing {
  } static constexpr nothing{};

  // With keys, or without; exclusive behind an initial value, or inclusive. `out` may be `in` or the keys.
  template <typename Keys, typename In, typename Out, typename Operator, typename Count, typename Equal,
            typename Initial>
  static cudaError_t scan(const char* function, void* storage, size_t& bytes, Keys keys, In in, Out out, Operator op,
                          cudaStream_t stream, Count count, Equal equal, Initial initial) {
    return detail::device_call(function, storage, bytes, stream, [&] {
      detail::check_array(function, "the input", in, count);
      detail::check_array(function, "the output", out, count);
      constexpr bool exclusive = !std::is_same_v<Initial, Nothing>;
      using Value = detail::ValueOf<In>;
      using Sum = std::decay_t<std::invoke_result_t<Operator, Value, Value>>;
      std::vector<bool> begins(static_cast<size_t>(count));
      if constexpr (!std::is_same_v<Keys, Nothing>)
        for (Count i = 1; i < count; ++i) begins[static_cast<size_t>(i)] = !equal(keys[i - 1], keys[i]);
      Sum sum{};
      for (Count i = 0; i < count; ++i) {
        const bool first = i == 0 || begins[static_cast<size_t>(i)];
        const Value value = in[i];
        if constexpr (exclusive) {
          if (first) sum = initial();
          out[i] = sum;
          sum = op(sum, value);
        } else {
          sum = first ? static_cast<Sum>(value) : static_cast<Sum>(op(sum, value));
          out[i] = sum;
        }
      }
    });
  }
};

}  // namespace cub
