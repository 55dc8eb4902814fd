// A search in the style of TelaMalloc: a heuristic proposes one placement at a time, a propagation engine judges it and
// names the placements behind a failure. The paper's own program is not public; see telamalloc.py of the package.
//
// Source: Maas, Beaugnon, Chauhan and Ilbeyi, TelaMalloc: Efficient On-Chip Memory Allocation for Production Machine
// Learning Accelerators, ASPLOS 2023, doi 10.1145/3567955.3567961.
#pragma once

#include <cstdint>

#include "allocators/telamalloc_policy.hpp"
#include "problem.hpp"
#include "stopping.hpp"

namespace modelplan::telamalloc {

// The parts of the search that can be switched off.
struct Options {
  bool phases = true;            // one phase of contending buffers at a time; otherwise all of them
  bool smart_backtracks = true;  // jump to a culprit; otherwise one decision back
  bool priorities = true;        // try first what failed last, at the point returned to
  std::int64_t stuck_after = 8;  // returns to the same depth before jumping further

  const Trees* trees = nullptr;    // choose the point to return to,
  std::int64_t learned_after = 0;  // after so many major backtracks by the culprits alone
  std::int64_t record_most = 0;    // major backtracks kept in the answer, at most,
  std::int64_t record_every = 1;   // and the distance between two of them
};

// A major backtrack as a teacher of the trees needs it: the decisions in their order, and what the trees see of each.
struct Record {
  Array<std::int64_t> buffers, offsets;
  Array<Features> features;
};

struct Answer {
  Ended ended = Ended::kBudget;       // kBudget: gave up or ran out of steps; kInfeasible only when the root says so
  Array<std::int64_t> offsets;        // empty unless feasible
  std::int64_t steps = 0;             // placements tried, and a part of the pairs looked at
  std::int64_t minor = 0, major = 0;  // backtracks
  Array<Record> records;
};

// The phase of each buffer: 0 crosses the time of highest contention, 1 that of what is left, and so on. Each phase
// takes the longest run of steps around the peak in which at least 9/10 of the peak's bytes are alive.
Array<std::size_t> phases(const Problem& problem);

// Looks for a placement within `capacity`. Incomplete. Memory O(n + pairs in conflict).
Answer decide(const Problem& problem, std::int64_t capacity, const Options& options, const Limits& limits);

}  // namespace modelplan::telamalloc
