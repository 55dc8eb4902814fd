#include "schedule/parts.hpp"

#include <algorithm>

#include "schedule/walker.hpp"

namespace modelplan::schedule {

Partition::Partition(const ScheduleInstance& g) : g_(&g), local_(g.ops, -1), seen_(g.classes, 0) {}

void Partition::gather(View<const int> ops) {
  ++round_;
  touched_.clear();
  const auto touch = [&](int c) {
    if (seen_[c] == round_) return;
    seen_[c] = round_;
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
  const auto i = as_size(c);
  int inside = 0;
  for (const int r : g_->readers[c])
    if (local_[r] >= 0) {
      links.readers.emplace_back(here, local_[r]);
      ++inside;
    }
  bool written = g_->from_start[i] != 0;
  for (const int w : g_->writers[c]) {
    if (local_[w] >= 0) links.writers.emplace_back(here, local_[w]);
    written = written || live.done(w);
  }
  const bool later = live.readers_left(c) > inside;
  part.instance.size.push_back(g_->size[i]);
  part.instance.from_start.push_back(static_cast<char>(written));
  part.instance.to_end.push_back(static_cast<char>(g_->to_end[i] != 0 || later));
  if (live.alive(c)) part.instance.base -= g_->size[i];
}

Part Partition::cut(const Live& live, View<const int> ops) {
  gather(ops);
  Part part;
  part.ops.assign(ops.begin(), ops.end());
  part.instance.ops = static_cast<int>(ops.size());
  part.instance.base = live.bytes();
  for (std::size_t i = 0; i < ops.size(); ++i) local_[ops[i]] = static_cast<int>(i);
  Links links;
  for (const int c : touched_) add_class(live, part, links, c);
  Array<std::pair<int, int>> of;
  const auto class_of = [&](int c) { return static_cast<int>(count_below(touched_, c)); };
  for (const int v : ops) {
    const int here = local_[v];
    part.instance.scratch.push_back(g_->scratch[v]);
    for (const int p : g_->preds[v])
      if (local_[p] >= 0) links.edges.emplace_back(local_[p], here);
    for (const int k : g_->overwrites_of[v]) {
      const Overwrite& overwrite = g_->overwrites[k];
      of.emplace_back(here, static_cast<int>(part.instance.overwrites.size()));
      part.instance.overwrites.push_back({here, class_of(overwrite.from), class_of(overwrite.to), overwrite.bytes});
    }
  }
  part.instance.overwrites_of = Rows(part.instance.ops, std::move(of));
  link(part.instance, std::move(links));
  for (const int v : ops) local_[v] = -1;
  return part;
}

bool can_reverse(const ScheduleInstance& g) {
  return std::all_of(g.overwrites.begin(), g.overwrites.end(),
                     [&](const Overwrite& k) { return g.writers[k.to].size() == 1 && !g.dies_unread(k.to); });
}

// A class is alive from its first writer to its last reader, so the two trade places. A class that no operator reads is
// alive while it is written; backwards no operator would write it, so it becomes scratch.
ScheduleInstance reversed(const ScheduleInstance& g) {
  ScheduleInstance back;
  back.ops = g.ops;
  back.base = g.base;
  back.scratch = g.scratch;
  Links links;
  Array<std::pair<int, int>> of;
  for (int c = 0; c < g.classes; ++c) {
    const auto i = as_size(c);
    const bool unread = g.dies_unread(c);
    back.size.push_back(unread ? 0 : g.size[i]);
    back.from_start.push_back(g.to_end[i]);
    back.to_end.push_back(g.from_start[i]);
    for (const int w : g.writers[c]) {
      if (unread && g.from_start[i] == 0)
        back.scratch[w] += g.size[i];
      else
        links.readers.emplace_back(c, w);
    }
    for (const int r : g.readers[c]) links.writers.emplace_back(c, r);
  }
  back.classes = g.classes;
  for (int v = 0; v < g.ops; ++v)
    for (const int s : g.succs[v]) links.edges.emplace_back(s, v);
  for (const Overwrite& k : g.overwrites) {
    of.emplace_back(k.op, static_cast<int>(back.overwrites.size()));
    back.overwrites.push_back({k.op, k.to, k.from, k.bytes});
  }
  back.overwrites_of = Rows(back.ops, std::move(of));
  link(back, std::move(links));
  return back;
}

Array<Array<int>> segments(const ScheduleInstance& g) {
  const auto rank = Walker::rank_of(g);
  const auto n = as_size(g.ops);
  // Everything before rank r precedes it when each such operator has a successor no later than r; and so for what
  // follows.
  Array<int> nearest_next(n, g.ops), nearest_last(n, -1);
  for (std::size_t r = 0; r < n; ++r) {
    for (const int s : g.succs[g.topological[r]]) nearest_next[r] = std::min(nearest_next[r], rank[s]);
    for (const int p : g.preds[g.topological[r]]) nearest_last[r] = std::max(nearest_last[r], rank[p]);
  }
  Array<int> after(n + 1, g.ops);
  for (std::size_t r = n; r-- > 0;) after[r] = std::min(after[r + 1], nearest_last[r]);
  Array<Array<int>> out;
  Array<int> open;
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
