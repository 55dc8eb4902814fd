#include "schedule/driver.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "schedule/beam.hpp"
#include "schedule/heuristics.hpp"
#include "schedule/improve_order.hpp"
#include "schedule/live.hpp"
#include "schedule/merge.hpp"
#include "schedule/parts.hpp"
#include "sorting.hpp"

namespace modelplan::schedule {
namespace {

constexpr std::int64_t kFirstRound = 200'000;
constexpr std::int64_t kBeamSteps = 8'000'000;
constexpr std::size_t kMostAlternatives = 16;
constexpr int kMostTied = 2000;  // operators of a segment for which tied orders are made
constexpr int kWidths[] = {16, 64, 256, 1024, 4096};

struct Segment {
  Part part;
  std::optional<ScheduleInstance> back;  // the part with time reversed, made when the part first needs a search
  bool backwards = false;                // the direction in which the last search got somewhere
  Array<int> order;
  std::string found_by;
  Bytes upper = std::numeric_limits<Bytes>::max();
  Bytes flow_bound = 0;
  Bytes lower = 0;
  Bytes at_last = 0;
  Array<std::pair<Bytes, Array<int>>> offered;  // peaks and orders, the file's first
  Array<Bytes> most;                            // the least transient of each operator in the orders seen
  int critical = -1;
  int round = 0;
  bool out_of_memory = false;
};

struct Method {
  std::string_view key;
  const char* name;
  Array<int> (*order)(const ScheduleInstance&, const Request&, Meter&);
};

template <Array<int> (*kOrder)(const ScheduleInstance&)>
Array<int> simply(const ScheduleInstance& g, const Request&, Meter&) {
  return kOrder(g);
}

constexpr Method kMethods[] = {
    {"file", "file order", &simply<file_order>},
    {"rpo", "reverse post-order", &simply<reverse_post_order>},
    {"list", "list rule", &simply<list_order>},
    {"dfs", "depth-first rule", &simply<depth_first_order>},
    {"post", "post-order", &simply<post_order>},
    {"merge", "optimal merge",
     [](const ScheduleInstance& g, const Request&, Meter& meter) { return merge_order(g, meter); }},
    {"beam", "beam", [](const ScheduleInstance& g, const Request& request, Meter& meter) {
       return beam_order(g, request.width, 0, std::numeric_limits<Bytes>::max() / 4, meter);
     }}};

class Driver {
 public:
  Driver(const ScheduleInstance& g, const Request& request, Meter& meter)
      : g_(&g), request_(request), best_(request.method == "best"), meter_(&meter) {
    if (!best_ && std::ranges::find(kMethods, request.method, &Method::key) == std::end(kMethods))
      throw std::invalid_argument("no method " + request.method);
  }

  Outcome run() {
    split();
    for (Segment& s : segments_) offer_orders(s);
    if (request_.bound) {
      const Meter::Slice slice(*meter_, std::max(meter_->left() / 3, kFirstRound));
      raise_flow_bounds();
    }
    for (Segment& s : segments_) s.lower = std::max(s.lower, s.at_last);  // behind the flows, which have witnesses
    if (best_ && request_.search) close_gap();
    return outcome();
  }

 private:
  void split() {
    auto parts = segments(*g_);
    if (!request_.rules.segment) parts.assign(g_->ops > 0 ? 1 : 0, g_->topological);
    Partition partition(*g_);
    Live live(*g_);
    for (const auto& ops : parts) {
      segments_.emplace_back();
      segments_.back().part = partition.cut(live, ops);
      segments_.back().lower = bytes_at_ends(live, ops);
      segments_.back().at_last = bytes_at_last(live, ops);
    }
  }

  // What the last of some operators needs at least, whichever that is; they have all run.
  static Bytes bytes_at_last(Live& live, const Array<int>& ops) {
    Bytes least = std::numeric_limits<Bytes>::max();
    for (const int v : ops) {
      if (!live.can_be_last(v)) continue;
      live.remove(v);
      least = std::min(least, live.transient(v));
      live.add(v);
    }
    return ops.empty() ? 0 : least;
  }

  // What is alive before some operators or behind them, whatever their order; they have run then.
  static Bytes bytes_at_ends(Live& live, const Array<int>& ops) {
    const Bytes before = live.bytes();
    for (const int v : ops) live.add(v);
    return std::max(before, live.bytes());
  }

  // Whether a method is to order a part of so many operators; that of one operator is the file's.
  bool is_asked(const Method& method, int ops) const {
    if (ops <= 1) return method.key == "file";
    return best_ ? method.key != "beam" : method.key == request_.method;
  }

