#include "schedule/flow_bound.hpp"

#include <algorithm>
#include <limits>

#include "sorting.hpp"

namespace modelplan::schedule {
namespace {

constexpr std::size_t kMostCases = 64;

bool clash(const ScheduleInstance& g, const Array<int>& set, int overwrite) {
  const Overwrite& k = g.overwrites[overwrite];
  return std::any_of(set.begin(), set.end(), [&](int other) {
    const Overwrite& o = g.overwrites[other];
    return o.from == k.from || o.to == k.to;
  });
}

Bytes most_saved(const ScheduleInstance& g, int op) {
  Bytes sum = 0;
  for (const int c : g.writes[op]) {
    Bytes best = 0;
    for (const int k : g.overwrites_of[op])
      if (g.overwrites[k].to == c) best = std::max(best, g.overwrites[k].bytes);
    sum += best;
  }
  return sum;
}

}  // namespace

Array<Array<int>> overwrite_sets(const ScheduleInstance& g, int op, bool& exact) {
  Array<Array<int>> sets{{}};
  exact = true;
  for (const int k : g.overwrites_of[op]) {
    const std::size_t count = sets.size();
    for (std::size_t i = 0; i < count; ++i) {
      if (clash(g, sets[i], k)) continue;
      sets.push_back(sets[i]);
      sets.back().push_back(k);
    }
    if (sets.size() <= kMostCases) continue;
    exact = false;
    return {{}};
  }
  return sets;
}

FlowBound::FlowBound(const ScheduleInstance& g, Meter& meter)
    : g_(&g), meter_(&meter), cut_(g, meter), sides_(g.ops, Side::free) {}

void FlowBound::mark_sides(int op, const Live* done) {
  std::fill(sides_.begin(), sides_.end(), Side::free);
  if (done != nullptr)
    for (int v = 0; v < g_->ops; ++v)
      if (done->done(v)) sides_[v] = Side::executed;
  const auto spread = [&](const Rows& next, Side side) {
    stack_.assign(1, op);
    while (!stack_.empty()) {
      const int v = stack_.back();
      stack_.pop_back();
      for (const int u : next[v]) {
        if (sides_[u] != Side::free) continue;
        sides_[u] = side;
        stack_.push_back(u);
      }
    }
  };
  spread(g_->preds, Side::executed);
  spread(g_->succs, Side::waiting);
  sides_[op] = Side::waiting;
}

// Marks the other readers of the classes, and all before them, executed; false when one of them cannot come before
// `op`.
bool FlowBound::force_readers(int op, View<const int> classes) {
  stack_.clear();
  for (const int c : classes) {
    if (g_->to_end[c] != 0) return false;
    for (const int r : g_->readers[c])
      if (r != op) stack_.push_back(r);
  }
  while (!stack_.empty()) {
    const int v = stack_.back();
    stack_.pop_back();
    Side& side = sides_[v];
    if (side == Side::waiting) return false;
    if (side == Side::executed) continue;
    side = Side::executed;
    for (const int p : g_->preds[v]) stack_.push_back(p);
  }
  return true;
}

Bytes FlowBound::cut_case(int op, const Array<int>& overwrites, Witness* witness, const Live* done) {
  FlowCase found;
  for (const int k : overwrites) {
    found.dying.push_back(g_->overwrites[k].from);
    found.saved += g_->overwrites[k].bytes;
  }
  mark_sides(op, done);
  meter_->spend(g_->ops / 8);
  if (!force_readers(op, found.dying)) return std::numeric_limits<Bytes>::max();
  free_.clear();
  for (int v = 0; v < g_->ops; ++v)
    if (sides_[v] == Side::free) free_.push_back(v);
  const auto written = g_->writes[op];
  Bytes bytes = g_->base + g_->scratch[op] - found.saved;
  for (const int c : written) bytes += g_->size[c];
  bytes += cut_.least(sides_, free_, written, false);
  if (witness != nullptr) {
    found.arcs = cut_.transfers();
    witness->cases.push_back(std::move(found));
  }
  return bytes;
}

Bytes FlowBound::at(int op, Witness* witness, const Live* done) {
  bool exact = true;
  Bytes least = std::numeric_limits<Bytes>::max();
  for (const auto& set : overwrite_sets(*g_, op, exact)) least = std::min(least, cut_case(op, set, witness, done));
  if (!exact) least -= most_saved(*g_, op);
  if (!exact && witness != nullptr) witness->cases.front().saved = most_saved(*g_, op);
  if (witness != nullptr) {
    witness->op = op;
    witness->bytes = least;
  }
  return least;
}

int raise_bound(const ScheduleInstance& g, View<const Bytes> most, Bytes enough, Meter& meter, Bytes& bound) {
  FlowBound flow_bound(g, meter);
  int critical = -1;
  for (const int op : sorted_ids<int>(as_size(g.ops), [&](int v) { return -most[v]; })) {
    if (most[op] <= bound || bound >= enough || !meter.spend(g.ops)) break;
    const Bytes found = flow_bound.at(op);
    if (found <= bound) continue;
    bound = found;
    critical = op;
  }
  return critical;
}

}  // namespace modelplan::schedule
