// Which placed buffers are alive in [start, end)? A tree over all buffers sorted by start, linear in memory.
#pragma once

#include <cstdint>

#include "segment_tree.hpp"
#include "sorting.hpp"

namespace modelplan {

// The leaves are the buffers by rising start; a node holds the latest end of the inserted buffers below it, so a query
// walks only into subtrees that still have someone alive after `start`.
class IntervalIndex {
 public:
  IntervalIndex(Ints start, Ints end)
      : end_(end),
        by_start_(sorted_ids<std::size_t>(start.size(), [&](std::size_t b) { return start[b]; })),
        rank_(start.size()),
        latest_(Array<Latest>(start.size())) {
    for (const std::size_t b : by_start_) {
      rank_[b] = sorted_start_.size();
      sorted_start_.push_back(start[b]);
    }
  }

  void insert(std::size_t buffer) { latest_.set(rank_[buffer], {end_[buffer]}); }
  void erase(std::size_t buffer) { latest_.set(rank_[buffer], {}); }

  // Calls visit(buffer) for every inserted buffer with start < `until` and end > `from`.
  template <class Visit>
  void for_each_alive(std::int64_t from, std::int64_t until, Visit&& visit) const {
    latest_.for_each(
        0, count_below(sorted_start_, until), [&](const Latest& latest) { return latest.end > from; },
        [&](std::size_t rank) { visit(by_start_[rank]); });
  }

 private:
  struct Latest {
    std::int64_t end = INT64_MIN;

    static Latest joined(const Latest& a, const Latest& b) { return a.end < b.end ? b : a; }
  };

  Ints end_;
  Array<std::size_t> by_start_, rank_;
  Array<std::int64_t> sorted_start_;
  SegmentTree<Latest> latest_;
};

}  // namespace modelplan
