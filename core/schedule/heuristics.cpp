#include "schedule/heuristics.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <tuple>

#include "schedule/live.hpp"

namespace modelplan::schedule {
namespace {

// Operators in the order in which a walk over `next`, from `roots` in turn, leaves them. `ranked` gives the neighbours.
template <class Neighbours>
Array<int> leave_order(int ops, const Array<int>& roots, const Neighbours& neighbours) {
  struct Frame {
    int op;
    Array<int> next;
    std::size_t at;
  };
  Array<char> seen(ops, 0);
  Array<int> out;
  Array<Frame> stack;
  for (const int root : roots) {
    if (seen[root] != 0) continue;
    seen[root] = 1;
    stack.push_back({root, neighbours(root), 0});
    while (!stack.empty()) {
      Frame& top = stack.back();
      if (top.at == top.next.size()) {
        out.push_back(top.op);
        stack.pop_back();
        continue;
      }
      const int v = top.next[top.at++];
      if (seen[v] != 0) continue;
      seen[v] = 1;
      stack.push_back({v, neighbours(v), 0});
    }
  }
  return out;
}

Array<int> ends(const ScheduleInstance& g, const Rows& next) {
  Array<int> out;
  for (const int v : g.topological)
    if (next[v].empty()) out.push_back(v);
  return out;
}

Array<int> copy(View<const int> items) { return {items.begin(), items.end()}; }

}  // namespace

Array<int> file_order(const ScheduleInstance& g) { return g.topological; }

Array<int> reverse_post_order(const ScheduleInstance& g) {
  auto sources = ends(g, g.preds);
  std::reverse(sources.begin(), sources.end());
  auto order = leave_order(g.ops, sources, [&](int v) {
    auto next = copy(g.succs[v]);
    std::reverse(next.begin(), next.end());
    return next;
  });
  std::reverse(order.begin(), order.end());
  return order;
}

Array<int> list_order(const ScheduleInstance& g) {
  using Rank = std::tuple<Bytes, std::size_t, int, int>;  // bytes freed less defined, successors, arrival, op
  Live live(g);
  std::set<Rank> queue;
  Array<Rank> rank(g.ops);
  int arrivals = 0;
  const auto key = [&](int v) { return Rank{live.bytes() - live.after(v), g.succs[v].size(), arrivals++, v}; };
  const auto put = [&](int v) { queue.insert(rank[v] = key(v)); };
  for (const int v : ends(g, g.preds)) put(v);
  Array<int> order;
  while (!queue.empty()) {
    const int v = std::get<3>(*queue.rbegin());
    queue.erase(std::prev(queue.end()));
    live.add(v);
    order.push_back(v);
    for (const int s : g.succs[v])
      if (live.is_ready(s)) put(s);
    for (const int c : g.reads[v]) {
      if (live.readers_left(c) != 1) continue;
      for (const int r : g.readers[c])
        if (live.is_ready(r) && queue.erase(rank[r]) > 0) put(r);
    }
  }
  return order;
}

Array<int> depth_first_order(const ScheduleInstance& g) {
  const auto n = as_size(g.ops);
  constexpr Bytes kCap = std::numeric_limits<Bytes>::max() / 4;
  Array<Bytes> users(n, 0), bytes(n, 0);
  for (const int v : g.topological) {
    const auto i = as_size(v);
    users[i] = g.succs[v].empty() ? 0 : static_cast<Bytes>(g.succs[v].size()) - 1;
    for (const int c : g.writes[v]) bytes[i] += g.size[c];
    for (const int p : g.preds[v]) {
      users[i] = std::min(kCap, users[i] + users[p]);
      bytes[i] = std::min(kCap, bytes[i] + bytes[p]);
    }
  }
  return leave_order(g.ops, ends(g, g.succs), [&](int v) {
    auto next = copy(g.preds[v]);
    std::stable_sort(next.begin(), next.end(), [&](int a, int b) {
      const auto i = as_size(a), j = as_size(b);
      return std::tuple(users[i], bytes[i]) > std::tuple(users[j], bytes[j]);
    });
    return next;
  });
}

Array<int> post_order(const ScheduleInstance& g) {
  return leave_order(g.ops, ends(g, g.succs), [&](int v) { return copy(g.preds[v]); });
}

Array<int> tied_order(const ScheduleInstance& g, Bytes limit, unsigned seed) {
  Live live(g);
  std::mt19937 random(seed);
  Array<int> order, best;
  while (!live.ready().empty()) {
    best.clear();
    Bytes least = std::numeric_limits<Bytes>::max();
    for (const int v : live.ready()) {
      if (live.transient(v) > limit || live.after(v) > least) continue;
      if (live.after(v) < least) best.clear();
      least = live.after(v);
      best.push_back(v);
    }
    if (best.empty()) return {};
    std::sort(best.begin(), best.end());
    order.push_back(best[random() % best.size()]);
    live.add(order.back());
  }
  return order;
}

}  // namespace modelplan::schedule
