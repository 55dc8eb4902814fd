#include "window.hpp"

#include <algorithm>
#include <limits>

#include "order.hpp"
#include "packing_search.hpp"

namespace modelplan::solver {
namespace {

constexpr double kFlankLoads[] = {0.9, 0.75, 0.6};  // of the height: a core ends where its sections carry less
constexpr Id kMostItems = 60'000;                   // larger windows are left alone
constexpr std::int64_t kMostWidth = 20'000'000;

struct Range {
  Id first, last;
  bool meets(const Item& item) const { return item.first < last && first < item.last; }
};

class Repair {
 public:
  Repair(const PackingInstance& instance, Bytes height, const Rules& rules, Array<Bytes>& offsets, Meter& meter)
      : instance_(instance), height_(height), rules_(rules), offsets_(offsets), meter_(meter) {
    reach_.resize(instance.load.size(), 0);
    Id furthest = 0;
    for (Id s = 0, i = 0; s < instance.sections(); ++s) {
      for (; i < instance.count() && instance.items[i].first == s; ++i)
        furthest = std::max(furthest, instance.items[i].last);
      reach_[s] = std::max(furthest, s + 1);
    }
    origin_.assign(instance.load.size(), 0);
    for (Id s = 0; s < instance.sections(); ++s) origin_[s] = s;
    for (const Item& item : instance.items) origin_[item.last - 1] = std::min(origin_[item.last - 1], item.first);
    for (Id s = instance.sections() - 1; s > 0; --s) origin_[s - 1] = std::min(origin_[s - 1], origin_[s]);
  }

  bool run() {
    bool changed = false;
    Id done = 0;  // sections before this belong to windows that were tried
    for (const Range& high : too_high()) {
      if (meter_.exhausted()) return changed;
      if (high.first < done) continue;
      for (const double load : kFlankLoads) {  // a wider core leaves lighter flanks
        const Range core = core_around(high, load);
        const Range window = {origin_[origin_[core.first]], reach_[reach_[(core.last - 1)] - 1]};
        const bool rebuilt = rebuild(core, window);
        changed |= rebuilt;
        done = window.last;
        if (rebuilt) break;
      }
    }
    return changed;
  }

 private:
  // Sections of the buffers that end too high, joined where they meet.
  Array<Range> too_high() const {
    Array<Range> ranges;
    for (Id i = 0; i < instance_.count(); ++i) {
      if (instance_.top(i, offsets_[i]) <= height_) continue;
      const Item& item = instance_.items[i];
      if (!ranges.empty() && item.first <= ranges.back().last)
        ranges.back().last = std::max(ranges.back().last, item.last);
      else
        ranges.push_back({item.first, item.last});
    }
    return ranges;
  }

  Range core_around(Range core, double load) const {
    const double least = load * static_cast<double>(height_ / instance_.unit);
    const auto heavy = [&](Id s) { return static_cast<double>(instance_.load[s]) > least; };
    for (;;) {  // a light gap narrower than a lifetime does not separate
      Range wider = {origin_[core.first], reach_[core.last - 1]};
      while (wider.first < core.first && !heavy(wider.first)) ++wider.first;
      while (wider.last > core.last && !heavy(wider.last - 1)) --wider.last;
      if (wider.first == core.first && wider.last == core.last) return core;
      core = wider;
    }
  }

  // Places the core by itself, then the rest of the window around it.
  bool rebuild(const Range& core, const Range& window) {
    Array<Id> inside, outside;
    std::int64_t width = 0;
    const Id begin = instance_.starts[origin_[window.first]];
    for (Id i = begin; i < instance_.starts[window.last]; ++i) {
      const Item& item = instance_.items[i];
      if (!window.meets(item)) continue;
      (core.meets(item) ? inside : outside).push_back(i);
      width += item.last - item.first;
    }
    meter_.add(static_cast<std::int64_t>(inside.size() + outside.size()));
    if (inside.size() + outside.size() > as_size(kMostItems) || width > kMostWidth) return false;
    Array<Bytes> pins(inside.size(), -1);
    Array<Bytes> found = solve(inside, pins);
    if (found.empty()) return false;
    pins = found;
    Array<Id> all = inside;
    for (const Id i : outside) {
      const Item& item = instance_.items[i];
      all.push_back(i);
      pins.push_back(item.first < window.first || item.last > window.last ? offsets_[i] : -1);
    }
    found = solve(all, pins);
    for (std::size_t k = 0; k < found.size(); ++k) offsets_[all[k]] = found[k];
    return !found.empty();
  }

  // Offsets of these items under the height, some of them pinned; empty if none were found.
  Array<Bytes> solve(const Array<Id>& ids, const Array<Bytes>& pins) {
    Array<Bytes> size, start, end, alignment;
    for (const Id i : ids) {
      const Item& item = instance_.items[i];
      size.push_back(item.size);
      start.push_back(item.first);
      end.push_back(item.last);
      alignment.push_back(item.alignment);
    }
    Poller poller(meter_.signal());
    const PackingInstance part =
        prepare({.size = size, .start = start, .end = end, .alignment = alignment, .pin = pins}, rules_, poller);
    const Bytes height = height_ / instance_.unit;
    if (part.pins_clash || part.bound > height) return {};
    if (height / part.unit < (Bytes{1} << 29)) return search<std::int32_t>(part, height);
    return search<std::int64_t>(part, height);
  }

  template <class Coord>
  Array<Bytes> search(const PackingInstance& part, Bytes height) {
    Poller poller(meter_.signal());
    const Orders orders(part, poller);
    PackingSearch<Coord> search(part, rules_, poller);
    Random random(0);
    const int tries = part.width <= kThoroughWidth ? kTries : 1;
    for (int round = 0; round < tries; ++round)
      for (const Pick pick : {Pick::kPaddedSlack, Pick::kSlack, Pick::kWeightedCandidates, Pick::kCandidates}) {
        if (part.width > kThoroughWidth && pick == Pick::kWeightedCandidates) break;
        for (const Traits& traits : kShapes) {
          const Array<Id> ranks = orders.ranks(traits, round > 0 ? 0.3 : 0, random, poller);
          if (search.run(height, {pick}, ranks, 2 * part.count() + 500, meter_) == Verdict::kFeasible)
            return part.caller_offsets(search.offsets());
          if (meter_.exhausted()) return {};
        }
      }
    return {};
  }

  static constexpr Traits kShapes[] = {{Trait::kWidth, Trait::kArea, Trait::kLoad},
                                       {Trait::kSize, Trait::kWidth, Trait::kArea}};
  static constexpr int kTries = 8;
  static constexpr std::int64_t kThoroughWidth = 200'000;

  const PackingInstance& instance_;
  Bytes height_;
  const Rules& rules_;
  Array<Bytes>& offsets_;
  Meter& meter_;
  Array<Id> reach_;   // per section: where the last of the buffers begun so far ends
  Array<Id> origin_;  // per section: where the first of the buffers alive here or later began
};

}  // namespace

bool repair_windows(const PackingInstance& instance, Bytes height, const Rules& rules, Array<Bytes>& offsets,
                    Meter& meter) {
  return Repair(instance, height, rules, offsets, meter).run();
}

}  // namespace modelplan::solver
