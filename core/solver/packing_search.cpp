#include "packing_search.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace modelplan::solver {
namespace {

constexpr std::size_t kMostPinnedPairs = std::size_t{1} << 22;
constexpr std::size_t kMostChanges = std::size_t{1} << 22;

}  // namespace

template <class Coord>
PackingSearch<Coord>::PackingSearch(const PackingInstance& instance, const Rules& rules, Poller& poller)
    : instance_(instance),
      rules_(rules),
      adjusted_(instance.aligned || (instance.pinned && rules.pin_jump)),
      facts_(instance.has_facts()),
      slots_(instance.items.size()),
      floor_(instance.items.size()),
      unplaced_((instance.items.size() + 63) / 64),
      remaining_(instance.load.size()),
      listed_(instance.load.size()),
      top_(instance.load.size()),
      latest_(instance.load.size()),
      first_watch_(instance.load.size()),
      second_watch_(instance.load.size()),
      single_(instance.load.size()),
      weight_(instance.load.size()),
      crossing_(instance.load.size()),
      coarse_(instance.sections() > kCoarse),
      latest_low_(instance.load.size() / kBlock + 1),
      latest_high_(instance.load.size() / kBlock + 1),
      tree_(instance.load.size()),
      is_dirty_(instance.load.size()) {
  build_members(poller);
  if (instance.pinned && rules.pin_jump) build_pin_lists(poller);
}

template <class Coord>
void PackingSearch<Coord>::build_members(Poller& poller) {
  begin_.assign(instance_.load.size() + 1, 0);
  std::int64_t entries = 0;
  for (Id i = 0; i < instance_.count(); ++i) {
    const Item& item = instance_.items[i];
    Slot& slot = slots_[i];
    slot.size = static_cast<Coord>(item.size);
    slot.first = item.first;
    slot.last = item.last;
    slot.twin = item.twin;
    slot.pinned = item.pin >= 0;
    entries += item.last - item.first;
    poller.count(item.last - item.first);
    for (Id s = item.first; s < item.last; ++s) ++begin_[s + 1];
  }
  for (std::size_t s = 1; s < begin_.size(); ++s) begin_[s] += begin_[s - 1];
  members_.resize(entries);
  fill_members(poller);
}

// In the order of items, whatever earlier runs did: a run depends on nothing but its arguments.
template <class Coord>
void PackingSearch<Coord>::fill_members(Poller& poller) {
  std::fill(remaining_.begin(), remaining_.end(), 0);
  for (Id i = 0; i < instance_.count(); ++i) {
    poller.count(slots_[i].last - slots_[i].first);
    for (Id s = slots_[i].first; s < slots_[i].last; ++s) members_[begin_[s] + remaining_[s]++] = i;
  }
  listed_ = remaining_;
}

// Members of a section that are not placed. Placed ones are sorted out when somebody asks, not when they are placed:
// most sections are not asked about between two placements.
template <class Coord>
inline View<const Id> PackingSearch<Coord>::remaining_members(Id section) {
  Id* members = members_.data() + begin_[section];
  const Id count = remaining_[section];
  Id& listed = listed_[section];
  if (listed > count) {
    for (Id k = 0; k < count; ++k)
      while (floor_[members[k]] == kGone) std::swap(members[k], members[--listed]);
    listed = count;
  }
  return {members, as_size(count)};
}

