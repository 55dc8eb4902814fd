// Shared objects: which block holds which buffer when a block holds one buffer at a time, at its start.
#pragma once

#include <cstdint>
#include <utility>

#include "problem.hpp"
#include "stopping.hpp"

namespace modelplan {

// Buffers of at least one byte in order of rising start, half-open lifetimes.
struct Records {
  Ints size, start, end;
};

// The r-th entry is the largest r-th size among the buffers alive at one step; their sum bounds all shared objects.
// Time O(n log n).
Array<std::int64_t> positional_maxima(const Records& records);

// For each buffer the rank of the first step that holds it when steps go by live bytes, greatest first.
// Time O(n log n).
Array<std::int64_t> breadth_ranks(const Records& records);

// Steps by live bytes, greatest first; each step's unassigned buffers by size: into the smallest clear object that
// covers them, else the largest that does not, else a new one. Time O(n objects log n) at worst.
Array<std::int64_t> share_by_breadth(const Records& records);

// Buffers by position among the positional maxima, then nearest in time to an object, then largest: into the nearest
// clear object, else a new one. Time O(n^2 + rescans), memory O(n).
Array<std::int64_t> share_by_distance(const Records& records);

struct FlowShare {
  Array<std::int64_t> holder;
  std::int64_t steps;  // arcs looked at
  Ended ended;         // not kComplete: the buffers not served by then have objects of their own
};

// Chains of buffers from a minimum-cost flow: a fresh object costs its size, taking over another's its growth.
// Steps are arcs. Time O(n^3) and worse, memory O(n).
FlowShare share_min_cost(const Records& records, const Limits& limits);

struct Stacked {
  Array<std::int64_t> holder, offset, sizes;  // the object of each buffer, its offset therein; bytes per object
};

// In `order`: the first object that is clear, at 0; else the first where the buffer fits above the highest it
// conflicts with; else a new object of its size, which never grows. Time O(n log n + n k).
Stacked stack_in_objects(const Records& records, Ints order, bool overlapping);

}  // namespace modelplan
