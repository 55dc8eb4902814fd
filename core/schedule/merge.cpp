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
struct HillValley {
  Bytes drop;  // hill less valley
  Array<int> ops;
};

// From the lowest point upwards: the highest hill left, to the lowest valley behind it, again and again.
void add_hill_valleys(const Array<Step>& steps, Array<HillValley>& hill_valleys) {
  std::size_t at = 0;
  while (at < steps.size()) {
    std::size_t hill = at;
    for (std::size_t i = at; i < steps.size(); ++i)
      if (steps[i].peak >= steps[hill].peak) hill = i;
    std::size_t valley = hill;
    for (std::size_t i = hill; i < steps.size(); ++i)
      if (steps[i].after <= steps[valley].after) valley = i;
    HillValley part{steps[hill].peak - steps[valley].after, {}};
    for (; at <= valley; ++at) part.ops.push_back(steps[at].op);
    hill_valleys.push_back(std::move(part));
  }
}

Array<int> merged(Array<HillValley> hill_valleys) {
  std::stable_sort(hill_valleys.begin(), hill_valleys.end(),
                   [](const HillValley& a, const HillValley& b) { return a.drop > b.drop; });
  Array<int> out;
  for (const HillValley& part : hill_valleys) out.insert(out.end(), part.ops.begin(), part.ops.end());
  return out;
}

// Splits each sequence at its lowest point: what falls to it runs first, merged backwards; what rises from it comes
// after.
Array<int> merge_sequences(const Array<Array<Step>>& sequences) {
  Array<HillValley> falling, rising;
  for (const auto& steps : sequences) {
    std::size_t low = 0;  // steps before the lowest point
    Bytes lowest = 0;
    for (std::size_t i = 0; i < steps.size(); ++i)
      if (steps[i].after < lowest) {
        lowest = steps[i].after;
        low = i + 1;
      }
    Array<Step> back, forth(steps.begin() + static_cast<std::ptrdiff_t>(low), steps.end());
    for (std::size_t i = low; i-- > 0;) back.push_back({steps[i].op, steps[i].peak, i == 0 ? 0 : steps[i - 1].after});
    const auto rebase = [&](Array<Step>& part) {
      for (Step& step : part) {
        step.peak -= lowest;
        step.after -= lowest;
      }
    };
    rebase(back);
    rebase(forth);
    add_hill_valleys(back, falling);
    add_hill_valleys(forth, rising);
  }
  auto out = merged(std::move(falling));
  std::reverse(out.begin(), out.end());
  const auto rest = merged(std::move(rising));
  out.insert(out.end(), rest.begin(), rest.end());
  return out;
}

Array<Array<int>> components(const ScheduleInstance& g) {
  Array<int> root(g.ops);
  for (int v = 0; v < g.ops; ++v) root[v] = v;
  const auto find = [&](int v) {
    while (root[v] != v) {
      root[v] = root[root[v]];
      v = root[v];
    }
    return v;
  };
  for (int v = 0; v < g.ops; ++v)
    for (const int s : g.succs[v]) root[find(v)] = find(s);
  Array<Array<int>> out;
  Array<int> at(g.ops, -1);
  for (const int v : g.topological) {
    int& where = at[find(v)];
    if (where < 0) {
      where = static_cast<int>(out.size());
      out.emplace_back();
    }
    out[where].push_back(v);
  }
  return out;
}

Array<Step> steps_of(const Part& part, const Array<int>& order) {
  Live live(part.instance);
  const Bytes start = live.bytes();
  Array<Step> out;
  for (const int v : order) {
    const Bytes peak = live.transient(v) - start;
    live.add(v);
    out.push_back({part.ops[v], peak, live.bytes() - start});
  }
  return out;
}

Array<int> better_leaf(const ScheduleInstance& g) {
  auto list = list_order(g);
  auto deep = depth_first_order(g);
  return peak_of(g, deep) < peak_of(g, list) ? deep : list;
}

Array<int> order_at(const ScheduleInstance& g, int depth, Meter& meter);

Array<int> in_series(const ScheduleInstance& g, const Array<Array<int>>& parts, int depth, Meter& meter) {
  Partition partition(g);
  Live live(g);
  Array<int> out;
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

Array<int> in_parallel(const ScheduleInstance& g, const Array<Array<int>>& parts, int depth, Meter& meter) {
  Partition partition(g);
  const Live live(g);
  Array<Array<Step>> sequences;
  for (const auto& ops : parts) {
    const Part part = partition.cut(live, ops);
    sequences.push_back(steps_of(part, order_at(part.instance, depth + 1, meter)));
  }
  return merge_sequences(sequences);
}

Array<int> order_at(const ScheduleInstance& g, int depth, Meter& meter) {
  if (g.ops <= 1) return g.topological;
  if (!meter.spend(g.ops) || depth > kMostDepth) return better_leaf(g);
  const auto side_by_side = components(g);
  if (side_by_side.size() > 1) return in_parallel(g, side_by_side, depth, meter);
  const auto one_by_one = segments(g);
  if (one_by_one.size() > 1) return in_series(g, one_by_one, depth, meter);
  return better_leaf(g);
}

}  // namespace

Array<int> merge_order(const ScheduleInstance& instance, Meter& meter) { return order_at(instance, 0, meter); }

}  // namespace modelplan::schedule
