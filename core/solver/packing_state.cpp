#include "packing_state.hpp"

#include <algorithm>

namespace modelplan::solver {
namespace {

constexpr Id kManySections = 512;  // from here on blocks are kept

}  // namespace

template <class Coord>
PackingState<Coord>::PackingState(const PackingInstance& the_instance, Poller& poller)
    : instance(the_instance),
      has_facts(instance.has_facts()),
      has_blocks(instance.sections() > kManySections),
      slots(instance.items.size()),
      floor(instance.items.size()),
      remaining(instance.load.size()),
      top(instance.load.size()),
      latest(instance.load.size()),
      latest_low(instance.load.size() / kBlock + 1),
      latest_high(instance.load.size() / kBlock + 1),
      crossing(instance.load.size()),
      keys(instance.load.size()),
      unplaced_((instance.items.size() + 63) / 64),
      begin_(instance.load.size() + 1, 0),
      listed_(instance.load.size()) {
  for (Id i = 0; i < instance.count(); ++i) {
    const Item& item = instance.items[i];
    Slot& slot = slots[i];
    slot.size = static_cast<Coord>(item.size);
    slot.first = item.first;
    slot.last = item.last;
    slot.twin = item.twin;
    slot.pinned = item.pin >= 0;
    poller.count(item.last - item.first);
    for (Id s = item.first; s < item.last; ++s) ++begin_[s + 1];
  }
  for (std::size_t s = 1; s < begin_.size(); ++s) begin_[s] += begin_[s - 1];
  members_.resize(begin_.back());
  fill_members(poller);
}

// In the order of items, whatever earlier runs did: a run depends on nothing but its arguments.
template <class Coord>
void PackingState<Coord>::fill_members(Poller& poller) {
  std::fill(remaining.begin(), remaining.end(), 0);
  for (Id i = 0; i < instance.count(); ++i) {
    poller.count(slots[i].last - slots[i].first);
    for (Id s = slots[i].first; s < slots[i].last; ++s) members_[begin_[s] + remaining[s]++] = i;
  }
  listed_ = remaining;
}

template <class Coord>
Id PackingState<Coord>::reset(Bytes height_bytes, View<const Id> rank, bool counts_candidates, Meter& its_meter) {
  counting = counts_candidates;
  meter = &its_meter;
  placed = deepest = 0;
  height = static_cast<Coord>(height_bytes / instance.unit);
  changes_.clear();
  tops_.clear();
  std::fill(unplaced_.begin(), unplaced_.end(), 0);
  std::fill(crossing.begin(), crossing.end(), 0);
  std::fill(top.begin(), top.end(), 0);
  for (std::size_t s = 0; s < latest.size(); ++s)
    latest[s] = static_cast<Coord>((height_bytes + instance.top_pad[s]) / instance.unit - instance.load[s]);
  keys.touch_all();
  Poller poller(meter->signal());
  fill_members(poller);
  bound_blocks(0, instance.sections());
  for (Id i = 0; i < instance.count(); ++i) {
    const Item& item = instance.items[i];
    Slot& slot = slots[i];
    const Bytes room = height_bytes + item.pad - item.size * instance.unit;
    if (room < std::max<Bytes>(item.pin, 0) * instance.unit) return i;
    slot.placed = slot.was_single = false;
    slot.low = floor[i] = slot.pinned ? static_cast<Coord>(item.pin) : 0;
    slot.limit = slot.pinned ? slot.low : static_cast<Coord>(room / instance.unit);
    slot.support = 0;
    slot.rank = rank[i];
    unplaced_[i / 64] |= std::uint64_t{1} << (i % 64);
    if (slot.last - slot.first > 1) {
      ++crossing[slot.first];
      --crossing[slot.last - 1];
    }
  }
  for (std::size_t s = 1; s < crossing.size(); ++s) crossing[s] += crossing[s - 1];
  return -1;
}

template <class Coord>
void PackingState<Coord>::place(Id item) {
  Slot& own = slots[item];
  own.placed = true;
  floor[item] = kGone;
  unplaced_[item / 64] &= ~(std::uint64_t{1} << (item % 64));
  deepest = std::max(deepest, ++placed);
  enter_sections(own);
  if (has_facts) share_savings(item, 1);
  bound_blocks(own.first, own.last);
}

template <class Coord>
void PackingState<Coord>::take_back(Id item, const Mark& mark) {
  Slot& own = slots[item];
  if (has_facts) share_savings(item, -1);
  leave_sections(own);
  bound_blocks(own.first, own.last);
  own.placed = false;
  floor[item] = own.low;
  unplaced_[item / 64] |= std::uint64_t{1} << (item % 64);
  --placed;
  for (; changes_.size() > mark.changes; changes_.pop_back()) {
    const Change& change = changes_.back();
    Slot& slot = slots[change.item];
    if (counting && slot.low != change.low)
      for (Id s = slot.first; s < slot.last; ++s)
        if (change.low <= latest[s] && slot.low > latest[s]) keys.touch(s);
    slot.low = floor[change.item] = change.low;
    slot.support = change.support;
  }
}

template <class Coord>
void PackingState<Coord>::forget_before(const Mark& mark) {
  changes_.erase(changes_.begin(), changes_.begin() + static_cast<std::ptrdiff_t>(mark.changes));
  tops_.erase(tops_.begin(), tops_.begin() + static_cast<std::ptrdiff_t>(mark.tops));
}

template <class Coord>
void PackingState<Coord>::enter_sections(const Slot& own) {
  const Coord end = static_cast<Coord>(own.low + own.size);
  for (Id s = own.first; s < own.last; ++s) {
    --remaining[s];
    tops_.push_back({top[s], listed_[s]});
    top[s] = std::max(top[s], end);
    latest[s] = static_cast<Coord>(latest[s] + own.size);
    if (s + 1 < own.last) --crossing[s];
    keys.touch(s);
  }
}

template <class Coord>
void PackingState<Coord>::leave_sections(const Slot& own) {
  for (Id s = own.last - 1; s >= own.first; --s) {
    ++remaining[s];
    listed_[s] = tops_.back().listed;
    top[s] = tops_.back().top;
    tops_.pop_back();
    latest[s] = static_cast<Coord>(latest[s] - own.size);
    if (s + 1 < own.last) ++crossing[s];
    keys.touch(s);
  }
}

// A pair saves space only while neither is placed; `latest` counts the savings of the pairs that are left.
template <class Coord>
void PackingState<Coord>::share_savings(Id item, int sign) {
  for (std::size_t k = instance.fact_begin[item]; k < instance.fact_begin[item + 1]; ++k) {
    const Fact& fact = instance.facts[k];
    const Slot &own = slots[item], &other = slots[fact.other];
    if (other.placed) continue;
    for (Id s = std::max(own.first, other.first); s < std::min(own.last, other.last); ++s)
      latest[s] = static_cast<Coord>(latest[s] - sign * fact.saving);
  }
}

// Brings the bounds of `latest` up to date in the blocks that meet [first, last).
template <class Coord>
void PackingState<Coord>::bound_blocks(Id first, Id last) {
  if (!has_blocks) return;
  for (Id block = first / kBlock; block * kBlock < last; ++block) {
    const auto begin = latest.begin() + block * kBlock;
    const auto end = latest.begin() + std::min(instance.sections(), (block + 1) * kBlock);
    Coord low = *begin, high = *begin;
    for (auto it = begin; it != end; ++it) {
      low = std::min(low, *it);
      high = std::max(high, *it);
    }
    latest_low[block] = low;
    latest_high[block] = high;
  }
}

template class PackingState<std::int32_t>;
template class PackingState<std::int64_t>;

}  // namespace modelplan::solver
