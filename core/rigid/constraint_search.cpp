#include "constraint_search.hpp"

#include <algorithm>
#include <limits>

namespace modelplan::rigid {
namespace {

constexpr std::int64_t kMostPlaces = 1 << 14;  // of a unit: beyond, sets of places cost more than they give
constexpr double kFailures = 60, kGrowth = 1.2, kMostFailures = 5000;  // before a new start
constexpr std::size_t kWidest = 16;  // places to either side that a unit loses with one where it did not work out

}  // namespace

ConstraintSearch::ConstraintSearch(const Units& units, std::uint64_t seed)
    : units_(units), random_(seed), weight_(units.units.size(), 1.0) {}

bool ConstraintSearch::takes(const Units& units, std::int64_t height) {
  return std::ranges::all_of(units.used, [&](std::size_t u) {
    const Unit& unit = units.units[u];
    return unit.pin == Unit::kFree && (height - unit.high - unit.least) / unit.step < kMostPlaces;
  });
}

bool ConstraintSearch::lower(Array<std::int64_t>& bases, std::int64_t limit, std::int64_t& steps) {
  if (!begin(bases, limit)) return false;
  double failures = kFailures;
  while (steps > 0) {
    if (search(static_cast<std::int64_t>(failures), steps)) {
      for (const std::size_t u : free_) bases[u] = first_[u] + last_[u] * units_.units[u].step;
      return true;
    }
    undo(0);
    levels_.clear();
    std::fill(placed_.begin(), placed_.end(), 0);
    failures = std::min(failures * kGrowth, kMostFailures);
  }
  return false;
}

// The places of all units below the limit; false where one has none.
bool ConstraintSearch::begin(const Array<std::int64_t>& bases, std::int64_t limit) {
  const std::size_t n = units_.units.size();
  first_.assign(n, 0);
  last_.assign(n, 0);
  left_.assign(n, 0);
  placed_.assign(n, 0);
  places_.resize(n);
  saved_.assign(n, std::numeric_limits<std::size_t>::max());
  free_.clear();
  taken_.clear();
  old_.clear();
  levels_.clear();
  for (const std::size_t u : units_.used) {
    const Unit& unit = units_.units[u];
    first_[u] = unit.from(unit.least);
    const std::int64_t end = unit.until(limit - unit.high);
    if (end < first_[u]) return false;
    left_[u] = (end - first_[u]) / unit.step + 1;
    last_[u] = std::clamp((bases[u] - first_[u]) / unit.step, std::int64_t{0}, left_[u] - 1);
    places_[u].assign(1, {0, left_[u]});
    free_.push_back(u);
  }
  return true;
}

// Places units until all stand, true, or so many have failed or all steps are made.
bool ConstraintSearch::search(std::int64_t failures, std::int64_t& steps) {
  while (levels_.size() < free_.size()) {
    if (steps-- <= 0) return false;
    const std::size_t u = next_unit();
    std::int64_t place = choose(u);
    levels_.push_back({u, place, taken_.size()});
    placed_[u] = 1;
    bool fits = put(u, place);
    while (!fits) {  // takes back what stands last, which loses that place
      if (failures-- <= 0 || levels_.empty()) return false;
      const Level level = levels_.back();
      levels_.pop_back();
      undo(level.taken);
      placed_[level.unit] = 0;
      const auto wide = static_cast<std::int64_t>(below(kWidest));
      fits = take(level.unit, std::max<std::int64_t>(0, level.place - wide), level.place + wide + 1);
      if (!fits) weight_[level.unit] += 1;
    }
  }
  return true;
}

std::size_t ConstraintSearch::next_unit() const {
  std::size_t best = free_.front();
  double least = std::numeric_limits<double>::max();
  for (const std::size_t u : free_) {
    if (placed_[u] != 0) continue;
    const double dear = static_cast<double>(left_[u]) / weight_[u];
    if (dear < least) {
      least = dear;
      best = u;
    }
  }
  return best;
}

std::int64_t ConstraintSearch::choose(std::size_t u) {
  if (has(u, last_[u])) return last_[u];
  const std::size_t choice = below(8);
  if (choice == 0) return places_[u].front().from;
  if (choice == 1) return places_[u].back().to - 1;
  return nearest(u, last_[u]);
}

// A unit stands at a place: takes the places away from others that it forbids; false where one has none left.
bool ConstraintSearch::put(std::size_t u, std::int64_t place) {
  last_[u] = place;
  const std::int64_t base = first_[u] + place * units_.units[u].step;
  for (const Neighbour& other : units_.neighbours[u]) {
    const std::size_t v = other.unit;
    if (placed_[v] != 0 || left_[v] == 0) continue;
    const std::int64_t step = units_.units[v].step;
    for (const Gap& gap : other.gaps) {  // of base - base(v): base(v) lies strictly between base - hi and base - lo
      const std::int64_t from = base - gap.hi + 1 - first_[v], to = base - gap.lo - first_[v];
      if (to <= 0) continue;
      if (!take(v, from <= 0 ? 0 : (from + step - 1) / step, (to + step - 1) / step)) {
        weight_[v] += 1;
        weight_[u] += 1;
        return false;
      }
    }
  }
  return true;
}

// Takes away the places [from, to) of a unit; false if none is left.
bool ConstraintSearch::take(std::size_t u, std::int64_t from, std::int64_t to) {
  Array<Run>& runs = places_[u];
  auto at = std::ranges::lower_bound(runs, from, std::ranges::less_equal{}, &Run::to);
  if (from >= to || at == runs.end() || at->from >= to) return left_[u] > 0;
  save(u);
  if (at->from < from) {
    if (at->to > to) {
      left_[u] -= to - from;
      const Run below{at->from, from};
      at->from = to;
      runs.insert(at, below);
      return true;
    }
    left_[u] -= at->to - from;
    at->to = from;
    ++at;
  }
  const auto gone = at;
  for (; at != runs.end() && at->to <= to; ++at) left_[u] -= at->to - at->from;
  if (at != runs.end() && at->from < to) {
    left_[u] -= to - at->from;
    at->from = to;
  }
  runs.erase(gone, at);
  return left_[u] > 0;
}

// Remembers the places of a unit as they are, once for each unit that is placed.
void ConstraintSearch::save(std::size_t u) {
  if (saved_[u] == levels_.size()) return;
  taken_.push_back({u, old_.size(), left_[u], saved_[u]});
  saved_[u] = levels_.size();
  old_.insert(old_.end(), places_[u].begin(), places_[u].end());
}

void ConstraintSearch::undo(std::size_t taken) {
  for (; taken_.size() > taken; taken_.pop_back()) {
    const Taken& last = taken_.back();
    const auto first = old_.begin() + static_cast<std::ptrdiff_t>(last.runs);
    places_[last.unit].assign(first, old_.end());
    old_.erase(first, old_.end());
    left_[last.unit] = last.left;
    saved_[last.unit] = last.saved;
  }
}

bool ConstraintSearch::has(std::size_t u, std::int64_t place) const {
  const auto at = std::ranges::lower_bound(places_[u], place, std::ranges::less_equal{}, &Run::to);
  return at != places_[u].end() && at->from <= place;
}

// The place that is left nearest to a place.
std::int64_t ConstraintSearch::nearest(std::size_t u, std::int64_t place) const {
  const Array<Run>& runs = places_[u];
  const auto up = std::ranges::lower_bound(runs, place, std::ranges::less_equal{}, &Run::to);
  if (up != runs.end() && up->from <= place) return place;
  if (up == runs.begin()) return up->from;
  const std::int64_t down = std::prev(up)->to - 1;
  return up == runs.end() || place - down <= up->from - place ? down : up->from;
}

}  // namespace modelplan::rigid
