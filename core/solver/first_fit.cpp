#include "first_fit.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <tuple>

#include "../address_sort.hpp"

namespace modelplan::solver {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

Bytes align(Bytes offset, Bytes alignment) { return (offset + alignment - 1) / alignment * alignment; }

// Where the members of each section that began before it go in one list.
std::vector<std::int64_t> earlier_begins(const Instance& instance) {
  std::vector<std::int64_t> alive(instance.load.size() + 1, 0), begin(instance.load.size() + 1, 0);
  for (const Item& item : instance.items)
    if (item.first + 1 < item.last) {
      ++alive[at(item.first) + 1];
      --alive[at(item.last)];
    }
  std::int64_t now = 0;
  for (std::size_t s = 0; s < instance.load.size(); ++s) {
    now += alive[s];
    begin[s + 1] = begin[s] + now;
  }
  return begin;
}

}  // namespace

std::vector<Bytes> stack_all(const Instance& instance) {
  std::vector<Bytes> offsets(instance.items.size());
  Bytes top = 0;
  for (const Item& item : instance.items)
    if (item.pin >= 0) top = std::max(top, item.pin + item.size);
  for (Id i = 0; i < instance.count(); ++i) {
    const Item& item = instance.items[at(i)];
    offsets[at(i)] = item.pin >= 0 ? item.pin : align(top, item.alignment);
    top = std::max(top, offsets[at(i)] + item.size);
  }
  return offsets;
}

std::vector<Bytes> pool_all(const Instance& instance, Pulse& pulse) {
  if (instance.pinned || instance.aligned) return {};
  std::vector<Bytes> offsets(instance.items.size());
  std::vector<std::vector<Bytes>> free(64);  // offsets of free blocks of 2^k units
  std::vector<Id> ending(instance.load.size() + 1, -1), next(instance.items.size(), -1);  // lists of items by last
  Bytes top = 0;
  Id section = 0;
  for (Id i = 0; i < instance.count(); ++i) {
    const Item& item = instance.items[at(i)];
    pulse.beat();
    for (; section < item.first; ++section)
      for (Id gone = ending[at(section) + 1]; gone >= 0; gone = next[at(gone)])
        free[at(std::bit_width(static_cast<std::uint64_t>(instance.items[at(gone)].size - 1)))].push_back(
            offsets[at(gone)]);
    const auto k = at(std::bit_width(static_cast<std::uint64_t>(item.size - 1)));
    if (free[k].empty()) {
      free[k].push_back(top);
      top += Bytes{1} << k;
    }
    offsets[at(i)] = free[k].back();
    free[k].pop_back();
    next[at(i)] = ending[at(item.last)];
    ending[at(item.last)] = i;
  }
  return offsets;
}

FirstFit::FirstFit(const Instance& instance, Pulse& pulse) : instance_(instance), begin_(earlier_begins(instance)) {
  earlier_.resize(at(begin_.back()));
  std::vector<std::int64_t> fill(begin_.begin(), begin_.end() - 1);
  for (Id i = 0; i < instance.count(); ++i) {
    pulse.beat(instance.items[at(i)].last - instance.items[at(i)].first);
    for (Id s = instance.items[at(i)].first + 1; s < instance.items[at(i)].last; ++s) earlier_[at(fill[at(s)]++)] = i;
  }
}

std::int64_t FirstFit::conflicts(const Instance& instance) {
  const std::vector<std::int64_t> begin = earlier_begins(instance);
  std::int64_t sum = 0;
  for (const Item& item : instance.items)
    sum += begin[at(item.first) + 1] - begin[at(item.first)] + instance.starts[at(item.last)] -
           instance.starts[at(item.first)] - 1;
  return sum;
}

// Members of its first section that began before, plus everything that begins while it is alive.
std::int64_t FirstFit::conflicts_of(Id i) const {
  const Item& item = instance_.items[at(i)];
  return begin_[at(item.first) + 1] - begin_[at(item.first)] + instance_.starts[at(item.last)] -
         instance_.starts[at(item.first)] - 1;
}

std::vector<Id> FirstFit::order(Key key, Pulse& pulse) const {
  struct Entry {
    double first, second;
    Id item;
  };
  std::vector<Entry> entries(instance_.items.size());
  for (Id i = 0; i < instance_.count(); ++i) {
    const Item& item = instance_.items[at(i)];
    const double size = static_cast<double>(item.size), width = item.last - item.first;
    const double conflicts = static_cast<double>(conflicts_of(i));
    Entry& entry = entries[at(i)];
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
  std::sort(entries.begin(), entries.end(), pulse.watched(before));
  std::vector<Id> order(entries.size());
  std::transform(entries.begin(), entries.end(), order.begin(), [](const Entry& e) { return e.item; });
  return order;
}

std::vector<Bytes> FirstFit::place(std::span<const Id> order, Meter& meter) const {
  std::vector<Bytes> offsets(instance_.items.size(), -1);
  for (Id i = 0; i < instance_.count(); ++i) offsets[at(i)] = instance_.items[at(i)].pin;
  std::vector<Obstacle> obstacles, spare;
  for (const Id i : order) {
    if (offsets[at(i)] >= 0) continue;
    if (meter.exhausted()) return {};
    collect(i, offsets, obstacles);
    meter.add(conflicts_of(i) + 2 * static_cast<std::int64_t>(obstacles.size()));
    offsets[at(i)] = lowest(i, obstacles, spare);
  }
  return offsets;
}

void FirstFit::collect(Id item, std::span<const Bytes> offsets, std::vector<Obstacle>& obstacles) const {
  obstacles.clear();
  const Item& own = instance_.items[at(item)];
  const bool plain = !instance_.has_facts();
  const auto add = [&](Id other) {
    const Bytes offset = offsets[at(other)];
    if (offset < 0) return;
    const Bytes before = plain ? own.size : instance_.distance(item, other);
    const Bytes after = plain ? instance_.items[at(other)].size : instance_.distance(other, item);
    obstacles.push_back({offset - before, offset + after});
  };
  for (std::int64_t k = begin_[at(own.first)]; k < begin_[at(own.first) + 1]; ++k) add(earlier_[at(k)]);
  for (Id other = instance_.starts[at(own.first)]; other < instance_.starts[at(own.last)]; ++other)
    if (other != item) add(other);
}

Bytes FirstFit::lowest(Id item, std::vector<Obstacle>& obstacles, std::vector<Obstacle>& spare) const {
  sort_by_address(obstacles, spare, [](const Obstacle& obstacle) { return obstacle.from; });
  const Bytes alignment = instance_.items[at(item)].alignment;
  Bytes offset = 0;
  for (const Obstacle& o : obstacles) {
    if (offset <= o.from) break;  // and below all later ones
    if (offset < o.to) offset = align(o.to, alignment);
  }
  return offset;
}

}  // namespace modelplan::solver
