// The solver's contract: a problem in, offsets and a bound out. docs/solver.md explains the algorithm.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "problem.hpp"
#include "verdict.hpp"

namespace modelplan::solver {

using Id = std::int32_t;

// Inference rules, each of which may be switched off without changing any optimum (for tests).
struct Rules {
  bool section_check = true;     // a section needs a buffer that can still be its lowest
  bool single_candidate = true;  // if only one can, the others lie above it
  bool support = true;           // an offset that nothing placed holds up is lifted at once
  bool twins = true;             // equal buffers are placed in order
  bool backjump = true;          // a failure skips decisions that it does not depend on
  bool pin_jump = true;          // a buffer that cannot stay below a pin starts above it
  bool stacked_sizes = true;     // sizes are rounded to what the neighbours' alignments leave
  bool joins = true;             // where no byte is to spare, what fits edge to edge is tried as one
  bool unit_scaling = true;      // coordinates are counted in their greatest common divisor
};

struct Progress {
  Bytes height, bound;
  std::int64_t steps;
};

struct Options {
  Bytes capacity = -1;                        // the height asked for; -1: none
  std::int64_t steps = 0;                     // step budget; 0: none
  double seconds = 0;                         // deadline; 0: none
  const std::atomic<bool>* cancel = nullptr;  // polled during all long work
  std::uint64_t seed = 0;
  int threads = 1;       // the answer to a step budget does not depend on it
  bool minimize = true;  // with a capacity: go on below it once it fits
  Rules rules;
  std::function<void(const Progress&)> progress;  // called from the calling thread only

  bool decides() const { return capacity >= 0 && !minimize; }  // whether the capacity can be met, and no more
};

struct Result {
  Array<Bytes> offsets;  // empty only when the pins exclude every placement
  Bytes height = 0;
  Bytes bound = 0;  // no placement is lower than this
  Ended ended = Ended::kBudget;
  std::int64_t steps = 0;  // work done, in thousands of buffers looked at
  std::int64_t nodes = 0;  // placements tried by the searches
};

// The problem must have no conflicts beyond its lifetimes.
// Throws std::invalid_argument naming the first buffer or overlap that makes no sense.
Result solve(const Problem& problem, const Options& options);

}  // namespace modelplan::solver
