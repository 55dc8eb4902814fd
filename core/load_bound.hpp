// The load bound: no placement is lower than what is alive at once.
#pragma once

#include <cstdint>

#include "problem.hpp"

namespace modelplan {

struct LoadBound {
  std::int64_t bytes = 0;
  std::int64_t step = 0;  // where it is reached first
};

// With g the greatest common divisor of all alignments, every offset is a multiple of g, so at each step all live
// buffers but the topmost count rounded up to g, and the topmost may be the one with the most padding. Bytes that two
// live buffers are allowed to share are subtracted. Time O(n log n), and linear in the meetings of each moment; memory
// O(n).
LoadBound load_bound(const Problem& problem);

}  // namespace modelplan
