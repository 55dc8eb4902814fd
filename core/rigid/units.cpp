#include "units.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace modelplan::rigid {
namespace {

using Pair = std::pair<std::size_t, std::size_t>;

std::int64_t modulo(std::int64_t value, std::int64_t step) { return (value % step + step) % step; }

// What facts allow two buffers although they live together: offset(second) - offset(first) in [least, most].
struct Allowed {
  std::int64_t least, most;
};
using AllowedPairs = std::map<Pair, Array<Allowed>>;

AllowedPairs allowed_pairs(const Problem& p) {
  AllowedPairs found;
  const auto note = [&](std::int64_t first, std::int64_t second, std::int64_t least, std::int64_t most) {
    if (first < second)
      found[{as_size(first), as_size(second)}].push_back({-most, -least});
    else
      found[{as_size(second), as_size(first)}].push_back({least, most});
  };
  constexpr std::int64_t kFar = std::int64_t{1} << 62;
  for (std::size_t k = 0; k < p.below.size(); ++k)
    note(p.below[k], p.above[k], -kFar, p.bytes[k] - p.size[as_size(p.below[k])]);
  for (std::size_t k = 0; k < p.first.size(); ++k) note(p.first[k], p.second[k], p.least[k], p.most[k]);
  for (auto& [pair, ranges] : found)
    std::sort(ranges.begin(), ranges.end(), [](const Allowed& a, const Allowed& b) { return a.least < b.least; });
  return found;
}

// Appends the gap from `lo` to `hi` without what is allowed, all moved by `shift`.
void append(std::int64_t lo, std::int64_t hi, std::int64_t shift, const Array<Allowed>* allowed, Array<Gap>& out) {
  std::int64_t at = lo;
  if (allowed != nullptr)
    for (const Allowed& range : *allowed) {
      if (range.most <= at || range.least >= hi) continue;
      if (range.least > at) out.push_back({at + shift, range.least + shift});
      at = range.most;
    }
  if (at < hi) out.push_back({at + shift, hi + shift});
}

void merge(Array<Gap>& gaps) {
  std::sort(gaps.begin(), gaps.end(),
            [](const Gap& a, const Gap& b) { return a.lo < b.lo || (a.lo == b.lo && a.hi > b.hi); });
  std::size_t kept = 0;
  for (const Gap& gap : gaps) {
    if (kept != 0 && gap.lo < gaps[kept - 1].hi)
      gaps[kept - 1].hi = std::max(gaps[kept - 1].hi, gap.hi);
    else
      gaps[kept++] = gap;
  }
  gaps.resize(kept);
}

// Gaps of a pair of units while they are found: rows of two maps forbid mostly what others did, so they are merged
// whenever they have doubled.
struct Growing {
  Array<Gap> gaps;
  std::size_t merged = 0;

  void shorten() {
    constexpr std::size_t kFew = 64;
    if (gaps.size() < 2 * merged + kFew) return;
    merge(gaps);
    merged = gaps.size();
  }
};

// (x, y) with a x + b y = gcd(a, b).
std::pair<std::int64_t, std::int64_t> bezout(std::int64_t a, std::int64_t b) {
  if (b == 0) return {1, 0};
  const auto [x, y] = bezout(b, a % b);
  return {y, x - a / b * y};
}

// Narrows a unit's bases to those with remainder `base` of `step`; false where none is left or numbers grow too large.
bool narrow(Unit& unit, std::int64_t base, std::int64_t step) {
  if (unit.step == 1) {
    unit.step = step;
    unit.base = modulo(base, step);
    return true;
  }
  const std::int64_t common = std::gcd(unit.step, step);
  if (modulo(base - unit.base, common) != 0 || unit.step > (std::int64_t{1} << 40) / (step / common)) return false;
  const std::int64_t other = step / common, wanted = modulo((base - unit.base) / common, other);
  const std::int64_t inverse = modulo(bezout(unit.step / common % other, other).first, other);
  std::int64_t times = 0;  // wanted * inverse modulo other, bit by bit, so that nothing overflows
  for (std::int64_t bit = std::int64_t{1} << 40; bit > 0; bit /= 2)
    times = (2 * times + ((wanted & bit) != 0 ? inverse : 0)) % other;
  unit.base += times * unit.step;
  unit.step *= other;
  unit.base = modulo(unit.base, unit.step);
  return true;
}

}  // namespace

