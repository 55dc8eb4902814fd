// Vectors and spans that take an index of any integer type (ids, sections and operators are signed here), rounding and
// alignment.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
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

template <class T, class Allocator = std::allocator<T>>
class Array : public std::vector<T, Allocator> {
  using Base = std::vector<T, Allocator>;

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

// Threads that write to the same cache line wait for each other. So what one thread alone writes to, often, has lines
// to itself: objects by alignas(kCacheLines), arrays as OwnArray. Processors fetch lines in pairs.
inline constexpr std::size_t kCacheLines = 128;  // bytes

// Allocates whole cache lines.
template <class T>
struct OwnLines {
  using value_type = T;
  OwnLines() = default;
  template <class Other>
  OwnLines(const OwnLines<Other>&) {}
  T* allocate(std::size_t count) {
    return static_cast<T*>(::operator new(round_up(count * sizeof(T), kCacheLines), std::align_val_t{kCacheLines}));
  }
  void deallocate(T* array, std::size_t) { ::operator delete(array, std::align_val_t{kCacheLines}); }
  template <class Other>
  bool operator==(const OwnLines<Other>&) const {
    return true;
  }
};

template <class T>
using OwnArray = Array<T, OwnLines<T>>;

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
