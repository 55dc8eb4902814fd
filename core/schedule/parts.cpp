#include "schedule/parts.hpp"

#include <algorithm>

#include "schedule/walker.hpp"

namespace modelplan::schedule {

Partition::Partition(const Instance& g)
    : g_(&g), local_(static_cast<std::size_t>(g.ops), -1), seen_(static_cast<std::size_t>(g.classes), 0) {}

void Partition::gather(std::span<const int> ops) {
  ++round_;
  touched_.clear();
  const auto touch = [&](int c) {
    if (seen_[static_cast<std::size_t>(c)] == round_) return;
    seen_[static_cast<std::size_t>(c)] = round_;
    touched_.push_back(c);
  };
  for (const int v : ops) {
    for (const int c : g_->reads[v]) touch(c);
    for (const int c : g_->writes[v]) touch(c);
  }
  std::sort(touched_.begin(), touched_.end());
}

void Partition::add_class(const Live& live, Part& part, Links& links, int c) {
  const int here = part.instance.classes++;
  const auto i = static_cast<std::size_t>(c);
  int inside = 0;
  for (const int r : g_->readers[c])
    if (local_[static_cast<std::size_t>(r)] >= 0) {
      links.readers.emplace_back(here, local_[static_cast<std::size_t>(r)]);
      ++inside;
    }
  bool written = g_->from_start[i] != 0;
  for (const int w : g_->writers[c]) {
    if (local_[static_cast<std::size_t>(w)] >= 0) links.writers.emplace_back(here, local_[static_cast<std::size_t>(w)]);
    written = written || live.done(w);
  }
  const bool later = live.readers_left(c) > inside;
  part.instance.size.push_back(g_->size[i]);
  part.instance.from_start.push_back(static_cast<char>(written));
  part.instance.to_end.push_back(static_cast<char>(g_->to_end[i] != 0 || later));
  if (live.alive(c)) part.instance.base -= g_->size[i];
}

Part Partition::cut(const Live& live, std::span<const int> ops) {
  gather(ops);
  Part part;
  part.ops.assign(ops.begin(), ops.end());
  part.instance.ops = static_cast<int>(ops.size());
  part.instance.base = live.bytes();
  for (std::size_t i = 0; i < ops.size(); ++i) local_[static_cast<std::size_t>(ops[i])] = static_cast<int>(i);
  Links links;
  for (const int c : touched_) add_class(live, part, links, c);
  std::vector<std::pair<int, int>> of;
  const auto class_of = [&](int c) {
    return static_cast<int>(std::lower_bound(touched_.begin(), touched_.end(), c) - touched_.begin());
  };
  for (const int v : ops) {
    const int here = local_[static_cast<std::size_t>(v)];
    part.instance.scratch.push_back(g_->scratch[static_cast<std::size_t>(v)]);
    for (const int p : g_->preds[v])
      if (local_[static_cast<std::size_t>(p)] >= 0) links.edges.emplace_back(local_[static_cast<std::size_t>(p)], here);
    for (const int k : g_->credits_of[v]) {
      const Credit& credit = g_->credits[static_cast<std::size_t>(k)];
      of.emplace_back(here, static_cast<int>(part.instance.credits.size()));
      part.instance.credits.push_back({here, class_of(credit.from), class_of(credit.to), credit.bytes});
    }
  }
  part.instance.credits_of = Rows(part.instance.ops, std::move(of));
  link(part.instance, std::move(links));
  for (const int v : ops) local_[static_cast<std::size_t>(v)] = -1;
  return part;
}

bool can_reverse(const Instance& g) {
  return std::all_of(g.credits.begin(), g.credits.end(),
                     [&](const Credit& k) { return g.writers[k.to].size() == 1 && !g.dies_unread(k.to); });
}

// A class is alive from its first writer to its last reader, so the two trade places. A class that nobody reads is
// alive while it is written; backwards nobody would write it, so it becomes scratch.
Instance reversed(const Instance& g) {
  Instance back;
  back.ops = g.ops;
  back.base = g.base;
  back.scratch = g.scratch;
  Links links;
  std::vector<std::pair<int, int>> of;
  for (int c = 0; c < g.classes; ++c) {
    const auto i = static_cast<std::size_t>(c);
    const bool unread = g.dies_unread(c);
    back.size.push_back(unread ? 0 : g.size[i]);
    back.from_start.push_back(g.to_end[i]);
    back.to_end.push_back(g.from_start[i]);
    for (const int w : g.writers[c]) {
      if (unread && g.from_start[i] == 0)
        back.scratch[static_cast<std::size_t>(w)] += g.size[i];
      else
        links.readers.emplace_back(c, w);
    }
    for (const int r : g.readers[c]) links.writers.emplace_back(c, r);
  }
  back.classes = g.classes;
  for (int v = 0; v < g.ops; ++v)
    for (const int s : g.succs[v]) links.edges.emplace_back(s, v);
  for (const Credit& k : g.credits) {
    of.emplace_back(k.op, static_cast<int>(back.credits.size()));
    back.credits.push_back({k.op, k.to, k.from, k.bytes});
  }
  back.credits_of = Rows(back.ops, std::move(of));
  link(back, std::move(links));
  return back;
}

std::vector<std::vector<int>> segments(const Instance& g) {
  const auto rank = Walker::rank_of(g);
  const auto n = static_cast<std::size_t>(g.ops);
  // Everything before rank r precedes it when each such operator has a successor no later than r; and so for what
  // follows.
  std::vector<int> nearest_next(n, g.ops), nearest_last(n, -1);
  for (std::size_t r = 0; r < n; ++r) {
    for (const int s : g.succs[g.topological[r]])
      nearest_next[r] = std::min(nearest_next[r], rank[static_cast<std::size_t>(s)]);
    for (const int p : g.preds[g.topological[r]])
      nearest_last[r] = std::max(nearest_last[r], rank[static_cast<std::size_t>(p)]);
  }
  std::vector<int> after(n + 1, g.ops);
  for (std::size_t r = n; r-- > 0;) after[r] = std::min(after[r + 1], nearest_last[r]);
  std::vector<std::vector<int>> out;
  std::vector<int> open;
  int before = -1;
  const auto close = [&] {
    if (!open.empty()) out.push_back(std::move(open));
    open.clear();
  };
  for (std::size_t r = 0; r < n; ++r) {
    const int here = static_cast<int>(r);
    const bool comparable = before <= here && after[r + 1] >= here;
    if (comparable) close();
    open.push_back(g.topological[r]);
    if (comparable) close();
    before = std::max(before, nearest_next[r]);
  }
  close();
  return out;
}

}  // namespace modelplan::schedule
