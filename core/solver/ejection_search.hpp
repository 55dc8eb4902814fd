// Ejection search: looks for a placement under a given height by keeping a part of the buffers placed under it.
// A random buffer outside is put where nothing is in its way, or else where the buffers in its way have been hardest to
// place least often; those go outside. Which buffer lies on which is fixed, not their offsets: each placed buffer may
// still move between `low` and the height less what lies on it.
//
//   height ----------------
//          | above |           the buffers on top, pushed up
//          :       :
//          |  own  |           anywhere between
//          :       :
//          |  low  |           the buffers below, pushed down
//   floor  ----------------
#pragma once

#include "array.hpp"
#include "packing_instance.hpp"
#include "random.hpp"
#include "stopping.hpp"

namespace modelplan::solver {

template <class Coord>
class EjectionSearch {
 public:
  // For instances without alignments, pins and facts.
  EjectionSearch(const PackingInstance& instance, std::uint64_t seed) : instance_(instance), random_(seed) {}

  // Looks for a placement of at most `height` bytes until the meter is exhausted; goes on where it left off. Proves
  // nothing. Memory: linear in the buffers. A step costs one look at each placed buffer and at its sections.
  Verdict run(Bytes height, Meter& meter);
  Bytes offset(Id item) const { return low_[item]; }  // after kFeasible; units

 private:
  struct Edge {  // where the cost of an offset changes
    Coord at;
    std::int64_t change;
  };
  struct Spot {
    Coord offset;
    std::int64_t cost;  // of the buffers in the way
  };

  void start(Bytes height);
  void step(Meter& meter);
  void move_one(Meter& meter);
  Spot cheapest_spot(Id item, Meter& meter);
  void eject(Id item, Coord offset);
  void insert(Id item, Coord offset);
  void settle(Meter& meter);
  bool meet(const Item& a, const Item& b) const { return a.first < b.last && b.first < a.last; }
  Coord size(Id item) const { return static_cast<Coord>(instance_.items[item].size); }

  const PackingInstance& instance_;
  Random random_;
  Bytes bytes_ = -1;            // the height of the last run,
  Coord height_ = 0;            // and in units
  Array<Id> order_;             // placed buffers, each behind those below it
  Array<Id> outside_;           // the others
  Array<Coord> low_, above_;    // of placed buffers
  Array<std::int64_t> trials_;  // how often a buffer had to eject others, plus one
  Array<Coord> top_;            // per section, while the placed buffers are settled
  Array<Edge> edges_;
};

extern template class EjectionSearch<std::int32_t>;
extern template class EjectionSearch<std::int64_t>;

}  // namespace modelplan::solver
