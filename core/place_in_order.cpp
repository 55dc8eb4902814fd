#include "place_in_order.hpp"

#include <algorithm>
#include <stdexcept>

#include "interval_index.hpp"
#include "sorting.hpp"

namespace modelplan {
namespace {

constexpr std::int64_t kUnplaced = -1;

// The address range that a placed conflict keeps from the buffer at hand; lo may exceed hi where facts allow overlap.
struct Blocked {
  std::int64_t lo, hi;
};

// The facts of each buffer as adjacency lists.
struct Adjacency {
  struct Overlap {
    std::size_t other;
    std::int64_t mine_below, mine_above;  // bytes allowed when this buffer is below / above the other
  };
  Array<Array<Overlap>> overlaps;
  Array<Array<std::size_t>> conflicts;

  explicit Adjacency(const Problem& problem)
      : overlaps(problem.below.empty() ? 0 : problem.count()), conflicts(problem.left.empty() ? 0 : problem.count()) {
    for (std::size_t i = 0; i < problem.below.size(); ++i) {
      const std::size_t below = as_size(problem.below[i]), above = as_size(problem.above[i]);
      overlaps.at(below).push_back({above, problem.bytes[i], 0});
      overlaps.at(above).push_back({below, 0, problem.bytes[i]});
    }
    for (std::size_t i = 0; i < problem.left.size(); ++i) {
      conflicts.at(as_size(problem.left[i])).push_back(as_size(problem.right[i]));
      conflicts.at(as_size(problem.right[i])).push_back(as_size(problem.left[i]));
    }
  }
};

class Placer {
 public:
  Placer(const Problem& problem, Fit fit)
      : problem_(problem),
        adjacency_(problem),
        fit_(fit),
        placed_(problem.start, problem.end),
        lists_(problem.count() <= kListed && adjacency_.overlaps.empty() && adjacency_.conflicts.empty()),
        offset_(problem.count(), kUnplaced) {}

  Array<std::int64_t> run(Ints order) {
    for (const std::int64_t i : order)
      if (problem_.pin[i] >= 0) put(as_size(i), problem_.pin[i]);
    for (const std::int64_t i : order)
      if (problem_.pin[i] < 0) put(as_size(i), problem_.size[i] == 0 ? 0 : find(as_size(i)));
    return std::move(offset_);
  }

 private:
  void put(std::size_t buffer, std::int64_t offset) {
    offset_[buffer] = offset;
    if (problem_.size[buffer] == 0) return;  // an empty buffer blocks nothing
    placed_.insert(buffer);
    if (lists_)
      listed_.insert(std::ranges::upper_bound(listed_, offset, {}, [&](std::size_t b) { return offset_[b]; }), buffer);
  }

  std::int64_t find(std::size_t buffer) {
    collect_blocked(buffer);
    const std::int64_t size = problem_.size[buffer], alignment = problem_.alignment[buffer];
    std::int64_t top = 0, best = kUnplaced, mark = fit_ == Fit::kWidest ? -1 : INT64_MAX;
    for (const Blocked& blocked : blocked_) {
      const std::int64_t from = round_up(top, alignment), gap = blocked.lo - from, raw = blocked.lo - top;
      if (gap >= size && better(gap, raw, mark)) {
        best = from;
        mark = fit_ == Fit::kRaw || fit_ == Fit::kMixed ? raw : gap;
        if (fit_ == Fit::kLowest) break;
      }
      top = std::max(top, blocked.hi);
    }
    return best == kUnplaced ? round_up(top, alignment) : best;
  }

  bool better(std::int64_t gap, std::int64_t raw, std::int64_t mark) const {
    if (fit_ == Fit::kWidest) return gap > mark;
    return (fit_ == Fit::kRaw ? raw : gap) < mark;
  }

  void collect_blocked(std::size_t buffer) {
    // Where the buffer before met many, going through all by address is faster than sorting those that this one meets.
    const bool many = lists_ && blocked_.size() >= listed_.size() / kMany;
    blocked_.clear();
    if (many) {
      for (const std::size_t other : listed_)
        if (meet_in_time(problem_, buffer, other))
          blocked_.push_back({offset_[other], offset_[other] + problem_.size[other]});
      return;
    }
    const auto block = [&](std::size_t other) {
      blocked_.push_back({offset_[other], offset_[other] + problem_.size[other]});
    };
    const auto block_partly = [&](std::size_t other) {
      block(other);
      for (const auto& fact : adjacency_.overlaps[buffer])
        if (fact.other == other) {
          const std::int64_t start = offset_[other], end = start + problem_.size[other];
          blocked_.back().lo = std::max(blocked_.back().lo, start + fact.mine_below);  // of several the largest counts
          blocked_.back().hi = std::min(blocked_.back().hi, end - fact.mine_above);
        }
    };
    if (adjacency_.overlaps.empty())
      placed_.for_each_alive(problem_.start[buffer], problem_.end[buffer], block);
    else
      placed_.for_each_alive(problem_.start[buffer], problem_.end[buffer], block_partly);
    if (!adjacency_.conflicts.empty())
      for (const std::size_t other : adjacency_.conflicts[buffer])
        if (offset_[other] != kUnplaced && problem_.size[other] > 0) block(other);
    sort_by_address(blocked_, spare_, [](const Blocked& blocked) { return blocked.lo; });
  }

  // Buffers up to which the placed ones are listed by address: what is moved for each is short then.
  static constexpr std::size_t kListed = 1 << 14;
  static constexpr std::size_t kMany = 8;

  const Problem& problem_;
  Adjacency adjacency_;
  Fit fit_;
  IntervalIndex placed_;
  bool lists_;
  Array<std::size_t> listed_;
  Array<std::int64_t> offset_;
  Array<Blocked> blocked_, spare_;
};

}  // namespace

void require_permutation(Ints order, std::size_t n) {
  Array<bool> seen(n, false);
  for (const std::int64_t i : order) {
    if (i < 0 || as_size(i) >= n || seen[i]) throw std::invalid_argument("order is no permutation of the buffers");
    seen[i] = true;
  }
  if (order.size() != n) throw std::invalid_argument("order does not name every buffer");
}

Array<std::int64_t> place_in_order(const Problem& problem, Ints order, Fit fit) {
  require_permutation(order, problem.count());
  return Placer(problem, fit).run(order);
}

}  // namespace modelplan
