// A problem prepared for searching: sections instead of times, units instead of bytes, ids in time order.
//
// A section is a maximal set of buffers alive at once; others are subsets and hence implied. A buffer is a
// range [first, last) of sections and a size:
//
//        sections  0    1    2    3
//                 +---------+              first = 0, last = 2
//                 |    b    |  size
//                 +---------+
#pragma once

#include "array.hpp"
#include "solve.hpp"
#include "stopping.hpp"

namespace modelplan::solver {

// A fact as one of its two buffers sees it.
struct Fact {
  Id other;
  Bytes under;   // how far `other` starts above this buffer when this one lies below it
  Bytes over;    // how far this buffer starts above `other` when this one lies above it
  Bytes saving;  // bytes that the two may share at most
};

struct Item {
  Id first = 0, last = 0;
  Id original = 0;      // index in the caller's columns
  Id twin = -1;         // the next buffer with the same sections and size, or -1
  Bytes size = 0;       // units that it keeps a neighbour away when that one lies above it
  Bytes pad = 0;        // bytes of `size` beyond the real size: not needed at the very top
  Bytes alignment = 1;  // units
  Bytes pin = -1;       // units, or -1
};

struct PackingInstance {
  Bytes unit = 1;                 // bytes per unit; offsets and sizes below are in units
  Array<Item> items;              // by (first, -last, -size, original)
  Array<Id> starts;               // starts[s] = the first item whose first section is >= s; one more than sections
  Array<Bytes> load;              // per section: least height in units that its members need, pads included
  Array<Bytes> top_pad;           // per section: largest pad of a member
  Array<std::size_t> fact_begin;  // facts of item i: [fact_begin[i], fact_begin[i+1]); empty without facts
  Array<Fact> facts;
  Array<Id> apart;          // buffers of no size: they fit anywhere (caller's indices)
  std::int64_t width = 0;   // sum of last - first
  bool aligned = false;     // some alignment matters
  bool pinned = false;      // some buffer is pinned
  bool pins_clash = false;  // two pins exclude each other
  bool restricted = false;  // some placements are left out, so failing to find one proves nothing
  bool even_pads = true;    // all pads equal, so heights are multiples of unit, less the pad
  Bytes bound = 0;          // bytes; no placement is lower

  Id count() const { return static_cast<Id>(items.size()); }
  Id sections() const { return static_cast<Id>(load.size()); }
  bool has_facts() const { return !facts.empty(); }
  bool is_plain() const { return !aligned && !pinned && !has_facts(); }

  // The least distance from the offset of `below` to that of `above`, two conflicting items.
  Bytes distance(Id below, Id above) const {
    if (has_facts())
      for (auto k = fact_begin[below]; k < fact_begin[below + 1]; ++k)
        if (facts[k].other == above) return facts[k].under;
    return items[below].size;
  }

  Bytes top(Id i, Bytes offset) const {  // bytes
    const Item& item = items[i];
    return (offset + item.size) * unit - item.pad;
  }
  Bytes height(View<const Bytes> offsets) const;  // bytes, of a placement
  // The offsets in bytes, by the caller's indices; 0 for buffers of no size.
  Array<Bytes> caller_offsets(View<const Bytes> offsets) const;
  // The least height that is greater than `height` and possible for some placement.
  Bytes next_height(Bytes height) const;
};

// Throws std::invalid_argument naming the first buffer or fact that makes no sense.
void validate(const Problem& problem);

// The problem must be valid. Throws Interrupted when the poller does.
PackingInstance prepare(const Problem& problem, const Rules& rules, Poller& poller);

}  // namespace modelplan::solver
