// A segment tree over a row of places: each node holds the join of the values below it, so that the join of a range
// takes O(log n) and a search passes over whole ranges that cannot hold what it looks for.
#pragma once

#include <type_traits>

#include "array.hpp"

namespace modelplan {

// `Value::joined(a, b)` is what a node holds above two that hold `a` and `b`; a default Value stands for no place.
// Where a Value also has `plus(amount)`, amounts may be added to ranges of places.
template <class Value>
class SegmentTree {
 public:
  SegmentTree() = default;
  explicit SegmentTree(View<const Value> values) {
    while (leaves_ < values.size()) leaves_ *= 2;
    nodes_.resize(2 * leaves_);
    for (std::size_t place = 0; place < values.size(); ++place) nodes_[leaves_ + place].value = values[place];
    for (std::size_t node = leaves_; --node > 0;) pull(node);
  }

  // The join of all values.
  const Value& all() const { return nodes_[1].value; }

  // The join of the values of [first, last), which is not empty.
  Value join(std::size_t first, std::size_t last) const { return join(1, 0, leaves_, first, last); }

  void set(std::size_t place, const Value& value) {
    nodes_[leaves_ + place].value = value;
    pull_above(leaves_ + place);
  }

  // Adds to each value of [first, last).
  void add(std::size_t first, std::size_t last, std::int64_t amount) {
    if (first >= last) return;
    const auto change = [&](Node& node) {
      node.value = node.value.plus(amount);
      node.pending += amount;
    };
    for (std::size_t low = leaves_ + first, high = leaves_ + last; low < high; low /= 2, high /= 2) {
      if (low % 2 == 1) change(nodes_[low++]);
      if (high % 2 == 1) change(nodes_[--high]);
    }
    pull_above(leaves_ + first);
    pull_above(leaves_ + last - 1);
  }

  // Calls visit(place) for the places of [first, last), in their order, of whose value `holds` is true. It has to be
  // true of each join of such a value: where it is not, all below is passed over.
  template <class Holds, class Visit>
  void for_each(std::size_t first, std::size_t last, const Holds& holds, const Visit& visit) const {
    walk<true>(first, last > first ? last - first : 0, holds, [&](std::size_t place) {
      visit(place);
      return true;
    });
  }

  // The first place of [first, last) of whose value `holds` is true, in the same sense; `last` without one.
  template <class Holds>
  std::size_t first_of(std::size_t first, std::size_t last, const Holds& holds) const {
    std::size_t found = last;
    walk<true>(first, last > first ? last - first : 0, holds, [&](std::size_t place) {
      found = place;
      return false;
    });
    return found;
  }

  // The place behind the last one before `last` of whose value `holds` is true; 0 without one.
  template <class Holds>
  std::size_t behind_last_of(std::size_t last, const Holds& holds) const {
    std::size_t found = 0;
    walk<false>(last - 1, last, holds, [&](std::size_t place) {
      found = place + 1;
      return false;
    });
    return found;
  }

 private:
  static constexpr bool kAdds = requires(const Value& value) { value.plus(std::int64_t{1}); };
  struct Fixed {
    Value value;
  };
  struct Shifting {
    Value value;
    std::int64_t pending = 0;  // added to all below; `value` counts it, what is below does not
  };
  using Node = std::conditional_t<kAdds, Shifting, Fixed>;

  static Value shifted(const Value& value, std::int64_t amount) {
    if constexpr (kAdds)
      return value.plus(amount);
    else
      return value;
  }

  std::int64_t pending_of(std::size_t node) const {
    if constexpr (kAdds)
      return nodes_[node].pending;
    else
      return 0;
  }

  void pull(std::size_t node) {
    nodes_[node].value = shifted(Value::joined(nodes_[2 * node].value, nodes_[2 * node + 1].value), pending_of(node));
  }

  void pull_above(std::size_t node) {
    while ((node /= 2) > 0) pull(node);
  }

  Value join(std::size_t node, std::size_t begin, std::size_t end, std::size_t first, std::size_t last) const {
    if (first <= begin && end <= last) return nodes_[node].value;
    const std::size_t middle = begin + (end - begin) / 2;
    Value found;
    if (last <= middle)
      found = join(2 * node, begin, middle, first, last);
    else if (first >= middle)
      found = join(2 * node + 1, middle, end, first, last);
    else
      found = Value::joined(join(2 * node, begin, middle, first, last), join(2 * node + 1, middle, end, first, last));
    return shifted(found, pending_of(node));
  }

  // Goes over `count` places from `place` on, forwards or backwards, until `visit` returns false: from a node to its
  // nearer child, or else past it.
  template <bool kForwards, class Holds, class Visit>
  void walk(std::size_t place, std::size_t count, const Holds& holds, const Visit& visit) const {
    std::size_t node = leaves_ + place, width = 1;
    std::int64_t above = 0;
    if constexpr (kAdds)
      for (std::size_t parent = node / 2; parent > 0; parent /= 2) above += pending_of(parent);
    for (std::size_t done = 0; done < count;) {
      if (holds(shifted(nodes_[node].value, above))) {
        if (width > 1) {
          above += pending_of(node);
          node = 2 * node + (kForwards ? 0 : 1);
          width /= 2;
          continue;
        }
        if (!visit(kForwards ? place + done : place - done)) return;
      }
      done += width;
      for (; node % 2 == (kForwards ? 1 : 0); width *= 2) above -= pending_of(node /= 2);
      kForwards ? ++node : --node;
    }
  }

  std::size_t leaves_ = 1;
  Array<Node> nodes_;  // the children of node k are 2 k and 2 k + 1
};

}  // namespace modelplan
