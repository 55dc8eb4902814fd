#include "solve.hpp"

#include <algorithm>
#include <limits>

#include "first_fit.hpp"
#include "join.hpp"
#include "plateau.hpp"
#include "portfolio.hpp"
#include "window.hpp"

namespace modelplan::solver {
namespace {

constexpr Bytes kNarrow = Bytes{1} << 29;             // heights below this many units are searched in 32 bits,
constexpr Bytes kNarrowPlain = (Bytes{1} << 31) - 2;  // and these where no sum is ever above the height

constexpr double kFewJoined = 0.6;             // of the buffers: more are left to the search of the whole
constexpr std::int64_t kJoinedSteps = 20'000;  // for the search of what is left

void search(const PackingInstance& instance, const Options& options, const StopSignal& signal, State& state);

// Any placement at once, and a good one soon.
void first_answers(const PackingInstance& instance, const Options& options, const StopSignal& signal, State& state) {
  state.keep(instance, stack_all(instance));
  if (state.height <= state.bound || instance.pinned) return;
  Poller poller(signal);
  Array<Bytes> pooled = pool_all(instance, poller);
  if (!pooled.empty()) state.keep(instance, std::move(pooled));
  if (state.height <= state.bound) return;
  state.report(options);
  Meter meter(signal, state.work_left(options));
  Array<Bytes> offsets = plateau_dive(instance, {}, meter);
  state.work += meter.used();
  if (!offsets.empty()) state.keep(instance, std::move(offsets));
}

// Above so many buffers the places that are too high are few: they are repaired before anything is searched.
constexpr Id kMany = 40'000;

// Asks for the bound, then for less and less where a window could not be lowered that far.
void repair(const PackingInstance& instance, const Options& options, const StopSignal& signal, State& state) {
  if (instance.count() < kMany || instance.pinned || instance.has_facts()) return;
  for (Bytes part : {0, 1, 2, 4}) {  // eighths of the gap that may remain
    if (state.height <= state.bound) return;
    const Bytes height = state.bound + (state.height - state.bound) / 8 * part;
    Meter meter(signal, state.work_left(options));
    Array<Bytes> offsets = state.offsets;
    if (!repair_windows(instance, height, options.rules, offsets, meter)) continue;
    state.work += meter.used();
    const Bytes reached = instance.height(offsets);
    if (reached > state.height) continue;
    state.height = reached;
    state.offsets = std::move(offsets);
  }
}

// Searches what is left of a packing without slack once what fits edge to edge is joined.
void join(const PackingInstance& instance, const Options& options, const StopSignal& signal, State& state) {
  if (!options.rules.joins || !Joins::apply_to(instance, state.bound)) return;
  const std::int64_t most = state.work_left(options);
  Meter meter(signal, most);
  const Joins joins(instance, state.bound, meter);
  state.work += meter.used();
  if (meter.exhausted() || joins.count() > kFewJoined * instance.count()) return;
  Poller poller(signal);
  const PackingInstance part = joins.remainder(options.rules, poller);
  const Bytes height = state.bound / instance.unit;
  Options own = options;
  own.capacity = height;
  own.minimize = false;
  own.progress = {};
  own.steps = std::clamp<std::int64_t>((most - meter.used()) / 1000, 1, kJoinedSteps);
  State found;
  found.bound = part.bound;
  search(part, own, signal, found);
  state.work += found.work;
  state.nodes += found.nodes;
  if (found.height > height) return;
  state.offsets = joins.expand(part, found.offsets);
  state.height = instance.height(state.offsets);
}

void search(const PackingInstance& instance, const Options& options, const StopSignal& signal, State& state) {
  first_answers(instance, options, signal, state);
  state.report(options);
  if (!state.is_answered(options)) join(instance, options, signal, state);
  repair(instance, options, signal, state);
  state.report(options);
  if (state.height <= state.bound) return;
  if (state.height / instance.unit < (instance.is_plain() ? kNarrowPlain : kNarrow))
    run_portfolio<std::int32_t>(instance, options, signal, state);
  else
    run_portfolio<std::int64_t>(instance, options, signal, state);
}

Result no_placement(const Problem& problem) {
  Result result;
  result.ended = problem.count() == 0 ? Ended::kOptimal : Ended::kInfeasible;
  return result;
}

// All buffers on top of each other: the answer when there is no time even to look at the lifetimes.
Result stacked(const Problem& problem, const StopSignal& signal) {
  Result result;
  for (std::size_t i = 0; i < problem.count(); ++i) {
    result.offsets.push_back(round_up(result.height, problem.alignment[i]));
    result.height = result.offsets.back() + problem.size[i];
    result.bound = std::max(result.bound, problem.size[i]);
  }
  const bool proved = result.bound == result.height;
  result.ended = proved ? Ended::kOptimal : signal.cancelled() ? Ended::kCancelled : Ended::kDeadline;
  return result;
}

Ended ended_of(const State& state, const Options& options, const StopSignal& signal) {
  if (state.bound >= state.height) return Ended::kOptimal;
  if (options.decides() && state.height <= options.capacity) return Ended::kFits;
  if (options.decides() && state.bound > options.capacity) return Ended::kInfeasible;
  if (signal.cancelled()) return Ended::kCancelled;
  return signal.stopped() ? Ended::kDeadline : Ended::kBudget;
}

}  // namespace

Result solve(const Problem& problem, const Options& options) {
  const double seconds = options.seconds > 0 ? options.seconds : std::numeric_limits<double>::infinity();
  const auto cancelled = [&](std::int64_t) { return options.cancel != nullptr && options.cancel->load(); };
  const StopSignal signal(seconds, cancelled), never;
  validate(problem);
  // Whether pins exclude each other is known after the preparation only, so that it is not left then.
  const bool pinned = std::any_of(problem.pin.begin(), problem.pin.end(), [](Bytes pin) { return pin >= 0; });
  Poller poller(pinned ? never : signal);
  PackingInstance instance;
  try {
    instance = prepare(problem, options.rules, poller);
  } catch (const Interrupted&) {
    return stacked(problem, signal);
  }
  if (problem.count() == 0 || instance.pins_clash) return no_placement(problem);
  State state;
  state.bound = instance.bound;
  try {
    search(instance, options, signal, state);
  } catch (const Interrupted&) {  // the state holds the best so far
  }
  Result result;
  result.offsets = instance.caller_offsets(state.offsets);
  for (const Id i : instance.apart) result.offsets[i] = std::max<Bytes>(problem.pin[i], 0);
  result.height = state.height;
  result.bound = std::min(state.bound, state.height);
  result.steps = state.steps();
  result.nodes = state.nodes;
  result.ended = ended_of(state, options, signal);
  return result;
}

}  // namespace modelplan::solver
