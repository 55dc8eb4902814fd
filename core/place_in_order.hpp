// Greedy placement: take the buffers in a given order, put each into a gap between those already placed.
#pragma once

#include <cstdint>

#include "problem.hpp"

namespace modelplan {

// How a gap [lo, hi) is chosen; `from` is where a buffer would start in it, lo rounded up to its alignment.
enum class Fit {
  kLowest,    // the lowest gap that is large enough
  kTightest,  // the least hi - from, the lowest of equal ones; on top when there is no gap
  kWidest,    // the greatest hi - from, the lowest of equal ones; on top when there is no gap
  kRaw,       // the least hi - lo although the padding cannot be used (Vela's greedy)
  kMixed,     // like kTightest, but what later gaps must beat is hi - lo (TFLite's arena, IREE)
};

// Throws std::invalid_argument unless `order` names each of the `n` buffers once.
void require_permutation(Ints order, std::size_t n);

// Places pinned buffers at their pins first (in order), then the others in `order`, each by `fit`.
//
//   address ^      +---------+
//           |  gap | blocked |      a conflict already placed blocks [lo, hi); candidates are the ends
//           |      +----+----+      of what is blocked so far, rounded up to the buffer's alignment
//           +-------------------> steps
//
// Time O(n log n + n k log k) for k conflicting buffers placed before, memory O(n + facts).
// Throws std::invalid_argument when `order` is no permutation.
Array<std::int64_t> place_in_order(const Problem& problem, Ints order, Fit fit);

}  // namespace modelplan
