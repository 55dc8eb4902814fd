// The placement problem: where to put buffers so that no two that are alive together share a byte.
#pragma once

#include "array.hpp"

namespace modelplan {

// Columns with one entry for each buffer, and facts about pairs of buffers. Owned by the caller.
//
// Row k of the groups: buffer `member[k]` stands `delta[k]` bytes above the base of group `group[k]`.
//
// Meeting k allows buffers `first[k]` and `second[k]` to share bytes while both are alive where
// least[k] <= first.offset - second.offset <= most[k].
//
// Overlap k allows buffer `below[k]` to reach up to `bytes[k]` into the start of `above[k]` while both are alive:
//
//      |---- above ----|            below.offset + below.size - bytes <= above.offset
//   |- below -|                     (else the two are disjoint as usual)
//      <-----> bytes
struct Problem {
  Ints size, start, end;  // bytes and half-open steps
  Ints alignment;         // at least 1
  Ints pin;               // the offset that it must have, -1 when free

  Ints below = {}, above = {}, bytes = {};              // overlaps
  Ints left = {}, right = {};                           // conflicts: pairs apart in time that share no byte either
  Ints member = {}, group = {}, delta = {};             // buffers at fixed distances from each other
  Ints first = {}, second = {}, least = {}, most = {};  // meetings

  std::size_t count() const { return size.size(); }
};

inline bool meet_in_time(const Problem& problem, std::size_t a, std::size_t b) {
  return problem.start[a] < problem.end[b] && problem.start[b] < problem.end[a];
}

}  // namespace modelplan