bool forbids(const Array<Gap>& gaps, std::int64_t distance) {
  return std::ranges::any_of(gaps, [=](const Gap& gap) { return gap.lo < distance && distance < gap.hi; });
}

Units::Units(const Problem& problem) {
  number(problem);
  units.resize(1 + (unit.empty() ? 0 : *std::max_element(unit.begin(), unit.end())));
  for (std::size_t b = 0; b < problem.count(); ++b) join(problem, b);
  find_gaps(problem);
  check_pins();
}

void Units::number(const Problem& problem) {
  std::map<std::int64_t, std::size_t> numbers;
  for (const std::int64_t group : problem.group) numbers[group] = 0;
  std::size_t next = 0;
  for (auto& [group, number] : numbers) number = next++;
  constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  unit.resize(problem.count(), kNone);
  delta.resize(problem.count(), 0);
  for (std::size_t k = 0; k < problem.member.size(); ++k) {
    unit[as_size(problem.member[k])] = numbers[problem.group[k]];
    delta[as_size(problem.member[k])] = problem.delta[k];
  }
  for (std::size_t& mine : unit)
    if (mine == kNone) mine = next++;
}

void Units::join(const Problem& problem, std::size_t b) {
  Unit& mine = units[unit[b]];
  mine.least = std::max(mine.least, -delta[b]);
  possible = narrow(mine, -delta[b], problem.alignment[b]) && possible;
  if (problem.pin[b] >= 0) {
    possible = possible && (mine.pin == Unit::kFree || mine.pin == problem.pin[b] - delta[b]);
    mine.pin = problem.pin[b] - delta[b];
  }
  if (problem.size[b] == 0) return;
  if (mine.empty()) {
    mine.low = delta[b];
    used.push_back(unit[b]);
  }
  mine.low = std::min(mine.low, delta[b]);
  mine.high = std::max(mine.high, delta[b] + problem.size[b]);
  mine.start = std::min(mine.start, problem.start[b]);
  mine.end = std::max(mine.end, problem.end[b]);
}

