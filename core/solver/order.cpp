#include "order.hpp"

#include <algorithm>
#include <numeric>

namespace modelplan::solver {
namespace {

std::size_t at(Id i) { return static_cast<std::size_t>(i); }

// Positions of the items when sorted by `before`.
template <class Before>
std::vector<Id> positions(std::size_t count, Pulse& pulse, const Before& before) {
  std::vector<Id> order(count), rank(count);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), pulse.watched(before));
  for (std::size_t k = 0; k < count; ++k) rank[at(order[k])] = static_cast<Id>(k);
  return rank;
}

}  // namespace

// Items come by ascending first section, so a stack of section maxima seen from the right answers all ranges:
// sections are pushed from the right; those not larger than a new one on their left can be no maximum beyond it.
std::vector<Bytes> range_maxima(const Instance& instance, std::span<const Bytes> values, Pulse& pulse) {
  std::vector<Bytes> maxima(instance.items.size());
  std::vector<Id> stack;  // sections from right to left, values strictly increasing towards the bottom
  Id next = instance.sections();
  for (Id i = instance.count() - 1; i >= 0; --i) {
    const Item& item = instance.items[at(i)];
    pulse.beat();
    while (next > item.first) {
      --next;
      while (!stack.empty() && values[at(stack.back())] <= values[at(next)]) stack.pop_back();
      stack.push_back(next);
    }
    // The maximum over [first, last) is the lowest stack entry that is still below `last`.
    const auto beyond = std::partition_point(stack.begin(), stack.end(), [&](Id s) { return s >= item.last; });
    maxima[at(i)] = values[at(*beyond)];
  }
  return maxima;
}

Orders::Orders(const Instance& instance, Pulse& pulse)
    : instance_(instance), heaviest_(range_maxima(instance, instance.load, pulse)) {}

double Orders::value(Trait trait, Id i) const {
  const Item& item = instance_.items[at(i)];
  const double width = item.last - item.first, size = static_cast<double>(item.size);
  switch (trait) {
    case Trait::kWidth:
      return width;
    case Trait::kSize:
      return size;
    case Trait::kArea:
      return width * size;
    case Trait::kLoad:
      return static_cast<double>(heaviest_[at(i)]);
  }
  return 0;
}

std::vector<Id> Orders::ranks(const Traits& traits, double noise, Random& random, Pulse& pulse) const {
  std::vector<std::array<double, 3>> keys(instance_.items.size());
  for (Id i = 0; i < instance_.count(); ++i) {
    pulse.beat();
    for (std::size_t k = 0; k < traits.size(); ++k)
      keys[at(i)][k] = value(traits[k], i) * (noise > 0 ? 1 + noise * (random.unit() - 0.5) : 1);
  }
  return positions(keys.size(), pulse, [&](Id a, Id b) {
    if (keys[at(a)] != keys[at(b)]) return keys[at(a)] > keys[at(b)];
    return a < b;
  });
}

std::vector<Id> Orders::ranks_of(std::span<const double> keys, Pulse& pulse) {
  return positions(keys.size(), pulse, [&](Id a, Id b) {
    if (keys[at(a)] != keys[at(b)]) return keys[at(a)] > keys[at(b)];
    return a < b;
  });
}

}  // namespace modelplan::solver
