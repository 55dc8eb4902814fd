#include <algorithm>

#include "first_fit.hpp"
#include "join.hpp"
#include "plateau.hpp"
#include "portfolio.hpp"
#include "problem.hpp"
#include "window.hpp"

namespace modelplan::solver {
namespace {

constexpr Bytes kNarrow = Bytes{1} << 29;             // heights below this many units are searched in 32 bits,
constexpr Bytes kNarrowPlain = (Bytes{1} << 31) - 2;  // and these where no sum is ever above the height
constexpr std::int64_t kSearchWidth = 30'000'000;     // the search's memory is linear in the width

constexpr std::int64_t kUnlimited = std::int64_t{1} << 60;
constexpr double kFewJoined = 0.6;             // of the buffers: more are left to the search of the whole
constexpr std::int64_t kJoinedSteps = 20'000;  // for the search of what is left

void search(const Instance& instance, Bytes capacity, const Options& options, const Stop& stop, State& state);

Bytes height_of(const Instance& instance, const std::vector<Bytes>& offsets) {
  Bytes height = 0;
  for (Id i = 0; i < instance.count(); ++i)
    height = std::max(height, instance.top(i, offsets[static_cast<std::size_t>(i)]));
  return height;
}

void tell(const Options& options, const State& state) {
  if (options.progress) options.progress({state.height, state.bound, (state.work + 999) / 1000});
}

// Any placement at once, and a good one soon.
void first_answers(const Instance& instance, const Options& options, const Stop& stop, State& state) {
  state.offsets = stack_all(instance);
  state.height = height_of(instance, state.offsets);
  if (state.height <= state.bound || instance.pinned) return;
  Pulse pulse(stop);
  std::vector<Bytes> pooled = pool_all(instance, pulse);
  if (!pooled.empty() && height_of(instance, pooled) < state.height) {
    state.height = height_of(instance, pooled);
    state.offsets = std::move(pooled);
  }
  if (state.height <= state.bound) return;
  tell(options, state);
  Meter meter(stop, options.steps > 0 ? options.steps * 1000 : std::int64_t{1} << 60);
  std::vector<Bytes> offsets = plateau_dive(instance, meter);
  state.work += meter.used();
  if (offsets.empty()) return;
  const Bytes height = height_of(instance, offsets);
  if (height >= state.height) return;
  state.height = height;
  state.offsets = std::move(offsets);
}

// Above so many buffers the places that are too high are few: they are repaired before anything is searched.
constexpr Id kMany = 40'000;

// Asks for the bound, then for less and less where a window would not come down so far.
void repair(const Instance& instance, const Options& options, const Stop& stop, State& state) {
  if (instance.count() < kMany || instance.pinned || instance.has_facts()) return;
  for (Bytes part : {0, 1, 2, 4}) {  // eighths of the gap that may remain
    if (state.height <= state.bound) return;
    const Bytes height = state.bound + (state.height - state.bound) / 8 * part;
    Meter meter(stop, options.steps > 0 ? options.steps * 1000 - state.work : std::int64_t{1} << 60);
    std::vector<Bytes> offsets = state.offsets;
    if (!repair_windows(instance, height, options.rules, offsets, meter)) continue;
    state.work += meter.used();
    if (height_of(instance, offsets) > state.height) continue;
    state.offsets = std::move(offsets);
    state.height = height_of(instance, state.offsets);
  }
}

template <class Coord>
void improve(const Instance& instance, Bytes capacity, const Options& options, const Stop& stop, State& state) {
  Portfolio<Coord>(instance, capacity, options, stop, state).run();
}

// Searches what is left of a packing without slack once what fits edge to edge is joined.
void join(const Instance& instance, const Options& options, const Stop& stop, State& state) {
  if (!options.rules.joins || !Joins::apply_to(instance, state.bound)) return;
  const std::int64_t most = options.steps > 0 ? options.steps * 1000 - state.work : kUnlimited;
  Meter meter(stop, most);
  const Joins joins(instance, state.bound, meter);
  state.work += meter.used();
  if (meter.exhausted() || joins.count() > kFewJoined * instance.count()) return;
  Pulse pulse(stop);
  const Instance part = joins.remainder(options.rules, pulse);
  const Bytes height = state.bound / instance.unit;
  Options own = options;
  own.minimize = false;
  own.progress = {};
  own.steps = std::clamp<std::int64_t>((most - meter.used()) / 1000, 1, kJoinedSteps);
  State found;
  found.bound = part.bound;
  search(part, height, own, stop, found);
  state.work += found.work;
  state.nodes += found.nodes;
  if (found.height > height) return;
  state.offsets = joins.expand(part, found.offsets);
  state.height = height_of(instance, state.offsets);
}

// Whether nothing better is asked for, or what is asked for cannot be.
bool settled(Bytes capacity, const Options& options, const State& state) {
  if (state.height <= state.bound) return true;
  return capacity >= 0 && !options.minimize && (state.height <= capacity || state.bound > capacity);
}

void search(const Instance& instance, Bytes capacity, const Options& options, const Stop& stop, State& state) {
  first_answers(instance, options, stop, state);
  tell(options, state);
  if (!settled(capacity, options, state)) join(instance, options, stop, state);
  repair(instance, options, stop, state);
  tell(options, state);
  if (instance.width > kSearchWidth || state.height <= state.bound) return;
  const bool plain = !instance.aligned && !instance.pinned && !instance.has_facts();
  if (state.height / instance.unit < (plain ? kNarrowPlain : kNarrow))
    improve<std::int32_t>(instance, capacity, options, stop, state);
  else
    improve<std::int64_t>(instance, capacity, options, stop, state);
}

Result no_placement(const Problem& problem) {
  Result result;
  result.verdict = problem.size.empty() ? Verdict::kFeasible : Verdict::kInfeasible;
  result.ended = problem.size.empty() ? Ended::kOptimal : Ended::kInfeasible;
  result.proved = true;
  return result;
}

// All buffers on top of each other: the answer when there is no time even to look at the lifetimes.
Result stacked(const Problem& problem, const Stop& stop) {
  Result result;
  for (std::size_t i = 0; i < problem.size.size(); ++i) {
    const Bytes alignment = problem.alignment.empty() ? 1 : problem.alignment[i];
    result.offsets.push_back((result.height + alignment - 1) / alignment * alignment);
    result.height = result.offsets.back() + problem.size[i];
    result.bound = std::max(result.bound, problem.size[i]);
  }
  result.proved = result.bound == result.height;
  const bool fits = problem.capacity < 0 || result.height <= problem.capacity;
  result.verdict = fits                              ? Verdict::kFeasible
                   : result.bound > problem.capacity ? Verdict::kInfeasible
                                                     : Verdict::kUnknown;
  result.ended = result.proved ? Ended::kOptimal : stop.cancelled() ? Ended::kCancelled : Ended::kDeadline;
  return result;
}

Verdict verdict_of(Bytes capacity, const State& state) {
  if (capacity < 0 || state.height <= capacity) return Verdict::kFeasible;
  return state.bound > capacity ? Verdict::kInfeasible : Verdict::kUnknown;
}

Ended ended_of(const Result& result, const Problem& problem, const Options& options, const Stop& stop) {
  if (result.proved) return Ended::kOptimal;
  if (problem.capacity >= 0 && result.verdict == Verdict::kInfeasible && !options.minimize) return Ended::kInfeasible;
  if (problem.capacity >= 0 && result.verdict == Verdict::kFeasible && !options.minimize) return Ended::kFits;
  if (stop.cancelled()) return Ended::kCancelled;
  return stop.stopped() ? Ended::kDeadline : Ended::kSteps;
}

}  // namespace

Result solve(const Problem& problem, const Options& options) {
  const Stop stop(options.seconds, options.cancel), never(0, nullptr);
  validate(problem);
  // Whether pins exclude each other is known after the preparation only, so that it is not left then.
  const bool pinned = std::any_of(problem.pin.begin(), problem.pin.end(), [](Bytes pin) { return pin >= 0; });
  Pulse pulse(pinned ? never : stop);
  Instance instance;
  try {
    instance = prepare(problem, options.rules, pulse);
  } catch (const Interrupted&) {
    return stacked(problem, stop);
  }
  if (problem.size.empty() || instance.pins_clash) return no_placement(problem);
  State state;
  state.bound = instance.bound;
  try {
    search(instance, problem.capacity, options, stop, state);
  } catch (const Interrupted&) {  // the state holds the best so far
  }
  Result result;
  result.offsets.assign(problem.size.size(), 0);
  for (Id i = 0; i < instance.count(); ++i)
    result.offsets[static_cast<std::size_t>(instance.items[static_cast<std::size_t>(i)].original)] =
        state.offsets[static_cast<std::size_t>(i)] * instance.unit;
  for (const Id i : instance.apart)
    result.offsets[static_cast<std::size_t>(i)] =
        problem.pin.empty() ? 0 : std::max<Bytes>(problem.pin[static_cast<std::size_t>(i)], 0);
  result.height = state.height;
  result.bound = std::min(state.bound, state.height);
  result.proved = result.bound == result.height;
  result.verdict = verdict_of(problem.capacity, state);
  result.steps = (state.work + 999) / 1000;
  result.nodes = state.nodes;
  result.ended = ended_of(result, problem, options, stop);
  return result;
}

}  // namespace modelplan::solver
