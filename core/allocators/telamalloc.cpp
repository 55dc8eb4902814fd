#include "allocators/telamalloc.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <numeric>
#include <optional>
#include <set>

#include "allocators/neighbours.hpp"
#include "allocators/telamalloc_propagator.hpp"
#include "sorting.hpp"

namespace modelplan::telamalloc {

Array<std::size_t> phases(const Problem& problem) {
  const std::size_t n = problem.count();
  Array<std::size_t> phase(n, SIZE_MAX);
  Array<std::int64_t> times;
  for (std::size_t b = 0; b < n; ++b) times.insert(times.end(), {problem.start[b], problem.end[b]});
  times = distinct(std::move(times));
  const auto section = [&](std::int64_t t) { return count_below(times, t); };
  Array<std::size_t> left(n);
  for (std::size_t b = 0; b < n; ++b) left[b] = b;
  for (std::size_t number = 0; !left.empty(); ++number) {
    Array<std::int64_t> load(times.size() + 1, 0);
    for (const std::size_t b : left) {
      load[section(problem.start[b])] += problem.size[b];
      load[section(problem.end[b])] -= problem.size[b];
    }
    std::partial_sum(load.begin(), load.end(), load.begin());
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
  Array<std::size_t> tried = {}, first = {};
  std::set<std::size_t> culprits = {}, failed = {};
};

class Search {
 public:
  Search(const Problem& problem, std::int64_t capacity, const Options& options)
      : problem_(problem),
        options_(options),
        solver_(problem, capacity),
        phase_(options.phases ? phases(problem) : Array<std::size_t>(problem.count(), 0)),
        returns_(problem.count() + 1, 0) {
    if (options.trees != nullptr || options.record_most > 0) view_.emplace(problem, capacity, phase_);
    for (std::size_t b = 0; b < phase_.size(); ++b)
      if (problem.size[b] > 0 && problem.pin[b] < 0) {
        if (phase_[b] >= members_.size()) members_.resize(phase_[b] + 1);
        members_[phase_[b]].push_back(b);
        ++left_;
      }
  }

  Answer run(const Limits& limits) {
    LimitedMeter meter(limits);
    answer_.ended = solver_.root(meter) ? search(meter) : Ended::kInfeasible;
    answer_.steps = meter.used();
    if (answer_.ended == Ended::kComplete)
      for (std::size_t b = 0; b < problem_.count(); ++b) answer_.offsets.push_back(solver_.low(b));
    return std::move(answer_);
  }

 private:
  Ended search(Meter& meter) {
    levels_.push_back({.mark = solver_.mark()});
    while (levels_.size() <= left_) {
      const std::size_t b = next_candidate(levels_.back());
      if (b == SIZE_MAX) {
        if (!major_backtrack()) return Ended::kBudget;
        continue;
      }
      if (!meter.take()) return meter.ended();
      if (try_here(b, meter)) levels_.push_back({.mark = solver_.mark()});
    }
    return meter.ended();
  }

  bool try_here(std::size_t b, Meter& meter) {
    Level& level = levels_.back();
    level.tried.push_back(b);
    const auto offset = solver_.lowest(b);
    if (offset && solver_.assign(b, *offset, levels_.size() - 1, meter)) {
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

  // Undoes decisions down to the point that the culprits or the trees name, further when that did not help before;
  // false when there is nowhere to go.
  bool major_backtrack() {
    ++answer_.major;
    const Level failed = std::move(levels_.back());
    if (levels_.size() == 1) return false;
    std::size_t target = chosen_by_culprits(failed);
    if (view_) target = chosen_by_trees(failed, target);
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

  // The second-latest culprit, or one decision back.
  std::size_t chosen_by_culprits(const Level& failed) const {
    if (!options_.smart_backtracks || failed.culprits.empty()) return levels_.size() - 2;
    auto it = failed.culprits.rbegin();
    return std::next(it) == failed.culprits.rend() ? *it : *std::next(it);
  }

  // The decision of the highest score, of several the latest; `otherwise` where the trees are not asked.
  std::size_t chosen_by_trees(const Level& failed, std::size_t otherwise) {
    Array<PolicyView::Decision> decisions;
    for (std::size_t depth = 0; depth + 1 < levels_.size(); ++depth) {
      const Level& level = levels_[depth];
      decisions.push_back({level.placed, solver_.low(level.placed), returns_[depth], std::ssize(level.tried)});
    }
    const Array<std::size_t> culprits(failed.culprits.begin(), failed.culprits.end());
    const Array<std::size_t> without_place(failed.failed.begin(), failed.failed.end());
    Array<Features> features = view_->features(decisions, {culprits, without_place, left_});
    const bool asked = options_.trees != nullptr && answer_.major > options_.learned_after;
    if (asked) {
      std::int64_t best = std::numeric_limits<std::int64_t>::min();
      for (std::size_t depth = 0; depth < features.size(); ++depth)
        if (const std::int64_t score = options_.trees->score(features[depth]); score >= best) {
          best = score;
          otherwise = depth;
        }
    }
    record(decisions, std::move(features));
    return otherwise;
  }

  void record(const Array<PolicyView::Decision>& decisions, Array<Features> features) {
    if (std::ssize(answer_.records) >= options_.record_most || answer_.major % options_.record_every != 0) return;
    Record kept;
    for (const PolicyView::Decision& decision : decisions) {
      kept.buffers.push_back(static_cast<std::int64_t>(decision.buffer));
      kept.offsets.push_back(decision.offset);
    }
    kept.features = std::move(features);
    answer_.records.push_back(std::move(kept));
  }

  const Problem& problem_;
  const Options& options_;
  Propagator solver_;
  Array<std::size_t> phase_;
  std::optional<PolicyView> view_;     // where decisions are scored or recorded
  Array<Array<std::size_t>> members_;  // of each phase
  Array<Level> levels_;
  Array<std::int64_t> returns_;  // to each depth
  std::size_t left_ = 0;
  Answer answer_;
};

// Without a search where the pairs alone take more steps than there are.
Answer run(const Problem& problem, std::int64_t capacity, const Options& options, const Limits& limits) {
  const auto counts = conflict_counts(problem);
  const std::int64_t both_ways = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  return both_ways / 2 / kPairsOfStep < limits.steps ? Search(problem, capacity, options).run(limits) : Answer{};
}

}  // namespace

// A wrong choice of the trees uses candidates up, so what they leave open is asked again without them.
Answer decide(const Problem& problem, std::int64_t capacity, const Options& options, const Limits& limits) {
  if (options.trees == nullptr) return run(problem, capacity, options, limits);
  using Clock = std::chrono::steady_clock;
  const auto began = Clock::now();
  Answer learned = run(problem, capacity, options, {limits.steps / 2, limits.seconds / 2, limits.cancelled});
  if (learned.ended != Ended::kBudget && learned.ended != Ended::kDeadline) return learned;
  Options plain = options;
  plain.trees = nullptr;
  plain.record_most = 0;
  const double seconds = limits.seconds - std::chrono::duration<double>(Clock::now() - began).count();
  Answer answer = run(problem, capacity, plain, {limits.steps - learned.steps, seconds, limits.cancelled});
  answer.steps += learned.steps;
  answer.minor += learned.minor;
  answer.major += learned.major;
  answer.records = std::move(learned.records);
  return answer;
}

}  // namespace modelplan::telamalloc
