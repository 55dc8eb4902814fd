// Remaining load per section: add to a range, ask for the largest in a range and where it is.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "problem.hpp"

namespace modelplan::solver {

class LoadTree {
 public:
  struct Peak {
    Bytes load;
    Id section;
  };

  explicit LoadTree(std::span<const Bytes> loads) : size_(1) {
    while (size_ < loads.size()) size_ *= 2;
    nodes_.assign(2 * size_, {{-1, 0}, 0});
    for (std::size_t s = 0; s < loads.size(); ++s) nodes_[size_ + s].peak = {loads[s], static_cast<Id>(s)};
    for (std::size_t node = size_ - 1; node > 0; --node) pull(node);
  }

  void add(Id first, Id last, Bytes change) { add(1, 0, static_cast<Id>(size_), first, last, change); }
  // The first section of [first, last) with the largest load.
  Peak peak(Id first, Id last) const { return peak(1, 0, static_cast<Id>(size_), first, last); }

 private:
  struct Node {
    Peak peak;      // of its range, its own `pending` included
    Bytes pending;  // added to the whole range
  };

  void pull(std::size_t node) {
    const Peak &left = nodes_[2 * node].peak, &right = nodes_[2 * node + 1].peak;
    nodes_[node].peak = right.load > left.load ? right : left;
    nodes_[node].peak.load += nodes_[node].pending;
  }

  void add(std::size_t node, Id begin, Id end, Id first, Id last, Bytes change) {
    if (last <= begin || end <= first) return;
    if (first <= begin && end <= last) {
      nodes_[node].pending += change;
      nodes_[node].peak.load += change;
      return;
    }
    const Id middle = begin + (end - begin) / 2;
    add(2 * node, begin, middle, first, last, change);
    add(2 * node + 1, middle, end, first, last, change);
    pull(node);
  }

  Peak peak(std::size_t node, Id begin, Id end, Id first, Id last) const {
    if (first <= begin && end <= last) return nodes_[node].peak;
    const Id middle = begin + (end - begin) / 2;
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

  std::size_t size_;
  std::vector<Node> nodes_;
};

}  // namespace modelplan::solver
