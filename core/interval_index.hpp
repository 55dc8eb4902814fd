// Which placed buffers are alive in [start, end)? A tree over all buffers sorted by start, linear in memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "array.hpp"

namespace modelplan {

// Leaves are the buffers by rising start; an inner node holds the latest end of the inserted leaves below it,
// so a query walks only into subtrees that still have someone alive after `start`.
class IntervalIndex {
 public:
  IntervalIndex(View<const std::int64_t> start, View<const std::int64_t> end)
      : end_(end), by_start_(start.size()), rank_(start.size()), sorted_start_(start.size()) {
    std::iota(by_start_.begin(), by_start_.end(), std::size_t{0});
    std::stable_sort(by_start_.begin(), by_start_.end(),
                     [&](std::size_t a, std::size_t b) { return start[a] < start[b]; });
    for (std::size_t r = 0; r < by_start_.size(); ++r) {
      rank_[by_start_[r]] = r;
      sorted_start_[r] = start[by_start_[r]];
    }
    while (leaves_ < std::max<std::size_t>(by_start_.size(), 1)) leaves_ *= 2;
    latest_.assign(2 * leaves_, kNobody);
  }

  void insert(std::size_t buffer) {
    for (std::size_t node = leaves_ + rank_[buffer]; node > 0; node /= 2)
      latest_[node] = std::max(latest_[node], end_[buffer]);
  }

  void erase(std::size_t buffer) {
    std::size_t node = leaves_ + rank_[buffer];
    latest_[node] = kNobody;
    for (node /= 2; node > 0; node /= 2) latest_[node] = std::max(latest_[2 * node], latest_[2 * node + 1]);
  }

  // Calls visit(buffer) for every inserted buffer with start < `until` and end > `from`.
  template <class Visit>
  void for_each_alive(std::int64_t from, std::int64_t until, Visit&& visit) const {
    const auto first_late = std::lower_bound(sorted_start_.begin(), sorted_start_.end(), until);
    const auto count = as_size(first_late - sorted_start_.begin());
    if (count > 0) walk(1, 0, leaves_, count, from, visit);
  }

 private:
  static constexpr std::int64_t kNobody = INT64_MIN;

  template <class Visit>
  void walk(std::size_t node, std::size_t lo, std::size_t hi, std::size_t count, std::int64_t from,
            Visit& visit) const {
    if (lo >= count || latest_[node] <= from) return;
    if (hi - lo == 1) {
      visit(by_start_[lo]);
      return;
    }
    const std::size_t mid = (lo + hi) / 2;
    walk(2 * node, lo, mid, count, from, visit);
    walk(2 * node + 1, mid, hi, count, from, visit);
  }

  View<const std::int64_t> end_;
  Array<std::size_t> by_start_, rank_;
  Array<std::int64_t> sorted_start_, latest_;
  std::size_t leaves_ = 1;
};

}  // namespace modelplan
