// MindSpore's SOMAS: blocks of contiguous tensors into horizontal bands, by one order, one fit and one block rule.
//
// Source: mindspore-ai/mindspore, mindspore/ccsrc/backend/common/somas/somas_solver_{pre,alg,core}.cc.
#pragma once

#include <cstdint>

#include "problem.hpp"

namespace modelplan::somas {

enum class Gap {
  kBest,      // the gap that leaves least, then the lowest
  kSmallest,  // the lowest gap, then the one that leaves least
};

enum class Blocks {
  kMany,    // "shared objects": a band is as high as its first block; what fits in no band opens a new one
  kSingle,  // one open band
};

struct Rule {
  Gap gap = Gap::kBest;
  Blocks blocks = Blocks::kMany;
  bool same_gap = false;  // the original gives every band after the first the best gap, whatever was asked for
};

// Buffers that share one address (unions) form a node, nodes that must touch (contiguous lists) a block.
// `node[b]` and `block[node]` are numbered 0, 1, ... without holes; a block holds its nodes in the order of `chain`,
// which lists all nodes. Every size is a multiple of `unit` already, so every offset is one too.
struct Blocking {
  Ints node, block, chain;
};

//   bytes ^ +-----------------+ open end
//         | | band 2          |
//         | +----+-----+------+ base of band 2 = base of band 1 + its first block
//         | | 1st|     | gap  |
//         | +----+--+--+------+ base of band 1
//         +-------------------> steps
//
// Places blocks in `order` (of blocks). Time O(n (bands + k log k)), memory O(n + facts).
Array<std::int64_t> place(const Problem& problem, const Blocking& blocking, Ints order, const Rule& rule);

}  // namespace modelplan::somas
