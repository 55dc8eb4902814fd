#include "ejection_search.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace modelplan::solver {
namespace {

constexpr int kMoves = 5;           // random moves after each ejection
constexpr std::int64_t kLanes = 8;  // sections looked at in the time of one buffer

}  // namespace

template <class Coord>
void EjectionSearch<Coord>::start(Bytes height) {
  bytes_ = height;
  height_ = static_cast<Coord>(height / instance_.unit);
  order_.clear();
  outside_.resize(instance_.items.size());
  std::iota(outside_.begin(), outside_.end(), 0);
  low_.assign(instance_.items.size(), 0);
  above_.assign(instance_.items.size(), 0);
  trials_.assign(instance_.items.size(), 1);
  top_.resize(instance_.load.size());
}

template <class Coord>
Verdict EjectionSearch<Coord>::run(Bytes height, Meter& meter) {
  if (height != bytes_) start(height);
  while (!outside_.empty()) {
    if (meter.exhausted()) return Verdict::kUnknown;
    step(meter);
  }
  settle(meter);
  return Verdict::kFeasible;
}

template <class Coord>
void EjectionSearch<Coord>::step(Meter& meter) {
  std::swap(outside_.back(), outside_[random_.below(std::ssize(outside_))]);
  const Id item = outside_.back();
  outside_.pop_back();
  const Spot spot = cheapest_spot(item, meter);
  if (spot.cost > 0) {
    ++trials_[item];
    eject(item, spot.offset);
  }
  insert(item, spot.offset);
  for (int k = 0; spot.cost > 0 && k < kMoves; ++k) move_one(meter);
}

// Takes a random buffer out and puts it where nothing is in its way, at least where it was.
template <class Coord>
void EjectionSearch<Coord>::move_one(Meter& meter) {
  const auto at = order_.begin() + random_.below(std::ssize(order_));
  const Id item = *at;
  order_.erase(at);
  insert(item, cheapest_spot(item, meter).offset);
}

// Settles the placed buffers. Gives a random one of the offsets with the least cost: another buffer is in the way of
// [offset, offset + size) if it can neither end below nor begin above.
template <class Coord>
typename EjectionSearch<Coord>::Spot EjectionSearch<Coord>::cheapest_spot(Id item, Meter& meter) {
  settle(meter);
  const Item& own = instance_.items[item];
  const Coord most = static_cast<Coord>(height_ - size(item));
  edges_.clear();
  for (const Id other : order_) {
    if (!meet(own, instance_.items[other])) continue;
    const Coord latest = static_cast<Coord>(height_ - above_[other] - size(other));
    const Coord begin = std::max<Coord>(static_cast<Coord>(latest - size(item) + 1), 0);
    const Coord end = std::min<Coord>(static_cast<Coord>(low_[other] + size(other)), static_cast<Coord>(most + 1));
    if (begin >= end) continue;
    edges_.push_back({begin, trials_[other]});
    edges_.push_back({end, -trials_[other]});
  }
  meter.add(std::ssize(order_) + 4 * std::ssize(edges_));
  std::sort(edges_.begin(), edges_.end(), [](const Edge& a, const Edge& b) { return a.at < b.at; });
  Spot best{0, std::numeric_limits<std::int64_t>::max()};
  std::int64_t cost = 0, choices = 0;
  Coord from = 0;
  const auto offer = [&](Coord to) {  // the offsets in [from, to) cost the same
    if (from >= to || cost > best.cost) return;
    if (cost < best.cost) choices = 0;
    choices += to - from;
    const std::int64_t pick = random_.below(choices);
    if (pick < to - from) best.offset = static_cast<Coord>(from + pick);
    best.cost = cost;
  };
  for (const Edge& edge : edges_) {
    offer(edge.at);
    from = edge.at;
    cost += edge.change;
  }
  offer(static_cast<Coord>(most + 1));
  return best;
}

// What is in the way of `item` at `offset` goes outside.
template <class Coord>
void EjectionSearch<Coord>::eject(Id item, Coord offset) {
  std::erase_if(order_, [&](Id other) {
    if (!meet(instance_.items[item], instance_.items[other])) return false;
    if (low_[other] + size(other) <= offset) return false;
    if (height_ - above_[other] - size(other) >= offset + size(item)) return false;
    outside_.push_back(other);
    return true;
  });
}

// Behind all buffers that end at `offset` or below: what lies below one of these is one of these.
template <class Coord>
void EjectionSearch<Coord>::insert(Id item, Coord offset) {
  const auto at = std::stable_partition(order_.begin(), order_.end(),
                                        [&](Id other) { return low_[other] + size(other) <= offset; });
  order_.insert(at, item);
}

// Computes `low` and `above` of the placed buffers from their order.
template <class Coord>
void EjectionSearch<Coord>::settle(Meter& meter) {
  std::int64_t looks = 0;
  const auto stack = [&](Id item, Array<Coord>& below) {
    Coord* const top = top_.data() + instance_.items[item].first;
    const Id width = instance_.items[item].last - instance_.items[item].first;
    Coord highest = 0;
    for (Id s = 0; s < width; ++s) highest = std::max(highest, top[s]);
    below[item] = highest;
    std::fill_n(top, width, static_cast<Coord>(highest + size(item)));
    looks += 1 + width / kLanes;
  };
  std::fill(top_.begin(), top_.end(), 0);
  for (const Id item : order_) stack(item, low_);
  std::fill(top_.begin(), top_.end(), 0);
  std::for_each(order_.rbegin(), order_.rend(), [&](Id item) { stack(item, above_); });
  meter.add(looks);
}

template class EjectionSearch<std::int32_t>;
template class EjectionSearch<std::int64_t>;

}  // namespace modelplan::solver
