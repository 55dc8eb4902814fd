#include "units.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <queue>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace modelplan::rigid {
namespace {

using Pair = std::pair<std::size_t, std::size_t>;

std::int64_t modulo(std::int64_t value, std::int64_t step) { return (value % step + step) % step; }

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

// A buffer about which there are facts beside another one.
struct Partner {
  std::size_t buffer;
  const Array<Allowed>* allowed;
};

Array<Array<Partner>> partners_of(const AllowedPairs& facts, std::size_t count) {
  Array<Array<Partner>> found(count);
  for (const auto& [pair, allowed] : facts) {
    found[pair.first].push_back({pair.second, &allowed});
    found[pair.second].push_back({pair.first, &allowed});
  }
  return found;
}

// Bytes [lo, hi) above the base of a unit.
struct Bytes {
  std::int64_t lo, hi;
};

// The buffers that are alive, as runs of bytes of each unit: thousands of rows side by side are one run.
class Living {
  using Death = std::pair<std::int64_t, std::size_t>;  // when, and which buffer

 public:
  Living(const Problem& problem, const Units& units)
      : problem_(&problem), units_(&units), edges_(units.units.size()), alive_(problem.count(), 0) {}

  bool is_alive(std::size_t buffer) const { return alive_[buffer] != 0; }
  const std::set<std::size_t>& units() const { return living_; }

  void add(std::size_t buffer) {
    restore(buffer);
    dying_.push({problem_->end[buffer], buffer});
  }

  void restore(std::size_t buffer) {
    count(buffer, 1);
    alive_[buffer] = 1;
  }

  void remove(std::size_t buffer) {
    count(buffer, -1);
    alive_[buffer] = 0;
  }

  void expire(std::int64_t now) {
    for (; !dying_.empty() && dying_.top().first <= now; dying_.pop())
      if (is_alive(dying_.top().second)) remove(dying_.top().second);
  }

  Array<Bytes> runs(std::size_t unit) const {
    Array<Bytes> found;
    std::int64_t depth = 0;
    for (const auto& [at, change] : edges_[unit]) {
      if (depth == 0) found.push_back({at, at});
      depth += change;
      found.back().hi = at;
    }
    return found;
  }

  // Whether any of these bytes are those of buffers that are alive.
  bool covers(std::size_t unit, const Bytes& bytes) const {
    return std::ranges::any_of(runs(unit), [&](const Bytes& run) { return run.lo < bytes.hi && bytes.lo < run.hi; });
  }

 private:
  void count(std::size_t buffer, std::int64_t change) {
    const std::size_t unit = units_->unit[buffer];
    const auto step = [&](std::int64_t at, std::int64_t by) {
      if ((edges_[unit][at] += by) == 0) edges_[unit].erase(at);
    };
    step(units_->delta[buffer], change);
    step(units_->delta[buffer] + problem_->size[buffer], -change);
    if (edges_[unit].empty())
      living_.erase(unit);
    else
      living_.insert(unit);
  }

  const Problem* problem_;
  const Units* units_;
  Array<std::map<std::int64_t, std::int64_t>> edges_;  // by how much more buffers cover the bytes from there on
  Array<char> alive_;
  std::set<std::size_t> living_;
  std::priority_queue<Death, std::vector<Death>, std::greater<>> dying_;
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

void Growing::shorten() {
  constexpr std::size_t kFew = 64;
  if (gaps.size() < 2 * merged + kFew) return;
  merge(gaps);
  merged = gaps.size();
}

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
  const Array<Array<Partner>> partners = partners_of(facts, p.count());
  PairGaps pairs(units.size());
  Array<std::size_t> order;
  for (std::size_t b = 0; b < p.count(); ++b)
    if (p.size[b] > 0) order.push_back(b);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return p.start[a] < p.start[b]; });
  Living living(p, *this);
  for (const std::size_t j : order) {
    living.expire(p.start[j]);
    Array<Partner> met;  // what facts are about that is alive
    std::ranges::copy_if(partners[j], std::back_inserter(met),
                         [&](const Partner& other) { return living.is_alive(other.buffer); });
    for (const Partner& other : met) {
      living.remove(other.buffer);
      forbid(p, other.buffer, j, other.allowed, pairs);
    }
    possible = possible && !living.covers(unit[j], {delta[j], delta[j] + p.size[j]});
    for (const std::size_t other : living.units())
      if (other != unit[j]) {
        Growing& found = pairs[std::min(unit[j], other)][std::max(unit[j], other)];
        for (const Bytes& bytes : living.runs(other)) {
          const Gap gap{bytes.lo - delta[j] - p.size[j], bytes.hi - delta[j]};
          found.gaps.push_back(other < unit[j] ? gap : Gap{-gap.hi, -gap.lo});
        }
        found.shorten();
      }
    for (const Partner& other : met) living.restore(other.buffer);
    living.add(j);
  }
  for (std::size_t k = 0; k < p.left.size(); ++k) {
    const std::size_t a = as_size(p.left[k]), b = as_size(p.right[k]);
    if (a != b && p.size[a] > 0 && p.size[b] > 0 && !meet_in_time(p, a, b)) forbid(p, a, b, nullptr, pairs);
  }
  note_neighbours(pairs);
}

// Forbids what two buffers must not do: distances of their units, or any placement where they are of one unit.
void Units::forbid(const Problem& p, std::size_t a, std::size_t b, const Array<Allowed>* allowed, PairGaps& pairs) {
  const auto [first, second] = std::minmax(a, b);
  const bool one = unit[a] == unit[b], turned = unit[second] < unit[first];
  if (one && (delta[a] >= delta[b] + p.size[b] || delta[b] >= delta[a] + p.size[a])) return;
  // offset(second) - offset(first) between -size(second) and size(first) shares bytes; moved from distances of offsets
  // to those of bases
  Array<Gap> gaps;
  append(-p.size[second], p.size[first], delta[first] - delta[second], allowed, gaps);
  if (one) {
    possible = possible && !forbids(gaps, 0);
    return;
  }
  Array<Gap>& found = pairs[std::min(unit[a], unit[b])][std::max(unit[a], unit[b])].gaps;
  for (const Gap& gap : gaps) found.push_back(turned ? Gap{-gap.hi, -gap.lo} : gap);
}

void Units::note_neighbours(PairGaps& pairs) {
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
