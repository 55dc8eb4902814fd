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

class Orders {
 public:
  explicit Orders(const Instance& instance);

  // rank[i] = position of item i when sorted by the three traits, each value multiplied by a factor
  // drawn from 1 +- noise / 2; ties by item.
  std::vector<Id> ranks(const Traits& traits, double noise, Random& random) const;

  // rank[i] = position of item i when sorted by key, the larger first; ties by item.
  static std::vector<Id> ranks_of(std::span<const double> keys);

  double value(Trait trait, Id item) const;

 private:
  const Instance& instance_;
  std::vector<Bytes> heaviest_;  // per item: load of its heaviest section
};

// For every item the largest of values[first .. last) over its sections. Near-linear for any widths.
std::vector<Bytes> range_maxima(const Instance& instance, std::span<const Bytes> values);

}  // namespace modelplan::solver
