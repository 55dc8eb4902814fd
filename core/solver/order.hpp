// Orders of the items: the tie-breaks of the search and the sequences of first fit.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "instance.hpp"
#include "random.hpp"

namespace modelplan::solver {

// What an order compares, always the larger first.
enum class Trait { kWidth, kSize, kArea, kLoad };

using Traits = std::array<Trait, 3>;

// Everything here throws Interrupted when the pulse does.
class Orders {
 public:
  Orders(const Instance& instance, Pulse& pulse);

  // rank[i] = position of item i when sorted by the three traits, each value multiplied by a factor
  // drawn from 1 +- noise / 2; ties by item.
  std::vector<Id> ranks(const Traits& traits, double noise, Random& random, Pulse& pulse) const;

  // rank[i] = position of item i when sorted by key, the larger first; ties by item.
  static std::vector<Id> ranks_of(std::span<const double> keys, Pulse& pulse);

  double value(Trait trait, Id item) const;

 private:
  const Instance& instance_;
  std::vector<Bytes> heaviest_;  // per item: load of its heaviest section
};

// For every item the largest of values[first .. last) over its sections. Near-linear for any widths.
std::vector<Bytes> range_maxima(const Instance& instance, std::span<const Bytes> values, Pulse& pulse);

}  // namespace modelplan::solver
