// How much is alive at each event step? Add to a range of steps, ask for the greatest sum and where it is reached
// first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace modelplan {

// Leaves are the distinct starts, rising: between two starts the sum can only fall, so its maximum is at one of them.
class LoadTree {
 public:
  explicit LoadTree(std::span<const std::int64_t> start) : steps_(start.begin(), start.end()) {
    std::sort(steps_.begin(), steps_.end());
    steps_.erase(std::unique(steps_.begin(), steps_.end()), steps_.end());
    while (leaves_ < std::max<std::size_t>(steps_.size(), 1)) leaves_ *= 2;
    most_.assign(2 * leaves_, 0);
    pending_.assign(2 * leaves_, 0);
  }

  void add(std::int64_t from, std::int64_t until, std::int64_t amount) {
    add(1, 0, leaves_, leaf(from), leaf(until), amount);
  }

  std::int64_t most() const { return most_[1]; }

  // The first step at which most() is reached; there must be at least one start.
  std::int64_t first_peak() const {
    std::size_t node = 1;
    while (node < leaves_) {
      node *= 2;
      if (most_[node] < most_[node + 1]) ++node;
    }
    return steps_[std::min(node - leaves_, steps_.size() - 1)];
  }

 private:
  std::size_t leaf(std::int64_t step) const {
    return static_cast<std::size_t>(std::lower_bound(steps_.begin(), steps_.end(), step) - steps_.begin());
  }

  void add(std::size_t node, std::size_t lo, std::size_t hi, std::size_t from, std::size_t until, std::int64_t amount) {
    if (until <= lo || hi <= from) return;
    if (from <= lo && hi <= until) {
      most_[node] += amount;
      pending_[node] += amount;
      return;
    }
    const std::size_t mid = (lo + hi) / 2;
    add(2 * node, lo, mid, from, until, amount);
    add(2 * node + 1, mid, hi, from, until, amount);
    most_[node] = std::max(most_[2 * node], most_[2 * node + 1]) + pending_[node];
  }

  std::vector<std::int64_t> steps_, most_, pending_;
  std::size_t leaves_ = 1;
};

}  // namespace modelplan
