#include "schedule/live.hpp"

#include <algorithm>

namespace modelplan::schedule {
namespace {

// The most bytes that disjoint (from, to) pairs of `open` can save; `used` holds the classes already taken.
Bytes best_matching(std::span<const Credit* const> open, std::vector<int>& used) {
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

Live::Live(const Instance& g)
    : g_(&g),
      bytes_(g.base),
      written_(static_cast<std::size_t>(g.classes)),
      left_(static_cast<std::size_t>(g.classes)),
      waiting_(static_cast<std::size_t>(g.ops)),
      place_(static_cast<std::size_t>(g.ops), -1),
      done_(static_cast<std::size_t>(g.ops), 0) {
  for (int c = 0; c < g.classes; ++c) {
    const auto i = static_cast<std::size_t>(c);
    written_[i] = g.from_start[i];
    left_[i] = static_cast<int>(g.readers[c].size());
    if (alive(c)) bytes_ += g.size[i];
  }
  for (int v = 0; v < g.ops; ++v) {
    waiting_[static_cast<std::size_t>(v)] = static_cast<int>(g.preds[v].size());
    if (g.preds[v].empty()) make_ready(v);
  }
}

bool Live::alive(int c) const {
  return written(c) && (left_[static_cast<std::size_t>(c)] > 0 || g_->to_end[static_cast<std::size_t>(c)] != 0);
}

bool Live::dies_at_next_reader(int c) const {
  return left_[static_cast<std::size_t>(c)] == 1 && g_->to_end[static_cast<std::size_t>(c)] == 0;
}

Bytes Live::credit(int op) const {
  const auto rows = g_->credits_of[op];
  const auto usable = [&](const Credit& k) { return dies_at_next_reader(k.from) && !written(k.to); };
  if (rows.size() == 1) {
    const Credit& only = g_->credits[static_cast<std::size_t>(rows[0])];
    return usable(only) ? only.bytes : 0;
  }
  std::vector<const Credit*> open;
  for (const int k : rows)
    if (usable(g_->credits[static_cast<std::size_t>(k)])) open.push_back(&g_->credits[static_cast<std::size_t>(k)]);
  std::vector<int> used;
  return best_matching(open, used);
}

Bytes Live::transient(int op) const {
  Bytes found = bytes_ + g_->scratch[static_cast<std::size_t>(op)];
  for (const int c : g_->writes[op])
    if (!written(c)) found += g_->size[static_cast<std::size_t>(c)];
  return g_->credits_of[op].empty() ? found : found - credit(op);
}

Bytes Live::after(int op) const {
  Bytes found = bytes_;
  for (const int c : g_->writes[op])
    if (!written(c) && !g_->dies_unread(c)) found += g_->size[static_cast<std::size_t>(c)];
  for (const int c : g_->reads[op])
    if (dies_at_next_reader(c)) found -= g_->size[static_cast<std::size_t>(c)];
  return found;
}

void Live::add(int op) {
  bytes_ = after(op);
  for (const int c : g_->writes[op]) ++written_[static_cast<std::size_t>(c)];
  for (const int c : g_->reads[op]) --left_[static_cast<std::size_t>(c)];
  done_[static_cast<std::size_t>(op)] = 1;
  drop_ready(op);
  for (const int s : g_->succs[op])
    if (--waiting_[static_cast<std::size_t>(s)] == 0) make_ready(s);
}

void Live::remove(int op) {
  for (const int s : g_->succs[op])
    if (waiting_[static_cast<std::size_t>(s)]++ == 0) drop_ready(s);
  make_ready(op);
  done_[static_cast<std::size_t>(op)] = 0;
  for (const int c : g_->reads[op]) ++left_[static_cast<std::size_t>(c)];
  for (const int c : g_->writes[op]) --written_[static_cast<std::size_t>(c)];
  bytes_ -= after(op) - bytes_;
}

void Live::make_ready(int op) {
  place_[static_cast<std::size_t>(op)] = static_cast<int>(ready_.size());
  ready_.push_back(op);
}

void Live::drop_ready(int op) {
  const int at = place_[static_cast<std::size_t>(op)];
  const int last = ready_.back();
  ready_[static_cast<std::size_t>(at)] = last;
  place_[static_cast<std::size_t>(last)] = at;
  ready_.pop_back();
  place_[static_cast<std::size_t>(op)] = -1;
}

Bytes peak_of(const Instance& instance, std::span<const int> order) {
  Bytes peak = Live(instance).bytes();
  for (const Bytes b : profile_of(instance, order)) peak = std::max(peak, b);
  return peak;
}

std::vector<Bytes> profile_of(const Instance& instance, std::span<const int> order) {
  Live live(instance);
  std::vector<Bytes> out;
  out.reserve(order.size());
  for (const int v : order) {
    out.push_back(live.transient(v));
    live.add(v);
  }
  return out;
}

}  // namespace modelplan::schedule
