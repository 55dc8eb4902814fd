// The portfolio: which methods run on an instance, in what order, on what share of the work, until the best
// height meets the bound or the budget ends.
//
// Work is cut into tasks, and lists of these are handed out to the lanes in their order. The tasks of a list see the
// same best height and bound, and what they found is merged in their order, so the answer to a step budget is the same
// for one lane and for two.
#pragma once

#include <limits>

#include "array.hpp"
#include "packing_instance.hpp"

namespace modelplan::solver {

// What is known so far; heights in bytes, offsets in units per item.
struct State {
  Array<Bytes> offsets;
  Bytes height = std::numeric_limits<Bytes>::max();
  Bytes bound = 0;
  std::int64_t work = 0;
  std::int64_t nodes = 0;

  // Takes a placement if it is lower than the best so far; whether it was.
  bool keep(const PackingInstance& instance, Array<Bytes> placement);
  // The height at which nothing is left to do.
  Bytes goal(const Options& options) const { return options.decides() ? std::max(options.capacity, bound) : bound; }
  // Whether that is reached or, where only the capacity is asked for, proved to be out of reach.
  bool is_answered(const Options& options) const {
    return height <= goal(options) || (options.decides() && bound > options.capacity);
  }
  std::int64_t work_left(const Options& options) const {
    return options.steps > 0 ? options.steps * 1000 - work : kUnlimited;
  }
  std::int64_t steps() const { return (work + 999) / 1000; }
  void report(const Options& options) const {
    if (options.progress) options.progress({height, bound, steps()});
  }
};

// Improves the state until the question is answered, the budget is used up, or the signal stops it.
template <class Coord>
void run_portfolio(const PackingInstance& instance, const Options& options, const StopSignal& signal, State& state);

extern template void run_portfolio<std::int32_t>(const PackingInstance&, const Options&, const StopSignal&, State&);
extern template void run_portfolio<std::int64_t>(const PackingInstance&, const Options&, const StopSignal&, State&);

}  // namespace modelplan::solver
