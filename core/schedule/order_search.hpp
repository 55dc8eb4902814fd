// The exact search: best-first over the sets of executed operators, the one with the lowest label next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "array.hpp"
#include "schedule/schedule_instance.hpp"
#include "stopping.hpp"

namespace modelplan::schedule {

// Rules that cut the search down without changing the answer; each can be switched off (for tests).
struct Rules {
  // A ready operator that fits under the label and does not raise the live bytes runs at once.
  bool free_move = true;
  // The same for a short path under the label to a set no heavier than this one and than any set between them.
  bool macro_move = true;
  // The same from the last committed set; all other states are dropped.
  bool commit = true;
  // An operator comparable to all others splits the order (applied by the caller, see parts.hpp).
  bool segment = true;
  // Once a search grows, the flow bound of a few critical operators beyond each set raises its label.
  bool look_ahead = true;
};

struct SearchLimits {
  Bytes floor = 0;                                        // the labels start here: what is below is free
  Bytes ceiling = std::numeric_limits<Bytes>::max() / 4;  // no state above is kept
  std::size_t states = 5'000'000;
  std::size_t memory = std::size_t{1} << 30;
  std::int64_t look_ahead_after = 2'000;  // states that the search handles before it looks ahead
};

struct SearchResult {
  Verdict verdict = Verdict::kUnknown;
  Array<int> order;                // when feasible
  Bytes peak = 0;                  // of that order
  Bytes proven = 0;                // no order of all operators has a peak below this, unless it is the floor
  std::int64_t states = 0;         // handled
  Ended ended = Ended::kComplete;  // when unknown, why
};

// Feasible: an order whose peak is at most max(the least peak, floor). Infeasible: every order exceeds the ceiling.
SearchResult search(const ScheduleInstance& instance, const Rules& rules, const SearchLimits& limits, Meter& meter);

}  // namespace modelplan::schedule
