#include "plateau.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <queue>

#include "load_tree.hpp"
#include "random.hpp"

namespace modelplan::solver {
namespace {

// The breadth of all sections before each, where sections of less load count less; empty where all count one.
Array<double> breadths(View<const Bytes> loads, const DiveRule& rule) {
  if (rule.low_weight == 1) return {};
  const double least = (1 - rule.low) * static_cast<double>(*std::max_element(loads.begin(), loads.end()));
  Array<double> found{0};
  for (const Bytes load : loads)
    found.push_back(found.back() + (static_cast<double>(load) < least ? rule.low_weight : 1));
  return found;
}

// Unplaced items by width class floor(log2 width), each class in order of first section.
class WidthClasses {
 public:
  WidthClasses(const PackingInstance& instance, View<const Bytes> loads, const DiveRule& rule, Poller& poller)
      : instance_(instance),
        looks_(rule.looks),
        noise_(rule.noise),
        random_(rule.seed),
        breadth_(breadths(loads, rule)),
        slot_(instance.items.size()) {
    for (Id i = 0; i < instance.count(); ++i) {
      poller.count();
      const std::size_t k = width_class(width(i));
      if (classes_.size() <= k) classes_.resize(k + 1);
      slot_[i] = static_cast<Id>(classes_[k].items.size());
      classes_[k].items.push_back(i);
      classes_[k].firsts.push_back(instance.items[i].first);
    }
    for (Class& c : classes_) {
      Array<Last> lasts;
      for (const Id i : c.items) lasts.push_back({instance.items[i].last});
      c.least_last = SegmentTree<Last>(lasts);
    }
  }

  void remove(Id i) { classes_[width_class(width(i))].least_last.set(as_size(slot_[i]), {}); }

  // The broadest item inside [first, last), the larger of equal ones, among some of the widest class that has one; if
  // `section` >= 0 it must be alive there. -1 if there is none.
  Id widest(Id first, Id last, Id section, Meter& meter) {
    for (std::size_t k = std::min(classes_.size() - 1, width_class(last - first)) + 1; k-- > 0;) {
      const Id found = widest_of(classes_[k], k, first, last, section, meter);
      if (found >= 0) return found;
    }
    return -1;
  }

 private:
  struct Last {
    Id section = std::numeric_limits<Id>::max();

    static Last joined(const Last& a, const Last& b) { return b.section < a.section ? b : a; }
  };
  struct Class {
    Array<Id> items, firsts;
    SegmentTree<Last> least_last;  // of the items that are not removed
  };

  Id width(Id i) const { return instance_.items[i].last - instance_.items[i].first; }
  // The width of an item as the rule counts it.
  double breadth(Id i) {
    const Item& item = instance_.items[i];
    const double found = breadth_.empty() ? item.last - item.first : breadth_[item.last] - breadth_[item.first];
    return noise_ > 0 ? found * (1 - noise_ * random_.unit()) : found;
  }
  static std::size_t width_class(Id width) { return as_size(std::bit_width(static_cast<unsigned>(width)) - 1); }

  Id widest_of(const Class& c, std::size_t k, Id first, Id last, Id section, Meter& meter) {
    const Id reach = static_cast<Id>(std::int64_t{2} << k);  // items of this class are narrower
    const Id from = section < 0 ? first : std::max(first, section - reach + 2);
    const Id to = section < 0 ? last : section + 1;  // first sections in [from, to)
    const std::size_t begin = count_below(c.firsts, from), end = count_below(c.firsts, to);
    const auto ends_inside = [last](const Last& least) { return least.section <= last; };
    Id best = -1;
    double most = 0;
    int looks = 0;
    for (std::size_t j = c.least_last.first_of(begin, end, ends_inside); j < end && looks < looks_;
         j = c.least_last.first_of(j + 1, end, ends_inside), ++looks) {
      const Id i = c.items[j];
      if (section >= 0 && instance_.items[i].last <= section) continue;
      const double own = breadth(i);
      if (best >= 0 && (own < most || (own == most && instance_.items[i].size <= instance_.items[best].size))) continue;
      best = i;
      most = own;
    }
    meter.add(looks + 4);
    return best;
  }

