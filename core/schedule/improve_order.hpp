// Improves an order a little at a time: windows around the peak solved exactly, then single operators moved off the
// peak.
#pragma once

#include "array.hpp"
#include "schedule/order_search.hpp"
#include "schedule/schedule_instance.hpp"
#include "stopping.hpp"

namespace modelplan::schedule {

// An order whose (peak, steps at the peak, sum of squared transients) is no greater; stops at a peak of `enough`, when
// nothing nearby helps, or with the meter.
Array<int> improve_order(const ScheduleInstance& instance, Array<int> order, Bytes enough, const Rules& rules,
                         Meter& meter);

}  // namespace modelplan::schedule
