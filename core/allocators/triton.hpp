// Triton's shared-memory allocation: split slots for first offsets, then colour and bump until nothing interferes.
//
// Source: triton-lang/triton, lib/Analysis/Allocation.cpp (computeOffsets, calculateStarts, buildInterferenceGraph,
// allocate).
#pragma once

#include <cstdint>

#include "problem.hpp"

namespace modelplan::triton {

struct Plan {
  Array<std::int64_t> offsets;
  std::int64_t passes = 0;  // rounds of colouring and bumping; at least one
};

//   address ^   +-----------+            a buffer placed in a slot splits it in three: the time both share above it,
//           |   |   above   |            and the sides, which overlap the buffer on purpose: the second part of the
//           |  side [buffer] side        method repairs what lands there
//           +------------------> steps
//
// `order` is the order in which buffers are tried (the original: size descending, stable). Time O(n log n) for
// each slot looked at and a few passes over all pairs; memory O(n + interfering pairs).
Plan place(const Problem& problem, Ints order);

}  // namespace modelplan::triton
