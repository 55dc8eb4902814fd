#include "allocators/telamalloc.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

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
      pairs_.push_back({a, b, apart(a, b), apart(b, a), Order::kOpen, kGiven});
    }
}

bool Propagator::root() {
  for (std::size_t b = 0; b < low_.size(); ++b) {
    const std::int64_t pin = problem_.pin[b];
    low_[b] = std::max<std::int64_t>(pin, 0);
    high_[b] = pin >= 0 ? pin : aligned_down(capacity_ - problem_.size[b], problem_.alignment[b]);
    decided_[b] = pin >= 0;
    if (problem_.size[b] == 0) high_[b] = low_[b];
    if (problem_.size[b] > 0 && (high_[b] < low_[b] || low_[b] > capacity_ - problem_.size[b])) return fail({});
    wake(b);
  }
  return propagate();
}

void Propagator::wake(std::size_t b) {
  if (awake_[b]) return;
  awake_[b] = true;
  queue_.push_back(static_cast<std::uint32_t>(b));
}

void Propagator::set_low(std::size_t b, std::int64_t value, Entry why, Entry also, std::int32_t level) {
  trail_.push_back({Kind::kLow, static_cast<std::uint32_t>(b), low_[b], low_entry_[b], {why, also}, level});
  low_[b] = value;
  low_entry_[b] = static_cast<Entry>(trail_.size() - 1);
  wake(b);
}

void Propagator::set_high(std::size_t b, std::int64_t value, Entry why, Entry also, std::int32_t level) {
  trail_.push_back({Kind::kHigh, static_cast<std::uint32_t>(b), high_[b], high_entry_[b], {why, also}, level});
  high_[b] = value;
  high_entry_[b] = static_cast<Entry>(trail_.size() - 1);
  wake(b);
}

bool Propagator::assign(std::size_t b, std::int64_t offset, std::size_t level) {
  decided_[b] = true;
  set_low(b, offset, kGiven, kGiven, static_cast<std::int32_t>(level));
  set_high(b, offset, kGiven, kGiven, static_cast<std::int32_t>(level));
  return propagate();
}

bool Propagator::propagate() {
  while (!queue_.empty()) {
    const std::size_t b = queue_.back();
    queue_.pop_back();
    awake_[b] = false;
    for (const std::uint32_t pair : pairs_of_[b])
      if (!judge(pair)) {
        for (const std::uint32_t sleeper : queue_) awake_[sleeper] = false;
        queue_.clear();
        return false;
      }
  }
  return true;
}

// Decides which is below where only one order is left, then pushes the two apart.
bool Propagator::judge(std::size_t pair) {
  Pair& p = pairs_[pair];
  if (p.order == Order::kOpen) {
    const bool first_fits = low_[p.first] + p.first_below <= high_[p.second];
    const bool second_fits = low_[p.second] + p.second_below <= high_[p.first];
    if (first_fits && second_fits) return true;
    if (!first_fits && !second_fits)
      return fail({low_entry_[p.first], high_entry_[p.first], low_entry_[p.second], high_entry_[p.second]});
    const std::size_t not_below = first_fits ? p.second : p.first, not_above = first_fits ? p.first : p.second;
    trail_.push_back({Kind::kOrder,
                      static_cast<std::uint32_t>(pair),
                      0,
                      p.entry,
                      {low_entry_[not_below], high_entry_[not_above]},
                      kNoLevel});
    p.order = first_fits ? Order::kFirstBelow : Order::kSecondBelow;
    p.entry = static_cast<Entry>(trail_.size() - 1);
  }
  return p.order == Order::kFirstBelow ? push_apart(pair, p.first, p.second, p.first_below)
                                       : push_apart(pair, p.second, p.first, p.second_below);
}

