#include "allocators/objects.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>

#include "interval_index.hpp"
#include "load_tree.hpp"
#include "place_in_order.hpp"
#include "sorting.hpp"

namespace modelplan {
namespace {

constexpr std::int64_t kNone = -1;
constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max();

void require_records(const Records& records) {
  for (std::size_t i = 0; i < records.size.size(); ++i) {
    if (records.size[i] < 1 || records.end[i] <= records.start[i]) throw std::invalid_argument("an empty record");
    if (i > 0 && records.start[i] < records.start[i - 1]) throw std::invalid_argument("records are not in order");
  }
}

// The lifetimes in one object: disjoint, by start.
class Occupancy {
 public:
  // Steps from the nearest lifetime to [start, end), counted between inclusive ends; 0 when they meet.
  std::int64_t distance(std::int64_t start, std::int64_t end) const {
    const auto after = lives_.lower_bound(start);
    std::int64_t nearest = kFar;
    if (after != lives_.end()) {
      if (after->first < end) return 0;
      nearest = after->first - end + 1;
    }
    if (after != lives_.begin()) {
      const auto before = std::prev(after);
      if (before->second > start) return 0;
      nearest = std::min(nearest, start - before->second + 1);
    }
    return nearest;
  }

  bool clear(std::int64_t start, std::int64_t end) const { return distance(start, end) > 0; }
  void insert(std::int64_t start, std::int64_t end) { lives_.emplace(start, end); }

 private:
  std::map<std::int64_t, std::int64_t> lives_;
};

// Objects under construction, looked up by size.
class Pool {
 public:
  explicit Pool(const Records& records) : records_(records), holder_(records.size.size(), kNone) {}

  // The smallest clear object that covers the buffer, else the largest clear one; of equal ones the first; or none.
  std::size_t find(std::size_t buffer) const {
    const auto clear = [&](const auto& entry) {
      return objects_[entry.second].clear(records_.start[buffer], records_.end[buffer]);
    };
    const auto covering = by_size_.lower_bound({records_.size[buffer], 0});
    const auto best = std::find_if(covering, by_size_.end(), clear);
    if (best != by_size_.end()) return best->second;
    std::size_t found = objects_.size();
    std::int64_t size = kNone;
    for (auto it = covering; it != by_size_.begin();) {
      --it;
      if (size != kNone && it->first != size) break;
      if (clear(*it)) size = it->first, found = it->second;  // walking down, the lowest number of this size is last
    }
    return found;
  }

  void put(std::size_t buffer, std::size_t object) {
    if (object == objects_.size()) {
      objects_.emplace_back();
      sizes_.push_back(0);
    } else {
      by_size_.erase({sizes_[object], object});
    }
    sizes_[object] = std::max(sizes_[object], records_.size[buffer]);
    by_size_.insert({sizes_[object], object});
    objects_[object].insert(records_.start[buffer], records_.end[buffer]);
    holder_[buffer] = static_cast<std::int64_t>(object);
  }

  Array<std::int64_t> take() { return std::move(holder_); }

 private:
  const Records& records_;
  Array<Occupancy> objects_;
  Array<std::int64_t> sizes_, holder_;
  std::set<std::pair<std::int64_t, std::size_t>> by_size_;
};

// Live bytes right after all starts of each distinct start step, as (bytes, step), greatest first, then earliest.
// A step where nothing starts holds a subset of the step before it and never comes first.
Array<std::pair<std::int64_t, std::int64_t>> breadths(const Records& records) {
  Array<std::pair<std::int64_t, std::int64_t>> found, ends;
  for (std::size_t i = 0; i < records.size.size(); ++i) ends.emplace_back(records.end[i], records.size[i]);
  std::sort(ends.begin(), ends.end());
  std::int64_t live = 0;
  auto ended = ends.begin();
  for (std::size_t i = 0; i < records.size.size(); ++i) {
    for (; ended != ends.end() && ended->first <= records.start[i]; ++ended) live -= ended->second;
    live += records.size[i];
    if (i + 1 == records.size.size() || records.start[i + 1] != records.start[i])
      found.emplace_back(live, records.start[i]);
  }
  std::ranges::stable_sort(found, {}, [](const auto& peak) { return -peak.first; });
  return found;
}

// Calls visit(buffers) for each step, broadest first, with the buffers alive there that no broader step held.
template <class Visit>
void for_each_profile(const Records& records, Visit&& visit) {
  IntervalIndex waiting(records.start, records.end);
  for (std::size_t i = 0; i < records.size.size(); ++i) waiting.insert(i);
  Array<std::size_t> profile;
  for (const auto& [bytes, step] : breadths(records)) {
    profile.clear();
    waiting.for_each_alive(step, step + 1, [&](std::size_t buffer) { profile.push_back(buffer); });
    for (const std::size_t buffer : profile) waiting.erase(buffer);
    visit(profile);
  }
}

// One class of buffers of equal position is assigned at a time; the nearest object of each is kept up to date.
class DistanceSharer {
 public:
  explicit DistanceSharer(const Records& records) : records_(records), holder_(records.size.size(), kNone) {}

