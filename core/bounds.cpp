#include "bounds.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

namespace modelplan {
namespace {

struct Event {
  std::int64_t step;
  std::int64_t bytes;  // added to the load
  std::int64_t pad;    // enters (with bytes > 0) or leaves the multiset of paddings
  bool leaves;
};

std::int64_t round_up(std::int64_t value, std::int64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

using Pair = std::pair<std::size_t, std::size_t>;

// What each unordered pair can have in common: of one fact no more than the upper buffer has, of two the larger.
std::map<Pair, std::int64_t> shared_bytes(const Columns& columns, const Facts& facts) {
  std::map<Pair, std::int64_t> most;
  for (std::size_t f = 0; f < facts.below.size(); ++f) {
    const auto a = static_cast<std::size_t>(facts.below[f]), b = static_cast<std::size_t>(facts.above[f]);
    std::int64_t& bytes = most[std::minmax(a, b)];
    bytes = std::max(bytes, std::min(facts.bytes[f], columns.size[b]));
  }
  return most;
}

std::vector<Event> events_of(const Columns& columns, const Facts& facts, std::int64_t unit) {
  std::vector<Event> events;
  events.reserve(2 * (columns.size.size() + facts.below.size()));
  const auto span = [&](std::int64_t from, std::int64_t until, std::int64_t bytes, std::int64_t pad) {
    events.push_back({from, bytes, pad, false});
    events.push_back({until, -bytes, pad, true});
  };
  for (std::size_t i = 0; i < columns.size.size(); ++i) {
    if (columns.size[i] == 0) continue;
    const std::int64_t rounded = round_up(columns.size[i], unit);
    span(columns.start[i], columns.end[i], rounded, rounded - columns.size[i]);
  }
  for (const auto& [pair, bytes] : shared_bytes(columns, facts)) {
    const auto [a, b] = pair;
    const std::int64_t from = std::max(columns.start[a], columns.start[b]);
    const std::int64_t until = std::min(columns.end[a], columns.end[b]);
    if (from < until && columns.size[a] > 0 && columns.size[b] > 0) span(from, until, -round_up(bytes, unit), 0);
  }
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.step < b.step; });
  return events;
}

}  // namespace

LoadBound load_bound(const Columns& columns, const Facts& facts) {
  std::int64_t unit = 0;
  for (const std::int64_t a : columns.alignment) unit = std::gcd(unit, a);
  const std::vector<Event> events = events_of(columns, facts, std::max<std::int64_t>(unit, 1));
  LoadBound best;
  for (std::size_t i = 0; facts.below.size() > 0 && i < columns.size.size(); ++i)  // what overlaps may hide in no sum
    if (columns.size[i] > best.bytes) best = {columns.size[i], columns.start[i]};
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
