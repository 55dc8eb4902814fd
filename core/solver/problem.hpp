// The solver's contract: flat columns of int64 in, offsets and a bound out.
//
// A problem asks for an offset for every buffer such that two buffers alive at the same time share no byte,
// except as far as an overlap fact allows. Lifetimes are half open, sizes and offsets are bytes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace modelplan::solver {

using Bytes = std::int64_t;
using Id = std::int32_t;

// One column per property, all of the same length; `alignment` and `pin` may be empty (1 and -1 throughout).
//
// Fact k allows buffer `fact_below[k]` to reach up to `fact_bytes[k]` bytes into the start of `fact_above[k]`:
//
//      |---- above ----|            below.offset + below.size - bytes <= above.offset
//   |- below -|                     (else the two are disjoint as usual)
//      <-----> bytes
struct Problem {
  std::span<const Bytes> size, start, end, alignment, pin;
  std::span<const std::int64_t> fact_below, fact_above;
  std::span<const Bytes> fact_bytes;
  Bytes capacity = -1;  // -1: none
};

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

enum class Verdict { kFeasible, kInfeasible, kUnknown };
enum class Ended { kOptimal, kFits, kInfeasible, kSteps, kDeadline, kCancelled };

struct Progress {
  Bytes height, bound;
  std::int64_t steps;
};

struct Options {
  std::int64_t steps = 0;                     // step budget; 0: none
  double seconds = 0;                         // deadline; 0: none
  const std::atomic<bool>* cancel = nullptr;  // polled during all long work
  std::uint64_t seed = 0;
  int threads = 1;       // the answer to a step budget does not depend on it
  bool minimize = true;  // with a capacity: go on below it once it fits
  Rules rules;
  std::function<void(const Progress&)> progress;  // called from the calling thread only
};

struct Result {
  std::vector<Bytes> offsets;  // empty only when the pins exclude every placement
  Bytes height = 0;
  Bytes bound = 0;                      // no placement is lower than this
  bool proved = false;                  // height == bound
  Verdict verdict = Verdict::kUnknown;  // about the capacity; kFeasible without one
  Ended ended = Ended::kSteps;
  std::int64_t steps = 0;  // work done, in thousands of buffers looked at
  std::int64_t nodes = 0;  // placements tried by the searches
};

// Solves a problem; see docs/solver.md for the algorithm.
// Throws std::invalid_argument naming the first buffer or fact that makes no sense.
Result solve(const Problem& problem, const Options& options);

}  // namespace modelplan::solver