  Array<std::int64_t> run() {
    Array<Array<std::size_t>> classes = positions();
    for (Array<std::size_t>& waiting : classes) assign(waiting);
    return std::move(holder_);
  }

 private:
  struct Candidate {
    std::size_t buffer;
    std::int64_t distance;  // to the nearest clear object; only a lower bound while `stale`
    std::int64_t object;
    bool stale;
  };

  Array<Array<std::size_t>> positions() const {
    const Array<std::int64_t> maxima = positional_maxima(records_);
    Array<Array<std::size_t>> classes(maxima.size());
    for (std::size_t i = 0; i < records_.size.size(); ++i) {
      const auto past = std::partition_point(maxima.begin(), maxima.end(),
                                             [&](std::int64_t maximum) { return maximum >= records_.size[i]; });
      classes[(past - maxima.begin()) - 1].push_back(i);
    }
    return classes;
  }

  void assign(const Array<std::size_t>& members) {
    Array<Candidate> waiting;
    for (const std::size_t buffer : members) waiting.push_back(nearest(buffer));
    while (!waiting.empty()) {
      const std::size_t at = next(waiting);
      const Candidate chosen = waiting[at];
      waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(at));
      put(chosen);
      for (Candidate& other : waiting) update(other, chosen.buffer);
    }
  }

  // The place of the least (distance, -size, buffer); its entry is fresh.
  std::size_t next(Array<Candidate>& waiting) const {
    while (true) {
      std::size_t best = 0;
      for (std::size_t i = 1; i < waiting.size(); ++i)
        if (before(waiting[i], waiting[best])) best = i;
      if (!waiting[best].stale) return best;
      waiting[best] = nearest(waiting[best].buffer);
    }
  }

  bool before(const Candidate& a, const Candidate& b) const {
    if (a.distance != b.distance) return a.distance < b.distance;
    return records_.size[a.buffer] > records_.size[b.buffer];
  }

  Candidate nearest(std::size_t buffer) const {
    Candidate found{buffer, kFar, kNone, false};
    for (std::size_t object = 0; object < objects_.size(); ++object) {
      const std::int64_t distance = objects_[object].distance(records_.start[buffer], records_.end[buffer]);
      if (distance > 0 && distance < found.distance)
        found = {buffer, distance, static_cast<std::int64_t>(object), false};
    }
    return found;
  }

  void put(const Candidate& chosen) {
    const std::size_t object = chosen.object == kNone ? objects_.size() : as_size(chosen.object);
    if (object == objects_.size()) objects_.emplace_back();
    objects_[object].insert(records_.start[chosen.buffer], records_.end[chosen.buffer]);
    holder_[chosen.buffer] = static_cast<std::int64_t>(object);
  }

  // `placed` went into an object: it may have come nearer to `candidate`, or be in its way now.
  void update(Candidate& candidate, std::size_t placed) const {
    const std::int64_t object = holder_[placed];
    const std::int64_t start = records_.start[candidate.buffer], end = records_.end[candidate.buffer];
    std::int64_t gap = 0;
    if (records_.start[placed] >= end) gap = records_.start[placed] - end + 1;
    if (records_.end[placed] <= start) gap = start - records_.end[placed] + 1;
    if (gap == 0) {
      candidate.stale = candidate.stale || candidate.object == object;
    } else if (gap < candidate.distance || (gap == candidate.distance && object < candidate.object)) {
      const bool rescanned = candidate.stale && gap == candidate.distance;  // which will see this object too
      if (!rescanned && objects_[object].clear(start, end)) candidate = {candidate.buffer, gap, object, false};
    }
  }

