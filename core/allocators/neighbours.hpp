// Who must not share bytes with whom: lifetimes that meet and the extra conflicts, as one relation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "interval_index.hpp"
#include "problem.hpp"

namespace modelplan {

// Symmetric lists of the extra conflicts: each pair once, none that meets in time anyway, none with a buffer without
// bytes.
class ExtraConflicts {
 public:
  explicit ExtraConflicts(const Problem& problem) {
    if (problem.left.empty()) return;
    of_.resize(problem.count());
    for (std::size_t i = 0; i < problem.left.size(); ++i) {
      const auto a = as_size(problem.left[i]), b = as_size(problem.right[i]);
      if (a == b || problem.size[a] == 0 || problem.size[b] == 0 || meet_in_time(problem, a, b)) continue;
      of_[a].push_back(b);
      of_[b].push_back(a);
    }
    for (auto& list : of_) list = distinct(std::move(list));
  }

  const Array<std::size_t>& of(std::size_t b) const { return of_.empty() ? none_ : of_[b]; }

 private:
  Array<Array<std::size_t>> of_;
  Array<std::size_t> none_;
};

// The conflicts of a buffer among those inserted so far; linear memory. Buffers without bytes have no conflicts.
class Neighbours {
 public:
  explicit Neighbours(const Problem& problem)
      : problem_(problem), extra_(problem), alive_(problem.start, problem.end), inserted_(problem.count(), false) {}

  void insert(std::size_t b) {
    if (problem_.size[b] == 0) return;
    inserted_[b] = true;
    alive_.insert(b);
  }

  template <class Visit>
  void for_each(std::size_t b, Visit&& visit) const {
    if (problem_.size[b] == 0) return;
    alive_.for_each_alive(problem_.start[b], problem_.end[b], [&](std::size_t c) {
      if (c != b) visit(c);
    });
    for (const std::size_t c : extra_.of(b))
      if (inserted_[c]) visit(c);
  }

  const Array<std::size_t>& extra(std::size_t b) const { return extra_.of(b); }

 private:
  const Problem& problem_;
  ExtraConflicts extra_;
  IntervalIndex alive_;
  Array<bool> inserted_;
};

// All conflicts as sorted lists: quadratic memory at worst, for the methods that walk them again and again.
inline Array<Array<std::uint32_t>> conflict_lists(const Problem& problem) {
  Neighbours neighbours(problem);
  const std::size_t n = problem.count();
  Array<Array<std::uint32_t>> lists(n);
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
inline Array<std::int64_t> conflict_counts(const Problem& problem) {
  const ExtraConflicts extra(problem);
  Array<std::int64_t> starts, ends;
  for (std::size_t b = 0; b < problem.count(); ++b)
    if (problem.size[b] > 0) {
      starts.push_back(problem.start[b]);
      ends.push_back(problem.end[b]);
    }
  std::ranges::sort(starts);
  std::ranges::sort(ends);
  Array<std::int64_t> counts(problem.count(), 0);
  for (std::size_t b = 0; b < counts.size(); ++b) {
    if (problem.size[b] == 0) continue;
    const std::size_t begun = count_below(starts, problem.end[b]), gone = count_below(ends, problem.start[b] + 1);
    counts[b] = static_cast<std::int64_t>(begun - gone - 1 + extra.of(b).size());
  }
  return counts;
}

}  // namespace modelplan
