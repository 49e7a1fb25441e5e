// iterators.cuh: CUB's iterators that compute their values.
#pragma once

#include <iterator>

#include "../util_type.cuh"

namespace cub {

namespace detail {

// An iterator over the values of at(i), for kernels and host. Derived defines `Value at(ptrdiff_t i) const`.
template <typename Derived, typename Value>
struct ComputedIterator {
  using iterator_category = std::random_access_iterator_tag;
  using value_type = Value;
  using difference_type = std::ptrdiff_t;
  using pointer = const Value*;
  using reference = Value;

  std::ptrdiff_t offset = 0;

  Value operator*() const { return self().at(offset); }
  template <typename Distance>
  Value operator[](Distance n) const {
    return self().at(offset + static_cast<std::ptrdiff_t>(n));
  }
  template <typename Distance>
  Derived operator+(Distance n) const {
    Derived moved = self();
    moved.offset += static_cast<std::ptrdiff_t>(n);
    return moved;
  }
  template <typename Distance>
  Derived operator-(Distance n) const {
    return *this + -static_cast<std::ptrdiff_t>(n);
  }
  std::ptrdiff_t operator-(const Derived& other) const { return offset - other.offset; }
  template <typename Distance>
  Derived& operator+=(Distance n) {
    return self() = *this + n;
  }
  Derived& operator++() { return *this += 1; }
  Derived operator++(int) {
    Derived before = self();
    *this += 1;
    return before;
  }
  bool operator==(const Derived& other) const { return offset == other.offset; }
  bool operator!=(const Derived& other) const { return offset != other.offset; }

 private:
  Derived& self() { return static_cast<Derived&>(*this); }
  const Derived& self() const { return static_cast<const Derived&>(*this); }
};

}  // namespace detail

template <typename Value, typename Offset = std::ptrdiff_t>
struct CountingInputIterator : detail::ComputedIterator<CountingInputIterator<Value, Offset>, Value> {
  Value first;
  CountingInputIterator(const Value& first_) : first(first_) {}
  Value at(std::ptrdiff_t i) const { return static_cast<Value>(first + static_cast<Value>(i)); }
};

template <typename Value, typename Offset = std::ptrdiff_t>
struct ConstantInputIterator : detail::ComputedIterator<ConstantInputIterator<Value, Offset>, Value> {
  Value value;
  ConstantInputIterator(Value value_, Offset = 0) : value(value_) {}
  Value at(std::ptrdiff_t) const { return value; }
};

template <typename Value, typename Operator, typename Iterator, typename Offset = std::ptrdiff_t>
struct TransformInputIterator
    : detail::ComputedIterator<TransformInputIterator<Value, Operator, Iterator, Offset>, Value> {
  Iterator from;
  Operator op;
  TransformInputIterator(Iterator from_, Operator op_) : from(from_), op(op_) {}
  Value at(std::ptrdiff_t i) const { return op(from[i]); }
};

template <typename Iterator, typename Offset = std::ptrdiff_t,
          typename Value = typename std::iterator_traits<Iterator>::value_type>
struct ArgIndexInputIterator
    : detail::ComputedIterator<ArgIndexInputIterator<Iterator, Offset, Value>, KeyValuePair<Offset, Value>> {
  Iterator from;
  ArgIndexInputIterator(Iterator from_) : from(from_) {}
  KeyValuePair<Offset, Value> at(std::ptrdiff_t i) const { return {static_cast<Offset>(i), from[i]}; }
};

}  // namespace cub