  const Records& records_;
  Array<Occupancy> objects_;
  Array<std::int64_t> holder_;
};

// Successive shortest paths in the network
//
//   source --0--> i --max(0, size j - size i)--> j' --0--> sink    for every j that starts when i has ended
//   source --size j--> j'                                          a fresh object
//
// with all capacities 1. Arcs are computed, never stored; they are visited in the order in which the original adds
// them, since that decides between paths of equal cost.
class FlowSharer {
 public:
  FlowSharer(const Records& records, const Limits& limits)
      : records_(records),
        n_(records.size.size()),
        most_arcs_(limits.steps),
        meter_({kUnlimited, limits.seconds, limits.cancelled}),
        next_(n_, kNone),
        previous_(n_, kNone),
        fresh_(n_, false),
        served_(n_, false),
        first_(n_) {
    for (std::size_t i = 0; i < n_; ++i) first_[i] = count_below(records.start, records.end[i]);
  }

  FlowShare run() {
    while (goes_on() && search()) augment();
    const bool all = std::all_of(served_.begin(), served_.end(), [](bool served) { return served; });
    return {chains(), steps_,
            all                                  ? Ended::kComplete
            : meter_.ended() == Ended::kComplete ? Ended::kBudget
                                                 : meter_.ended()};
  }

 private:
  bool goes_on() { return steps_ < most_arcs_ && meter_.take(); }

  std::size_t source() const { return 2 * n_; }
  std::size_t sink() const { return 2 * n_ + 1; }

  void relax(std::size_t from, std::size_t to, std::int64_t cost) {
    ++steps_;
    if (distance_[from] + cost >= distance_[to]) return;
    distance_[to] = distance_[from] + cost;
    parent_[to] = from;
    if (queued_[to] == round_) return;
    queued_[to] = round_;
    later_.push_back(to);
  }

  void visit(std::size_t vertex) {
    if (vertex == source()) {
      for (std::size_t i = 0; i < n_; ++i) {
        if (next_[i] == kNone) relax(vertex, i, 0);
        if (!fresh_[i]) relax(vertex, n_ + i, records_.size[i]);
      }
    } else if (vertex < n_) {
      for (std::size_t j = first_[vertex]; j < n_; ++j)
        if (next_[vertex] != static_cast<std::int64_t>(j)) relax(vertex, n_ + j, growth(vertex, j));
    } else if (vertex != sink()) {
      const std::size_t j = vertex - n_;
      if (!served_[j]) relax(vertex, sink(), 0);
      if (previous_[j] != kNone) relax(vertex, as_size(previous_[j]), -growth(as_size(previous_[j]), j));
    }
  }

  std::int64_t growth(std::size_t i, std::size_t j) const {
    return std::max<std::int64_t>(0, records_.size[j] - records_.size[i]);
  }

  // Level by level from the source; whether the sink was reached.
  bool search() {
    distance_.assign(2 * n_ + 2, kFar / 2);
    parent_.assign(2 * n_ + 2, source());
    queued_.assign(2 * n_ + 2, 0);
    round_ = 1;
    distance_[source()] = 0;
    Array<std::size_t> now{source()};
    while (!now.empty() && steps_ < most_arcs_) {
      ++round_;
      for (const std::size_t vertex : now) {
        if (!meter_.take()) return false;
        visit(vertex);
      }
      now.swap(later_);
      later_.clear();
    }
    return now.empty() && distance_[sink()] < kFar / 2;
  }

  void augment() {
    std::size_t vertex = parent_[sink()];
    served_[vertex - n_] = true;
    while (true) {  // from a right vertex back to the source, turning arcs round
      const std::size_t right = vertex - n_, from = parent_[vertex];
      if (from == source()) {
        fresh_[right] = true;
        return;
      }
      const std::size_t before = parent_[from];
      previous_[right] = static_cast<std::int64_t>(from);
      next_[from] = static_cast<std::int64_t>(right);
      if (before == source()) return;
      previous_[before - n_] = kNone;
      vertex = before;
    }
  }

  Array<std::int64_t> chains() const {
    Array<std::int64_t> holder(n_, kNone);
    std::int64_t count = 0;
    for (std::size_t i = 0; i < n_; ++i)
      if (previous_[i] == kNone) {
        for (std::int64_t j = static_cast<std::int64_t>(i); j != kNone; j = next_[j]) holder[j] = count;
        ++count;
      }
    return holder;
  }

