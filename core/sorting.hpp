// Sorted arrays: ids by a key, distinct values, ranges by their address.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "array.hpp"

namespace modelplan {

// The ids from 0 to `count` - 1 by rising key(id), equal ones in their order.
template <class Id, class Key>
Array<Id> sorted_ids(std::size_t count, const Key& key) {
  Array<Id> ids(count);
  std::iota(ids.begin(), ids.end(), Id{0});
  std::ranges::stable_sort(ids, {}, key);
  return ids;
}

// The values in rising order, each once.
template <class T>
Array<T> distinct(Array<T> values) {
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

// How many of the values, in rising order, are below `limit`: the index of `limit` if it is one of them.
template <class Values, class T>
std::size_t count_below(const Values& values, const T& limit) {
  return as_size(std::ranges::lower_bound(values, limit) - values.begin());
}

// Most planners sort addresses for every buffer that they place.
// By rising `address(range)`, equal ones in no set order. Few are compared with each other; many are dealt out byte by
// byte from the lowest, in O(n) for each byte in which the addresses differ. `spare` keeps its memory between calls.
template <class Range, class Address>
void sort_by_address(Array<Range>& ranges, Array<Range>& spare, Address&& address) {
  constexpr std::size_t kFew = 128, kDigits = 256;
  const auto lower = [&](const Range& a, const Range& b) { return address(a) < address(b); };
  if (ranges.size() < kFew) {
    std::sort(ranges.begin(), ranges.end(), lower);
    return;
  }
  const std::int64_t least = address(*std::min_element(ranges.begin(), ranges.end(), lower));
  const auto above = [&](const Range& range) {
    return static_cast<std::uint64_t>(address(range)) - static_cast<std::uint64_t>(least);
  };
  std::uint64_t bits = 0;  // set in some distance from the least address
  for (const Range& range : ranges) bits |= above(range);
  spare.resize(ranges.size());
  for (unsigned shift = 0; shift < 64; shift += 8) {
    if ((bits >> shift) % kDigits == 0) continue;
    const auto digit = [&](const Range& range) { return as_size((above(range) >> shift) % kDigits); };
    std::array<std::size_t, kDigits + 1> next{};  // where the next range with this digit goes
    for (const Range& range : ranges) ++next[digit(range) + 1];
    for (std::size_t d = 0; d < kDigits; ++d) next[d + 1] += next[d];
    for (const Range& range : ranges) spare[next[digit(range)]++] = range;
    ranges.swap(spare);
  }
}

}  // namespace modelplan
