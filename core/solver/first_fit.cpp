#include "first_fit.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <tuple>

#include "sorting.hpp"

namespace modelplan::solver {
namespace {

// Where the members of each section that began before it go in one list.
Array<std::int64_t> earlier_begins(const PackingInstance& instance) {
  Array<std::int64_t> alive(instance.load.size() + 1, 0), begin(instance.load.size() + 1, 0);
  for (const Item& item : instance.items)
    if (item.first + 1 < item.last) {
      ++alive[item.first + 1];
      --alive[item.last];
    }
  std::int64_t now = 0;
  for (std::size_t s = 0; s < instance.load.size(); ++s) {
    now += alive[s];
    begin[s + 1] = begin[s] + now;
  }
  return begin;
}

// Members of its first section that began before, plus everything that begins while it is alive.
std::int64_t conflicts_of(const PackingInstance& instance, View<const std::int64_t> begin, const Item& item) {
  return begin[item.first + 1] - begin[item.first] + instance.starts[item.last] - instance.starts[item.first] - 1;
}

}  // namespace

Array<Bytes> stack_all(const PackingInstance& instance) {
  Array<Bytes> offsets(instance.items.size());
  Bytes top = 0;
  for (const Item& item : instance.items)
    if (item.pin >= 0) top = std::max(top, item.pin + item.size);
  for (Id i = 0; i < instance.count(); ++i) {
    const Item& item = instance.items[i];
    offsets[i] = item.pin >= 0 ? item.pin : round_up(top, item.alignment);
    top = std::max(top, offsets[i] + item.size);
  }
  return offsets;
}

Array<Bytes> pool_all(const PackingInstance& instance, Poller& poller) {
  if (instance.pinned || instance.aligned) return {};
  Array<Bytes> offsets(instance.items.size());
  Array<Array<Bytes>> free(64);  // offsets of free blocks of 2^k units
  Array<Id> ending(instance.load.size() + 1, -1), next(instance.items.size(), -1);  // lists of items by last
  Bytes top = 0;
  Id section = 0;
  for (Id i = 0; i < instance.count(); ++i) {
    const Item& item = instance.items[i];
    poller.count();
    for (; section < item.first; ++section)
      for (Id gone = ending[section + 1]; gone >= 0; gone = next[gone])
        free[std::bit_width(static_cast<std::uint64_t>(instance.items[gone].size - 1))].push_back(offsets[gone]);
    const auto k = as_size(std::bit_width(static_cast<std::uint64_t>(item.size - 1)));
    if (free[k].empty()) {
      free[k].push_back(top);
      top += Bytes{1} << k;
    }
    offsets[i] = free[k].back();
    free[k].pop_back();
    next[i] = ending[item.last];
    ending[item.last] = i;
  }
  return offsets;
}

FirstFit::FirstFit(const PackingInstance& instance, Poller& poller)
    : instance_(instance), begin_(earlier_begins(instance)) {
  earlier_.resize(begin_.back());
  Array<std::int64_t> fill(begin_.begin(), begin_.end() - 1);
  for (Id i = 0; i < instance.count(); ++i) {
    poller.count(instance.items[i].last - instance.items[i].first);
    for (Id s = instance.items[i].first + 1; s < instance.items[i].last; ++s) earlier_[fill[s]++] = i;
  }
}

std::int64_t FirstFit::conflicts(const PackingInstance& instance) {
  const Array<std::int64_t> begin = earlier_begins(instance);
  std::int64_t sum = 0;
  for (const Item& item : instance.items) sum += conflicts_of(instance, begin, item);
  return sum;
}

Array<Id> FirstFit::order(Key key, Poller& poller) const {
  struct Entry {
    double first, second;
    Id item;
  };
  Array<Entry> entries(instance_.items.size());
  for (Id i = 0; i < instance_.count(); ++i) {
    const Item& item = instance_.items[i];
    const double size = static_cast<double>(item.size), width = item.last - item.first;
    const double conflicts = static_cast<double>(conflicts_of(instance_, begin_, instance_.items[i]));
    Entry& entry = entries[i];
    entry = {size, width, i};
    if (key == Key::kArea) entry = {size * width, size, i};
    if (key == Key::kWidth) entry = {width, -static_cast<double>(i), i};
    if (key == Key::kStart) entry = {-static_cast<double>(item.first), -static_cast<double>(item.original), i};
    if (key == Key::kConflicts) entry = {conflicts, size, i};
    if (key == Key::kConflictedSize) entry = {conflicts * size, size, i};
    if (key == Key::kInput) entry = {-static_cast<double>(item.original), 0, i};
    if (key == Key::kWidthThenSize) entry = {width, size, i};
  }
  const auto before = [](const Entry& a, const Entry& b) {
    return std::tie(b.first, b.second, a.item) < std::tie(a.first, a.second, b.item);
  };
  std::sort(entries.begin(), entries.end(), poller.counted(before));
  Array<Id> order(entries.size());
  std::transform(entries.begin(), entries.end(), order.begin(), [](const Entry& e) { return e.item; });
  return order;
}

Array<Bytes> FirstFit::place(View<const Id> order, Meter& meter) const {
  Array<Bytes> offsets(instance_.items.size(), -1);
  for (Id i = 0; i < instance_.count(); ++i) offsets[i] = instance_.items[i].pin;
  Array<Obstacle> obstacles, spare;
  for (const Id i : order) {
    if (offsets[i] >= 0) continue;
    if (meter.exhausted()) return {};
    collect(i, offsets, obstacles);
    meter.add(conflicts_of(instance_, begin_, instance_.items[i]) + 2 * static_cast<std::int64_t>(obstacles.size()));
    offsets[i] = lowest(i, obstacles, spare);
  }
  return offsets;
}

void FirstFit::collect(Id item, View<const Bytes> offsets, Array<Obstacle>& obstacles) const {
  obstacles.clear();
  const Item& own = instance_.items[item];
  const bool plain = !instance_.has_facts();
  const auto add = [&](Id other) {
    const Bytes offset = offsets[other];
    if (offset < 0) return;
    const Bytes before = plain ? own.size : instance_.distance(item, other);
    const Bytes after = plain ? instance_.items[other].size : instance_.distance(other, item);
    obstacles.push_back({offset - before, offset + after});
  };
  for (std::int64_t k = begin_[own.first]; k < begin_[own.first + 1]; ++k) add(earlier_[k]);
  for (Id other = instance_.starts[own.first]; other < instance_.starts[own.last]; ++other)
    if (other != item) add(other);
}

Bytes FirstFit::lowest(Id item, Array<Obstacle>& obstacles, Array<Obstacle>& spare) const {
  sort_by_address(obstacles, spare, [](const Obstacle& obstacle) { return obstacle.from; });
  const Bytes alignment = instance_.items[item].alignment;
  Bytes offset = 0;
  for (const Obstacle& o : obstacles) {
    if (offset <= o.from) break;  // and below all later ones
    if (offset < o.to) offset = round_up(o.to, alignment);
  }
  return offset;
}

}  // namespace modelplan::solver
