// Beam search: of all sets with the same number of executed operators, keeps the few with the lowest label, then those
// with the fewest live bytes.
#pragma once

#include "array.hpp"
#include "schedule/schedule_instance.hpp"
#include "stopping.hpp"

namespace modelplan::schedule {

// An order with a peak below `ceiling`, or nothing. Labels below `floor` count as equal. A wider beam is not always
// better. Cost: O(ops * width * ready operators * degree).
Array<int> beam_order(const ScheduleInstance& instance, int width, Bytes floor, Bytes ceiling, Meter& meter);

}  // namespace modelplan::schedule
