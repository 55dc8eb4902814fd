#include "schedule/beam.hpp"

#include <algorithm>
#include <compare>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "schedule/walker.hpp"

namespace modelplan::schedule {
namespace {

struct Candidate {
  Bytes label;
  Bytes bytes;
  int parent;  // a kept set, as an index into the links
  int op;
  std::uint64_t key;

  auto operator<=>(const Candidate&) const = default;  // parent and operator tell all of them apart
};

// A kept set: the operators that closed it, after its parent's.
struct Link {
  int parent;
  std::size_t path_at, path_size;
};

class Beam {
 public:
  Beam(const ScheduleInstance& g, int width, Bytes floor, Bytes ceiling, Meter& meter)
      : g_(&g), width_(as_size(width)), floor_(floor), ceiling_(ceiling), meter_(&meter), walker_(g, meter) {}

  Array<int> run() {
    if (g_->ops == 0) return {};
    Array<int> path;
    walker_.close(floor_, path);
    keep(-1, path, floor_);
    while (!levels_.empty() && !meter_->stopped()) {
      const int depth = levels_.begin()->first;
      auto level = std::move(levels_.begin()->second);
      levels_.erase(levels_.begin());
      choose(level);
      for (const Candidate& c : level)
        if (!meter_->stopped()) take(c);
      forget(depth);
    }
    return finished_ >= 0 ? order_of(finished_) : Array<int>{};
  }

 private:
  // Drops duplicates (by key: a false match only narrows the beam) and all but the best.
  void choose(Array<Candidate>& level) const {
    std::ranges::sort(level);
    std::unordered_set<std::uint64_t> seen;
    Array<Candidate> best;
    for (const Candidate& c : level) {
      if (best.size() == width_) break;
      if (seen.insert(c.key).second) best.push_back(c);
    }
    level = std::move(best);
  }

  void take(const Candidate& c) {
    if (c.label >= ceiling_) return;
    walker_.go(kept_.at(c.parent));
    Array<int> path{c.op};
    walker_.add(c.op);
    walker_.close(c.label, path);
    const auto [at, fresh] = closed_.try_emplace(walker_.key(), c.label);
    if (!fresh && at->second <= c.label) return;
    at->second = c.label;
    keep(c.parent, path, c.label);
  }

  // Remembers the walker's set and offers its successors to the levels.
  void keep(int parent, const Array<int>& path, Bytes label) {
    const int link = static_cast<int>(links_.size());
    links_.push_back({parent, paths_.size(), path.size()});
    paths_.insert(paths_.end(), path.begin(), path.end());
    if (walker_.depth() == g_->ops) {
      if (finished_ < 0 || label < finished_label_) {
        finished_ = link;
        finished_label_ = label;
        ceiling_ = label;
      }
      return;
    }
    kept_[link] = {walker_.bits().begin(), walker_.bits().end()};
    by_depth_[walker_.depth()].push_back(link);
    for (const int v : walker_.live().ready()) {
      meter_->spend(1);
      const Bytes reached = std::max(label, walker_.live().transient(v));
      if (reached >= ceiling_) continue;
      levels_[walker_.depth() + 1].push_back({reached, walker_.live().after(v), link, v, walker_.key() ^ op_key(v)});
    }
  }

  // Sets shallower than `depth` have no candidate left.
  void forget(int depth) {
    while (!by_depth_.empty() && by_depth_.begin()->first < depth) {
      for (const int link : by_depth_.begin()->second) kept_.erase(link);
      by_depth_.erase(by_depth_.begin());
    }
  }

  Array<int> order_of(int link) const {
    Array<int> chain, order;
    for (; link >= 0; link = links_[link].parent) chain.push_back(link);
    for (std::size_t i = chain.size(); i-- > 0;) {
      const Link& l = links_[chain[i]];
      const auto from = paths_.begin() + static_cast<std::ptrdiff_t>(l.path_at);
      order.insert(order.end(), from, from + static_cast<std::ptrdiff_t>(l.path_size));
    }
    return order;
  }

  const ScheduleInstance* g_;
  std::size_t width_;
  Bytes floor_, ceiling_;
  Meter* meter_;
  Walker walker_;
  Array<Link> links_;
  Array<int> paths_;
  std::map<int, Array<std::uint64_t>> kept_;
  std::map<int, Array<int>> by_depth_;
  std::map<int, Array<Candidate>> levels_;
  std::unordered_map<std::uint64_t, Bytes> closed_;  // the lowest label of each set kept
  int finished_ = -1;
  Bytes finished_label_ = 0;
};

}  // namespace

Array<int> beam_order(const ScheduleInstance& instance, int width, Bytes floor, Bytes ceiling, Meter& meter) {
  return Beam(instance, width, floor, ceiling, meter).run();
}

}  // namespace modelplan::schedule
