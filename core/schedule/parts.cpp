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
