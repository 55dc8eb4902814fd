// Orders that cost next to nothing: each a valid order of all operators, none of them with a promise on its peak.
#pragma once

#include "array.hpp"
#include "schedule/schedule_instance.hpp"

namespace modelplan::schedule {

// The given numbering where it is topological, else the smallest ready number first.
Array<int> file_order(const ScheduleInstance& instance);

// Depth-first from each source in turn, finished operators put in front: a branch runs to its join before the next
// starts.
Array<int> reverse_post_order(const ScheduleInstance& instance);

// The ready operator with the most bytes freed less bytes defined, then the most successors, then the newest.
// Source: XLA, hlo_memory_scheduler.cc (list rule).
Array<int> list_order(const ScheduleInstance& instance);

// Post-order from the results, the operand with the most extra users first, then the largest operands in total.
// Source: XLA, hlo_memory_scheduler.cc (depth-first rule).
Array<int> depth_first_order(const ScheduleInstance& instance);

// Post-order from the results, operands as given. Source: XLA, hlo_memory_scheduler.cc (post-order rule).
Array<int> post_order(const ScheduleInstance& instance);

// Always a ready operator that needs at most `limit` and leaves the fewest bytes alive, ties at random; nothing when
// there is none.
Array<int> tied_order(const ScheduleInstance& instance, Bytes limit, unsigned seed);

}  // namespace modelplan::schedule
