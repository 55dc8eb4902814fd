// The plateau dive: one placement of any instance in near-linear time, from the bottom up.
//
// What is placed forms a skyline of plateaus; the next buffer goes where the load still to come, on top of the
// plateau, reaches highest:
//
//        level                    __ remaining load
//     +-----+            . . . . |  |
//     |     +---------+  .  +----+--+--+
//     |     |  valley |  .  |          |   plateaus [first, last) of sections
//   --+-----+---------+-----+----------+--
#pragma once

#include "array.hpp"
#include "packing_instance.hpp"
#include "stopping.hpp"

namespace modelplan::solver {

// Offsets in units per item; empty when the meter ran out. The instance must have no pins; overlap facts are
// not made use of. Cost: O(n log n) steps for n items, O(n) memory.
Array<Bytes> plateau_dive(const PackingInstance& instance, Meter& meter);

}  // namespace modelplan::solver
