// The arrays of the core, whose indices may be of any integer type (ids, sections and operators are signed), memory
// that threads do not share, and rounding.
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

template <class T>
using Array = std::vector<T>;

// A view of an array that another owns; valid as long as that is.
template <class T>
using View = std::span<T>;

// Threads that write to the same cache line wait for each other (false sharing). So what one thread alone writes to,
// often, has lines to itself: objects by alignas(kCacheLines), arrays as PaddedArray. Processors fetch lines in pairs.
inline constexpr std::size_t kCacheLines = 128;  // bytes

// Allocates whole cache lines.
template <class T>
struct CacheLineAllocator {
  using value_type = T;
  CacheLineAllocator() = default;
  template <class Other>
  CacheLineAllocator(const CacheLineAllocator<Other>&) {}
  T* allocate(std::size_t count) {
    return static_cast<T*>(::operator new(round_up(count * sizeof(T), kCacheLines), std::align_val_t{kCacheLines}));
  }
  void deallocate(T* array, std::size_t) { ::operator delete(array, std::align_val_t{kCacheLines}); }
  template <class Other>
  bool operator==(const CacheLineAllocator<Other>&) const {
    return true;
  }
};

template <class T>
using PaddedArray = std::vector<T, CacheLineAllocator<T>>;

using Bytes = std::int64_t;

// One number for each buffer, such as its size, its offset or its place in an order.
using Ints = View<const std::int64_t>;

}  // namespace modelplan
