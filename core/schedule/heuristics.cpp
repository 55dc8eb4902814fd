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
std::vector<int> leave_order(int ops, const std::vector<int>& roots, const Neighbours& neighbours) {
  struct Frame {
    int op;
    std::vector<int> next;
    std::size_t at;
  };
  std::vector<char> seen(static_cast<std::size_t>(ops), 0);
  std::vector<int> out;
  std::vector<Frame> stack;
  for (const int root : roots) {
    if (seen[static_cast<std::size_t>(root)] != 0) continue;
    seen[static_cast<std::size_t>(root)] = 1;
    stack.push_back({root, neighbours(root), 0});
    while (!stack.empty()) {
      Frame& top = stack.back();
      if (top.at == top.next.size()) {
        out.push_back(top.op);
        stack.pop_back();
        continue;
      }
      const int v = top.next[top.at++];
      if (seen[static_cast<std::size_t>(v)] != 0) continue;
      seen[static_cast<std::size_t>(v)] = 1;
      stack.push_back({v, neighbours(v), 0});
    }
  }
  return out;
}

std::vector<int> ends(const Instance& g, const Rows& next) {
  std::vector<int> out;
  for (const int v : g.topological)
    if (next[v].empty()) out.push_back(v);
  return out;
}

std::vector<int> copy(std::span<const int> items) { return {items.begin(), items.end()}; }

}  // namespace

std::vector<int> file_order(const Instance& g) { return g.topological; }

std::vector<int> reverse_post_order(const Instance& g) {
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

std::vector<int> list_order(const Instance& g) {
  using Rank = std::tuple<Bytes, std::size_t, int, int>;  // bytes freed less defined, successors, arrival, op
  Live live(g);
  std::set<Rank> queue;
  std::vector<Rank> rank(static_cast<std::size_t>(g.ops));
  int arrivals = 0;
  const auto key = [&](int v) { return Rank{live.bytes() - live.after(v), g.succs[v].size(), arrivals++, v}; };
  const auto put = [&](int v) { queue.insert(rank[static_cast<std::size_t>(v)] = key(v)); };
  for (const int v : ends(g, g.preds)) put(v);
  std::vector<int> order;
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
        if (live.is_ready(r) && queue.erase(rank[static_cast<std::size_t>(r)]) > 0) put(r);
    }
  }
  return order;
}

std::vector<int> depth_first_order(const Instance& g) {
  const auto n = static_cast<std::size_t>(g.ops);
  constexpr Bytes kCap = std::numeric_limits<Bytes>::max() / 4;
  std::vector<Bytes> users(n, 0), bytes(n, 0);
  for (const int v : g.topological) {
    const auto i = static_cast<std::size_t>(v);
    users[i] = g.succs[v].empty() ? 0 : static_cast<Bytes>(g.succs[v].size()) - 1;
    for (const int c : g.writes[v]) bytes[i] += g.size[static_cast<std::size_t>(c)];
    for (const int p : g.preds[v]) {
      users[i] = std::min(kCap, users[i] + users[static_cast<std::size_t>(p)]);
      bytes[i] = std::min(kCap, bytes[i] + bytes[static_cast<std::size_t>(p)]);
    }
  }
  return leave_order(g.ops, ends(g, g.succs), [&](int v) {
    auto next = copy(g.preds[v]);
    std::stable_sort(next.begin(), next.end(), [&](int a, int b) {
      const auto i = static_cast<std::size_t>(a), j = static_cast<std::size_t>(b);
      return std::tuple(users[i], bytes[i]) > std::tuple(users[j], bytes[j]);
    });
    return next;
  });
}

std::vector<int> post_order(const Instance& g) {
  return leave_order(g.ops, ends(g, g.succs), [&](int v) { return copy(g.preds[v]); });
}

std::vector<int> tied_order(const Instance& g, Bytes label, unsigned seed) {
  Live live(g);
  std::mt19937 random(seed);
  std::vector<int> order, best;
  while (!live.ready().empty()) {
    best.clear();
    Bytes least = std::numeric_limits<Bytes>::max();
    for (const int v : live.ready()) {
      if (live.transient(v) > label || live.after(v) > least) continue;
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
