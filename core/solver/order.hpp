// Orders of the items: the tie-breaks of the search and the sequences of first fit.
#pragma once

#include <array>

#include "array.hpp"
#include "packing_instance.hpp"
#include "random.hpp"

namespace modelplan::solver {

// What an order compares, always the larger first.
enum class Trait { kWidth, kSize, kArea, kLoad };

using Traits = std::array<Trait, 3>;

// Everything here throws Interrupted when the poller does.
class Orders {
 public:
  Orders(const PackingInstance& instance, Poller& poller);

  // rank[i] = position of item i when sorted by the three traits, each value multiplied by a factor
  // drawn from 1 +- noise / 2; ties by item.
  Array<Id> ranks(const Traits& traits, double noise, Random& random, Poller& poller) const;

  // rank[i] = position of item i when sorted by key, the larger first; ties by item.
  static Array<Id> ranks_of(View<const double> keys, Poller& poller);

  double value(Trait trait, Id item) const;

 private:
  const PackingInstance& instance_;
  Array<Bytes> heaviest_;  // per item: load of its heaviest section
};

// For every item the largest of values[first .. last) over its sections. Near-linear for any widths.
Array<Bytes> range_maxima(const PackingInstance& instance, View<const Bytes> values, Poller& poller);

}  // namespace modelplan::solver