bool Propagator::push_apart(std::size_t pair, std::size_t below, std::size_t above, std::int64_t bytes) {
  const Entry order = pairs_[pair].entry;
  if (low_[below] + bytes > high_[above]) return fail({low_entry_[below], high_entry_[above], order});
  const std::int64_t low = round_up(std::max<std::int64_t>(low_[below] + bytes, 0), problem_.alignment[above]);
  const std::int64_t high = aligned_down(high_[above] - bytes, problem_.alignment[below]);
  if (low > high_[above]) return fail({low_entry_[below], high_entry_[above], order});
  if (high < low_[below]) return fail({low_entry_[below], high_entry_[above], order});
  if (low > low_[above]) set_low(above, low, low_entry_[below], order, kNoLevel);
  if (high < high_[below]) set_high(below, high, high_entry_[above], order, kNoLevel);
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
    if (change.kind == Kind::kOrder) {
      pairs_[change.where].order = Order::kOpen;
      pairs_[change.where].entry = change.entry_before;
      continue;
    }
    if (change.level != kNoLevel) decided_[change.where] = false;
    (change.kind == Kind::kLow ? low_ : high_)[change.where] = change.before;
    (change.kind == Kind::kLow ? low_entry_ : high_entry_)[change.where] = change.entry_before;
  }
}

Array<std::size_t> phases(const Problem& problem) {
  const std::size_t n = problem.count();
  Array<std::size_t> phase(n, SIZE_MAX);
  Array<std::int64_t> times;
  for (std::size_t b = 0; b < n; ++b) times.insert(times.end(), {problem.start[b], problem.end[b]});
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  const auto section = [&](std::int64_t t) {
    return as_size(std::lower_bound(times.begin(), times.end(), t) - times.begin());
  };
  Array<std::size_t> left(n);
  for (std::size_t b = 0; b < n; ++b) left[b] = b;
  for (std::size_t number = 0; !left.empty(); ++number) {
    Array<std::int64_t> load(times.size() + 1, 0);
    for (const std::size_t b : left) {
      load[section(problem.start[b])] += problem.size[b];
      load[section(problem.end[b])] -= problem.size[b];
    }
    for (std::size_t s = 1; s < load.size(); ++s) load[s] += load[s - 1];
    const auto peak = as_size(std::max_element(load.begin(), load.end()) - load.begin());
    const std::int64_t enough = load[peak] - load[peak] / 10;
    std::size_t from = peak, until = peak + 1;
    while (from > 0 && load[from - 1] >= enough) --from;
    while (until < load.size() && load[until] >= enough) ++until;
    Array<std::size_t> rest;
    for (const std::size_t b : left) {
      const bool crosses = section(problem.start[b]) < until && section(problem.end[b]) > from;
      if (crosses)
        phase[b] = number;
      else
        rest.push_back(b);
    }
    left = std::move(rest);
  }
  return phase;
}

namespace {

// One decision still to make, or made: what was tried here, what to try first, who is to blame for the failures.
struct Level {
  std::size_t mark = 0;
  std::size_t placed = SIZE_MAX;
  Array<std::size_t> tried, first;
  std::set<std::size_t> culprits, failed;
};

class Search {
 public:
  Search(const Problem& problem, std::int64_t capacity, const Options& options)
      : problem_(problem), options_(options), solver_(problem, capacity), returns_(problem.count() + 1, 0) {
    const Array<std::size_t> phase = options.phases ? phases(problem) : Array<std::size_t>(problem.count(), 0);
    for (std::size_t b = 0; b < phase.size(); ++b)
      if (problem.size[b] > 0 && problem.pin[b] < 0) {
        if (phase[b] >= members_.size()) members_.resize(phase[b] + 1);
        members_[phase[b]].push_back(b);
        ++left_;
      }
  }

  Answer run(const Limits& limits) {
    LimitedMeter meter(limits);
    answer_.ended = solver_.root() ? search(meter) : Ended::kInfeasible;
    answer_.steps = meter.used();
    if (answer_.ended == Ended::kComplete)
      for (std::size_t b = 0; b < problem_.count(); ++b) answer_.offsets.push_back(solver_.low(b));
    return std::move(answer_);
  }

