// MiniMalloc's question: do these buffers fit below a capacity? A canonical branch and bound, complete.
//
// Source: Michael D. Moffitt, MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine Learning,
// ASPLOS 2023, doi 10.1145/3623278.3624752; google/minimalloc.
#pragma once

#include <cstdint>
#include <string>

#include "problem.hpp"
#include "stopping.hpp"

namespace modelplan::minimalloc {

// The nine inference rules. None changes the answer, only the number of nodes.
struct Rules {
  bool canonical_only = true;         // generate each packing once, bottom up
  bool section_inference = true;      // floor + remaining bytes of a section must stay below the capacity
  bool dynamic_ordering = true;       // candidates by their lowest offset, not by the preorder alone
  bool check_dominance = true;        // skip a candidate under which another would still fit
  bool unallocated_floor = true;      // a section's floor is at least the lowest offset of its unplaced buffers
  bool static_preordering = true;     // break ties by the preorder, not by the buffer's index
  bool dynamic_decomposition = true;  // solve parts that no unplaced buffer joins one by one
  bool monotonic_floor = true;        // every floor is at least the offset placed last
  bool hatless_pruning = true;        // a placed buffer without unplaced neighbours is not to blame
};

struct Answer {
  Ended ended = Ended::kComplete;  // kComplete: feasible, `offsets` holds a packing
  Array<std::int64_t> offsets;     // empty unless feasible
  std::int64_t steps = 0;          // nodes of all rounds
};

// Each of `orders` is a string over ACLOTUWZ, most significant key first, all descending: area, number of sections,
// start, number of overlaps, heaviest section, end, duration, size. With several orders they take turns with a node
// limit of 2n that doubles each round; with one there is no limit but `limits`.
//
// Honours alignments and pins; knows no facts about pairs. Time exponential at worst; memory O(n + sections + pairs
// of overlapping buffers). Throws std::invalid_argument on an unknown key or an empty list of orders.
Answer decide(const Problem& problem, std::int64_t capacity, const Array<std::string>& orders, const Rules& rules,
              const Limits& limits);

}  // namespace modelplan::minimalloc
