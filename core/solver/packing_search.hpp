// The complete search for a placement under a given height: finds one, proves that there is none, or runs out.
//
// It builds packings from the bottom up. `low` bounds the offset of every unplaced buffer from below; the packing
// sought is pushed down as far as it goes, so every buffer rests on the floor or on another buffer. A node takes a
// buffer c below which no unplaced neighbour can go. Left branch: c is at low[c]. Right branch: c rests on an unplaced
// neighbour, and low[c] rises to the lowest end that one of them may have. packing_state.hpp holds the state,
// propagation.hpp draws the conclusions; here are branching and backtracking.
#pragma once

#include "propagation.hpp"
#include "random.hpp"

namespace modelplan::solver {

// Which section to work on next: the one with the least ...
enum class Pick {
  kLowestBuffer,       // offset of a remaining buffer (the order of MiniMalloc)
  kSlack,              // room left once all its buffers are in
  kWeightedSlack,      // the same by the number of failures met there
  kLowestTop,          // end of its last placed buffer
  kCrowdedSlack,       // weighted slack times remaining buffers
  kPaddedSlack,        // weighted slack, a little of the capacity added
  kCandidates,         // number of buffers that can be its lowest
  kWeightedCandidates  // the same by the number of failures
};

// How a run chooses: the section by its pick, ties by the first or (mirrored) the last; the buffer by its rank.
struct Style {
  Pick pick = Pick::kSlack;
  bool mirrored = false;
};

template <class Coord>
class alignas(kCacheLines) PackingSearch {
 public:
  // Memory: linear in the number of buffers plus instance.width. Throws Interrupted when the poller does; so does run()
  // when its meter stops while it sets out.
  PackingSearch(const PackingInstance& instance, const Rules& rules, Poller& poller);

  // Searches for a placement of height at most `height` bytes; rank[i] breaks ties among items, lowest first.
  // Stops with kUnknown after `nodes` placements tried, as soon as these cannot place `least` buffers any more, or when
  // the meter is exhausted.
  Verdict run(Bytes height, Style style, View<const Id> rank, std::int64_t nodes, Meter& meter, Id least = 0);

  Array<Bytes> offsets() const;                              // after kFeasible; units
  std::int64_t nodes() const { return nodes_; }              // placements tried by the last run
  Id deepest() const { return propagation_.state.deepest; }  // most buffers placed at once in the last run
  // Members of a random section among those where the last failure was noticed.
  View<const Id> failed_members(Random& random) const;

 private:
  using Mark = typename PackingState<Coord>::Mark;
  using Slot = typename PackingState<Coord>::Slot;

  struct Choice {
    Id item;
    Coord lifted;  // where the right branch starts; the largest Coord when there is none
  };
  struct Decision {
    Id item;
    Coord lifted;
    Mark mark;
  };

  PackingState<Coord>& state() { return propagation_.state; }
  Verdict none() const { return exact_ ? Verdict::kInfeasible : Verdict::kUnknown; }

  bool choose(Choice& choice);
  Id lowest_member(Id section);
  Id lowest_item();
  Choice descend(Id item);
  double key(Id section);
  double untilted_key(Id section);
  Id candidates(Id section);

  bool decide(const Choice& choice);
  bool backtrack();
  void forget();
  SectionRange joined_to(SectionRange range) const;

  Rules rules_;
  Propagation<Coord> propagation_;
  Pick pick_ = Pick::kSlack;
  double tilt_ = 0;  // added to the key per section, to break ties
  PaddedArray<Decision> decisions_;
  std::int64_t nodes_ = 0;
  bool exact_ = true;  // no branch was given up without a proof
};

extern template class PackingSearch<std::int32_t>;
extern template class PackingSearch<std::int64_t>;

}  // namespace modelplan::solver
