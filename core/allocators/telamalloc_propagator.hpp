// The propagation engine of the search in the style of TelaMalloc.
#pragma once

#include <cstdint>
#include <optional>

#include "problem.hpp"
#include "stopping.hpp"

namespace modelplan::telamalloc {

// Pairs in conflict that are looked at for a step, beside the placement that it tries.
constexpr std::int64_t kPairsOfStep = 10'000;

// Bounds of every position and, for every pair in conflict, who is below: propagated to a fixed point, undone by a
// trail, and explained down to the decisions.
class Propagator {
 public:
  Propagator(const Problem& problem, std::int64_t capacity);

  // Propagates the bounds of the problem itself; false proves that nothing fits. Once the meter has ended, this and
  // `assign` leave bounds that say nothing.
  bool root(Meter& meter);

  // Decides that `b` starts at `offset`, as decision number `level`; false when that cannot be, see culprits().
  bool assign(std::size_t b, std::int64_t offset, std::size_t level, Meter& meter);

  // The least offset within the bounds of `b` that touches no decided buffer; none: see culprits().
  std::optional<std::int64_t> lowest(std::size_t b);

  // The decisions behind the last failure, rising.
  Array<std::size_t> culprits() const;

  std::size_t mark() const { return trail_.size(); }
  void undo_to(std::size_t mark);

  bool decided(std::size_t b) const { return decided_[b]; }
  std::int64_t low(std::size_t b) const { return low_[b]; }

 private:
  using Entry = std::int32_t;  // index into the trail, kGiven for what the problem says
  static constexpr Entry kGiven = -1;
  static constexpr std::int32_t kNoLevel = -1;

  enum class Kind : std::uint8_t { kLow, kHigh, kStacking };
  enum class Stacking : std::uint8_t { kOpen, kFirstBelow, kSecondBelow };

  struct Change {
    Kind kind;
    std::uint32_t where;  // buffer or pair
    std::int64_t before;
    Entry entry_before;
    Entry why[2];
    std::int32_t level;
  };
  struct Pair {
    std::uint32_t first, second;
    std::int64_t first_below, second_below;  // bytes from the lower one's start to the upper one's, at least
    Stacking stacking;
    Entry entry;
  };

  void set(Kind kind, std::size_t b, std::int64_t value, Entry why, Entry also, std::int32_t level);
  bool propagate(Meter& meter);
  void forget_awake();
  bool judge(std::size_t pair);
  bool push_apart(std::size_t pair, std::size_t below, std::size_t above, std::int64_t bytes);
  bool fail(Array<Entry> because);
  void wake(std::size_t b);

  const Problem& problem_;
  std::int64_t capacity_;
  std::int64_t judged_ = 0;  // pairs since the last step that they made
  Array<std::int64_t> low_, high_;
  Array<Entry> low_entry_, high_entry_;
  Array<bool> decided_, awake_;
  Array<Pair> pairs_;
  Array<Array<std::uint32_t>> pairs_of_;
  Array<Change> trail_;
  Array<std::uint32_t> queue_;
  Array<Entry> failure_;
};

}  // namespace modelplan::telamalloc
