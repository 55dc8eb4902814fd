#include "schedule/merge.hpp"

#include <algorithm>

#include "schedule/heuristics.hpp"
#include "schedule/live.hpp"
#include "schedule/parts.hpp"

namespace modelplan::schedule {
namespace {

constexpr int kMostDepth = 400;

// One step of a sequence, measured from the bytes at the sequence's start.
struct Step {
  int op;
  Bytes peak;
  Bytes after;
};

// A run of steps that an optimal merge keeps together.
struct Hump {
  Bytes drop;  // hill less valley
  std::vector<int> ops;
};

// From the lowest point upwards: the highest hill left, to the lowest valley behind it, again and again.
void add_humps(const std::vector<Step>& steps, std::vector<Hump>& humps) {
  std::size_t at = 0;
  while (at < steps.size()) {
    std::size_t hill = at;
    for (std::size_t i = at; i < steps.size(); ++i)
      if (steps[i].peak >= steps[hill].peak) hill = i;
    std::size_t valley = hill;
    for (std::size_t i = hill; i < steps.size(); ++i)
      if (steps[i].after <= steps[valley].after) valley = i;
    Hump hump{steps[hill].peak - steps[valley].after, {}};
    for (; at <= valley; ++at) hump.ops.push_back(steps[at].op);
    humps.push_back(std::move(hump));
  }
}

std::vector<int> merged(std::vector<Hump> humps) {
  std::stable_sort(humps.begin(), humps.end(), [](const Hump& a, const Hump& b) { return a.drop > b.drop; });
  std::vector<int> out;
  for (const Hump& hump : humps) out.insert(out.end(), hump.ops.begin(), hump.ops.end());
  return out;
}

// Splits each sequence at its lowest point: what falls to it runs first, merged backwards; what rises from it comes
// after.
std::vector<int> merge_sequences(const std::vector<std::vector<Step>>& sequences) {
  std::vector<Hump> falling, rising;
  for (const auto& steps : sequences) {
    std::size_t low = 0;  // steps before the lowest point
    Bytes lowest = 0;
    for (std::size_t i = 0; i < steps.size(); ++i)
      if (steps[i].after < lowest) {
        lowest = steps[i].after;
        low = i + 1;
      }
    std::vector<Step> back, forth(steps.begin() + static_cast<std::ptrdiff_t>(low), steps.end());
    for (std::size_t i = low; i-- > 0;) back.push_back({steps[i].op, steps[i].peak, i == 0 ? 0 : steps[i - 1].after});
    const auto rebase = [&](std::vector<Step>& part) {
      for (Step& step : part) {
        step.peak -= lowest;
        step.after -= lowest;
      }
    };
    rebase(back);
    rebase(forth);
    add_humps(back, falling);
    add_humps(forth, rising);
  }
  auto out = merged(std::move(falling));
  std::reverse(out.begin(), out.end());
  const auto rest = merged(std::move(rising));
  out.insert(out.end(), rest.begin(), rest.end());
  return out;
}

std::vector<std::vector<int>> components(const Instance& g) {
  std::vector<int> root(static_cast<std::size_t>(g.ops));
  for (int v = 0; v < g.ops; ++v) root[static_cast<std::size_t>(v)] = v;
  const auto find = [&](int v) {
    while (root[static_cast<std::size_t>(v)] != v) {
      root[static_cast<std::size_t>(v)] = root[static_cast<std::size_t>(root[static_cast<std::size_t>(v)])];
      v = root[static_cast<std::size_t>(v)];
    }
    return v;
  };
  for (int v = 0; v < g.ops; ++v)
    for (const int s : g.succs[v]) root[static_cast<std::size_t>(find(v))] = find(s);
  std::vector<std::vector<int>> out;
  std::vector<int> at(static_cast<std::size_t>(g.ops), -1);
  for (const int v : g.topological) {
    int& where = at[static_cast<std::size_t>(find(v))];
    if (where < 0) {
      where = static_cast<int>(out.size());
      out.emplace_back();
    }
    out[static_cast<std::size_t>(where)].push_back(v);
  }
  return out;
}

std::vector<Step> steps_of(const Part& part, const std::vector<int>& order) {
  Live live(part.instance);
  const Bytes start = live.bytes();
  std::vector<Step> out;
  for (const int v : order) {
    const Bytes peak = live.transient(v) - start;
    live.add(v);
    out.push_back({part.ops[static_cast<std::size_t>(v)], peak, live.bytes() - start});
  }
  return out;
}

std::vector<int> better_leaf(const Instance& g) {
  auto list = list_order(g);
  auto deep = depth_first_order(g);
  return peak_of(g, deep) < peak_of(g, list) ? deep : list;
}

std::vector<int> order_at(const Instance& g, int depth, Meter& meter);

std::vector<int> in_series(const Instance& g, const std::vector<std::vector<int>>& parts, int depth, Meter& meter) {
  Partition partition(g);
  Live live(g);
  std::vector<int> out;
  for (const auto& ops : parts) {
    if (ops.size() == 1) {
      out.push_back(ops[0]);
    } else {
      const Part part = partition.cut(live, ops);
      const auto order = part.whole(order_at(part.instance, depth + 1, meter));
      out.insert(out.end(), order.begin(), order.end());
    }
    for (std::size_t i = out.size() - ops.size(); i < out.size(); ++i) live.add(out[i]);
  }
  return out;
}

std::vector<int> in_parallel(const Instance& g, const std::vector<std::vector<int>>& parts, int depth, Meter& meter) {
  Partition partition(g);
  const Live live(g);
  std::vector<std::vector<Step>> sequences;
  for (const auto& ops : parts) {
    const Part part = partition.cut(live, ops);
    sequences.push_back(steps_of(part, order_at(part.instance, depth + 1, meter)));
  }
  return merge_sequences(sequences);
}

std::vector<int> order_at(const Instance& g, int depth, Meter& meter) {
  if (g.ops <= 1) return g.topological;
  if (!meter.spend(g.ops) || depth > kMostDepth) return better_leaf(g);
  const auto side_by_side = components(g);
  if (side_by_side.size() > 1) return in_parallel(g, side_by_side, depth, meter);
  const auto one_by_one = segments(g);
  if (one_by_one.size() > 1) return in_series(g, one_by_one, depth, meter);
  return better_leaf(g);
}

}  // namespace

std::vector<int> merge_order(const Instance& instance, Meter& meter) { return order_at(instance, 0, meter); }

}  // namespace modelplan::schedule
