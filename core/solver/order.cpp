#include "order.hpp"

#include <algorithm>
#include <numeric>

namespace modelplan::solver {
namespace {

// Positions of the items when sorted by key, the larger first; ties by item.
template <class Keys>
Array<Id> positions(const Keys& keys, Poller& poller) {
  Array<Id> order(keys.size()), rank(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, poller.counted([&](Id a, Id b) { return keys[a] != keys[b] ? keys[a] > keys[b] : a < b; }));
  for (std::size_t k = 0; k < order.size(); ++k) rank[order[k]] = static_cast<Id>(k);
  return rank;
}

}  // namespace

// Items come by ascending first section, so a stack of section maxima seen from the right answers all ranges:
// sections are pushed from the right; those not larger than a new one on their left can be no maximum beyond it.
Array<Bytes> range_maxima(const PackingInstance& instance, View<const Bytes> values, Poller& poller) {
  Array<Bytes> maxima(instance.items.size());
  Array<Id> stack;  // sections from right to left, values strictly increasing towards the bottom
  Id next = instance.sections();
  for (Id i = instance.count() - 1; i >= 0; --i) {
    const Item& item = instance.items[i];
    poller.count();
    while (next > item.first) {
      --next;
      while (!stack.empty() && values[stack.back()] <= values[next]) stack.pop_back();
      stack.push_back(next);
    }
    // The maximum over [first, last) is the lowest stack entry that is still below `last`.
    const auto beyond = std::partition_point(stack.begin(), stack.end(), [&](Id s) { return s >= item.last; });
    maxima[i] = values[*beyond];
  }
  return maxima;
}

Orders::Orders(const PackingInstance& instance, Poller& poller)
    : instance_(instance), heaviest_(range_maxima(instance, instance.load, poller)) {}

double Orders::value(Trait trait, Id i) const {
  const Item& item = instance_.items[i];
  const double width = item.last - item.first, size = static_cast<double>(item.size);
  const double values[] = {width, size, width * size, static_cast<double>(heaviest_[i])};  // by Trait
  return values[static_cast<std::size_t>(trait)];
}

Array<Id> Orders::ranks(const Traits& traits, double noise, Random& random, Poller& poller) const {
  Array<std::array<double, 3>> keys(instance_.items.size());
  for (Id i = 0; i < instance_.count(); ++i) {
    poller.count();
    for (std::size_t k = 0; k < traits.size(); ++k)
      keys[i][k] = value(traits[k], i) * (noise > 0 ? 1 + noise * (random.unit() - 0.5) : 1);
  }
  return positions(keys, poller);
}

Array<Id> Orders::ranks_of(View<const double> keys, Poller& poller) { return positions(keys, poller); }

}  // namespace modelplan::solver
