#include "load_bound.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

namespace modelplan {
namespace {

struct Event {
  std::int64_t step;
  std::int64_t bytes;  // added to the load
  std::int64_t pad;    // enters (with bytes > 0) or leaves the multiset of paddings
  bool leaves;
};

using Pair = std::pair<std::size_t, std::size_t>;

// What each unordered pair can have in common: of one fact no more than the upper buffer has, of two the larger.
std::map<Pair, std::int64_t> shared_bytes(const Problem& problem) {
  std::map<Pair, std::int64_t> most;
  for (std::size_t f = 0; f < problem.below.size(); ++f) {
    const auto a = as_size(problem.below[f]), b = as_size(problem.above[f]);
    std::int64_t& bytes = most[std::minmax(a, b)];
    bytes = std::max(bytes, std::min(problem.bytes[f], problem.size[b]));
  }
  return most;
}

Array<Event> events_of(const Problem& problem, std::int64_t unit) {
  Array<Event> events;
  events.reserve(2 * (problem.count() + problem.below.size()));
  const auto span = [&](std::int64_t from, std::int64_t until, std::int64_t bytes, std::int64_t pad) {
    events.push_back({from, bytes, pad, false});
    events.push_back({until, -bytes, pad, true});
  };
  for (std::size_t i = 0; i < problem.count(); ++i) {
    if (problem.size[i] == 0) continue;
    const std::int64_t rounded = round_up(problem.size[i], unit);
    span(problem.start[i], problem.end[i], rounded, rounded - problem.size[i]);
  }
  for (const auto& [pair, bytes] : shared_bytes(problem)) {
    const auto [a, b] = pair;
    const std::int64_t from = std::max(problem.start[a], problem.start[b]);
    const std::int64_t until = std::min(problem.end[a], problem.end[b]);
    if (from < until && problem.size[a] > 0 && problem.size[b] > 0) span(from, until, -round_up(bytes, unit), 0);
  }
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.step < b.step; });
  return events;
}

}  // namespace

LoadBound load_bound(const Problem& problem) {
  std::int64_t unit = 0;
  for (const std::int64_t a : problem.alignment) unit = std::gcd(unit, a);
  const Array<Event> events = events_of(problem, std::max<std::int64_t>(unit, 1));
  LoadBound best;
  for (std::size_t i = 0; problem.below.size() > 0 && i < problem.count(); ++i)  // what overlaps may hide in no sum
    if (problem.size[i] > best.bytes) best = {problem.size[i], problem.start[i]};
  std::int64_t load = 0;
  std::multiset<std::int64_t> pads;  // of live buffers, zeros left out
  for (std::size_t e = 0; e < events.size(); ++e) {
    load += events[e].bytes;
    if (events[e].pad > 0) {
      if (events[e].leaves)
        pads.erase(pads.find(events[e].pad));
      else
        pads.insert(events[e].pad);
    }
    if (e + 1 < events.size() && events[e + 1].step == events[e].step) continue;
    const std::int64_t bytes = load - (pads.empty() ? 0 : *pads.rbegin());
    if (bytes > best.bytes) best = {bytes, events[e].step};
  }
  return best;
}

}  // namespace modelplan
