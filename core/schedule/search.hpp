// The exact search: best-first over the sets of executed operators, on the highest transient so far.
//
// Five rules cut it down without changing the answer; each can be switched off.
//  F  free move: a ready operator that fits under the label and does not raise the live bytes runs at once.
//  M  macro free move: a short path under the label to a set no heavier than this one, and no heavier than any between.
//  C  commit: the same from the last committed set; all other states are dropped.
//  L  look ahead: once a search grows, the flow bound of a few critical operators beyond each set raises its label.
//  S  segment: an operator comparable to all others splits the order (applied by the caller: parts.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "schedule/instance.hpp"
#include "schedule/meter.hpp"

namespace modelplan::schedule {

struct Rules {
  bool free_move = true;
  bool macro = true;
  bool commit = true;
  bool segment = true;
  bool look_ahead = true;
};

struct SearchLimits {
  Bytes floor = 0;                                        // the labels start here: what is below is free
  Bytes ceiling = std::numeric_limits<Bytes>::max() / 4;  // no state above is kept
  std::size_t states = 5'000'000;
  std::size_t memory = std::size_t{1} << 30;
  std::int64_t look_ahead_after = 2'000;  // states that the search handles before rule L sets in
};

enum class End { solved, exhausted, stopped };

struct SearchResult {
  End end = End::stopped;
  std::vector<int> order;  // when solved
  Bytes peak = 0;          // when solved: the peak of the order
  // No order of all operators has a peak below this, unless it is the floor.
  Bytes proven = 0;
  std::int64_t states = 0;
  Stop why = Stop::none;  // when stopped
};

// Solved: an order whose peak is at most max(the least peak, floor). Exhausted: every order exceeds the ceiling.
SearchResult search(const Instance& instance, const Rules& rules, const SearchLimits& limits, Meter& meter);

}  // namespace modelplan::schedule