  const PackingInstance& instance_;
  int looks_;
  double noise_;
  Random random_;
  Array<double> breadth_;  // of all sections before each; empty where each counts one
  Array<Id> slot_;         // per item: its index within its class
  Array<Class> classes_;
};

// Sizes of all that is alive, whatever facts allow to share.
Array<Bytes> plain_loads(const PackingInstance& instance) {
  Array<Bytes> change(instance.load.size() + 1, 0);
  for (const Item& item : instance.items) {
    change[item.first] += item.size;
    change[item.last] -= item.size;
  }
  std::partial_sum(change.begin(), change.end(), change.begin());
  change.pop_back();
  return change;
}

class Dive {
 public:
  Dive(const PackingInstance& instance, const DiveRule& rule, View<const Bytes> loads, Meter& meter, Poller& poller)
      : instance_(instance),
        meter_(meter),
        valleys_first_(rule.valleys_first),
        width_classes_(instance, loads, rule, poller),
        loads_(load_tree(loads)),
        level_(instance.load.size()),
        last_(instance.load.size()),
        peak_(instance.load.size()),
        before_(instance.load.size() + 1, -1),
        offsets_(instance.items.size(), -1) {}

  Array<Bytes> run() {
    if (instance_.items.empty()) return {};
    last_[0] = instance_.sections();
    before_[instance_.sections()] = 0;
    update_peak(0);
    push(0);
    for (Id left = instance_.count(); left > 0; --left) {
      if (meter_.exhausted()) return {};
      place_one();
    }
    return std::move(offsets_);
  }

 private:
  struct Entry {
    Bytes reach;  // level plus remaining load at the time of the push
    Id first;
    bool operator<(const Entry& other) const {
      return reach != other.reach ? reach < other.reach : first > other.first;
    }
  };

  const Peak& peak(Id plateau) const { return peak_[plateau]; }
  void update_peak(Id plateau) { peak_[plateau] = loads_.join(as_size(plateau), as_size(last_[plateau])); }
  bool is_wall(Id plateau) const { return peak(plateau).load == 0; }
  bool is_plateau(Id first) const { return last_[first] > first; }
  Id left_of(Id plateau) const { return plateau == 0 ? -1 : before_[plateau]; }
  Id right_of(Id plateau) const { return last_[plateau] < instance_.sections() ? last_[plateau] : -1; }

  void push(Id plateau) {
    const Bytes load = peak(plateau).load;
    if (load > 0) queue_.push({level_[plateau] + load, plateau});
  }

  // The plateau that reaches highest; entries that are out of date are dropped on the way.
  Id most_critical() {
    for (;;) {
      const Entry top = queue_.top();
      queue_.pop();
      if (!is_plateau(top.first)) continue;
      const Bytes load = peak(top.first).load, reach = level_[top.first] + load;
      if (load == 0) continue;
      if (reach == top.reach) return top.first;
      queue_.push({reach, top.first});
    }
  }

  // Places one item: on the most critical plateau if one fits there over its heaviest section; else, or where valleys
  // come first, in the valley that lies next to it, filling that up to the plateau's level first.
  void place_one() {
    if (valley_ < 0) {
      const Id plateau = most_critical();
      const Id item = width_classes_.widest(plateau, last_[plateau], peak(plateau).place, meter_);
      if (item >= 0 && (!valleys_first_ || covers(item, plateau) || descend(plateau) == plateau))
        return put(item, plateau);
      valley_ = plateau;
      goal_ = level_[plateau];
      if (valleys_first_) push(plateau);  // it may stay as it is
    }
    fill_valley();
  }

  bool covers(Id item, Id plateau) const {
    return instance_.items[item].first == plateau && instance_.items[item].last == last_[plateau];
  }

  void fill_valley() {
    for (Id plateau = valley_;;) {
      plateau = descend(plateau);
      Id item = width_classes_.widest(plateau, last_[plateau], peak(plateau).place, meter_);
      if (item < 0) item = width_classes_.widest(plateau, last_[plateau], -1, meter_);
      if (item >= 0) {
        valley_ = instance_.items[item].first;
        put(item, plateau);
        leave_wall();
        return;
      }
      plateau = raise(plateau);
    }
  }

