// The order in which Glow's planner takes buffers: always from the step with the most bytes still to be placed.
#pragma once

#include <cstdint>

#include "allocators/objects.hpp"
#include "array.hpp"

namespace modelplan {

enum class Preference { kSize, kDuration };  // ties by the other one, then by number

// Time O(n log n + n k) for k buffers alive together.
Array<std::int64_t> most_live_first(const Records& records, Preference preference);

}  // namespace modelplan
