#include "allocators/glow.hpp"

#include <tuple>

#include "interval_index.hpp"
#include "load_tree.hpp"

namespace modelplan {

Array<std::int64_t> most_live_first(const Records& records, Preference preference) {
  const std::size_t n = records.size.size();
  StepLoads load(records.start);
  IntervalIndex waiting(records.start, records.end);
  for (std::size_t i = 0; i < n; ++i) {
    load.add(records.start[i], records.end[i], records.size[i]);
    waiting.insert(i);
  }
  const auto key = [&](std::size_t i) {
    const std::int64_t size = records.size[i], duration = records.end[i] - records.start[i];
    const auto number = static_cast<std::int64_t>(i);
    return preference == Preference::kSize ? std::tuple(size, duration, -number) : std::tuple(duration, size, -number);
  };
  Array<std::int64_t> order;
  while (order.size() < n) {
    const std::int64_t step = load.first_peak();
    std::size_t best = n;
    waiting.for_each_alive(step, step + 1, [&](std::size_t i) {
      if (best == n || key(i) > key(best)) best = i;
    });
    order.push_back(static_cast<std::int64_t>(best));
    waiting.erase(best);
    load.add(records.start[best], records.end[best], -records.size[best]);
  }
  return order;
}

}  // namespace modelplan
