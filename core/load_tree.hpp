// A load for each of a row of places: add to a range, ask for the largest in a range and where it is.
#pragma once

#include "array.hpp"

namespace modelplan {

// Time O(log n) for each call.
class LoadTree {
 public:
  struct Peak {
    std::int64_t load;
    std::int32_t place;
  };

  explicit LoadTree(View<const std::int64_t> loads) : size_(1) {
    while (size_ < std::ssize(loads)) size_ *= 2;
    nodes_.assign(2 * size_, {{-1, 0}, 0});
    for (std::int32_t k = 0; k < std::ssize(loads); ++k) nodes_[size_ + k].peak = {loads[k], k};
    for (std::int32_t node = size_ - 1; node > 0; --node) pull(node);
  }

  void add(std::int32_t first, std::int32_t last, std::int64_t change) { add(1, 0, size_, first, last, change); }
  // The first place of [first, last) with the largest load.
  Peak peak(std::int32_t first, std::int32_t last) const { return peak(1, 0, size_, first, last); }
  // The same among all.
  Peak peak() const { return nodes_[1].peak; }

 private:
  struct Node {
    Peak peak;             // of its range, its own `pending` included
    std::int64_t pending;  // added to the whole range
  };

  void pull(std::int32_t node) {
    const Peak &left = nodes_[2 * node].peak, &right = nodes_[2 * node + 1].peak;
    nodes_[node].peak = right.load > left.load ? right : left;
    nodes_[node].peak.load += nodes_[node].pending;
  }

  void add(std::int32_t node, std::int32_t begin, std::int32_t end, std::int32_t first, std::int32_t last,
           std::int64_t change) {
    if (last <= begin || end <= first) return;
    if (first <= begin && end <= last) {
      nodes_[node].pending += change;
      nodes_[node].peak.load += change;
      return;
    }
    const std::int32_t middle = begin + (end - begin) / 2;
    add(2 * node, begin, middle, first, last, change);
    add(2 * node + 1, middle, end, first, last, change);
    pull(node);
  }

  Peak peak(std::int32_t node, std::int32_t begin, std::int32_t end, std::int32_t first, std::int32_t last) const {
    if (first <= begin && end <= last) return nodes_[node].peak;
    const std::int32_t middle = begin + (end - begin) / 2;
    Peak best;
    if (last <= middle)
      best = peak(2 * node, begin, middle, first, last);
    else if (first >= middle)
      best = peak(2 * node + 1, middle, end, first, last);
    else {
      best = peak(2 * node, begin, middle, first, last);
      const Peak right = peak(2 * node + 1, middle, end, first, last);
      if (right.load > best.load) best = right;
    }
    best.load += nodes_[node].pending;
    return best;
  }

  std::int32_t size_;
  Array<Node> nodes_;
};

}  // namespace modelplan
