#include "place.hpp"

#include <algorithm>
#include <stdexcept>

#include "address_sort.hpp"
#include "interval_index.hpp"

namespace modelplan {
namespace {

constexpr std::int64_t kUnplaced = -1;

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

std::int64_t round_up(std::int64_t value, std::int64_t alignment) {
  if (alignment == 1) return value;  // spares most problems a division for every pair
  return (value + alignment - 1) / alignment * alignment;
}

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
  std::vector<std::vector<Overlap>> overlaps;
  std::vector<std::vector<std::size_t>> conflicts;

  Adjacency(const Facts& facts, std::size_t n)
      : overlaps(facts.below.empty() ? 0 : n), conflicts(facts.left.empty() ? 0 : n) {
    for (std::size_t i = 0; i < facts.below.size(); ++i) {
      const std::size_t below = index(facts.below[i]), above = index(facts.above[i]);
      overlaps.at(below).push_back({above, facts.bytes[i], 0});
      overlaps.at(above).push_back({below, 0, facts.bytes[i]});
    }
    for (std::size_t i = 0; i < facts.left.size(); ++i) {
      conflicts.at(index(facts.left[i])).push_back(index(facts.right[i]));
      conflicts.at(index(facts.right[i])).push_back(index(facts.left[i]));
    }
  }
};

class Placer {
 public:
  Placer(const Columns& columns, const Facts& facts, Fit fit)
      : columns_(columns),
        adjacency_(facts, columns.size.size()),
        fit_(fit),
        placed_(columns.start, columns.end),
        offset_(columns.size.size(), kUnplaced) {}

  std::vector<std::int64_t> run(Ints order) {
    for (const std::int64_t i : order)
      if (columns_.pin[index(i)] >= 0) put(index(i), columns_.pin[index(i)]);
    for (const std::int64_t i : order)
      if (columns_.pin[index(i)] < 0) put(index(i), columns_.size[index(i)] == 0 ? 0 : find(index(i)));
    return std::move(offset_);
  }

 private:
  void put(std::size_t buffer, std::int64_t offset) {
    offset_[buffer] = offset;
    if (columns_.size[buffer] > 0) placed_.insert(buffer);  // an empty buffer is in nobody's way
  }

  std::int64_t find(std::size_t buffer) {
    collect_blocked(buffer);
    const std::int64_t size = columns_.size[buffer], alignment = columns_.alignment[buffer];
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
    blocked_.clear();
    const auto block = [&](std::size_t other) {
      blocked_.push_back({offset_[other], offset_[other] + columns_.size[other]});
    };
    const auto block_partly = [&](std::size_t other) {
      block(other);
      for (const auto& fact : adjacency_.overlaps[buffer])
        if (fact.other == other) {
          const std::int64_t start = offset_[other], end = start + columns_.size[other];
          blocked_.back().lo = std::max(blocked_.back().lo, start + fact.mine_below);  // of several the largest counts
          blocked_.back().hi = std::min(blocked_.back().hi, end - fact.mine_above);
        }
    };
    if (adjacency_.overlaps.empty())
      placed_.for_each_alive(columns_.start[buffer], columns_.end[buffer], block);
    else
      placed_.for_each_alive(columns_.start[buffer], columns_.end[buffer], block_partly);
    if (!adjacency_.conflicts.empty())
      for (const std::size_t other : adjacency_.conflicts[buffer])
        if (offset_[other] != kUnplaced && columns_.size[other] > 0) block(other);
    sort_by_address(blocked_, spare_, [](const Blocked& blocked) { return blocked.lo; });
  }

  const Columns& columns_;
  Adjacency adjacency_;
  Fit fit_;
  IntervalIndex placed_;
  std::vector<std::int64_t> offset_;
  std::vector<Blocked> blocked_, spare_;
};

}  // namespace

void require_permutation(Ints order, std::size_t n) {
  std::vector<bool> seen(n, false);
  for (const std::int64_t i : order) {
    if (i < 0 || index(i) >= n || seen[index(i)]) throw std::invalid_argument("order is no permutation of the buffers");
    seen[index(i)] = true;
  }
  if (order.size() != n) throw std::invalid_argument("order does not name every buffer");
}

std::vector<std::int64_t> place_in_order(const Columns& columns, const Facts& facts, Ints order, Fit fit) {
  require_permutation(order, columns.size.size());
  return Placer(columns, facts, fit).run(order);
}

}  // namespace modelplan
