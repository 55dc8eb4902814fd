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

// A life in which a pair of buffers may share bytes by a meeting.
struct Meeting {
  std::int64_t from, until;
  std::size_t a, b;
};

Array<Meeting> meetings_of(const Problem& problem) {
  Array<Meeting> found;
  for (std::size_t k = 0; k < problem.first.size(); ++k) {
    const auto a = as_size(problem.first[k]), b = as_size(problem.second[k]);
    const std::int64_t from = std::max(problem.start[a], problem.start[b]);
    const std::int64_t until = std::min(problem.end[a], problem.end[b]);
    if (from < until && problem.size[a] > 0 && problem.size[b] > 0) found.push_back({from, until, a, b});
  }
  std::sort(found.begin(), found.end(), [](const Meeting& a, const Meeting& b) { return a.from < b.from; });
  return found;
}

// The most bytes that buffers share by the meetings of one moment. Where those that meet fall into two sides without
// meetings inside, one side lies apart, so all together need its bytes at least; else the largest buffer's.
std::int64_t relief_of(const Problem& problem, const Array<Meeting>& active, std::int64_t unit) {
  std::map<std::size_t, Array<std::size_t>> others;
  for (const Meeting& m : active) {
    others[m.a].push_back(m.b);
    others[m.b].push_back(m.a);
  }
  std::map<std::size_t, int> side;
  std::int64_t relief = 0;
  for (const auto& [first, ignored] : others) {
    if (side.contains(first)) continue;
    std::int64_t sum[2] = {0, 0}, largest = 0;
    bool sides = true;
    Array<std::size_t> open = {first};
    side[first] = 0;
    while (!open.empty()) {
      const std::size_t b = open.back();
      open.pop_back();
      const std::int64_t size = round_up(problem.size[b], unit);
      sum[side[b]] += size;
      largest = std::max(largest, size);
      for (const std::size_t other : others[b]) {
        const auto [found, fresh] = side.emplace(other, 1 - side[b]);
        if (fresh) open.push_back(other);
        sides = sides && found->second != side[b];
      }
    }
    relief += sum[0] + sum[1] - (sides ? std::max(sum[0], sum[1]) : largest);
  }
  return relief;
}

// Spans of time with the same meetings, and what these may save there.
template <class Note>
void note_relief(const Problem& problem, std::int64_t unit, Note&& note) {
  const Array<Meeting> meetings = meetings_of(problem);
  std::set<std::int64_t> cuts;
  for (const Meeting& m : meetings) cuts.insert({m.from, m.until});
  Array<Meeting> active;
  std::size_t next = 0;
  for (auto cut = cuts.begin(); cut != cuts.end() && std::next(cut) != cuts.end(); ++cut) {
    std::erase_if(active, [&](const Meeting& m) { return m.until <= *cut; });
    for (; next < meetings.size() && meetings[next].from <= *cut; ++next) active.push_back(meetings[next]);
    if (!active.empty()) note(*cut, *std::next(cut), relief_of(problem, active, unit));
  }
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
  note_relief(problem, unit,
              [&](std::int64_t from, std::int64_t until, std::int64_t bytes) { span(from, until, -bytes, 0); });
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.step < b.step; });
  return events;
}

}  // namespace

LoadBound load_bound(const Problem& problem) {
  std::int64_t unit = 0;
  for (const std::int64_t a : problem.alignment) unit = std::gcd(unit, a);
  const Array<Event> events = events_of(problem, std::max<std::int64_t>(unit, 1));
  LoadBound best;
  for (std::size_t i = 0; problem.below.size() + problem.first.size() > 0 && i < problem.count();
       ++i)  // what overlaps may hide in no sum
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
