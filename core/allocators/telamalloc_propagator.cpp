#include "allocators/telamalloc_propagator.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "allocators/neighbours.hpp"

namespace modelplan::telamalloc {
namespace {

std::int64_t aligned_down(std::int64_t value, std::int64_t alignment) {
  return value < 0 ? -1 : value / alignment * alignment;
}

}  // namespace

Propagator::Propagator(const Problem& problem, std::int64_t capacity) : problem_(problem), capacity_(capacity) {
  const std::size_t n = problem.count();
  low_.assign(n, 0);
  high_.assign(n, 0);
  low_entry_.assign(n, kGiven);
  high_entry_.assign(n, kGiven);
  decided_.assign(n, false);
  awake_.assign(n, false);
  pairs_of_.resize(n);
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> allowed;
  for (std::size_t i = 0; i < problem.below.size(); ++i) {
    auto& bytes = allowed[{problem.below[i], problem.above[i]}];
    bytes = std::max(bytes, problem.bytes[i]);
  }
  const auto apart = [&](std::size_t below, std::size_t above) {
    const auto it = allowed.find({static_cast<std::int64_t>(below), static_cast<std::int64_t>(above)});
    return problem.size[below] - (it == allowed.end() || !meet_in_time(problem, below, above) ? 0 : it->second);
  };
  const auto lists = conflict_lists(problem);
  for (std::uint32_t a = 0; a < n; ++a)
    for (const std::uint32_t b : lists[a]) {
      if (b < a) continue;
      pairs_of_[a].push_back(static_cast<std::uint32_t>(pairs_.size()));
      pairs_of_[b].push_back(static_cast<std::uint32_t>(pairs_.size()));
      pairs_.push_back({a, b, apart(a, b), apart(b, a), Stacking::kOpen, kGiven});
    }
}

bool Propagator::root(Meter& meter) {
  for (std::size_t b = 0; b < low_.size(); ++b) {
    const std::int64_t pin = problem_.pin[b];
    low_[b] = std::max<std::int64_t>(pin, 0);
    high_[b] = pin >= 0 ? pin : aligned_down(capacity_ - problem_.size[b], problem_.alignment[b]);
    decided_[b] = pin >= 0;
    if (problem_.size[b] == 0) high_[b] = low_[b];
    if (problem_.size[b] > 0 && (high_[b] < low_[b] || low_[b] > capacity_ - problem_.size[b])) return fail({});
    wake(b);
  }
  return propagate(meter);
}

void Propagator::wake(std::size_t b) {
  if (awake_[b]) return;
  awake_[b] = true;
  queue_.push_back(static_cast<std::uint32_t>(b));
}

void Propagator::set(Kind kind, std::size_t b, std::int64_t value, Entry why, Entry also, std::int32_t level) {
  std::int64_t& bound = (kind == Kind::kLow ? low_ : high_)[b];
  Entry& entry = (kind == Kind::kLow ? low_entry_ : high_entry_)[b];
  trail_.push_back({kind, static_cast<std::uint32_t>(b), bound, entry, {why, also}, level});
  bound = value;
  entry = static_cast<Entry>(trail_.size() - 1);
  wake(b);
}

bool Propagator::assign(std::size_t b, std::int64_t offset, std::size_t level, Meter& meter) {
  decided_[b] = true;
  for (const Kind kind : {Kind::kLow, Kind::kHigh})
    set(kind, b, offset, kGiven, kGiven, static_cast<std::int32_t>(level));
  return propagate(meter);
}

bool Propagator::propagate(Meter& meter) {
  while (!queue_.empty()) {
    const std::size_t b = queue_.back();
    queue_.pop_back();
    awake_[b] = false;
    for (const std::uint32_t pair : pairs_of_[b])
      if (!judge(pair)) {
        forget_awake();
        return false;
      }
    judged_ += std::ssize(pairs_of_[b]);
    if (judged_ >= kPairsOfStep && !meter.spend(std::exchange(judged_, 0) / kPairsOfStep)) forget_awake();
  }
  return true;
}

void Propagator::forget_awake() {
  for (const std::uint32_t sleeper : queue_) awake_[sleeper] = false;
  queue_.clear();
}

// Decides which is below where only one order is left, then pushes the two apart.
bool Propagator::judge(std::size_t pair) {
  Pair& p = pairs_[pair];
  if (p.stacking == Stacking::kOpen) {
    const bool first_fits = low_[p.first] + p.first_below <= high_[p.second];
    const bool second_fits = low_[p.second] + p.second_below <= high_[p.first];
    if (first_fits && second_fits) return true;
    if (!first_fits && !second_fits)
      return fail({low_entry_[p.first], high_entry_[p.first], low_entry_[p.second], high_entry_[p.second]});
    const std::size_t not_below = first_fits ? p.second : p.first, not_above = first_fits ? p.first : p.second;
    trail_.push_back({Kind::kStacking,
                      static_cast<std::uint32_t>(pair),
                      0,
                      p.entry,
                      {low_entry_[not_below], high_entry_[not_above]},
                      kNoLevel});
    p.stacking = first_fits ? Stacking::kFirstBelow : Stacking::kSecondBelow;
    p.entry = static_cast<Entry>(trail_.size() - 1);
  }
  return p.stacking == Stacking::kFirstBelow ? push_apart(pair, p.first, p.second, p.first_below)
                                             : push_apart(pair, p.second, p.first, p.second_below);
}

bool Propagator::push_apart(std::size_t pair, std::size_t below, std::size_t above, std::int64_t bytes) {
  const Entry order = pairs_[pair].entry;
  if (low_[below] + bytes > high_[above]) return fail({low_entry_[below], high_entry_[above], order});
  const std::int64_t low = round_up(std::max<std::int64_t>(low_[below] + bytes, 0), problem_.alignment[above]);
  const std::int64_t high = aligned_down(high_[above] - bytes, problem_.alignment[below]);
  if (low > high_[above]) return fail({low_entry_[below], high_entry_[above], order});
  if (high < low_[below]) return fail({low_entry_[below], high_entry_[above], order});
  if (low > low_[above]) set(Kind::kLow, above, low, low_entry_[below], order, kNoLevel);
  if (high < high_[below]) set(Kind::kHigh, below, high, high_entry_[above], order, kNoLevel);
  return true;
}

bool Propagator::fail(Array<Entry> because) {
  failure_ = std::move(because);
  return false;
}

std::optional<std::int64_t> Propagator::lowest(std::size_t b) {
  struct Taken {
    std::int64_t from, until;  // no start strictly between
    Entry entry;
  };
  Array<Taken> taken;
  for (const std::uint32_t pair : pairs_of_[b]) {
    const Pair& p = pairs_[pair];
    const std::size_t other = p.first == b ? p.second : p.first;
    if (!decided_[other]) continue;
    const std::int64_t under = p.first == b ? p.first_below : p.second_below;
    const std::int64_t over = p.first == b ? p.second_below : p.first_below;
    taken.push_back({low_[other] - under, low_[other] + over, low_entry_[other]});
  }
  std::sort(taken.begin(), taken.end(), [](const Taken& x, const Taken& y) { return x.from < y.from; });
  Array<Entry> because{low_entry_[b], high_entry_[b]};
  std::int64_t offset = low_[b];
  for (const Taken& t : taken) {
    if (offset <= t.from || offset >= t.until) continue;
    offset = round_up(t.until, problem_.alignment[b]);
    because.push_back(t.entry);
  }
  if (offset <= high_[b]) return offset;
  fail(std::move(because));
  return std::nullopt;
}

Array<std::size_t> Propagator::culprits() const {
  std::set<std::size_t> levels;
  Array<Entry> stack(failure_);
  std::set<Entry> seen;
  while (!stack.empty()) {
    const Entry entry = stack.back();
    stack.pop_back();
    if (entry == kGiven || !seen.insert(entry).second) continue;
    const Change& change = trail_[entry];
    if (change.level != kNoLevel) levels.insert(as_size(change.level));
    stack.insert(stack.end(), {change.why[0], change.why[1]});
  }
  return {levels.begin(), levels.end()};
}

void Propagator::undo_to(std::size_t mark) {
  for (; trail_.size() > mark; trail_.pop_back()) {
    const Change& change = trail_.back();
    if (change.kind == Kind::kStacking) {
      pairs_[change.where].stacking = Stacking::kOpen;
      pairs_[change.where].entry = change.entry_before;
      continue;
    }
    if (change.level != kNoLevel) decided_[change.where] = false;
    (change.kind == Kind::kLow ? low_ : high_)[change.where] = change.before;
    (change.kind == Kind::kLow ? low_entry_ : high_entry_)[change.where] = change.entry_before;
  }
}

}  // namespace modelplan::telamalloc
