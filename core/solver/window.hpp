// Repair of a placement where it is too high, one stretch of sections at a time; the rest stays as it is.
//
//       load  ____                 The core holds everything near the section that is too high. Its buffers are
//            /    \____            placed anew, free of what is around. Then the rest of the window fills in
//   ________/          \____       between the core and the buffers that cross the edge of the window, which
//   edge | flank | core | flank | edge      stay. The flanks carry less load, so there is room to adapt.
#pragma once

#include "array.hpp"
#include "packing_instance.hpp"
#include "stopping.hpp"

namespace modelplan::solver {

// Lowers the placement towards `height` bytes, window by window, until all windows were tried or the meter ran
// out. Returns whether it changed anything. The instance must have no facts and no pins.
bool repair_windows(const PackingInstance& instance, Bytes height, const Rules& rules, Array<Bytes>& offsets,
                    Meter& meter);

}  // namespace modelplan::solver
