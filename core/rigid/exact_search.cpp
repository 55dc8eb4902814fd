#include "exact_search.hpp"

#include <algorithm>

namespace modelplan::rigid {
namespace {

constexpr std::int64_t kUnlimited = std::int64_t{1} << 61;
constexpr std::int64_t kBetweenPolls = 1 << 14;  // looks
constexpr std::int64_t kGlances = 32;            // at pairs to choose one, which take as long as a look
constexpr std::int64_t kLooks = 100;             // at each pair, in all that one bound takes

}  // namespace

ExactSearch::ExactSearch(const Units& units, const Array<std::size_t>& among, const StopSignal& signal)
    : units_(units), among_(among), signal_(signal), low_(units.units.size(), 0), high_(low_), of_(units.units.size()) {
  Array<char> takes_part(units.units.size(), 0);
  for (const std::size_t a : among) takes_part[a] = 1;
  for (const std::size_t a : among)
    for (const Neighbour& other : units.neighbours[a]) {
      if (other.unit < a || other.gaps.empty() || takes_part[other.unit] == 0) continue;
      of_[a].push_back(pairs_.size());
      of_[other.unit].push_back(pairs_.size());
      pairs_.push_back({a, other.unit, &other.gaps, 0, 0, 0, 1});
    }
}

std::int64_t ExactSearch::bound(std::int64_t bound, std::int64_t height) {
  work_ = kLooks * static_cast<std::int64_t>(pairs_.size());
  for (std::int64_t at = height - 1; bound < height; at = bound + (height - bound) / 2) {
    if (may_fit(at))
      height = at;
    else
      bound = at + 1;
  }
  return bound;
}

bool ExactSearch::lower(Array<std::int64_t>& bases, std::int64_t height, std::int64_t& work) {
  while (fit(bases, height - 1, work)) {
    height = 0;
    for (const std::size_t u : among_) height = std::max(height, bases[u] + units_.units[u].high);
  }
  return work > 0;
}

bool ExactSearch::fit(Array<std::int64_t>& bases, std::int64_t limit, std::int64_t& work) {
  work_ = work;
  const bool found = fits(limit, bases);
  if (found)
    for (const std::size_t u : among_) bases[u] = low_[u];
  work = work_;
  return found;
}

// Whether the bounds of bases and distances below a limit leave something, or all work is done.
bool ExactSearch::may_fit(std::int64_t limit) {
  changes_.clear();
  levels_.clear();
  for (Duel& duel : pairs_) {
    duel.least = -kUnlimited;
    duel.most = kUnlimited;
  }
  for (const std::size_t u : among_) {
    const Unit& unit = units_.units[u];
    low_[u] = unit.pin != Unit::kFree ? unit.pin : unit.from(unit.least);
    high_[u] = unit.pin != Unit::kFree ? unit.pin : unit.until(limit - unit.high);
    if (low_[u] > high_[u] || high_[u] + unit.high > limit) return false;
  }
  waiting_.clear();
  waits_.assign(pairs_.size(), 0);
  for (std::size_t k = 0; k < pairs_.size(); ++k) look_at(k);
  return settle();
}

// Whether there is a packing below a limit, `low_`; false too where all work is done.
bool ExactSearch::fits(std::int64_t limit, const Array<std::int64_t>& near) {
  bool legal = may_fit(limit);
  while (work_ > 0) {
    if (legal && !split(near)) return true;
    if (!legal && !turn()) return false;
    legal = settle();
  }
  return false;
}

// Narrows bases and distances until nothing changes, true, or one has no value left.
bool ExactSearch::settle() {
  while (!waiting_.empty()) {
    if (--work_ % kBetweenPolls == 0 && signal_.poll()) work_ = 0;
    if (work_ <= 0) return true;
    const std::size_t k = waiting_.back();
    waiting_.pop_back();
    waits_[k] = 0;
    if (narrow(pairs_[k])) continue;
    pairs_[k].weight += 1;
    for (const std::size_t other : waiting_) waits_[other] = 0;
    waiting_.clear();
    return false;
  }
  return true;
}

bool ExactSearch::narrow(Duel& duel) {
  std::int64_t least = std::max(duel.least, low_[duel.a] - high_[duel.b]);
  std::int64_t most = std::min(duel.most, high_[duel.a] - low_[duel.b]);
  for (const Gap& gap : *duel.gaps)
    if (gap.lo < least && least < gap.hi) least = gap.hi;
  for (auto gap = duel.gaps->rbegin(); gap != duel.gaps->rend(); ++gap)
    if (gap->lo < most && most < gap->hi) most = gap->lo;
  if (least > most) return false;
  std::int64_t open = 0;
  for (const Gap& gap : *duel.gaps)
    if (least < gap.hi && gap.lo < most) open = std::max(open, gap.hi - gap.lo);
  set(duel.least, least);
  set(duel.most, most);
  set(duel.open, open);
  return raise(duel.a, low_[duel.b] + least) && sink(duel.a, high_[duel.b] + most) &&
         raise(duel.b, low_[duel.a] - most) && sink(duel.b, high_[duel.a] - least);
}

bool ExactSearch::raise(std::size_t u, std::int64_t least) {
  if (least <= low_[u]) return true;
  set(low_[u], units_.units[u].from(least));
  for (const std::size_t k : of_[u]) look_at(k);
  return low_[u] <= high_[u];
}

bool ExactSearch::sink(std::size_t u, std::int64_t most) {
  if (most >= high_[u]) return true;
  set(high_[u], units_.units[u].until(most));
  for (const std::size_t k : of_[u]) look_at(k);
  return low_[u] <= high_[u];
}

// Holds the pair whose widest gap takes the largest part of its distances, by its weight, on the side where it lies in
// `near`; false where no pair has a gap left.
bool ExactSearch::split(const Array<std::int64_t>& near) {
  work_ -= static_cast<std::int64_t>(pairs_.size()) / kGlances;
  std::size_t pair = 0;
  double most = 0;
  for (std::size_t k = 0; k < pairs_.size(); ++k) {
    const Duel& duel = pairs_[k];
    if (duel.open == 0) continue;
    const double part = static_cast<double>(duel.open) / static_cast<double>(duel.most - duel.least + 1) * duel.weight;
    if (part <= most) continue;
    most = part;
    pair = k;
  }
  if (most == 0) return false;
  const Duel& duel = pairs_[pair];
  const auto widest = std::ranges::find_if(*duel.gaps, [&](const Gap& gap) {
    return duel.least < gap.hi && gap.lo < duel.most && gap.hi - gap.lo == duel.open;
  });
  levels_.push_back({changes_.size(), pair, *widest, near[duel.a] - near[duel.b] >= widest->hi, false});
  hold(levels_.back());
  return true;
}

void ExactSearch::hold(const Level& level) {
  if (level.above)
    set(pairs_[level.pair].least, level.gap.hi);
  else
    set(pairs_[level.pair].most, level.gap.lo);
  look_at(level.pair);
}

// Holds the pair of the last level that has another side there; false where none has.
bool ExactSearch::turn() {
  for (; !levels_.empty(); levels_.pop_back()) {
    Level& level = levels_.back();
    for (; changes_.size() > level.changes; changes_.pop_back()) *changes_.back().number = changes_.back().old;
    if (level.last) continue;
    level.last = true;
    level.above = !level.above;
    hold(level);
    return true;
  }
  return false;
}

void ExactSearch::set(std::int64_t& number, std::int64_t value) {
  if (number == value) return;
  changes_.push_back({&number, number});
  number = value;
}

void ExactSearch::look_at(std::size_t pair) {
  if (waits_[pair] != 0) return;
  waits_[pair] = 1;
  waiting_.push_back(pair);
}

}  // namespace modelplan::rigid
