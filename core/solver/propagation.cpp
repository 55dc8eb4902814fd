#include "propagation.hpp"

#include <algorithm>
#include <utility>

namespace modelplan::solver {
namespace {

constexpr std::size_t kMostPinnedPairs = std::size_t{1} << 22;

}  // namespace

template <class Coord>
Propagation<Coord>::Propagation(const PackingInstance& instance, const Rules& rules, Poller& poller)
    : state(instance, poller),
      rules_(rules),
      adjusted_(instance.aligned || (instance.pinned && rules.pin_jump)),
      first_watch_(instance.load.size()),
      second_watch_(instance.load.size()),
      single_(instance.load.size()),
      weight_(instance.load.size()),
      is_marked_(instance.load.size()) {
  if (instance.pinned && rules.pin_jump) list_pins(poller);
}

// Gives the rule up (it is one of inference only) when the lists would outgrow the instance.
template <class Coord>
void Propagation<Coord>::list_pins(Poller& poller) {
  Array<std::pair<Id, Id>> pairs;  // item, pinned neighbour
  Array<Id> pinned;
  for (Id i = 0; i < state.instance.count(); ++i)
    if (state.slots[i].pinned) pinned.push_back(i);
  std::sort(pinned.begin(), pinned.end(),
            [&](Id a, Id b) { return state.instance.items[a].pin < state.instance.items[b].pin; });
  for (const Id p : pinned) {
    if (pairs.size() > kMostPinnedPairs) return;
    const Slot& own = state.slots[p];
    poller.count(state.remaining[own.first]);
    for (const Id i : state.members(own.first)) pairs.emplace_back(i, p);
    for (Id i = state.instance.starts[own.first + 1]; i < state.instance.starts[own.last]; ++i)
      pairs.emplace_back(i, p);
  }
  std::erase_if(pairs, [&](const auto& pair) { return state.slots[pair.first].pinned; });
  std::stable_sort(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  pins_begin_.assign(state.slots.size() + 1, 0);
  for (const auto& [item, pin] : pairs) {
    ++pins_begin_[item + 1];
    pins_.push_back(pin);
  }
  for (std::size_t i = 1; i < pins_begin_.size(); ++i) pins_begin_[i] += pins_begin_[i - 1];
}

// --- limits on offsets ---------------------------------------------------------------------------------------

// The lowest offset >= `offset` that is aligned and does not meet a pinned neighbour.
template <class Coord>
Coord Propagation<Coord>::admissible(Id item, Coord offset) const {
  if (state.slots[item].pinned) return offset;
  const auto alignment = static_cast<Coord>(state.instance.items[item].alignment);
  for (;;) {
    const Coord rest = static_cast<Coord>(offset % alignment);
    if (rest != 0) offset = static_cast<Coord>(offset + alignment - rest);
    const Coord clear = past_pins(item, offset);
    if (clear == offset) return offset;
    offset = clear;
  }
}

template <class Coord>
Coord Propagation<Coord>::past_pins(Id item, Coord offset) const {
  if (pins_begin_.empty()) return offset;
  for (std::size_t k = pins_begin_[item]; k < pins_begin_[item + 1]; ++k) {
    const auto pin = static_cast<Coord>(state.instance.items[pins_[k]].pin);
    const Coord clear = static_cast<Coord>(pin + state.distance(pins_[k], item));
    if (offset + state.distance(item, pins_[k]) > pin && offset < clear) offset = clear;
  }
  return offset;
}

template <class Coord>
inline bool Propagation<Coord>::supported(Id item) const {
  const Slot& slot = state.slots[item];
  if (slot.pinned || slot.support == slot.low) return true;
  return adjusted_ && admissible(item, slot.support) >= slot.low;
}

// --- the start of a run ------------------------------------------------------------------------------------------

template <class Coord>
bool Propagation<Coord>::start(Bytes height, View<const Id> rank, bool counting, bool weighted, Meter& meter) {
  swept_ = !counting && !state.has_blocks;
  weighted_ = weighted;
  failed_ = {};
  leave_failure();
  std::fill(first_watch_.begin(), first_watch_.end(), -1);
  std::fill(second_watch_.begin(), second_watch_.end(), -1);
  std::fill(weight_.begin(), weight_.end(), 1.0f);
  const Id misfit = state.reset(height, rank, counting, meter);
  if (misfit >= 0) return fail(state.slots[misfit].first, state.slots[misfit].last);
  const bool sound = start_lows() && propagate();
  state.forget_before(state.mark());
  return sound;
}

template <class Coord>
bool Propagation<Coord>::start_lows() {
  for (Id i = 0; i < state.instance.count(); ++i) {
    if (adjusted_ && !state.slots[i].pinned && !raise(i, admissible(i, 0))) return false;
    if (state.slots[i].twin >= 0 && !raise(state.slots[i].twin, state.slots[i].low + state.slots[i].size)) return false;
  }
  mark(0, state.instance.sections());
  return true;
}

// --- inference ---------------------------------------------------------------------------------------------------

template <class Coord>
inline void Propagation<Coord>::mark(Id section) {
  if (is_marked_[section]) return;
  is_marked_[section] = 1;
  marked_.push_back(section);
}

template <class Coord>
inline void Propagation<Coord>::mark(Id first, Id last) {
  if (swept_) {
    marked_first_ = std::min(marked_first_, first);
    marked_last_ = std::max(marked_last_, last);
  } else {
    for (Id s = first; s < last; ++s) mark(s);
  }
}

template <class Coord>
void Propagation<Coord>::unmark_all() {
  for (const Id s : marked_) is_marked_[s] = 0;
  marked_.clear();
  marked_first_ = state.instance.sections();
  marked_last_ = 0;
}

template <class Coord>
void Propagation<Coord>::leave_failure() {
  unmark_all();
  ++epoch_;
}

template <class Coord>
bool Propagation<Coord>::place(Id item) {
  state.place(item);
  const Coord low = state.slots[item].low;
  mark(state.slots[item].first, state.slots[item].last);
  return state.all_unplaced_neighbours(item, [&](Id d) {
    Slot& other = state.slots[d];
    const Coord end = static_cast<Coord>(low + state.distance(item, d));
    if (end <= other.support) return true;
    state.remember(d, other);
    other.support = end;
    return end <= other.low || lift(d, end);
  });
}

template <class Coord>
bool Propagation<Coord>::raise(Id item, Coord offset) {
  const Slot& slot = state.slots[item];
  if (offset <= slot.low) return true;
  state.remember(item, slot);
  return lift(item, offset);
}

// The same when the item is remembered already.
template <class Coord>
bool Propagation<Coord>::lift(Id item, Coord offset) {
  Slot& slot = state.slots[item];
  if (adjusted_) offset = admissible(item, offset);
  if (offset > slot.limit) return fail(slot.first, slot.last);
  const Coord before = slot.low;
  slot.low = state.floor[item] = offset;
  note_loss(slot, item, before, offset);
  return slot.twin < 0 || raise(slot.twin, static_cast<Coord>(offset + slot.size));  // a twin lies above
}

// Marks the sections whose set of possible lowest buffers shrinks, or whose single candidate rises. Where the
// sections are many, blocks of them in which neither can be are passed over.
template <class Coord>
inline void Propagation<Coord>::note_loss(const Slot& slot, Id item, Coord before, Coord after) {
  if (swept_) return mark(slot.first, slot.last);
  if (!state.has_blocks) return note_loss_in(slot.first, slot.last, item, before, after);
  state.meter->add((slot.last - slot.first) / kBlock);
  for (Id begin = slot.first; begin < slot.last; begin = (begin / kBlock + 1) * kBlock) {
    const auto block = as_size(begin / kBlock);
    if (before > state.latest_high[block]) continue;
    if (after <= state.latest_low[block] && !slot.was_single) continue;
    note_loss_in(begin, std::min(slot.last, (begin / kBlock + 1) * kBlock), item, before, after);
  }
}

template <class Coord>
inline void Propagation<Coord>::note_loss_in(Id first, Id last, Id item, Coord before, Coord after) {
  for (Id s = first; s < last; s += kStride) {
    const Id end = std::min(last, s + kStride);
    if (any_loss(s, end, item, before, after)) note_loss_at(s, end, item, before, after);
  }
}

// Whether note_loss_at() has anything to mark; written so that compilers use vector instructions, as this is
// where a search spends most of its time.
template <class Coord>
inline bool Propagation<Coord>::any_loss(Id first, Id last, Id item, Coord before, Coord after) const {
  const Coord* latest = state.latest.data() + first;
  const Id* watch = first_watch_.data() + first;
  const auto loses = [&](Id k) {
    return static_cast<int>(before <= latest[k]) &
           (static_cast<int>(after > latest[k]) | static_cast<int>(watch[k] == item));
  };
  int any = 0;
  for (Id k = 0; k < last - first; ++k) any |= loses(k);
  return any != 0;
}

template <class Coord>
inline void Propagation<Coord>::note_loss_at(Id first, Id last, Id item, Coord before, Coord after) {
  for (Id s = first; s < last; ++s) {
    if (before > state.latest[s]) continue;
    if (after > state.latest[s]) {
      mark(s);
      if (state.counting) state.keys.touch(s);
    } else if (first_watch_[s] == item) {
      mark(s);
    }
  }
}

template <class Coord>
bool Propagation<Coord>::propagate() {
  if (swept_) return sweep();
  while (!marked_.empty()) {
    const Id s = marked_.back();
    marked_.pop_back();
    is_marked_[s] = 0;
    if (rules_.section_check && !check(s)) return false;
  }
  return true;
}

// Checks the marked range from left to right; what is marked meanwhile on the left of that comes again.
template <class Coord>
bool Propagation<Coord>::sweep() {
  if (!rules_.section_check) unmark_all();
  while (marked_first_ < marked_last_) {
    Id last = std::exchange(marked_last_, 0), again_first = state.instance.sections(), again_last = 0;
    for (Id s = std::exchange(marked_first_, state.instance.sections()); s < last; ++s) {
      if (!check(s)) return false;
      if (marked_first_ >= marked_last_) continue;
      last = std::max(last, std::exchange(marked_last_, 0));
      again_first = std::min(again_first, std::exchange(marked_first_, state.instance.sections()));
      again_last = s + 1;
    }
    marked_first_ = again_first;
    marked_last_ = again_last;
  }
  return true;
}

// The lowest remaining buffer of a section starts at latest[s] or below: some buffer must be able to.
template <class Coord>
bool Propagation<Coord>::check(Id section) {
  if (state.remaining[section] == 0) return true;
  const Coord latest = state.latest[section];
  Id& one = first_watch_[section];
  Id& two = second_watch_[section];
  if (one >= 0 && state.floor[one] <= latest) {
    if (two >= 0 && state.floor[two] <= latest) return true;
    // No other buffer can have become a candidate since `one` was found to be the only one.
    const Single& last = single_[section];
    if (last.item == one && last.latest == latest && last.epoch == epoch_) return lift_others(section, one);
  }
  one = two = -1;
  std::int64_t seen = 0;
  for (const Id member : state.remaining_members(section)) {
    ++seen;
    if (state.floor[member] > latest) continue;
    if (one >= 0) {
      two = member;
      break;
    }
    one = member;
  }
  state.meter->add(seen);
  if (one < 0) return fail(section, section + 1);
  return two >= 0 || !rules_.single_candidate || lift_others(section, one);
}

// Only `lowest` can be the lowest of the section, so all others lie above it.
template <class Coord>
bool Propagation<Coord>::lift_others(Id section, Id lowest) {
  const Coord low = state.slots[lowest].low, latest = state.latest[section];
  state.slots[lowest].was_single = true;
  Single& last = single_[section];
  if (last.epoch == epoch_ && last.item == lowest && last.low == low && last.latest == latest) return true;
  state.meter->add(state.remaining[section]);
  for (const Id member : state.remaining_members(section))
    if (member != lowest && !raise(member, static_cast<Coord>(low + state.distance(lowest, member)))) return false;
  last = {epoch_, lowest, low, latest};
  return true;
}

template <class Coord>
bool Propagation<Coord>::fail(Id first, Id last) {
  failed_ = {first, last};
  if (!weighted_) return false;
  const float part = 1.0f / static_cast<float>(last - first);
  for (Id s = first; s < last; ++s) {
    weight_[s] += part;
    state.keys.touch(s);
  }
  return false;
}

template class Propagation<std::int32_t>;
template class Propagation<std::int64_t>;

}  // namespace modelplan::solver
