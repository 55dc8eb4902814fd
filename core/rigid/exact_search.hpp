// Whether units fit below a height at all: complete search over the intervals in which the distance of two may lie.
#pragma once

#include <cstddef>
#include <cstdint>

#include "../stopping.hpp"
#include "units.hpp"

namespace modelplan::rigid {

// Proves that no packing is lower, or finds one.
//
// The distance of two units lies before, between or behind their gaps. Bounds of bases and distances follow from each
// other until nothing changes. Where some pairs still have gaps within their distances, one pair is held on one side of
// its widest gap, later on the other; where none has, all lowest bases together are a packing. A pair that was left
// without a distance gains weight, and heavy pairs are split first.
//
// Work is counted in looks at a pair; the same work gives the same answer on every machine.
//
// Source: K. Stergiou, M. Koubarakis, "Backtracking algorithms for disjunctions of temporal constraints", Artificial
// Intelligence 120, 2000; weights as in constraint_search.hpp.
class ExactSearch {
 public:
  // Of all units, or of some alone.
  ExactSearch(const Units& units, const StopSignal& signal) : ExactSearch(units, units.used, signal) {}
  ExactSearch(const Units& units, const Array<std::size_t>& among, const StopSignal& signal);

  std::size_t pairs() const { return pairs_.size(); }

  // The least height, from `bound` up to `height` of a packing, at which bounds alone exclude nothing.
  std::int64_t bound(std::int64_t bound, std::int64_t height);

  // Lowers a packing of some height until it is the lowest one, true, or until `work` is done. Splits as it lies first.
  bool lower(Array<std::int64_t>& bases, std::int64_t height, std::int64_t& work);

  // Whether a packing of the units below a limit was found, then in `bases`; false where there is none, or with no work
  // left. Splits as `bases` lie first.
  bool fit(Array<std::int64_t>& bases, std::int64_t limit, std::int64_t& work);

 private:
  // What is left of the distance base(a) - base(b) of two units; `open` is the widest gap within, 0 where none is.
  struct Duel {
    std::size_t a, b;
    const Array<Gap>* gaps;
    std::int64_t least, most, open;
    double weight;
  };
  // A number as it was.
  struct Change {
    std::int64_t* number;
    std::int64_t old;
  };
  // A pair on one side of a gap.
  struct Level {
    std::size_t changes, pair;
    Gap gap;
    bool above, last;
  };

  bool may_fit(std::int64_t limit);
  bool fits(std::int64_t limit, const Array<std::int64_t>& near);
  bool settle();
  bool narrow(Duel& duel);
  bool raise(std::size_t unit, std::int64_t least);
  bool sink(std::size_t unit, std::int64_t most);
  bool split(const Array<std::int64_t>& near);
  void hold(const Level& level);
  bool turn();
  void set(std::int64_t& number, std::int64_t value);
  void look_at(std::size_t pair);

  const Units& units_;
  Array<std::size_t> among_;
  const StopSignal& signal_;
  Array<std::int64_t> low_, high_;  // bounds of the base of each unit
  Array<Duel> pairs_;
  Array<Array<std::size_t>> of_;  // the pairs of each unit
  Array<std::size_t> waiting_;    // pairs to be looked at
  Array<char> waits_;
  Array<Change> changes_;
  Array<Level> levels_;
  std::int64_t work_ = 0;
};

}  // namespace modelplan::rigid
