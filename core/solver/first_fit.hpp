// First fit: items one after another, each at the lowest offset that is still free during its lifetime.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "instance.hpp"
#include "stop.hpp"

namespace modelplan::solver {

class FirstFit {
 public:
  // Memory: linear in the number of items plus instance.width.
  FirstFit(const Instance& instance, Pulse& pulse);

  // The orders tried, the most promising first, each by the larger first unless said otherwise.
  enum class Key { kSize, kArea, kWidth, kStart, kConflicts, kConflictedSize, kWidthThenSize, kInput };
  static constexpr Key kKeys[] = {Key::kConflictedSize, Key::kSize,  Key::kConflicts,     Key::kArea,
                                  Key::kWidth,          Key::kStart, Key::kWidthThenSize, Key::kInput};

  std::vector<Id> order(Key key, Pulse& pulse) const;

  // Offsets in units per item, pinned ones first of all; empty when the meter ran out.
  // Cost: the sum over all items of conflicts times its logarithm.
  std::vector<Bytes> place(std::span<const Id> order, Meter& meter) const;

  // Conflicts summed over all items, without building anything.
  static std::int64_t conflicts(const Instance& instance);

 private:
  struct Obstacle {  // the item cannot be strictly between
    Bytes from, to;
  };
  void collect(Id item, std::span<const Bytes> offsets, std::vector<Obstacle>& obstacles) const;
  Bytes lowest(Id item, std::vector<Obstacle>& obstacles, std::vector<Obstacle>& spare) const;
  std::int64_t conflicts_of(Id item) const;

  const Instance& instance_;
  std::vector<std::int64_t> begin_;  // members of a section: those that began before it
  std::vector<Id> earlier_;
};

// Every buffer above all others and above all pins: a placement in linear time, whatever the problem.
std::vector<Bytes> stack_all(const Instance& instance);

// The same with reuse: blocks of powers of two, free ones taken again, in linear time. Empty where there are pins or
// alignments, which it does not serve.
std::vector<Bytes> pool_all(const Instance& instance, Pulse& pulse);

}  // namespace modelplan::solver
