// Vela's hill climb: reorder what the highest buffer rests on, place everything anew, keep what is no worse.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "allocators/objects.hpp"
#include "stop.hpp"

namespace modelplan {

struct Climb {
  std::int64_t load;        // the most bytes alive at once: reaching it ends the search
  std::int64_t limit;       // go on beyond the usual patience while the height is above this
  std::int64_t most_steps;  // reorderings
  std::int64_t most_work;   // pairs of conflicting buffers looked at
  double seconds;           // and whether someone cancels is asked together with the clock
  std::function<bool()> cancelled;
  bool restore;  // after a rejected step, go on from the best placement and not from the broken-off one
};

struct Climbed {
  std::vector<std::int64_t> offsets;  // empty when it was cancelled in the first pass
  std::int64_t steps;
  Ended ended;  // kBudget: `most_steps` or `most_work` ran out
};

// Starts with `order`; replays Python's random.seed(1). Sizes are at least 1; records stand in any order.
// Time O(work), memory O(n).
Climbed climb(const Records& records, Ints alignment, Ints order, const Climb& options);

}  // namespace modelplan
