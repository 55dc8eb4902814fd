#include "packing_search.hpp"

#include <algorithm>
#include <limits>

namespace modelplan::solver {
namespace {

constexpr std::size_t kMostChanges = std::size_t{1} << 22;

bool counts(Pick pick) { return pick == Pick::kCandidates || pick == Pick::kWeightedCandidates; }

bool weighs(Pick pick) {
  return pick == Pick::kWeightedSlack || pick == Pick::kCrowdedSlack || pick == Pick::kPaddedSlack ||
         pick == Pick::kWeightedCandidates;
}

}  // namespace

template <class Coord>
PackingSearch<Coord>::PackingSearch(const PackingInstance& instance, const Rules& rules, Poller& poller)
    : rules_(rules), propagation_(instance, rules, poller) {}

template <class Coord>
Verdict PackingSearch<Coord>::run(Bytes height, Style style, View<const Id> rank, std::int64_t nodes, Meter& meter,
                                  Id least) {
  pick_ = style.pick;
  tilt_ = style.mirrored ? -1e-7 : 0;
  exact_ = !state().instance.restricted;
  nodes_ = 0;
  decisions_.clear();
  if (!propagation_.start(height, rank, counts(pick_), weighs(pick_), meter)) return none();
  while (state().placed < state().instance.count()) {
    const bool hopeless = state().deepest < least && state().placed + (nodes - nodes_) < least;
    if (nodes_ >= nodes || hopeless || meter.exhausted()) return Verdict::kUnknown;
    Choice choice{};
    if (!(choose(choice) && decide(choice)) && !backtrack()) return none();
  }
  return Verdict::kFeasible;
}

template <class Coord>
Array<Bytes> PackingSearch<Coord>::offsets() const {
  Array<Bytes> found;
  for (const Slot& slot : propagation_.state.slots) found.push_back(slot.low);
  return found;
}

template <class Coord>
View<const Id> PackingSearch<Coord>::failed_members(Random& random) const {
  const SectionRange& failed = propagation_.failed();
  if (failed.first >= failed.last) return {};
  return propagation_.state.members(static_cast<Id>(failed.first + random.below(failed.last - failed.first)));
}

// --- what to place next ----------------------------------------------------------------------------------------

template <class Coord>
Id PackingSearch<Coord>::lowest_member(Id section) {
  Id best = -1;
  Coord low = PackingState<Coord>::kGone;
  for (const Id member : state().remaining_members(section)) {
    const Coord own = state().floor[member];
    if (own > low || (own == low && state().slots[best].rank < state().slots[member].rank)) continue;
    best = member;
    low = own;
  }
  state().meter->add(state().remaining[section]);
  return best;
}

// The lowest of all unplaced items; of several the one in the first section, or in the last when mirrored.
template <class Coord>
Id PackingSearch<Coord>::lowest_item() {
  const Coord low = *std::min_element(state().floor.begin(), state().floor.end());
  state().meter->add(state().instance.count() / 16);
  Id best = -1;
  for (Id i = 0; i < state().instance.count(); ++i) {
    if (state().floor[i] != low) continue;
    const Slot &a = state().slots[i], *b = best < 0 ? nullptr : &state().slots[best];
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
  PackingState<Coord>& now = state();
  for (std::int64_t steps = 0;; ++steps) {
    const Coord low = now.slots[item].low;
    Id next = -1;
    Coord lifted = std::numeric_limits<Coord>::max();
    now.visit_unplaced_neighbours(item, [&](Id d) {
      const Slot& other = now.slots[d];
      const Coord end = static_cast<Coord>(other.low + now.distance(d, item));
      lifted = std::min(lifted, end);
      if (end > low) return;
      if (now.has_facts && other.low == low && now.distance(item, d) == 0) return;  // either may come first
      if (next < 0 || other.low < now.slots[next].low ||
          (other.low == now.slots[next].low && other.rank < now.slots[next].rank))
        next = d;
    });
    if (next >= 0 && now.has_facts &&
        steps > now.instance.count()) {  // a ring of full overlaps: no order is without loss
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
                                                  : lowest_member(state().keys.best([this](Id s) { return key(s); })));
    const Slot& slot = state().slots[choice.item];
    if (!rules_.support || propagation_.supported(choice.item) || choice.lifted <= slot.low) return true;
    // Nothing placed holds it up at this height, so it rests on an unplaced neighbour.
    if (choice.lifted == std::numeric_limits<Coord>::max()) return propagation_.fail(slot.first, slot.last);
    if (!propagation_.raise(choice.item, choice.lifted) || !propagation_.propagate()) return false;
  }
}

template <class Coord>
Id PackingSearch<Coord>::candidates(Id section) {
  const Coord latest = state().latest[section];
  Id count = 0;
  for (const Id member : state().remaining_members(section)) count += state().floor[member] <= latest;
  state().meter->add(state().remaining[section]);
  return count;
}

template <class Coord>
double PackingSearch<Coord>::key(Id section) {
  return untilted_key(section) + tilt_ * section;
}

template <class Coord>
double PackingSearch<Coord>::untilted_key(Id section) {
  const auto s = as_size(section);
  if (state().remaining[s] == 0) return SectionTree::kNone;
  const double slack = static_cast<double>(state().latest[s] - state().top[s]), weight = propagation_.weight(section);
  const double crowd = state().counting
                           ? candidates(section) + 0.5 * static_cast<double>(state().top[s]) /
                                                       std::max<double>(1, static_cast<double>(state().height))
                           : 0;  // ties: lowest
  switch (pick_) {
    case Pick::kLowestBuffer:  // found without sections
      return 0;
    case Pick::kSlack:
      return slack;
    case Pick::kWeightedSlack:
      return slack / weight;
    case Pick::kLowestTop:
      return static_cast<double>(state().top[s]);
    case Pick::kCrowdedSlack:
      return slack * state().remaining[s] / weight;
    case Pick::kPaddedSlack:
      return (slack + static_cast<double>(state().height) / 64) / weight;
    case Pick::kCandidates:
      return crowd;
    case Pick::kWeightedCandidates:
      return crowd / weight;
  }
  return 0;
}

// --- branching ---------------------------------------------------------------------------------------------------

// The left branch: the buffer goes where its low is. False if that leaves no solution.
template <class Coord>
bool PackingSearch<Coord>::decide(const Choice& choice) {
  if (state().mark().changes > kMostChanges) forget();
  decisions_.push_back({choice.item, choice.lifted, state().mark()});
  ++nodes_;
  return propagation_.place(choice.item) && propagation_.propagate();
}

// Makes the older half of the decisions final, to bound the memory of the trail: no proof can follow.
template <class Coord>
void PackingSearch<Coord>::forget() {
  if (decisions_.size() < 2) return;
  const auto half = static_cast<std::ptrdiff_t>(decisions_.size() / 2);
  const Mark first = decisions_[half].mark;
  state().forget_before(first);
  decisions_.erase(decisions_.begin(), decisions_.begin() + half);
  for (Decision& decision : decisions_) {
    decision.mark.changes -= first.changes;
    decision.mark.tops -= first.tops;
  }
  exact_ = false;
}

// The sections that are joined to the range by unplaced buffers: a failure in the range follows from what is known
// about these alone.
template <class Coord>
SectionRange PackingSearch<Coord>::joined_to(SectionRange range) const {
  const PaddedArray<Id>& crossing = propagation_.state.crossing;
  while (range.first > 0 && crossing[range.first - 1] > 0) --range.first;
  while (range.last < std::ssize(crossing) && crossing[range.last - 1] > 0) ++range.last;
  return range;
}

// Leaves failed branches until an untried right branch holds: there the buffer lies above its low. False when none is
// left. A decision that the failure does not depend on is taken back without trying its right branch (backjumping).
template <class Coord>
bool PackingSearch<Coord>::backtrack() {
  propagation_.leave_failure();
  SectionRange failed = joined_to(propagation_.failed());
  while (!decisions_.empty()) {
    const Decision decision = decisions_.back();
    decisions_.pop_back();
    state().take_back(decision.item, decision.mark);
    const Slot& own = state().slots[decision.item];
    if (rules_.backjump && !failed.meets(own.first, own.last)) continue;
    if (own.pinned || decision.lifted == std::numeric_limits<Coord>::max()) {
      propagation_.fail(own.first, own.last);
    } else if (propagation_.raise(decision.item, std::max<Coord>(decision.lifted, own.low + 1)) &&
               propagation_.propagate()) {
      return true;
    }
    propagation_.leave_failure();
    failed = joined_to(propagation_.failed());
    if (failed.meets(own.first, own.last)) failed = joined_to({own.first, own.last});
  }
  return false;
}

template class PackingSearch<std::int32_t>;
template class PackingSearch<std::int64_t>;

}  // namespace modelplan::solver