  const Records& records_;
  std::size_t n_;
  std::int64_t most_arcs_, steps_ = 0;
  LimitedMeter meter_;
  Array<std::int64_t> next_, previous_;  // who takes over from i, and from whom j takes over
  Array<bool> fresh_, served_;
  Array<std::size_t> first_;  // the first buffer that starts when i has ended
  Array<std::int64_t> distance_;
  Array<std::size_t> parent_, later_;
  Array<std::int64_t> queued_;
  std::int64_t round_ = 0;
};

// What each object offers one buffer: the highest end of what the buffer conflicts with inside it.
class Stacker {
 public:
  Stacker(const Records& records, bool overlapping)
      : records_(records),
        overlapping_(overlapping),
        placed_(records.start, records.end),
        out_{Array<std::int64_t>(records.size.size(), kNone), Array<std::int64_t>(records.size.size(), 0), {}} {}

  Stacked run(Ints order) {
    for (const std::int64_t i : order) put(as_size(i));
    return std::move(out_);
  }

 private:
  void put(std::size_t buffer) {
    tops_.clear();
    placed_.for_each_alive(records_.start[buffer], records_.end[buffer], [&](std::size_t other) {
      std::int64_t& top = tops_[out_.holder[other]];
      top = std::max(top, out_.offset[other] + records_.size[other]);
    });
    const auto [object, offset] = choose(buffer);
    if (as_size(object) == out_.sizes.size()) out_.sizes.push_back(records_.size[buffer]);
    out_.holder[buffer] = object;
    out_.offset[buffer] = offset;
    placed_.insert(buffer);
  }

  std::pair<std::int64_t, std::int64_t> choose(std::size_t buffer) const {
    std::int64_t clear = 0;  // the first object that no conflict lives in
    for (const auto& [object, top] : tops_) {
      if (object != clear) break;
      ++clear;
    }
    const auto count = static_cast<std::int64_t>(out_.sizes.size());
    for (; clear < count; ++clear)
      if (!tops_.contains(clear) && records_.size[buffer] <= out_.sizes[clear]) return {clear, 0};
    if (overlapping_)
      for (const auto& [object, top] : tops_)
        if (top + records_.size[buffer] <= out_.sizes[object]) return {object, top};
    return {count, 0};
  }

  const Records& records_;
  bool overlapping_;
  IntervalIndex placed_;
  std::map<std::int64_t, std::int64_t> tops_;
  Stacked out_;
};

}  // namespace

Array<std::int64_t> positional_maxima(const Records& records) {
  require_records(records);
  StepLoads counts(records.start);
  Array<std::int64_t> maxima;
  for (const auto i : sorted_ids<std::size_t>(records.size.size(), [&](auto b) { return -records.size[b]; })) {
    counts.add(records.start[i], records.end[i], 1);
    if (counts.most() > static_cast<std::int64_t>(maxima.size())) maxima.push_back(records.size[i]);
  }
  return maxima;
}

Array<std::int64_t> breadth_ranks(const Records& records) {
  require_records(records);
  Array<std::int64_t> ranks(records.size.size());
  std::int64_t rank = 0;
  for_each_profile(records, [&](const Array<std::size_t>& profile) {
    for (const std::size_t buffer : profile) ranks[buffer] = rank;
    ++rank;
  });
  return ranks;
}

Array<std::int64_t> share_by_breadth(const Records& records) {
  require_records(records);
  Pool pool(records);
  for_each_profile(records, [&](Array<std::size_t>& profile) {
    std::ranges::sort(profile, {}, [&](std::size_t b) { return std::pair(-records.size[b], b); });
    for (const std::size_t buffer : profile) pool.put(buffer, pool.find(buffer));
  });
  return pool.take();
}

Array<std::int64_t> share_by_distance(const Records& records) {
  require_records(records);
  return DistanceSharer(records).run();
}

FlowShare share_min_cost(const Records& records, const Limits& limits) {
  require_records(records);
  return FlowSharer(records, limits).run();
}

Stacked stack_in_objects(const Records& records, Ints order, bool overlapping) {
  require_records(records);
  require_permutation(order, records.size.size());
  return Stacker(records, overlapping).run(order);
}

}  // namespace modelplan
