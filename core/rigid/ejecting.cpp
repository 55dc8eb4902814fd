#include "ejecting.hpp"

#include <algorithm>
#include <limits>

namespace modelplan::rigid {
namespace {

// How many of ascending numbers are below a value: as `std::lower_bound`, without jumps that nobody can foresee.
std::size_t count_below(const Array<std::int64_t>& numbers, std::int64_t value) {
  std::size_t below = 0;
  for (std::size_t left = numbers.size(); left > 0;) {
    const std::size_t half = (left + 1) / 2;
    below += numbers[below + half - 1] < value ? half : 0;
    left -= half;
  }
  return below;
}

}  // namespace

Ejector::Ejector(const Units& units, std::uint64_t seed)
    : units_(units), random_(seed), placed_(units.units.size(), 0), weight_(units.units.size(), 0) {
  // Units that meet many others are dear to move.
  double meetings = 0;
  for (const std::size_t u : units_.used) meetings += static_cast<double>(units_.neighbours[u].size());
  const double mean = std::max(1.0, meetings / static_cast<double>(std::max<std::size_t>(1, units_.used.size())));
  for (const std::size_t u : units_.used) weight_[u] = 1 + static_cast<double>(units_.neighbours[u].size()) / mean;
}

bool Ejector::lower(Array<std::int64_t>& bases, std::int64_t limit, std::size_t loose, std::int64_t moves,
                    std::int64_t most_work) {
  bases_ = bases;
  if (!begin(limit)) return false;
  for (; loose > 0; --loose) {
    const std::size_t u = units_.used[below(units_.used.size())];
    if (placed_[u] == 0 || !movable(u)) continue;
    placed_[u] = 0;
    waiting_.push_back(u);
  }
  while (!waiting_.empty()) {
    if (moves-- <= 0 || work_ > most_work) return false;
    const std::size_t u = waiting_.back();
    waiting_.pop_back();
    bases_[u] = best_place(u, units_.units[u].until(limit - units_.units[u].high));
    eject_around(u);
    placed_[u] = 1;
  }
  bases = bases_;
  return true;
}

// Places all units that end within the limit; false if one cannot.
bool Ejector::begin(std::int64_t limit) {
  waiting_.clear();
  work_ += static_cast<std::int64_t>(units_.used.size());
  for (const std::size_t u : units_.used) {
    const Unit& unit = units_.units[u];
    placed_[u] = bases_[u] + unit.high <= limit ? 1 : 0;
    if (placed_[u] != 0) continue;
    if (!movable(u) || unit.from(unit.least) + unit.high > limit) return false;
    waiting_.push_back(u);
  }
  return true;
}

// Collects the places up to `most` next to what the unit meets, and what it costs to stand between them.
void Ejector::collect(std::size_t u, std::int64_t most) {
  const Unit& unit = units_.units[u];
  const std::int64_t first = unit.from(unit.least);
  charges_.clear();
  places_.clear();
  places_.push_back(first);
  places_.push_back(most);
  for (const Neighbour& other : units_.neighbours[u]) {
    ++work_;
    if (placed_[other.unit] == 0) continue;
    work_ += static_cast<std::int64_t>(other.gaps.size());
    const std::int64_t base = bases_[other.unit];
    const double cost = movable(other.unit) ? weight_[other.unit] : 1e12;
    for (const Gap& gap : other.gaps) {
      const std::int64_t lo = base + gap.lo, hi = base + gap.hi;
      if (hi <= first || lo >= most) continue;
      charges_.push_back({lo + 1, hi, cost});
      if (lo >= first) places_.push_back(unit.until(lo));
      if (hi <= most) places_.push_back(std::min(unit.from(hi), most));
    }
  }
}

// The place up to `most` where the units that must go are the least dear; one of several at random.
std::int64_t Ejector::best_place(std::size_t u, std::int64_t most) {
  collect(u, most);
  std::ranges::sort(places_);
  changes_.assign(places_.size() + 1, 0);
  for (const Charge& charge : charges_) {
    changes_[count_below(places_, charge.from)] += charge.cost;
    changes_[count_below(places_, charge.until)] -= charge.cost;
  }
  double cost = 0, least = std::numeric_limits<double>::max();
  std::int64_t best = places_.front();
  std::size_t same = 0;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const std::int64_t place = places_[i];
    cost += changes_[i];
    if (cost < least - 1e-6) {
      least = cost;
      best = place;
      same = 1;
    } else if (cost < least + 1e-6 && place != best && below(++same) == 0) {
      best = place;
    }
  }
  return best;
}

// Takes out the units that meet `u` at its base; each becomes a little dearer.
void Ejector::eject_around(std::size_t u) {
  for (const Neighbour& other : units_.neighbours[u]) {
    if (placed_[other.unit] == 0 || !forbids(other.gaps, bases_[u] - bases_[other.unit])) continue;
    placed_[other.unit] = 0;
    weight_[other.unit] += 1;
    waiting_.push_back(other.unit);
  }
}

}  // namespace modelplan::rigid