// Gives the rule up (it is one of inference only) when the lists would outgrow the instance.
template <class Coord>
void PackingSearch<Coord>::build_pin_lists(Poller& poller) {
  Array<std::pair<Id, Id>> pairs;  // item, pinned neighbour
  Array<Id> pinned;
  for (Id i = 0; i < instance_.count(); ++i)
    if (slots_[i].pinned) pinned.push_back(i);
  std::sort(pinned.begin(), pinned.end(), [&](Id a, Id b) { return instance_.items[a].pin < instance_.items[b].pin; });
  for (const Id p : pinned) {
    if (pairs.size() > kMostPinnedPairs) return;
    const Slot& own = slots_[p];
    poller.count(remaining_[own.first]);
    for (Id k = 0; k < remaining_[own.first]; ++k) pairs.emplace_back(members_[begin_[own.first] + k], p);
    for (Id i = instance_.starts[own.first + 1]; i < instance_.starts[own.last]; ++i) pairs.emplace_back(i, p);
  }
  std::erase_if(pairs, [&](const auto& pair) { return slots_[pair.first].pinned; });
  std::stable_sort(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  pins_begin_.assign(slots_.size() + 1, 0);
  for (const auto& [item, pin] : pairs) {
    ++pins_begin_[item + 1];
    pins_.push_back(pin);
  }
  for (std::size_t i = 1; i < pins_begin_.size(); ++i) pins_begin_[i] += pins_begin_[i - 1];
}

// --- limits on offsets ---------------------------------------------------------------------------------------

template <class Coord>
inline Coord PackingSearch<Coord>::distance(Id below, Id above) const {
  if (!facts_) return slots_[below].size;
  return static_cast<Coord>(instance_.distance(below, above));
}

// The lowest offset >= `offset` that is aligned and does not meet a pinned neighbour.
template <class Coord>
Coord PackingSearch<Coord>::admissible(Id item, Coord offset) const {
  if (slots_[item].pinned) return offset;
  const auto alignment = static_cast<Coord>(instance_.items[item].alignment);
  for (;;) {
    const Coord rest = static_cast<Coord>(offset % alignment);
    if (rest != 0) offset = static_cast<Coord>(offset + alignment - rest);
    const Coord clear = past_pins(item, offset);
    if (clear == offset) return offset;
    offset = clear;
  }
}

template <class Coord>
Coord PackingSearch<Coord>::past_pins(Id item, Coord offset) const {
  if (pins_begin_.empty()) return offset;
  for (std::size_t k = pins_begin_[item]; k < pins_begin_[item + 1]; ++k) {
    const auto pin = static_cast<Coord>(instance_.items[pins_[k]].pin);
    const Coord clear = static_cast<Coord>(pin + distance(pins_[k], item));
    if (offset + distance(item, pins_[k]) > pin && offset < clear) offset = clear;
  }
  return offset;
}

template <class Coord>
inline bool PackingSearch<Coord>::supported(Id item) const {
  const Slot& slot = slots_[item];
  if (slot.pinned || slot.support == slot.low) return true;
  return adjusted_ && admissible(item, slot.support) >= slot.low;
}

// --- a run -----------------------------------------------------------------------------------------------------

template <class Coord>
Verdict PackingSearch<Coord>::run(Bytes height, Style style, View<const Id> rank, std::int64_t nodes, Meter& meter,
                                  Id least) {
  const Pick pick = style.pick;
  pick_ = pick;
  tilt_ = style.mirrored ? -1e-7 : 0;
  counting_ = pick == Pick::kCandidates || pick == Pick::kWeightedCandidates;
  swept_ = !counting_ && !coarse_;
  weighted_ = pick == Pick::kWeightedSlack || pick == Pick::kCrowdedSlack || pick == Pick::kPaddedSlack ||
              pick == Pick::kWeightedCandidates;
  meter_ = &meter;
  exact_ = !instance_.restricted;
  bool sound = reset(height, rank) && start_lows() && propagate();
  changes_.clear();
  if (!sound) return exact_ ? Verdict::kInfeasible : Verdict::kUnknown;
  while (placed_ < instance_.count()) {
    const bool hopeless = deepest_ < least && placed_ + (nodes - nodes_) < least;
    if (nodes_ >= nodes || hopeless || meter.exhausted()) return Verdict::kUnknown;
    Choice choice{};
    sound = choose(choice);
    if (sound) {
      if (changes_.size() > kMostChanges) forget();
      decisions_.push_back({choice.item, choice.lifted, changes_.size(), tops_.size()});
      ++nodes_;
      sound = place(choice.item) && propagate();
    }
    if (!sound && !backtrack()) return exact_ ? Verdict::kInfeasible : Verdict::kUnknown;
  }
  return Verdict::kFeasible;
}

// False if a buffer alone does not fit.
template <class Coord>
bool PackingSearch<Coord>::reset(Bytes height, View<const Id> rank) {
  placed_ = deepest_ = failed_first_ = failed_last_ = trouble_first_ = trouble_last_ = 0;
  nodes_ = 0;
  ++epoch_;
  height_ = static_cast<Coord>(height / instance_.unit);
  changes_.clear();
  tops_.clear();
  decisions_.clear();
  forget_dirty();
  std::fill(unplaced_.begin(), unplaced_.end(), 0);
  std::fill(crossing_.begin(), crossing_.end(), 0);
  for (std::size_t s = 0; s < top_.size(); ++s) {
    top_[s] = 0;
    latest_[s] = static_cast<Coord>((height + instance_.top_pad[s]) / instance_.unit - instance_.load[s]);
    first_watch_[s] = second_watch_[s] = -1;
    weight_[s] = 1;
  }
  tree_.touch_all();
  Poller poller(meter_->signal());
  fill_members(poller);
  bound_blocks(0, instance_.sections());
  for (Id i = 0; i < instance_.count(); ++i) {
    const Item& item = instance_.items[i];
    Slot& slot = slots_[i];
    const Bytes room = height + item.pad - item.size * instance_.unit;
    if (room < std::max<Bytes>(item.pin, 0) * instance_.unit) return fail(slot.first, slot.last);
    slot.placed = slot.was_single = false;
    slot.low = floor_[i] = slot.pinned ? static_cast<Coord>(item.pin) : 0;
    slot.limit = slot.pinned ? slot.low : static_cast<Coord>(room / instance_.unit);
    slot.support = 0;
    slot.rank = rank[i];
    unplaced_[i / 64] |= std::uint64_t{1} << (i % 64);
    if (slot.last - slot.first > 1) {
      ++crossing_[slot.first];
      --crossing_[slot.last - 1];
    }
  }
  for (std::size_t s = 1; s < crossing_.size(); ++s) crossing_[s] += crossing_[s - 1];
  return true;
}

template <class Coord>
bool PackingSearch<Coord>::start_lows() {
  for (Id i = 0; i < instance_.count(); ++i) {
    if (adjusted_ && !slots_[i].pinned && !raise(i, admissible(i, 0))) return false;
    if (slots_[i].twin >= 0 && !raise(slots_[i].twin, slots_[i].low + slots_[i].size)) return false;
  }
  mark(0, instance_.sections());
  return true;
}

// --- inference ---------------------------------------------------------------------------------------------------

template <class Coord>
inline void PackingSearch<Coord>::mark(Id section) {
  if (is_dirty_[section]) return;
  is_dirty_[section] = 1;
  dirty_.push_back(section);
}

template <class Coord>
inline void PackingSearch<Coord>::mark(Id first, Id last) {
  if (swept_) {
    dirty_first_ = std::min(dirty_first_, first);
    dirty_last_ = std::max(dirty_last_, last);
  } else {
    for (Id s = first; s < last; ++s) mark(s);
  }
}

template <class Coord>
void PackingSearch<Coord>::forget_dirty() {
  for (const Id s : dirty_) is_dirty_[s] = 0;
  dirty_.clear();
  dirty_first_ = instance_.sections();
  dirty_last_ = 0;
}

// Notes that the offset of `item` is at least `offset`; false if that is too high.
template <class Coord>
bool PackingSearch<Coord>::raise(Id item, Coord offset) {
  const Slot& slot = slots_[item];
  if (offset <= slot.low) return true;
  changes_.push_back({item, slot.low, slot.support});
  return lift(item, offset);
}

// The same when the change is on the trail already.
template <class Coord>
bool PackingSearch<Coord>::lift(Id item, Coord offset) {
  Slot& slot = slots_[item];
  if (adjusted_) offset = admissible(item, offset);
  if (offset > slot.limit) return fail(slot.first, slot.last);
  const Coord before = slot.low;
  slot.low = floor_[item] = offset;
  note_loss(slot, item, before, offset);
  return slot.twin < 0 || raise(slot.twin, static_cast<Coord>(offset + slot.size));  // a twin lies above
}

// Marks the sections whose set of possible lowest buffers shrinks, or whose single candidate rises. Where the
// sections are many, blocks of them in which neither can be are passed over.
template <class Coord>
inline void PackingSearch<Coord>::note_loss(const Slot& slot, Id item, Coord before, Coord after) {
  if (swept_) return mark(slot.first, slot.last);
  if (!coarse_) return note_loss_in(slot.first, slot.last, item, before, after);
  meter_->add((slot.last - slot.first) / kBlock);
  for (Id begin = slot.first; begin < slot.last; begin = (begin / kBlock + 1) * kBlock) {
    const auto block = as_size(begin / kBlock);
    if (before > latest_high_[block]) continue;
    if (after <= latest_low_[block] && !slot.was_single) continue;
    note_loss_in(begin, std::min(slot.last, (begin / kBlock + 1) * kBlock), item, before, after);
  }
}

template <class Coord>
inline void PackingSearch<Coord>::note_loss_in(Id first, Id last, Id item, Coord before, Coord after) {
  for (Id s = first; s < last; s += kStride) {
    const Id end = std::min(last, s + kStride);
    if (any_loss(s, end, item, before, after)) note_loss_at(s, end, item, before, after);
  }
}

// Whether note_loss_at() has anything to mark; written so that compilers use vector instructions, as this is
// where a search spends most of its time.
template <class Coord>
inline bool PackingSearch<Coord>::any_loss(Id first, Id last, Id item, Coord before, Coord after) const {
  const Coord* latest = latest_.data() + first;
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
inline void PackingSearch<Coord>::note_loss_at(Id first, Id last, Id item, Coord before, Coord after) {
  for (Id s = first; s < last; ++s) {
    if (before > latest_[s]) continue;
    if (after > latest_[s]) {
      mark(s);
      if (counting_) tree_.touch(s);
    } else if (first_watch_[s] == item) {
      mark(s);
    }
  }
}

// Brings the bounds of `latest` up to date in the blocks that meet [first, last).
template <class Coord>
void PackingSearch<Coord>::bound_blocks(Id first, Id last) {
  if (!coarse_) return;
  for (Id block = first / kBlock; block * kBlock < last; ++block) {
    const auto begin = latest_.begin() + block * kBlock;
    const auto end = latest_.begin() + std::min(instance_.sections(), (block + 1) * kBlock);
    Coord low = *begin, high = *begin;
    for (auto it = begin; it != end; ++it) {
      low = std::min(low, *it);
      high = std::max(high, *it);
    }
    latest_low_[block] = low;
    latest_high_[block] = high;
  }
}

template <class Coord>
bool PackingSearch<Coord>::propagate() {
  if (swept_) return sweep();
  while (!dirty_.empty()) {
    const Id s = dirty_.back();
    dirty_.pop_back();
    is_dirty_[s] = 0;
    if (rules_.section_check && !check(s)) return false;
  }
  return true;
}

// Checks the marked range from left to right; what is marked meanwhile on the left of that comes again.
template <class Coord>
bool PackingSearch<Coord>::sweep() {
  if (!rules_.section_check) forget_dirty();
  while (dirty_first_ < dirty_last_) {
    Id last = std::exchange(dirty_last_, 0), again_first = instance_.sections(), again_last = 0;
    for (Id s = std::exchange(dirty_first_, instance_.sections()); s < last; ++s) {
      if (!check(s)) return false;
      if (dirty_first_ >= dirty_last_) continue;
      last = std::max(last, std::exchange(dirty_last_, 0));
      again_first = std::min(again_first, std::exchange(dirty_first_, instance_.sections()));
      again_last = s + 1;
    }
    dirty_first_ = again_first;
    dirty_last_ = again_last;
  }
  return true;
}

// The lowest remaining buffer of a section starts at latest[s] or below: some buffer must be able to.
template <class Coord>
bool PackingSearch<Coord>::check(Id section) {
  if (remaining_[section] == 0) return true;
  const Coord latest = latest_[section];
  Id& one = first_watch_[section];
  Id& two = second_watch_[section];
  if (one >= 0 && floor_[one] <= latest) {
    if (two >= 0 && floor_[two] <= latest) return true;
    // Nobody else can have become a candidate since `one` was found to be the only one.
    const Single& last = single_[section];
    if (last.item == one && last.latest == latest && last.epoch == epoch_) return lift_others(section, one);
  }
  one = two = -1;
  std::int64_t seen = 0;
  for (const Id member : remaining_members(section)) {
    ++seen;
    if (floor_[member] > latest) continue;
    if (one >= 0) {
      two = member;
      break;
    }
    one = member;
  }
  meter_->add(seen);
  if (one < 0) return fail(section, section + 1);
  return two >= 0 || !rules_.single_candidate || lift_others(section, one);
}

// Only `lowest` can be the lowest of the section, so all others lie above it.
template <class Coord>
bool PackingSearch<Coord>::lift_others(Id section, Id lowest) {
  const Coord low = slots_[lowest].low, latest = latest_[section];
  slots_[lowest].was_single = true;
  Single& last = single_[section];
  if (last.epoch == epoch_ && last.item == lowest && last.low == low && last.latest == latest) return true;
  meter_->add(remaining_[section]);
  for (const Id member : remaining_members(section))
    if (member != lowest && !raise(member, static_cast<Coord>(low + distance(lowest, member)))) return false;
  last = {epoch_, lowest, low, latest};
  return true;
}

template <class Coord>
bool PackingSearch<Coord>::fail(Id first, Id last) {
  failed_first_ = trouble_first_ = first;
  failed_last_ = trouble_last_ = last;
  if (!weighted_) return false;
  const float part = 1.0f / static_cast<float>(last - first);
  for (Id s = first; s < last; ++s) {
    weight_[s] += part;
    tree_.touch(s);
  }
  return false;
}

template <class Coord>
View<const Id> PackingSearch<Coord>::trouble(Random& random) const {
  if (trouble_first_ >= trouble_last_) return {};
  const std::size_t s = as_size(trouble_first_ + random.below(trouble_last_ - trouble_first_));
  return std::span(members_).subspan(as_size(begin_[s]), as_size(begin_[s + 1] - begin_[s]));
}

// --- what to place next ----------------------------------------------------------------------------------------

template <class Coord>
template <class Visit>
inline bool PackingSearch<Coord>::all_unplaced_neighbours(Id item, const Visit& visit) {
  const Slot& own = slots_[item];
  std::int64_t seen = remaining_[own.first];
  for (const Id member : remaining_members(own.first))
    if (member != item && !visit(member)) return false;
  const Id begin = instance_.starts[own.first + 1], end = instance_.starts[own.last];
  for (Id word = begin / 64; word * 64 < end; ++word) {
    std::uint64_t bits = unplaced_[word];
    if (word == begin / 64) bits &= ~std::uint64_t{0} << (begin % 64);
    if (end - word * 64 < 64) bits &= (std::uint64_t{1} << (end % 64)) - 1;
    for (++seen; bits != 0; bits &= bits - 1, ++seen)
      if (!visit(static_cast<Id>(word * 64 + __builtin_ctzll(bits)))) return false;
  }
  meter_->add(seen);
  return true;
}

template <class Coord>
template <class Visit>
inline void PackingSearch<Coord>::visit_unplaced_neighbours(Id item, const Visit& visit) {
  all_unplaced_neighbours(item, [&](Id d) {
    visit(d);
    return true;
  });
}

template <class Coord>
Id PackingSearch<Coord>::lowest_member(Id section) {
  Id best = -1;
  Coord low = kGone;
  for (const Id member : remaining_members(section)) {
    const Coord own = floor_[member];
    if (own > low || (own == low && slots_[best].rank < slots_[member].rank)) continue;
    best = member;
    low = own;
  }
  meter_->add(remaining_[section]);
  return best;
}

// The lowest of all unplaced items; of several the one in the first section, or in the last when mirrored.
template <class Coord>
Id PackingSearch<Coord>::lowest_item() {
  const Coord low = *std::min_element(floor_.begin(), floor_.end());
  meter_->add(instance_.count() / 16);
  Id best = -1;
  for (Id i = 0; i < instance_.count(); ++i) {
    if (floor_[i] != low) continue;
    const Slot &a = slots_[i], *b = best < 0 ? nullptr : &slots_[best];
    const Id before = b == nullptr ? -1 : tilt_ < 0 ? b->last - a.last : a.first - b->first;
    if (before < 0 || (before == 0 && a.rank < b->rank)) best = i;
  }
  return best;
}

// Goes down from `item` to a buffer below which no unplaced neighbour can go:
//
//        +--------+ item at its low
//   +--------+----+        while a neighbour d could lie under it (low[d] + distance <= low[item]), go to d
//   |   d    |
//   +--------+
template <class Coord>
typename PackingSearch<Coord>::Choice PackingSearch<Coord>::descend(Id item) {
  for (std::int64_t steps = 0;; ++steps) {
    const Coord low = slots_[item].low;
    Id next = -1;
    Coord lifted = std::numeric_limits<Coord>::max();
    visit_unplaced_neighbours(item, [&](Id d) {
      const Slot& other = slots_[d];
      const Coord end = static_cast<Coord>(other.low + distance(d, item));
      lifted = std::min(lifted, end);
      if (end > low) return;
      if (facts_ && other.low == low && distance(item, d) == 0) return;  // either may come first
      if (next < 0 || other.low < slots_[next].low || (other.low == slots_[next].low && other.rank < slots_[next].rank))
        next = d;
    });
    if (next >= 0 && facts_ && steps > instance_.count()) {  // a ring of full overlaps: no order is without loss
      exact_ = false;
      next = -1;
    }
    if (next < 0) return {item, lifted};
    item = next;
  }
}

// Finds the next buffer to place; false if the state has no solution.
template <class Coord>
bool PackingSearch<Coord>::choose(Choice& choice) {
  for (;;) {
    choice = descend(pick_ == Pick::kLowestBuffer ? lowest_item()
                                                  : lowest_member(tree_.best([this](Id s) { return key(s); })));
    const Slot& slot = slots_[choice.item];
    if (!rules_.support || supported(choice.item) || choice.lifted <= slot.low) return true;
    // Nothing placed holds it up at this height, so it rests on an unplaced neighbour.
    if (choice.lifted == std::numeric_limits<Coord>::max()) return fail(slot.first, slot.last);
    if (!raise(choice.item, choice.lifted) || !propagate()) return false;
  }
}

template <class Coord>
Id PackingSearch<Coord>::candidates(Id section) {
  const Coord latest = latest_[section];
  Id count = 0;
  for (const Id member : remaining_members(section)) count += floor_[member] <= latest;
  meter_->add(remaining_[section]);
  return count;
}

template <class Coord>
double PackingSearch<Coord>::key(Id section) {
  return untilted_key(section) + tilt_ * section;
}

template <class Coord>
double PackingSearch<Coord>::untilted_key(Id section) {
  const auto s = as_size(section);
  if (remaining_[s] == 0) return SectionTree::kNone;
  const double slack = static_cast<double>(latest_[s] - top_[s]), weight = static_cast<double>(weight_[s]);
  const double crowd = counting_ ? candidates(section) + 0.5 * static_cast<double>(top_[s]) /
                                                             std::max<double>(1, static_cast<double>(height_))
                                 : 0;  // ties: lowest
  switch (pick_) {
    case Pick::kLowestBuffer:  // found without sections
      return 0;
    case Pick::kSlack:
      return slack;
    case Pick::kWeightedSlack:
      return slack / weight;
    case Pick::kLowestTop:
      return static_cast<double>(top_[s]);
    case Pick::kCrowdedSlack:
      return slack * remaining_[s] / weight;
    case Pick::kPaddedSlack:
      return (slack + static_cast<double>(height_) / 64) / weight;
    case Pick::kCandidates:
      return crowd;
    case Pick::kWeightedCandidates:
      return crowd / weight;
  }
  return 0;
}

// --- placing and undoing -----------------------------------------------------------------------------------------

// Fixes `item` at its low; all unplaced neighbours lie above it. False if that leaves no solution.
template <class Coord>
bool PackingSearch<Coord>::place(Id item) {
  Slot& own = slots_[item];
  own.placed = true;
  floor_[item] = kGone;
  unplaced_[item / 64] &= ~(std::uint64_t{1} << (item % 64));
  deepest_ = std::max(deepest_, ++placed_);
  enter_sections(item);
  if (facts_) share_savings(item, 1);
  bound_blocks(own.first, own.last);
  return push_neighbours(item);
}

template <class Coord>
void PackingSearch<Coord>::enter_sections(Id item) {
  const Slot& own = slots_[item];
  const Coord end = static_cast<Coord>(own.low + own.size);
  for (Id s = own.first; s < own.last; ++s) {
    --remaining_[s];
    tops_.push_back({top_[s], listed_[s]});
    top_[s] = std::max(top_[s], end);
    latest_[s] = static_cast<Coord>(latest_[s] + own.size);
    if (s + 1 < own.last) --crossing_[s];
    tree_.touch(s);
  }
  mark(own.first, own.last);
}

template <class Coord>
void PackingSearch<Coord>::leave_sections(Id item) {
  const Slot& own = slots_[item];
  for (Id s = own.last - 1; s >= own.first; --s) {
    ++remaining_[s];
    listed_[s] = tops_.back().listed;
    top_[s] = tops_.back().top;
    tops_.pop_back();
    latest_[s] = static_cast<Coord>(latest_[s] - own.size);
    if (s + 1 < own.last) ++crossing_[s];
    tree_.touch(s);
  }
}

// A pair saves space only while neither is placed; `latest` counts the savings of the pairs that are left.
template <class Coord>
void PackingSearch<Coord>::share_savings(Id item, int sign) {
  for (std::size_t k = instance_.fact_begin[item]; k < instance_.fact_begin[item + 1]; ++k) {
    const Fact& fact = instance_.facts[k];
    const Slot &own = slots_[item], &other = slots_[fact.other];
    if (other.placed) continue;
    for (Id s = std::max(own.first, other.first); s < std::min(own.last, other.last); ++s)
      latest_[s] = static_cast<Coord>(latest_[s] - sign * fact.saving);
  }
}

template <class Coord>
bool PackingSearch<Coord>::push_neighbours(Id item) {
  const Coord low = slots_[item].low;
  return all_unplaced_neighbours(item, [&](Id d) {
    Slot& other = slots_[d];
    const Coord end = static_cast<Coord>(low + distance(item, d));
    if (end <= other.support) return true;
    changes_.push_back({d, other.low, other.support});
    other.support = end;
    return end <= other.low || lift(d, end);
  });
}

template <class Coord>
void PackingSearch<Coord>::undo(const Decision& decision) {
  Slot& own = slots_[decision.item];
  if (facts_) share_savings(decision.item, -1);
  leave_sections(decision.item);
  bound_blocks(own.first, own.last);
  own.placed = false;
  floor_[decision.item] = own.low;
  unplaced_[decision.item / 64] |= std::uint64_t{1} << (decision.item % 64);
  --placed_;
  for (; changes_.size() > decision.changes; changes_.pop_back()) {
    const Change& change = changes_.back();
    Slot& slot = slots_[change.item];
    if (counting_ && slot.low != change.low)
      for (Id s = slot.first; s < slot.last; ++s)
        if (change.low <= latest_[s] && slot.low > latest_[s]) tree_.touch(s);
    slot.low = floor_[change.item] = change.low;
    slot.support = change.support;
  }
}

// Makes the older half of the decisions final, to bound the memory of the trail: no proof can follow.
template <class Coord>
void PackingSearch<Coord>::forget() {
  if (decisions_.size() < 2) return;
  const auto half = static_cast<std::ptrdiff_t>(decisions_.size() / 2);
  const Decision first = decisions_[half];
  changes_.erase(changes_.begin(), changes_.begin() + static_cast<std::ptrdiff_t>(first.changes));
  tops_.erase(tops_.begin(), tops_.begin() + static_cast<std::ptrdiff_t>(first.tops));
  decisions_.erase(decisions_.begin(), decisions_.begin() + half);
  for (Decision& decision : decisions_) {
    decision.changes -= first.changes;
    decision.tops -= first.tops;
  }
  exact_ = false;
}

// Extends the failed range to the sections that are joined to it by unplaced buffers: the failure follows from
// what is known about these alone.
template <class Coord>
void PackingSearch<Coord>::widen_failure(Id first, Id last) {
  while (first > 0 && crossing_[first - 1] > 0) --first;
  while (last < instance_.sections() && crossing_[last - 1] > 0) ++last;
  failed_first_ = first;
  failed_last_ = last;
}

// Leaves failed branches until an untried right branch holds; false when none is left.
template <class Coord>
bool PackingSearch<Coord>::backtrack() {
  forget_dirty();
  ++epoch_;
  widen_failure(failed_first_, failed_last_);
  while (!decisions_.empty()) {
    const Decision decision = decisions_.back();
    decisions_.pop_back();
    undo(decision);
    const Slot& own = slots_[decision.item];
    const auto involved = [&] { return own.first < failed_last_ && failed_first_ < own.last; };
    if (rules_.backjump && !involved()) continue;
    if (own.pinned || decision.lifted == std::numeric_limits<Coord>::max()) {
      fail(own.first, own.last);
    } else if (raise(decision.item, std::max<Coord>(decision.lifted, own.low + 1)) && propagate()) {
      return true;
    }
    forget_dirty();
    ++epoch_;
    widen_failure(failed_first_, failed_last_);
    if (involved()) widen_failure(own.first, own.last);
  }
  return false;
}

template class PackingSearch<std::int32_t>;
template class PackingSearch<std::int64_t>;

}  // namespace modelplan::solver
