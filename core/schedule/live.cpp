#include "schedule/live.hpp"

#include <algorithm>

namespace modelplan::schedule {
namespace {

// The most bytes that disjoint (from, to) pairs of `open` can save; `used` holds the classes already taken.
Bytes best_matching(View<const Overwrite* const> open, Array<int>& used) {
  if (open.empty()) return 0;
  Bytes best = best_matching(open.subspan(1), used);
  const auto taken = [&](int c) { return std::find(used.begin(), used.end(), c) != used.end(); };
  if (taken(open[0]->from) || taken(open[0]->to)) return best;
  used.push_back(open[0]->from);
  used.push_back(open[0]->to);
  best = std::max(best, open[0]->bytes + best_matching(open.subspan(1), used));
  used.resize(used.size() - 2);
  return best;
}

}  // namespace

Live::Live(const ScheduleInstance& g)
    : g_(&g),
      bytes_(g.base),
      written_(g.classes),
      left_(g.classes),
      waiting_(g.ops),
      place_(g.ops, -1),
      done_(g.ops, 0) {
  for (int c = 0; c < g.classes; ++c) {
    const auto i = as_size(c);
    written_[i] = g.from_start[i];
    left_[i] = static_cast<int>(g.readers[c].size());
    if (alive(c)) bytes_ += g.size[i];
  }
  for (int v = 0; v < g.ops; ++v) {
    waiting_[v] = static_cast<int>(g.preds[v].size());
    if (g.preds[v].empty()) make_ready(v);
  }
}

bool Live::alive(int c) const { return written(c) && (left_[c] > 0 || g_->to_end[c] != 0); }

bool Live::dies_at_next_reader(int c) const { return left_[c] == 1 && g_->to_end[c] == 0; }

Bytes Live::overwrite(int op) const {
  const auto rows = g_->overwrites_of[op];
  const auto usable = [&](const Overwrite& k) { return dies_at_next_reader(k.from) && !written(k.to); };
  if (rows.size() == 1) {
    const Overwrite& only = g_->overwrites[rows[0]];
    return usable(only) ? only.bytes : 0;
  }
  Array<const Overwrite*> open;
  for (const int k : rows)
    if (usable(g_->overwrites[k])) open.push_back(&g_->overwrites[k]);
  Array<int> used;
  return best_matching(open, used);
}

Bytes Live::transient(int op) const {
  Bytes found = bytes_ + g_->scratch[op];
  for (const int c : g_->writes[op])
    if (!written(c)) found += g_->size[c];
  return g_->overwrites_of[op].empty() ? found : found - overwrite(op);
}

Bytes Live::after(int op) const {
  Bytes found = bytes_;
  for (const int c : g_->writes[op])
    if (!written(c) && !g_->dies_unread(c)) found += g_->size[c];
  for (const int c : g_->reads[op])
    if (dies_at_next_reader(c)) found -= g_->size[c];
  return found;
}

void Live::add(int op) {
  bytes_ = after(op);
  for (const int c : g_->writes[op]) ++written_[c];
  for (const int c : g_->reads[op]) --left_[c];
  done_[op] = 1;
  drop_ready(op);
  for (const int s : g_->succs[op])
    if (--waiting_[s] == 0) make_ready(s);
}

void Live::remove(int op) {
  for (const int s : g_->succs[op])
    if (waiting_[s]++ == 0) drop_ready(s);
  make_ready(op);
  done_[op] = 0;
  for (const int c : g_->reads[op]) ++left_[c];
  for (const int c : g_->writes[op]) --written_[c];
  bytes_ -= after(op) - bytes_;
}

void Live::make_ready(int op) {
  place_[op] = static_cast<int>(ready_.size());
  ready_.push_back(op);
}

void Live::drop_ready(int op) {
  const int at = place_[op];
  const int last = ready_.back();
  ready_[at] = last;
  place_[last] = at;
  ready_.pop_back();
  place_[op] = -1;
}

Bytes peak_of(const ScheduleInstance& instance, View<const int> order) {
  Bytes peak = Live(instance).bytes();
  for (const Bytes b : profile_of(instance, order)) peak = std::max(peak, b);
  return peak;
}

Array<Bytes> profile_of(const ScheduleInstance& instance, View<const int> order) {
  Live live(instance);
  Array<Bytes> out;
  out.reserve(order.size());
  for (const int v : order) {
    out.push_back(live.transient(v));
    live.add(v);
  }
  return out;
}

}  // namespace modelplan::schedule
