// Vectors and spans that take an index of any integer type (ids, sections and operators are signed here), and rounding.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace modelplan {

// A count or an index, known not to be negative, as the standard library wants it.
constexpr std::size_t as_size(std::integral auto count) { return static_cast<std::size_t>(count); }

// The least multiple of `step` that is not below `value`, both at least 0; `step` 0 counts as 1.
template <class Int>
constexpr Int round_up(Int value, std::type_identity_t<Int> step) {
  return step > 1 ? (value + step - 1) / step * step : value;  // most steps are 1: spare them the division
}

template <class T>
class Array : public std::vector<T> {
  using Base = std::vector<T>;

 public:
  using Base::assign;
  using Base::Base;
  using Base::resize;
  Array() = default;
  explicit Array(std::integral auto count) : Base(as_size(count)) {}
  Array(std::integral auto count, const T& value) : Base(as_size(count), value) {}

  typename Base::reference operator[](std::integral auto i) { return Base::operator[](as_size(i)); }
  typename Base::const_reference operator[](std::integral auto i) const { return Base::operator[](as_size(i)); }
  void assign(std::integral auto count, const T& value) { Base::assign(as_size(count), value); }
  void resize(std::integral auto count) { Base::resize(as_size(count)); }
};

// A view of an array that another owns; valid as long as that is.
template <class T>
class View : public std::span<T> {
 public:
  using std::span<T>::span;
  View(std::span<T> other) : std::span<T>(other) {}
  T& operator[](std::integral auto i) const { return std::span<T>::operator[](as_size(i)); }
};

using Bytes = std::int64_t;

// One number for each buffer, such as its size, its offset or its place in an order.
using Ints = View<const std::int64_t>;

}  // namespace modelplan
