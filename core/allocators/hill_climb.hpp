// Vela's hill climb: reorder what the highest buffer rests on, place everything anew, keep what is no worse.
#pragma once

#include <cstdint>

#include "allocators/objects.hpp"
#include "array.hpp"
#include "stopping.hpp"

namespace modelplan {

struct ClimbOptions {
  std::int64_t load;        // the most bytes alive at once: reaching it ends the search
  std::int64_t limit;       // go on beyond the usual patience while the height is above this
  std::int64_t most_steps;  // reorderings
  std::int64_t most_work;   // pairs of conflicting buffers looked at
  double seconds;           // and whether someone cancels is asked together with the clock
  Cancelled cancelled;
  bool restore;     // after a rejected step, go on from the best placement and not from the broken-off one
  Ints randomness;  // the state of Python's generator: the original's is that of random.seed(1)
};

struct ClimbResult {
  Array<std::int64_t> offsets;  // empty when it was cancelled in the first pass
  std::int64_t steps;
  Ended ended;  // kBudget: `most_steps` or `most_work` ran out
};

// Starts with `order`. Sizes are at least 1; records come in any order.
// Time O(work), memory O(n).
ClimbResult climb(const Records& records, Ints alignment, Ints order, const ClimbOptions& options);

}  // namespace modelplan
