// Improves an order a little at a time: windows around the peak solved exactly, then single operators moved off the
// peak.
#pragma once

#include <vector>

#include "schedule/instance.hpp"
#include "schedule/meter.hpp"
#include "schedule/search.hpp"

namespace modelplan::schedule {

// An order whose (peak, steps at the peak, sum of squared transients) is no greater; stops at a peak of `enough`, when
// nothing nearby helps, or with the meter.
std::vector<int> improve_order(const Instance& instance, std::vector<int> order, Bytes enough, const Rules& rules,
                               Meter& meter);

}  // namespace modelplan::schedule
