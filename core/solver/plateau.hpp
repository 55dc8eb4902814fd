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

#include <cstdint>

#include "array.hpp"
#include "packing_instance.hpp"
#include "stopping.hpp"

namespace modelplan::solver {

// How a dive chooses among the items that fit.
struct DiveRule {
  int looks = 64;              // items that are compared
  bool valleys_first = false;  // what lies lower beside a plateau is filled before anything is put on it, unless one
                               // item covers it; else narrower and narrower items are stacked on it first
  double low = 0;              // sections whose load is less than the highest by this share of it
  double low_weight = 1;       // count so much in the width of an item
  double noise = 0;            // share by which a width may be misjudged
  std::uint64_t seed = 0;      // of the noise
};

// Offsets in units per item; empty when the meter ran out. The instance must have no pins; overlap facts are
// not made use of. Cost: O(n log n) steps for n items, O(n) memory.
Array<Bytes> plateau_dive(const PackingInstance& instance, const DiveRule& rule, Meter& meter);

// One of many rules that are good where thousands of buffers are alive at once; the first nine have no noise.
DiveRule varied_dive(std::uint64_t number, std::uint64_t seed);

}  // namespace modelplan::solver
