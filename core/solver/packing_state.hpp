// The state of the complete search: what is placed, how low the rest may start, and how to take a placement back.
//
//   height   ----------------------
//   latest[s]  . . . . the first remaining buffer of section s starts here at the latest
//              +--+      +-----+
//   top[s]     |  +------+     |   placed: final
//              +--+------+-----+
//                  section s
#pragma once

#include <bit>
#include <limits>
#include <utility>

#include "packing_instance.hpp"
#include "section_tree.hpp"
#include "stopping.hpp"

namespace modelplan::solver {

// Fields are for reading; they change through the methods, which keep them in step with each other.
template <class Coord>
class PackingState {
 public:
  static constexpr Id kBlock = 64;  // sections to a block
  static constexpr Coord kGone = std::numeric_limits<Coord>::max();

  struct Slot {
    Coord low;      // lower bound of the offset; the offset once placed
    Coord support;  // highest end of a placed neighbour, as this buffer meets it
    Coord size;
    Coord limit;  // highest offset under the height; the pin of a pinned buffer
    Id rank, first, last, twin;
    bool placed, pinned;
    bool was_single;  // the single-candidate rule has been used on it in this run
  };
  struct Mark {  // how far the trail had come
    std::size_t changes, tops;
  };

  // Memory: linear in the number of buffers plus instance.width.
  PackingState(const PackingInstance& instance, Poller& poller);

  // Nothing placed, under `height` bytes; rank[i] breaks ties. Returns an item that does not fit by itself, or -1.
  Id reset(Bytes height, View<const Id> rank, bool counts_candidates, Meter& its_meter);

  // Fixes `item` where its low is.
  void place(Id item);
  // Keeps what is known about `item`: it comes back with the placement after which it is going to change.
  void remember(Id item, const Slot& slot) { changes_.push_back({item, slot.low, slot.support}); }

  Mark mark() const { return {changes_.size(), tops_.size()}; }
  // Takes `item` back, the one placed last, and all changes since `mark`.
  void take_back(Id item, const Mark& mark);
  // Makes all changes before `mark` final.
  void forget_before(const Mark& mark);

  // Members of a section that are not placed. Placed ones are sorted out when they are asked for, not when they are
  // placed: most sections are not asked about between two placements.
  View<const Id> remaining_members(Id section) {
    Id* members = members_.data() + begin_[section];
    const Id count = remaining[section];
    Id& listed = listed_[section];
    if (listed > count) {
      for (Id k = 0; k < count; ++k)
        while (floor[members[k]] == kGone) std::swap(members[k], members[--listed]);
      listed = count;
    }
    return {members, as_size(count)};
  }
  View<const Id> members(Id section) const {
    return {members_.data() + begin_[section], as_size(begin_[section + 1] - begin_[section])};
  }

  // The least distance from the offset of `below` to that of `above`, two neighbours.
  Coord distance(Id below, Id above) const {
    if (!has_facts) return slots[below].size;
    return static_cast<Coord>(instance.distance(below, above));
  }

  // Calls visit(neighbour) for those that are not placed until it returns false; whether it never did. They are the
  // members of the first section, and the contiguous range of items that begin while `item` is alive.
  template <class Visit>
  bool all_unplaced_neighbours(Id item, const Visit& visit) {
    const Slot& own = slots[item];
    std::int64_t seen = remaining[own.first];
    for (const Id member : remaining_members(own.first))
      if (member != item && !visit(member)) return false;
    const Id begin = instance.starts[own.first + 1], end = instance.starts[own.last];
    for (Id word = begin / 64; word * 64 < end; ++word) {
      std::uint64_t bits = unplaced_[word];
      if (word == begin / 64) bits &= ~std::uint64_t{0} << (begin % 64);
      if (end - word * 64 < 64) bits &= (std::uint64_t{1} << (end % 64)) - 1;
      for (++seen; bits != 0; bits &= bits - 1, ++seen)
        if (!visit(static_cast<Id>(word * 64 + std::countr_zero(bits)))) return false;
    }
    meter->add(seen);
    return true;
  }

  template <class Visit>
  void visit_unplaced_neighbours(Id item, const Visit& visit) {
    all_unplaced_neighbours(item, [&](Id neighbour) {
      visit(neighbour);
      return true;
    });
  }

  const PackingInstance& instance;
  const bool has_facts;    // some pair may overlap
  const bool has_blocks;   // there are so many sections that blocks of them pay
  bool counting = false;   // keys of sections depend on how many buffers can be their lowest
  Meter* meter = nullptr;  // of the run
  Coord height = 0;
  Id placed = 0, deepest = 0;  // buffers placed now, and at once at most

  PaddedArray<Slot> slots;
  PaddedArray<Coord> floor;                    // low of every unplaced item, kGone of a placed one
  PaddedArray<Id> remaining;                   // per section: members not placed
  PaddedArray<Coord> top, latest;              // per section
  PaddedArray<Coord> latest_low, latest_high;  // per block: bounds of latest
  PaddedArray<Id> crossing;                    // unplaced buffers alive in both s and s + 1
  SectionTree keys;                            // what to work on next; stale where a section has changed

 private:
  struct Change {  // what a slot held before
    Id item;
    Coord low, support;
  };
  struct Top {  // what a section held before
    Coord top;
    Id listed;
  };

  void fill_members(Poller& poller);
  void enter_sections(const Slot& own);
  void leave_sections(const Slot& own);
  void share_savings(Id item, int sign);
  void bound_blocks(Id first, Id last);

  PaddedArray<std::uint64_t> unplaced_;  // bit set of items
  PaddedArray<Id> members_;              // per section: all of them, the unplaced ones among the first `listed`
  PaddedArray<std::int64_t> begin_;      // where a section's members start
  PaddedArray<Id> listed_;               // per section: where the last of the unplaced members may stand
  PaddedArray<Change> changes_;          // the trail
  PaddedArray<Top> tops_;
};

extern template class PackingState<std::int32_t>;
extern template class PackingState<std::int64_t>;

}  // namespace modelplan::solver