// Each pair of buffers that live together, or must not share bytes anyway, forbids distances of their units.
void Units::find_gaps(const Problem& p) {
  const AllowedPairs facts = allowed_pairs(p);
  Array<char> has_facts(p.count(), 0);
  for (const auto& [pair, ranges] : facts) has_facts[pair.first] = has_facts[pair.second] = 1;
  Array<std::map<std::size_t, Growing>> pairs(units.size());
  const auto allowed_of = [&](std::size_t i, std::size_t j) -> const Array<Allowed>* {
    if (has_facts[i] == 0 || has_facts[j] == 0) return nullptr;
    const auto fact = facts.find(std::minmax(i, j));
    return fact == facts.end() ? nullptr : &fact->second;
  };
  // Forbids what i and j of units in this order, or of one in the order of their numbers, must not do.
  const auto forbid = [&](std::size_t i, std::size_t j, const Array<Allowed>* allowed, Array<Gap>& out) {
    Array<Allowed> turned;
    if (allowed != nullptr && i > j) {
      for (const Allowed& range : *allowed) turned.push_back({-range.most, -range.least});
      std::sort(turned.begin(), turned.end(), [](const Allowed& a, const Allowed& b) { return a.least < b.least; });
      allowed = &turned;
    }
    // offset(j) - offset(i) between -size(j) and size(i) shares bytes; moved from distances of offsets to those of
    // bases
    append(-p.size[j], p.size[i], delta[i] - delta[j], allowed, out);
  };
  const auto forbid_inside = [&](std::size_t i, std::size_t j, const Array<Allowed>* allowed) {
    Array<Gap> own;
    if (delta[i] < delta[j] + p.size[j] && delta[j] < delta[i] + p.size[i])
      forbid(std::min(i, j), std::max(i, j), allowed, own);
    possible = possible && !forbids(own, 0);
  };
  Array<std::size_t> order, living;  // units with buffers that are alive
  Array<Array<std::size_t>> alive(units.size());
  for (std::size_t b = 0; b < p.count(); ++b)
    if (p.size[b] > 0) order.push_back(b);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return p.start[a] < p.start[b]; });
  for (const std::size_t j : order) {
    const std::size_t mine = unit[j];
    std::erase_if(living, [&](std::size_t other) {
      std::erase_if(alive[other], [&](std::size_t i) { return p.end[i] <= p.start[j]; });
      return alive[other].empty();
    });
    for (const std::size_t other : living) {
      if (other == mine) {
        for (const std::size_t i : alive[mine]) forbid_inside(i, j, allowed_of(i, j));
        continue;
      }
      Growing& found = pairs[std::min(mine, other)][std::max(mine, other)];
      for (const std::size_t i : alive[other]) {
        const Array<Allowed>* allowed = allowed_of(i, j);
        other < mine ? forbid(i, j, allowed, found.gaps) : forbid(j, i, allowed, found.gaps);
      }
      found.shorten();
    }
    if (alive[mine].empty()) living.push_back(mine);
    alive[mine].push_back(j);
  }
  for (std::size_t k = 0; k < p.left.size(); ++k) {
    const std::size_t a = as_size(p.left[k]), b = as_size(p.right[k]);
    if (a != b && p.size[a] > 0 && p.size[b] > 0 && !meet_in_time(p, a, b)) {
      if (unit[a] == unit[b])
        forbid_inside(a, b, nullptr);
      else
        forbid(unit[a] < unit[b] ? a : b, unit[a] < unit[b] ? b : a, nullptr,
               pairs[std::min(unit[a], unit[b])][std::max(unit[a], unit[b])].gaps);
    }
  }
  neighbours.resize(units.size());
  for (std::size_t a = 0; a < units.size(); ++a)
    for (auto& [b, found] : pairs[a]) {
      Array<Gap>& gaps = found.gaps;
      merge(gaps);
      Array<Gap> mirrored;
      for (const Gap& gap : gaps) mirrored.push_back({-gap.hi, -gap.lo});
      std::reverse(mirrored.begin(), mirrored.end());
      neighbours[a].push_back({b, std::move(mirrored)});
      neighbours[b].push_back({a, std::move(gaps)});
    }
}

void Units::check_pins() {
  for (std::size_t a = 0; a < units.size(); ++a) {
    if (units[a].pin == Unit::kFree) continue;
    possible = possible && units[a].pin >= units[a].least && units[a].from(units[a].pin) == units[a].pin;
    for (const Neighbour& other : neighbours[a])
      if (units[other.unit].pin != Unit::kFree)
        possible = possible && !forbids(other.gaps, units[a].pin - units[other.unit].pin);
  }
}

std::int64_t extent_bound(const Units& u) {
  std::int64_t bound = 0;
  for (const std::size_t a : u.used) bound = std::max(bound, u.units[a].from(u.units[a].least) + u.units[a].high);
  for (const std::size_t a : u.used)
    for (const Neighbour& other : u.neighbours[a]) {
      if (other.unit < a) continue;
      const Unit &x = u.units[a], &y = u.units[other.unit];
      // The height at a distance base(x) - base(y): convex, so least at a kink or where a gap ends.
      const auto height = [&](std::int64_t d) { return std::max(y.least, x.least - d) + std::max(y.high, d + x.high); };
      std::int64_t least = std::numeric_limits<std::int64_t>::max();
      for (const std::int64_t kink : {x.least - y.least, y.high - x.high})
        if (!forbids(other.gaps, kink)) least = std::min(least, height(kink));
      for (const Gap& gap : other.gaps) least = std::min({least, height(gap.lo), height(gap.hi)});
      bound = std::max(bound, least);
    }
  return bound;
}

}  // namespace modelplan::rigid
