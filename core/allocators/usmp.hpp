// Apache TVM's unified static memory planner: greedy stacking and hill climbing over conflict lists and pools.
//
// Source: apache/tvm at fb43fc85774b, src/tir/usmp/algo/{greedy,hill_climb}.cc (the planner was removed in 2025).
#pragma once

#include <cstdint>

#include "problem.hpp"
#include "stopping.hpp"

namespace modelplan::usmp {

// Pools in the order of preference; every buffer may go to every pool that `allowed` does not forbid.
struct Pools {
  Array<std::int64_t> limit;     // bytes, -1 without limit; at least one pool
  Array<Array<std::size_t>> of;  // per buffer its pools, in order; empty: all of them
};

struct Assignment {
  Array<std::int64_t> pool;  // -1 where no pool had room
  Array<std::int64_t> offset;
};

// `fixed` repairs the planner's quirks: the start, which the original rounds to the neighbour's alignment; the pool
// that comes back after it was ruled out; and the climb, which returns the plan accepted last and not the best one
// seen.

// For each buffer those it conflicts with, in the order in which they are looked at; the original takes such lists as
// given and enforces no symmetry. Empty: derived from lifetimes and problem.
using Lists = Array<Array<std::uint32_t>>;

// Stacks each buffer of `order` above all conflicts placed before it, in the first pool where that fits: gaps are
// never used. Time O(n k), memory O(n + facts).
Assignment greedy(const Problem& problem, const Lists& lists, Ints order, const Pools& pools, bool fixed);

struct ClimbResult {
  Assignment best;  // empty when it was cancelled before the first placement was complete
  std::int64_t attempts = 0;
  Ended ended = Ended::kComplete;
};

// At most `limits.steps` placements (the original: 500), each first fit in the current order, which changes by one
// swap; stops at `goal` bytes. `seed` is the start of glibc's rand_r (the original: 0).
// Time O(attempts n k log k), memory O(n + conflicts).
ClimbResult hill_climb(const Problem& problem, const Lists& lists, Ints order, std::int64_t goal, const Pools& pools,
                       bool fixed, const Limits& limits, std::uint32_t seed);

// glibc's rand_r: the next number, and the state moved on.
std::int32_t rand_r(std::uint32_t& state);

}  // namespace modelplan::usmp