  void offer_orders(Segment& s) {
    const ScheduleInstance& g = s.part.instance;
    for (const Method& method : kMethods) {
      if (!is_asked(method, g.ops)) continue;
      auto order = method.order(g, request_, *meter_);
      if (order.size() != as_size(g.ops)) order = file_order(g);
      meter_->spend(g.ops);
      offer(s, std::move(order), method.name);
    }
  }

  void offer(Segment& s, Array<int> order, const char* by) {
    if (order.empty()) return;
    const auto profile = profile_of(s.part.instance, order);
    const Bytes peak = *std::max_element(profile.begin(), profile.end());
    s.most.resize(profile.size(), std::numeric_limits<Bytes>::max());
    for (std::size_t i = 0; i < order.size(); ++i) {
      Bytes& most = s.most[order[i]];
      most = std::min(most, profile[i]);
    }
    if (peak < s.upper) {
      s.upper = peak;
      s.order = order;
      s.found_by = by;
    }
    s.offered.emplace_back(peak, std::move(order));
  }

  // The whole order that takes each segment's offer number `which` where that stays under the peak.
  Array<int> compose(std::size_t which, Bytes peak) const {
    Array<int> out;
    for (const Segment& s : segments_) {
      const bool usable = which < s.offered.size() && s.offered[which].first <= peak;
      const auto order = s.part.whole(usable ? s.offered[which].second : s.order);
      out.insert(out.end(), order.begin(), order.end());
    }
    return out;
  }

  // More orders of each segment under the peak of the whole: beams that look at the weight only, and random ties.
  void add_ties(Bytes peak) {
    const StopSignal never;
    Meter free_of_charge(never, kUnlimited);
    for (Segment& s : segments_) {
      const ScheduleInstance& g = s.part.instance;
      if (g.ops <= 1 || g.ops > kMostTied) continue;
      offer(s, beam_order(g, 4, peak, peak + 1, free_of_charge), "beam");
      for (unsigned seed = 1; seed <= 4; ++seed) offer(s, tied_order(g, peak, seed), "random ties");
    }
  }

  // Segments with the highest upper bound first: the others often cannot raise the bound at all.
  void raise_flow_bounds() {
    Bytes bound = lower();
    for (const std::size_t i : sorted_ids<std::size_t>(segments_.size(), [&](auto s) { return -segments_[s].upper; })) {
      Segment& s = segments_[i];
      if (s.upper <= bound || meter_->stopped()) break;
      Bytes here = bound;
      const int critical = raise_bound(s.part.instance, s.most, s.upper, *meter_, here);
      if (critical < 0) continue;
      s.critical = critical;
      s.flow_bound = s.lower = bound = here;
    }
  }

  void close_gap() {
    while (!segments_.empty() && upper() > lower() && !meter_->stopped() && !gave_up_) work(hardest());
  }

  // One round on a segment: each tool gets a share of steps that grows fourfold from round to round.
  void work(Segment& s) {
    const std::int64_t steps = kFirstRound << std::min(2 * s.round, 40);
    s.out_of_memory = false;
    if (!s.back && can_reverse(s.part.instance)) {
      s.back = reversed(s.part.instance);
      offer_backwards(s, list_order(*s.back), "list rule backwards");
    }
    bool progressed = false;
    for (bool again = true; again && s.upper > lower() && !meter_->stopped();) {
      const Bytes floor = std::max(lower(), Bytes{0});
      again = probe(s, floor, s.upper - 1, steps);
      progressed = progressed || again;
    }
    if (s.upper > lower()) progressed = probe(s, s.upper - 1, s.upper - 1, steps) || progressed;
    if (s.upper > lower()) widen(s);
    if (s.upper > lower() && s.round > 1) {
      const Bytes middle = lower() + (s.upper - lower()) / 2;
      progressed = probe(s, middle, middle, steps) || progressed;
    }
    ++s.round;
    gave_up_ = !progressed && s.out_of_memory && as_size(s.round) >= std::size(kWidths);
  }

  // A search between two peaks, in the direction that served last, then in the other; true when it found an order or
  // raised the bound.
  bool probe(Segment& s, Bytes floor, Bytes ceiling, std::int64_t steps) {
    const bool first = s.backwards;
    if (probe_one_way(s, floor, ceiling, steps, first)) return true;
    if (!s.back || !probe_one_way(s, floor, ceiling, steps, !first)) return false;
    s.backwards = !first;
    return true;
  }

