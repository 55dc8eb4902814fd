// How much is alive at each step? Add to a range of steps, ask for the greatest sum and where it is reached first.
#pragma once

#include <algorithm>

#include "load_tree.hpp"

namespace modelplan {

// Kept at the distinct starts alone: between two starts the sum can only fall, so its maximum is at one of them.
class StepLoads {
 public:
  explicit StepLoads(Ints start) : steps_(distinct(start)), loads_(Array<std::int64_t>(steps_.size(), 0)) {}

  void add(std::int64_t from, std::int64_t until, std::int64_t amount) {
    loads_.add(place_of(from), place_of(until), amount);
  }
  std::int64_t most() const { return steps_.empty() ? 0 : loads_.peak().load; }
  // The first step at which most() is reached; there must be at least one start.
  std::int64_t first_peak() const { return steps_[loads_.peak().place]; }

 private:
  static Array<std::int64_t> distinct(Ints start) {
    Array<std::int64_t> steps(start.begin(), start.end());
    std::sort(steps.begin(), steps.end());
    steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
    return steps;
  }

  std::int32_t place_of(std::int64_t step) const {
    return static_cast<std::int32_t>(std::lower_bound(steps_.begin(), steps_.end(), step) - steps_.begin());
  }

  Array<std::int64_t> steps_;
  LoadTree loads_;
};

}  // namespace modelplan
