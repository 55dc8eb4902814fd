// First fit: items one after another, each at the lowest offset that is still free during its lifetime.
#pragma once

#include <cstdint>

#include "array.hpp"
#include "packing_instance.hpp"
#include "stopping.hpp"

namespace modelplan::solver {

class FirstFit {
 public:
  // Memory: linear in the number of items plus instance.width.
  FirstFit(const PackingInstance& instance, Poller& poller);

  // The orders tried, the most promising first, each by the larger first unless said otherwise.
  enum class Key { kSize, kArea, kWidth, kStart, kConflicts, kConflictedSize, kWidthThenSize, kInput };
  static constexpr Key kKeys[] = {Key::kConflictedSize, Key::kSize,  Key::kConflicts,     Key::kArea,
                                  Key::kWidth,          Key::kStart, Key::kWidthThenSize, Key::kInput};

  Array<Id> order(Key key, Poller& poller) const;

  // Offsets in units per item, pinned ones first of all; empty when the meter ran out.
  // Cost: the sum over all items of conflicts times its logarithm.
  Array<Bytes> place(View<const Id> order, Meter& meter) const;

  // Conflicts summed over all items, without building anything.
  static std::int64_t conflicts(const PackingInstance& instance);

 private:
  struct Obstacle {  // the item cannot be strictly between
    Bytes from, to;
  };
  void collect(Id item, View<const Bytes> offsets, Array<Obstacle>& obstacles) const;
  Bytes lowest(Id item, Array<Obstacle>& obstacles, Array<Obstacle>& spare) const;

  const PackingInstance& instance_;
  Array<std::int64_t> begin_;  // members of a section: those that began before it
  Array<Id> earlier_;
};

// Every buffer above all others and above all pins: a placement in linear time, whatever the problem.
Array<Bytes> stack_all(const PackingInstance& instance);

// The same with reuse: blocks of powers of two, free ones taken again, in linear time. Empty where there are pins or
// alignments, which it does not serve.
Array<Bytes> pool_all(const PackingInstance& instance, Poller& poller);

}  // namespace modelplan::solver
