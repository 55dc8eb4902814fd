// Propagation: what a placement and a raised offset say about the offsets of the other buffers, section by section.
#pragma once

#include "packing_state.hpp"

namespace modelplan::solver {

struct SectionRange {
  Id first = 0, last = 0;  // half open

  bool meets(Id other_first, Id other_last) const { return other_first < last && first < other_last; }
};

// Every method that returns a bool returns false when the state has no solution; failed() then says where.
template <class Coord>
class Propagation {
 public:
  Propagation(const PackingInstance& instance, const Rules& rules, Poller& poller);

  // Begins a run at `height` bytes. `counting`: the search counts the candidates of sections. `weighted`: it wants
  // weight(). Throws Interrupted when the meter stops meanwhile.
  bool start(Bytes height, View<const Id> rank, bool counting, bool weighted, Meter& meter);

  // Fixes `item` at its low: all unplaced neighbours lie above it.
  bool place(Id item);
  // The offset of `item` is at least `offset`.
  bool raise(Id item, Coord offset);
  // Draws the conclusions of all that was placed and raised.
  bool propagate();
  // Reports that the sections [first, last) have no solution; returns false.
  bool fail(Id first, Id last);
  // Drops what a failure left to be concluded; to be called before the state is taken back.
  void leave_failure();

  // Whether the floor or something placed holds the item up where its low is.
  bool supported(Id item) const;
  const SectionRange& failed() const { return failed_; }  // where the last failure was noticed
  double weight(Id section) const { return static_cast<double>(weight_[section]); }  // grows with failures there

  PackingState<Coord> state;

 private:
  using Slot = typename PackingState<Coord>::Slot;
  static constexpr Id kBlock = PackingState<Coord>::kBlock, kStride = 16;

  struct Single {  // the last use of the single-candidate rule in a section
    std::int64_t epoch = -1;
    Id item = -1;
    Coord low = 0, latest = 0;
  };

  void list_pins(Poller& poller);
  bool start_lows();
  Coord admissible(Id item, Coord offset) const;
  Coord past_pins(Id item, Coord offset) const;
  bool lift(Id item, Coord offset);
  void note_loss(const Slot& slot, Id item, Coord before, Coord after);
  void note_loss_in(Id first, Id last, Id item, Coord before, Coord after);
  bool any_loss(Id first, Id last, Id item, Coord before, Coord after) const;
  void note_loss_at(Id first, Id last, Id item, Coord before, Coord after);
  void mark(Id section);
  void mark(Id first, Id last);
  void unmark_all();
  bool sweep();
  bool check(Id section);
  bool lift_others(Id section, Id lowest);

  Rules rules_;
  bool adjusted_;          // offsets must be aligned or keep clear of pins
  bool swept_ = false;     // sections to check are kept as one range
  bool weighted_ = false;  // failures count
  PaddedArray<std::size_t> pins_begin_;
  PaddedArray<Id> pins_;                        // pinned neighbours of an item, by offset
  PaddedArray<Id> first_watch_, second_watch_;  // per section: two buffers that could be its lowest
  PaddedArray<Single> single_;
  PaddedArray<float> weight_;
  PaddedArray<Id> marked_;                 // sections to check, or
  Id marked_first_ = 0, marked_last_ = 0;  // the range of them
  PaddedArray<char> is_marked_;
  SectionRange failed_;
  std::int64_t epoch_ = 0;  // grows with each failure
};

extern template class Propagation<std::int32_t>;
extern template class Propagation<std::int64_t>;

}  // namespace modelplan::solver