  bool probe_one_way(Segment& s, Bytes floor, Bytes ceiling, std::int64_t steps, bool backwards) {
    if (ceiling < floor || floor >= s.upper || meter_->stopped()) return false;
    const Meter::Slice slice(*meter_, steps);
    SearchLimits limits;
    limits.floor = floor;
    limits.ceiling = std::min(ceiling, s.upper - 1);
    limits.states = request_.states;
    limits.memory = request_.memory;
    auto found = search(backwards ? *s.back : s.part.instance, request_.rules, limits, *meter_);
    if (backwards) std::reverse(found.order.begin(), found.order.end());
    states_ += found.states;
    const Bytes before = s.lower;
    if (found.verdict == Verdict::kFeasible) offer(s, std::move(found.order), "search");
    if (found.verdict == Verdict::kInfeasible) s.lower = std::max(s.lower, std::min(found.proven, s.upper));
    if (found.verdict != Verdict::kInfeasible && found.proven > floor) s.lower = std::max(s.lower, found.proven);
    if (found.verdict == Verdict::kUnknown && found.ended == Ended::kMemory) s.out_of_memory = true;
    return found.verdict != Verdict::kUnknown || s.lower > before;
  }

  void offer_backwards(Segment& s, Array<int> order, const char* by) {
    std::reverse(order.begin(), order.end());
    offer(s, std::move(order), by);
  }

  void widen(Segment& s) {
    const auto at = as_size(s.round);
    if (at < std::size(kWidths)) {
      const Meter::Slice slice(*meter_, kBeamSteps);
      offer(s, beam_order(s.part.instance, kWidths[at], lower(), s.upper, *meter_), "beam");
      if (s.back) offer_backwards(s, beam_order(*s.back, kWidths[at], lower(), s.upper, *meter_), "beam");
    }
    const Meter::Slice slice(*meter_, kFirstRound << std::min(s.round, 40));
    offer(s, improve_order(s.part.instance, s.order, lower(), request_.rules, *meter_), "local search");
  }

  // The segment with the highest upper bound; among equals the one that has had the least work.
  Segment& hardest() {
    return *std::min_element(segments_.begin(), segments_.end(), [](const Segment& a, const Segment& b) {
      return std::pair(-a.upper, a.round) < std::pair(-b.upper, b.round);
    });
  }

  Bytes upper() const { return most(&Segment::upper); }
  Bytes lower() const { return most(&Segment::lower); }
  Bytes most(Bytes Segment::* figure) const {
    Bytes found = 0;
    for (const Segment& s : segments_) found = std::max(found, s.*figure);
    return found;
  }

  Outcome outcome() {
    Outcome out;
    out.segments = static_cast<int>(segments_.size());
    out.peak = Live(*g_).bytes();  // which no order changes
    out.found_by = kMethods[0].name;
    const Segment* critical = nullptr;
    for (const Segment& s : segments_) {
      if (s.upper > out.peak) {
        out.peak = s.upper;
        out.found_by = s.found_by;
      }
      if (s.flow_bound > out.flow_bound) {
        out.flow_bound = s.flow_bound;
        critical = &s;
      }
    }
    // Where the file's order does no harm it stays.
    out.order = compose(0, out.peak);
    if (best_) {
      add_ties(out.peak);
      for (std::size_t which = 1; which < kMostAlternatives; ++which) {
        auto order = compose(which, out.peak);
        const auto same = std::find(out.alternatives.begin(), out.alternatives.end(), order);
        if (order != out.order && same == out.alternatives.end()) out.alternatives.push_back(std::move(order));
      }
    }
    Live live(*g_);
    const Bytes ends = bytes_at_ends(live, g_->topological);
    if (ends > out.flow_bound) {
      out.flow_bound = ends;
      out.witness.bytes = ends;
    } else if (critical != nullptr) {
      const StopSignal never;
      Meter free_of_charge(never, kUnlimited);
      FlowBound(*g_, free_of_charge).at(critical->part.ops[critical->critical], &out.witness);
    }
    out.lower_bound = std::max(std::min(lower(), out.peak), out.flow_bound);
    out.states = states_;
    out.steps = meter_->used();
    out.ended = gave_up_ ? Ended::kMemory : meter_->ended();
    return out;
  }

  const ScheduleInstance* g_;
  Request request_;
  bool best_;
  Meter* meter_;
  Array<Segment> segments_;
  std::int64_t states_ = 0;
  bool gave_up_ = false;
};

}  // namespace

Outcome solve(const ScheduleInstance& instance, const Request& request, Meter& meter) {
  return Driver(instance, request, meter).run();
}

}  // namespace modelplan::schedule
