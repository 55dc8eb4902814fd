// Packing of rigid groups: each holds segments of bytes with lives of their own at fixed distances from each other.
//
//   address                        group A: three segments, which die one after the other
//      ^   +-----+
//      |   |  A3 |-----------+      group B: segments that are born one after the other, and slide into
//      |   |  A2 |-----+             the place that A leaves, at one distance for all
//      |   |  A1 |   +-+---- B1
//      +----------------------------> step
//
// Two groups may stand at a distance if no two segments that live together share a byte, but for what a *stand* grants:
// in one step an operator writes over what it has read, if its output starts low enough.
#pragma once

#include <cstdint>

#include "array.hpp"

namespace modelplan {

struct Segments {
  Ints group, lo, hi, start, end;
};

// In `step`, a group `over` may be written by group `by` if base(by) - base(over) <= bound, or == bound where exact.
struct Stands {
  Ints over, by, step, bound, exact;
};

struct Packed {
  Array<std::int64_t> bases;
  std::int64_t height = 0, bound = 0, tries = 0;
  bool cancelled = false;
};

struct PackOptions {
  std::int64_t tries = 0, seed = 0, enough = 0;
  double seconds = 0;
  bool (*interrupted)(std::int64_t) = nullptr;
};

// The lowest packing found. Groups without segments stand at 0. `fixed` is a base for each group or -1.
Packed pack_groups(std::int64_t groups, const Segments& segments, const Stands& stands, Ints alignment, Ints fixed,
                   const PackOptions& options);

// No packing is lower: the live bytes of the worst step, less what its stands may share.
std::int64_t group_load(const Segments& segments, const Stands& stands);

}  // namespace modelplan
