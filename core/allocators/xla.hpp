// XLA's heap simulator: decreasing best fit with colocations, its constrained and fast variants, and the repacker.
//
// Source: openxla/xla, xla/service/heap_simulator/heap_simulator.cc and memory_space_assignment/best_fit_repacker.cc.
#pragma once

#include <cstdint>

#include "problem.hpp"

namespace modelplan::xla {

// `group[b]` names the colocation of buffer b: members share one offset. Groups are numbered 0, 1, ... without holes.
using Groups = Ints;

enum class Commit {
  kLargest,  // a colocation occupies its largest member's bytes throughout (heap simulator)
  kOwn,      // each member occupies its own bytes over its own life (repacker)
};

// Places groups in `order` (of groups), each in the smallest free chunk that is large enough, the lowest of equal ones.
// With a `limit` (-1: none) a group that would end above it waits for the next heap unless its heap is still empty;
// heaps lie end to end. Time O(n log n + n k log k), memory O(n + facts).
Array<std::int64_t> best_fit(const Problem& problem, Groups group, Ints order, Commit commit, std::int64_t limit);

// Places buffers by start (then size descending): frees what has ended, then takes the smallest usable chunk. Chunks
// start at multiples of one alignment. Time O(n log n), memory O(n).
Array<std::int64_t> fast_merge(const Problem& problem, std::int64_t alignment);

}  // namespace modelplan::xla
