// The complete search for a placement under a given height: finds one, proves that there is none, or runs out.
//
// It builds packings from the bottom up. `low` bounds the offset of every unplaced buffer from below; the
// packing sought is pushed down as far as it goes, so every buffer rests on the floor or on another buffer:
//
//   capacity ----------------------
//   latest[s]  . . . . the first remaining buffer of section s starts here at the latest
//              +--+      +-----+
//   top[s]     |  +------+     |   placed: final
//              +--+------+-----+
//                  section s
//
// A node takes a buffer c below which no unplaced neighbour can go, and places it at low[c]; if that fails, c
// must rest on an unplaced neighbour, and low[c] rises to the lowest end that one of them may have.
#pragma once

#include <limits>

#include "array.hpp"
#include "packing_instance.hpp"
#include "random.hpp"
#include "section_tree.hpp"
#include "stopping.hpp"

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
class PackingSearch {
 public:
  // Memory: linear in the number of buffers plus instance.width. Throws Interrupted when the poller does; so does run()
  // when its meter stops while it sets out.
  PackingSearch(const PackingInstance& instance, const Rules& rules, Poller& poller);

  // Searches for a placement of height at most `height` bytes; rank[i] breaks ties among items, lowest first.
  // Stops with kNothing after `nodes` placements tried, as soon as these cannot place `least` buffers any more, or when
  // the meter is exhausted.
  Verdict run(Bytes height, Style style, View<const Id> rank, std::int64_t nodes, Meter& meter, Id least = 0);

  Bytes offset(Id item) const { return slots_[item].low; }  // after kPlacement; units
  std::int64_t nodes() const { return nodes_; }             // placements tried by the last run
  Id deepest() const { return deepest_; }                   // most buffers placed at once in the last run
  View<const Id> trouble(Random& random) const;             // members of a section where the last failure was

 private:
  static constexpr Id kBlock = 64, kCoarse = 512, kStride = 16;
  static constexpr Coord kGone = std::numeric_limits<Coord>::max();

  struct Slot {
    Coord low;      // lower bound of the offset; the offset once placed
    Coord support;  // highest end of a placed neighbour, as this buffer meets it
    Coord size;
    Coord limit;  // highest offset under the capacity; the pin of a pinned buffer
    Id rank, first, last, twin;
    bool placed, pinned;
    bool was_single;  // the single-candidate rule has been used on it in this run
  };
  struct Change {  // what a slot held before
    Id item;
    Coord low, support;
  };
  struct Top {  // what a section held before
    Coord top;
    Id listed;
  };
  struct Decision {
    Id item;
    Coord lifted;  // where the right branch starts
    std::size_t changes, tops;
  };
  struct Choice {
    Id item;
    Coord lifted;
  };
  struct Single {  // the last use of the single-candidate rule in a section
    std::int64_t epoch = -1;
    Id item = -1;
    Coord low = 0, latest = 0;
  };

  void build_members(Poller& poller);
  void fill_members(Poller& poller);
  View<const Id> remaining_members(Id section);
  void build_pin_lists(Poller& poller);
  bool reset(Bytes height, View<const Id> rank);
  bool start_lows();

  Coord distance(Id below, Id above) const;
  Coord admissible(Id item, Coord offset) const;
  Coord past_pins(Id item, Coord offset) const;
  bool supported(Id item) const;

  bool raise(Id item, Coord offset);
  bool lift(Id item, Coord offset);
  void note_loss(const Slot& slot, Id item, Coord before, Coord after);
  void note_loss_in(Id first, Id last, Id item, Coord before, Coord after);
  bool any_loss(Id first, Id last, Id item, Coord before, Coord after) const;
  void note_loss_at(Id first, Id last, Id item, Coord before, Coord after);
  void bound_blocks(Id first, Id last);
  bool propagate();
  bool sweep();
  void forget_dirty();
  bool check(Id section);
  bool lift_others(Id section, Id lowest);
  bool fail(Id first, Id last);

  bool choose(Choice& choice);
  Id lowest_member(Id section);
  Id lowest_item();
  Choice descend(Id item);
  bool place(Id item);
  bool push_neighbours(Id item);
  void enter_sections(Id item);
  void leave_sections(Id item);
  void share_savings(Id item, int sign);
  void undo(const Decision& decision);
  void forget();
  bool backtrack();
  void widen_failure(Id first, Id last);
  double key(Id section);
  double untilted_key(Id section);
  Id candidates(Id section);
  void mark(Id section);
  void mark(Id first, Id last);

  template <class Visit>
  void visit_unplaced_neighbours(Id item, const Visit& visit);
  template <class Visit>
  bool all_unplaced_neighbours(Id item, const Visit& visit);

  const PackingInstance& instance_;
  Rules rules_;
  bool adjusted_;          // offsets must be aligned or keep clear of pins
  bool facts_;             // some pair may overlap
  bool counting_ = false;  // the pick depends on the number of candidates
  bool swept_ = false;     // sections to check are kept as one range
  bool weighted_ = false;
  Pick pick_ = Pick::kSlack;
  double tilt_ = 0;  // added to the key per section, to break ties
  Meter* meter_ = nullptr;

  Array<Slot> slots_;
  Array<Coord> floor_;                    // low of every unplaced item, kGone of a placed one
  Array<std::uint64_t> unplaced_;         // bit set of items
  Array<Id> members_;                     // per section: all of them, the unplaced ones among the first `listed`
  Array<std::int64_t> begin_;             // where a section's members start
  Array<Id> remaining_, listed_;          // per section: members not placed, and where the last of them may stand
  Array<Coord> top_, latest_;             // per section
  Array<Id> first_watch_, second_watch_;  // per section: two buffers that could be its lowest
  Array<Single> single_;
  Array<float> weight_;
  Array<Id> crossing_;             // unplaced buffers alive in both s and s + 1
  Array<std::size_t> pins_begin_;  // pinned neighbours of an item, by offset
  Array<Id> pins_;
  bool coarse_;                            // there are so many sections that blocks of them pay
  Array<Coord> latest_low_, latest_high_;  // per block: bounds of latest
  SectionTree tree_;

  Array<Change> changes_;
  Array<Top> tops_;
  Array<Decision> decisions_;
  Array<Id> dirty_;                      // sections to check, or
  Id dirty_first_ = 0, dirty_last_ = 0;  // the range of them
  Array<char> is_dirty_;

  Coord height_ = 0;
  Id placed_ = 0, deepest_ = 0;
  Id failed_first_ = 0, failed_last_ = 0;    // sections that the failure being undone depends on
  Id trouble_first_ = 0, trouble_last_ = 0;  // sections where it was noticed
  std::int64_t nodes_ = 0, epoch_ = 0;
  bool exact_ = true;  // no branch was given up without a proof
};

extern template class PackingSearch<std::int32_t>;
extern template class PackingSearch<std::int64_t>;

}  // namespace modelplan::solver