 private:
  Ended search(Meter& meter) {
    levels_.push_back({solver_.mark(), SIZE_MAX, {}, {}, {}, {}});
    while (levels_.size() <= left_) {
      const std::size_t b = next_candidate(levels_.back());
      if (b == SIZE_MAX) {
        if (!major_backtrack()) return Ended::kBudget;
        continue;
      }
      if (!meter.take()) return meter.ended();
      if (try_here(b)) levels_.push_back({solver_.mark(), SIZE_MAX, {}, {}, {}, {}});
    }
    return Ended::kComplete;
  }

  bool try_here(std::size_t b) {
    Level& level = levels_.back();
    level.tried.push_back(b);
    const auto offset = solver_.lowest(b);
    if (offset && solver_.assign(b, *offset, levels_.size() - 1)) {
      level.placed = b;
      return true;
    }
    for (const std::size_t culprit : solver_.culprits())
      if (culprit + 1 < levels_.size()) level.culprits.insert(culprit);
    level.failed.insert(b);
    solver_.undo_to(level.mark);
    ++answer_.minor;
    return false;
  }

  bool untried(const Level& level, std::size_t b) const {
    return !solver_.decided(b) && std::find(level.tried.begin(), level.tried.end(), b) == level.tried.end();
  }

  // What failed last comes first; then the longest, the largest and the one of most area of the current phase.
  std::size_t next_candidate(const Level& level) const {
    for (const std::size_t b : level.first)
      if (untried(level, b)) return b;
    for (const auto& members : members_) {
      const std::array<std::size_t, 3> best = champions(members);
      if (best[0] == SIZE_MAX) continue;  // the phase is placed
      for (const std::size_t b : best)
        if (untried(level, b)) return b;
      return SIZE_MAX;
    }
    return SIZE_MAX;
  }

  std::array<std::size_t, 3> champions(const Array<std::size_t>& members) const {
    std::array<std::size_t, 3> best{SIZE_MAX, SIZE_MAX, SIZE_MAX};
    std::array<double, 3> value{-1, -1, -1};
    for (const std::size_t b : members) {
      if (solver_.decided(b)) continue;
      const auto duration = static_cast<double>(problem_.end[b] - problem_.start[b]);
      const auto size = static_cast<double>(problem_.size[b]);
      const std::array<double, 3> mine{duration, size, duration * size};
      for (std::size_t k = 0; k < 3; ++k)
        if (mine[k] > value[k]) {
          value[k] = mine[k];
          best[k] = b;
        }
    }
    return best;
  }

  // Returns to the second-latest culprit, further when that did not help before; false when there is nowhere to go.
  bool major_backtrack() {
    ++answer_.major;
    const Level failed = std::move(levels_.back());
    if (levels_.size() == 1) return false;
    std::size_t target = levels_.size() - 2;
    if (options_.smart_backtracks && !failed.culprits.empty()) {
      auto it = failed.culprits.rbegin();
      if (std::next(it) != failed.culprits.rend()) ++it;
      target = *it;
    }
    const std::int64_t extra = returns_[target]++ / options_.stuck_after;
    target -= std::min(target, as_size(extra));
    levels_.resize(target + 1);
    Level& level = levels_.back();
    solver_.undo_to(level.mark);
    for (const std::size_t culprit : failed.culprits)
      if (culprit < target) level.culprits.insert(culprit);
    level.placed = SIZE_MAX;
    if (options_.priorities) level.first.assign(failed.failed.begin(), failed.failed.end());
    return true;
  }

  const Problem& problem_;
  const Options& options_;
  Propagator solver_;
  Array<Array<std::size_t>> members_;  // of each phase
  Array<Level> levels_;
  Array<std::int64_t> returns_;  // to each depth
  std::size_t left_ = 0;
  Answer answer_;
};

}  // namespace

Answer decide(const Problem& problem, std::int64_t capacity, const Options& options, const Limits& limits) {
  return Search(problem, capacity, options).run(limits);
}

}  // namespace modelplan::telamalloc
