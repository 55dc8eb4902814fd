// Who must not share bytes with whom: lifetimes that meet and the extra conflicts, as one relation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "interval_index.hpp"
#include "place.hpp"

namespace modelplan {

inline bool meet(const Columns& columns, std::size_t a, std::size_t b) {
  return columns.start[a] < columns.end[b] && columns.start[b] < columns.end[a];
}

inline std::int64_t aligned(std::int64_t value, std::int64_t alignment) {
  return alignment == 1 ? value : (value + alignment - 1) / alignment * alignment;
}

// Symmetric lists of the extra conflicts: each pair once, none that meets in time anyway, nobody without bytes.
class ExtraConflicts {
 public:
  ExtraConflicts(const Columns& columns, const Facts& facts) {
    if (facts.left.empty()) return;
    of_.resize(columns.size.size());
    for (std::size_t i = 0; i < facts.left.size(); ++i) {
      const auto a = static_cast<std::size_t>(facts.left[i]), b = static_cast<std::size_t>(facts.right[i]);
      if (a == b || columns.size[a] == 0 || columns.size[b] == 0 || meet(columns, a, b)) continue;
      of_[a].push_back(b);
      of_[b].push_back(a);
    }
    for (auto& list : of_) {
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
    }
  }

  const std::vector<std::size_t>& of(std::size_t b) const { return of_.empty() ? none_ : of_[b]; }

 private:
  std::vector<std::vector<std::size_t>> of_;
  std::vector<std::size_t> none_;
};

// The conflicts of a buffer among those inserted so far; linear memory. Buffers without bytes conflict with nobody.
class Neighbours {
 public:
  Neighbours(const Columns& columns, const Facts& facts)
      : columns_(columns),
        extra_(columns, facts),
        alive_(columns.start, columns.end),
        inserted_(columns.size.size(), false) {}

  void insert(std::size_t b) {
    if (columns_.size[b] == 0) return;
    inserted_[b] = true;
    alive_.insert(b);
  }

  template <class Visit>
  void for_each(std::size_t b, Visit&& visit) const {
    if (columns_.size[b] == 0) return;
    alive_.for_each_alive(columns_.start[b], columns_.end[b], [&](std::size_t c) {
      if (c != b) visit(c);
    });
    for (const std::size_t c : extra_.of(b))
      if (inserted_[c]) visit(c);
  }

 private:
  const Columns& columns_;
  ExtraConflicts extra_;
  IntervalIndex alive_;
  std::vector<bool> inserted_;
};

// All conflicts as sorted lists: quadratic memory at worst, for the methods that walk them again and again.
inline std::vector<std::vector<std::uint32_t>> conflict_lists(const Columns& columns, const Facts& facts) {
  Neighbours neighbours(columns, facts);
  const std::size_t n = columns.size.size();
  std::vector<std::vector<std::uint32_t>> lists(n);
  for (std::size_t b = 0; b < n; ++b) {
    neighbours.for_each(b, [&](std::size_t c) {
      lists[b].push_back(static_cast<std::uint32_t>(c));
      lists[c].push_back(static_cast<std::uint32_t>(b));
    });
    neighbours.insert(b);
  }
  for (auto& list : lists) std::sort(list.begin(), list.end());
  return lists;
}

// How many conflicts each buffer has, without listing those in time. Time O(n log n + facts).
inline std::vector<std::int64_t> conflict_counts(const Columns& columns, const Facts& facts) {
  const ExtraConflicts extra(columns, facts);
  std::vector<std::int64_t> starts, ends;
  for (std::size_t b = 0; b < columns.size.size(); ++b)
    if (columns.size[b] > 0) {
      starts.push_back(columns.start[b]);
      ends.push_back(columns.end[b]);
    }
  std::sort(starts.begin(), starts.end());
  std::sort(ends.begin(), ends.end());
  std::vector<std::int64_t> counts(columns.size.size(), 0);
  for (std::size_t b = 0; b < counts.size(); ++b) {
    if (columns.size[b] == 0) continue;
    const auto begun = std::lower_bound(starts.begin(), starts.end(), columns.end[b]) - starts.begin();
    const auto gone = std::upper_bound(ends.begin(), ends.end(), columns.start[b]) - ends.begin();
    counts[b] = begun - gone - 1 + static_cast<std::int64_t>(extra.of(b).size());
  }
  return counts;
}

}  // namespace modelplan