  // Goes on next to a valley that is full, and not at all once the level of the plateau that sent us is reached.
  void leave_wall() {
    if (is_wall(valley_)) {
      const Id left = left_of(valley_), right = right_of(valley_);
      const bool from_left = left >= 0 && !is_wall(left);
      const bool from_right = right >= 0 && !is_wall(right);
      valley_ = from_left && (!from_right || level_[left] <= level_[right]) ? left : from_right ? right : -1;
    }
    if (valley_ >= 0 && level_[valley_] >= goal_) valley_ = -1;
  }

  // Walks to lower neighbours, the lowest first, until there is none. Walls are not entered.
  Id descend(Id plateau) const {
    for (;;) {
      Id next = plateau;
      for (const Id other : {left_of(plateau), right_of(plateau)})
        if (other >= 0 && level_[other] < level_[next] && !is_wall(other)) next = other;
      if (next == plateau) return plateau;
      plateau = next;
    }
  }

  // Nothing fits inside: whatever covers this valley covers a neighbour too, so it may rise to the lower one.
  Id raise(Id plateau) {
    Bytes level = -1;
    for (const Id other : {left_of(plateau), right_of(plateau)})
      if (other >= 0 && !is_wall(other) && (level < 0 || level_[other] < level)) level = level_[other];
    level_[plateau] = level;
    const Id merged = merge_around(plateau);
    push(merged);
    return merged;
  }

  void put(Id item, Id plateau) {
    const Item& own = instance_.items[item];
    const Bytes level = level_[plateau];
    const Bytes offset = round_up(level, own.alignment);
    offsets_[item] = offset;
    width_classes_.remove(item);
    loads_.add(as_size(own.first), as_size(own.last), -own.size);
    split(plateau, own.first);
    split(own.first, own.last);
    level_[own.first] = offset + own.size;
    update_peak(plateau);
    update_peak(own.first);
    if (right_of(own.first) >= 0 && level_[right_of(own.first)] == level) update_peak(right_of(own.first));
    if (left_of(own.first) >= 0) push(left_of(own.first));
    if (right_of(own.first) >= 0) push(right_of(own.first));
    const Id merged = merge_around(own.first);
    if (valley_ >= 0) valley_ = merged;
    push(merged);
  }

  // Cuts a plateau in two at `section`, unless it begins or ends there.
  void split(Id plateau, Id section) {
    if (section == plateau || section == last_[plateau]) return;
    last_[section] = last_[plateau];
    before_[last_[section]] = section;
    before_[section] = plateau;
    last_[plateau] = section;
    level_[section] = level_[plateau];
  }

  Id merge_around(Id plateau) {
    const Id left = left_of(plateau), right = right_of(plateau);
    if (right >= 0 && level_[right] == level_[plateau]) join(plateau, right);
    if (left < 0 || level_[left] != level_[plateau]) return plateau;
    join(left, plateau);
    return left;
  }

  void join(Id left, Id right) {
    if (peak(right).load > peak(left).load) peak_[left] = peak(right);
    last_[left] = last_[right];
    before_[last_[left]] = left;
    last_[right] = 0;
  }

  const PackingInstance& instance_;
  Meter& meter_;
  bool valleys_first_;
  WidthClasses width_classes_;
  LoadTree loads_;
  Array<Bytes> level_;  // of the plateau that begins at a section
  Array<Id> last_;      // where it ends; 0 if none begins there
  Array<Peak> peak_;    // its heaviest section: changes only where it is cut or joined
  Array<Id> before_;    // the plateau that ends where this one begins
  Array<Bytes> offsets_;
  std::priority_queue<Entry> queue_;
  Id valley_ = -1;  // a plateau to go on with before the queue is asked again
  Bytes goal_ = 0;  // until it reaches this level
};

}  // namespace

Array<Bytes> plateau_dive(const PackingInstance& instance, const DiveRule& rule, Meter& meter) {
  Poller poller(meter.signal());
  return Dive(instance, rule, plain_loads(instance), meter, poller).run();
}

DiveRule varied_dive(std::uint64_t number, std::uint64_t seed) {
  constexpr double kLow[] = {0.03, 0.01, 0.1}, kLowWeight[] = {0.001, 0.01, 0.1};
  const double noise = number < 9 ? 0 : 0.01 * static_cast<double>(1 + number % 4);
  return {.looks = 1000,
          .valleys_first = true,
          .low = kLow[number % 3],
          .low_weight = kLowWeight[number / 3 % 3],
          .noise = noise,
          .seed = seed * 1'000'000 + number};
}

}  // namespace modelplan::solver
