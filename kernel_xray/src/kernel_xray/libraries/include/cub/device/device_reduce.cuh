// device_reduce.cuh: reductions of whole arrays, and of runs of equal keys.
#pragma once

#include <limits>

#include "device_call.cuh"

namespace cub {

struct DeviceReduce {
  template <typename In, typename Out, typename Count, typename Operator, typename Initial>
  static cudaError_t Reduce(void* storage, size_t& bytes, In in, Out out, Count count, Operator op, Initial initial,
                            cudaStream_t stream = nullptr) {
    return detail::device_call("cub::DeviceReduce::Reduce", storage, bytes, stream, [&] {
      detail::check_array("cub::DeviceReduce::Reduce", "d_in", in, count);
      *out = detail::reduced_from(initial, in, 0, count, op);
    });
  }
  template <typename In, typename Out, typename Count>
  static cudaError_t Sum(void* storage, size_t& bytes, In in, Out out, Count count, cudaStream_t stream = nullptr) {
    return Reduce(storage, bytes, in, out, count, cub::Sum(), detail::ValueOf<In>(), stream);
  }
  template <typename In, typename Out, typename Count>
  static cudaError_t Min(void* storage, size_t& bytes, In in, Out out, Count count, cudaStream_t stream = nullptr) {
    return Reduce(storage, bytes, in, out, count, cub::Min(), std::numeric_limits<detail::ValueOf<In>>::max(), stream);
  }
  template <typename In, typename Out, typename Count>
  static cudaError_t Max(void* storage, size_t& bytes, In in, Out out, Count count, cudaStream_t stream = nullptr) {
    return Reduce(storage, bytes, in, out, count, cub::Max(), std::numeric_limits<detail::ValueOf<In>>::lowest(),
                  stream);
  }

  // The first of the extreme values, as a pair of index and value; of none: index 1 and the type's other extreme.
  template <typename In, typename Out, typename Count>
  static cudaError_t ArgMin(void* storage, size_t& bytes, In in, Out out, Count count, cudaStream_t stream = nullptr) {
    return arg("cub::DeviceReduce::ArgMin", storage, bytes, in, out, count, cub::ArgMin(),
               std::numeric_limits<detail::ValueOf<In>>::max(), stream);
  }
  template <typename In, typename Out, typename Count>
  static cudaError_t ArgMax(void* storage, size_t& bytes, In in, Out out, Count count, cudaStream_t stream = nullptr) {
    return arg("cub::DeviceReduce::ArgMax", storage, bytes, in, out, count, cub::ArgMax(),
               std::numeric_limits<detail::ValueOf<In>>::lowest(), stream);
  }

  template <typename In, typename Out, typename Count, typename Operator, typename Transform, typename Initial>
  static cudaError_t TransformReduce(void* storage, size_t& bytes, In in, Out out, Count count, Operator op,
                                     Transform transform, Initial initial, cudaStream_t stream = nullptr) {
    return detail::device_call("cub::DeviceReduce::TransformReduce", storage, bytes, stream, [&] {
      detail::check_array("cub::DeviceReduce::TransformReduce", "d_in", in, count);
      std::vector<std::decay_t<decltype(transform(in[0]))>> values;
      for (Count i = 0; i < count; ++i) values.push_back(transform(in[i]));
      *out = detail::reduced_from(initial, values.begin(), 0, count, op);
    });
  }

  // One key and one reduction for each run of equal keys.
  template <typename KeysIn, typename KeysOut, typename ValuesIn, typename ValuesOut, typename Runs, typename Operator,
            typename Count>
  static cudaError_t ReduceByKey(void* storage, size_t& bytes, KeysIn keys, KeysOut unique, ValuesIn values,
                                 ValuesOut aggregates, Runs runs, Operator op, Count count,
                                 cudaStream_t stream = nullptr) {
    return detail::device_call("cub::DeviceReduce::ReduceByKey", storage, bytes, stream, [&] {
      detail::check_array("cub::DeviceReduce::ReduceByKey", "d_keys_in", keys, count);
      detail::check_array("cub::DeviceReduce::ReduceByKey", "d_values_in", values, count);
      using Value = std::decay_t<std::invoke_result_t<Operator, detail::ValueOf<ValuesIn>, detail::ValueOf<ValuesIn>>>;
      Count found = 0;
      for (Count first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && keys[end] == keys[first];) ++end;
        unique[found] = keys[first];
        aggregates[found] = detail::reduced<Value>(values, first, end - first, op);
        ++found;
      }
      *runs = found;
    });
  }

 private:
  template <typename In, typename Out, typename Count, typename Operator, typename T>
  static cudaError_t arg(const char* function, void* storage, size_t& bytes, In in, Out out, Count count, Operator op,
                         T extreme, cudaStream_t stream) {
    return detail::device_call(function, storage, bytes, stream, [&] {
      detail::check_array(function, "d_in", in, count);
      KeyValuePair<int, T> best{1, extreme};
      for (Count i = 0; i < count; ++i) {
        const KeyValuePair<int, T> here{static_cast<int>(i), in[i]};
        best = i == 0 ? here : op(best, here);
      }
      *out = best;
    });
  }
};

}  // namespace cub
