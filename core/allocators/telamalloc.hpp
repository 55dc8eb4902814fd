// A search in the style of TelaMalloc: a heuristic proposes one placement at a time, a propagation engine judges it and
// names the placements behind a failure. The paper's own program is not public; see modelplan/allocators/telamalloc.py.
//
// Source: Maas, Beaugnon, Chauhan and Ilbeyi, TelaMalloc: Efficient On-Chip Memory Allocation for Production Machine
// Learning Accelerators, ASPLOS 2023, doi 10.1145/3567955.3567961.
#pragma once

#include <cstdint>
#include <optional>

#include "problem.hpp"
#include "stopping.hpp"

namespace modelplan::telamalloc {

// Bounds of every position and, for every pair in conflict, who is below: propagated to a fixed point, undone by a
// trail, and explained down to the decisions.
class Propagator {
 public:
  Propagator(const Problem& problem, std::int64_t capacity);

  // Propagates the bounds of the problem itself; false proves that nothing fits.
  bool root();

  // Decides that `b` starts at `offset`, as decision number `level`; false when that cannot be, see culprits().
  bool assign(std::size_t b, std::int64_t offset, std::size_t level);

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

  enum class Kind : std::uint8_t { kLow, kHigh, kOrder };
  enum class Order : std::uint8_t { kOpen, kFirstBelow, kSecondBelow };

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
    Order order;
    Entry entry;
  };

  void set_low(std::size_t b, std::int64_t value, Entry why, Entry also, std::int32_t level);
  void set_high(std::size_t b, std::int64_t value, Entry why, Entry also, std::int32_t level);
  bool propagate();
  bool judge(std::size_t pair);
  bool push_apart(std::size_t pair, std::size_t below, std::size_t above, std::int64_t bytes);
  bool fail(Array<Entry> because);
  void wake(std::size_t b);

  const Problem& problem_;
  std::int64_t capacity_;
  Array<std::int64_t> low_, high_;
  Array<Entry> low_entry_, high_entry_;
  Array<bool> decided_, awake_;
  Array<Pair> pairs_;
  Array<Array<std::uint32_t>> pairs_of_;
  Array<Change> trail_;
  Array<std::uint32_t> queue_;
  Array<Entry> failure_;
};

// The parts of the search that can be switched off.
struct Options {
  bool phases = true;            // one phase of contending buffers at a time; otherwise all of them
  bool smart_backtracks = true;  // jump to a culprit; otherwise one decision back
  bool priorities = true;        // try first what failed last, at the point returned to
  std::int64_t stuck_after = 8;  // returns to the same depth before jumping further
};

struct Answer {
  Ended ended = Ended::kBudget;       // kBudget: gave up or ran out of steps; kInfeasible only when the root says so
  Array<std::int64_t> offsets;        // empty unless feasible
  std::int64_t steps = 0;             // placements tried
  std::int64_t minor = 0, major = 0;  // backtracks
};

// The phase of each buffer: 0 crosses the time of highest contention, 1 that of what is left, and so on. Each phase
// takes the longest run of steps around the peak in which at least 9/10 of the peak's bytes are alive.
Array<std::size_t> phases(const Problem& problem);

// Looks for a placement within `capacity`. Incomplete. Memory O(n + pairs in conflict).
Answer decide(const Problem& problem, std::int64_t capacity, const Options& options, const Limits& limits);

}  // namespace modelplan::telamalloc
