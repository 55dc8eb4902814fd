// Which bytes are alive when: accesses to groups of values become lives of runs of bytes, and these a packing problem.
#pragma once

#include <utility>

#include "../problem.hpp"

namespace modelplan::rows {

// Bytes [lo, hi) of a group, read or written at a step.
struct Access {
  std::size_t group;
  Bytes lo, hi;
  std::int64_t step;
  bool writes;
};

// Bytes [lo, hi) of a group that hold a value from step `start` to before step `end`.
struct LiveBytes {
  std::size_t group;
  Bytes lo, hi;
  std::int64_t start, end;
};

// In `step` group `by` may be written over group `over` while that is read: base(by) - base(over) is at most `bound`,
// or equal to it where it is `exact`.
struct AllowedOverlap {
  std::size_t over, by;
  std::int64_t step;
  Bytes bound;
  bool exact;
};

// The lifetimes of all bytes, one for each longest run of bytes of a lifetime, by group and place. A byte lives from a
// write until its last read before the next one, or for its writer's step alone; what is read first came at step -1.
// Time: for each access the runs that it touches.
Array<LiveBytes> byte_lives(Array<Access> accesses);

// Runs (new, old, least, most) that may share bytes in the step in which one is written and the other read for the last
// time, as meetings of a problem whose first `groups` buffers stand for the groups.
struct Meeting {
  std::int64_t first, second, least, most;
};
Array<Meeting> meetings_of(const Array<LiveBytes>& lives, std::size_t groups, const Array<AllowedOverlap>& overlaps);

// Pairs (working buffer, run): a buffer at one of `steps` shares no byte with runs of a value that is alive then as a
// whole, though those bytes be dead. Ascending, each once.
Array<std::pair<std::size_t, std::size_t>> dead_runs_apart(const Array<LiveBytes>& runs,
                                                           const Array<std::int64_t>& steps,
                                                           const Array<LiveBytes>& values);

// The most bytes that are alive in a step and in the next one: of those no two meet, so no packing needs less.
Bytes lasting_bytes(const Array<LiveBytes>& lives);

// A packing problem of groups: an empty buffer at the base of each, with its alignment, then one for each run. Its
// steps count from the caller's.
struct GroupProblem {
  GroupProblem(const Array<LiveBytes>& lives, const Array<std::int64_t>& alignment,
               const Array<AllowedOverlap>& overlaps);

  Problem problem() const;

  Array<std::int64_t> size, start, end, alignment, pin, member, group, delta, first, second, least, most;
  Array<std::int64_t> left = {}, right = {};  // conflicts
};

}  // namespace modelplan::rows
