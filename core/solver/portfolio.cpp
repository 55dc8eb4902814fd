#include "portfolio.hpp"

#include <algorithm>
#include <thread>

#include "first_fit.hpp"
#include "plateau.hpp"

namespace modelplan::solver {
namespace {

constexpr std::size_t kLanes = 2;                // tasks per round
constexpr std::int64_t kFirstSlice = 2'000'000;  // work of a task, some milliseconds; grows to
constexpr std::int64_t kLastSlice = 40'000'000;
constexpr std::int64_t kSearchWidth = 30'000'000;  // the search's memory is linear in the width
constexpr double kCrowd = 0.125;  // share of the buffers alive on average: dives come before the search
constexpr int kFirstDives = 4;
constexpr std::int64_t kDiveCost = 4;         // a look of a dive, in looks of the search
constexpr std::int64_t kScanWidth = 400'000;  // above this the picks that count candidates cost too much
constexpr std::int64_t kLateRestarts = 24;
constexpr std::int64_t kEjectAfter = 2'000'000'000;  // work, beyond the default budget; then half of all work goes to
constexpr std::int64_t kEjectFirst = 2'000'000'000;  // ejection searches until they have had this much,
constexpr std::int64_t kEjectPart = 20;              // and one part in so many later
constexpr std::size_t kAll = 1000, kFirstSettings = 8;  // settings
constexpr Id kSmallItems = 500, kNoisyItems = 1500, kMediumItems = 3000;
constexpr std::int64_t kExtraNodes = 250;  // that a run may take beyond one for each buffer
constexpr double kNoises[] = {0.15, 0.3};

constexpr Traits kWAT = {Trait::kWidth, Trait::kArea, Trait::kLoad};
constexpr Traits kZWA = {Trait::kSize, Trait::kWidth, Trait::kArea};
constexpr Traits kAWT = {Trait::kArea, Trait::kWidth, Trait::kLoad};
constexpr Traits kTWA = {Trait::kLoad, Trait::kWidth, Trait::kArea};
constexpr Traits kTAW = {Trait::kLoad, Trait::kArea, Trait::kWidth};
constexpr Traits kTZA = {Trait::kLoad, Trait::kSize, Trait::kArea};

// In the order in which they are tried; docs/solver.md says how it was chosen.
constexpr Setting kDense[] = {{Pick::kCandidates, kWAT},
                              {Pick::kWeightedCandidates, kZWA, 4},
                              {Pick::kWeightedCandidates, kZWA, 4, true},
                              {Pick::kLowestBuffer, kWAT},
                              {Pick::kLowestBuffer, kWAT, 2, true},
                              {Pick::kPaddedSlack, kWAT},
                              {Pick::kSlack, kWAT},
                              {Pick::kCandidates, kZWA},
                              {Pick::kLowestBuffer, kAWT},
                              {Pick::kLowestBuffer, kAWT, 2, true},
                              {Pick::kPaddedSlack, kTZA, 4},
                              {Pick::kWeightedSlack, kWAT},
                              {Pick::kWeightedCandidates, kWAT},
                              {Pick::kWeightedCandidates, kAWT, 4},
                              {Pick::kPaddedSlack, kAWT},
                              {Pick::kLowestBuffer, kTWA},
                              {Pick::kLowestTop, kWAT},
                              {Pick::kPaddedSlack, kZWA},
                              {Pick::kCrowdedSlack, kAWT, 4},
                              {Pick::kWeightedCandidates, kTWA},
                              {Pick::kLowestBuffer, kZWA},
                              {Pick::kSlack, kTAW}};

// With noise: the cheapest first; what solves random problems of a thousand buffers later.
constexpr Setting kSlackRounds[] = {{Pick::kPaddedSlack, kWAT}, {Pick::kSlack, kWAT}};
constexpr Setting kCountingRounds[] = {{Pick::kWeightedCandidates, kAWT, 1}, {Pick::kWeightedCandidates, kWAT, 1}};

constexpr Setting kLarge[] = {{Pick::kPaddedSlack, kWAT},
                              {Pick::kPaddedSlack, kZWA},
                              {Pick::kWeightedCandidates, kWAT},
                              {Pick::kSlack, kWAT},
                              {Pick::kSlack, kZWA},
                              {Pick::kSlack, kTAW},
                              {Pick::kPaddedSlack, kTWA},
                              {Pick::kLowestTop, kWAT},
                              {Pick::kCrowdedSlack, kWAT},
                              {Pick::kCandidates, kWAT},
                              {Pick::kWeightedCandidates, kTWA},
                              {Pick::kCandidates, kZWA}};

bool scans(Pick pick) {
  return pick == Pick::kCandidates || pick == Pick::kWeightedCandidates || pick == Pick::kLowestBuffer;
}

Array<Setting> settings_for(const PackingInstance& instance) {
  Array<Setting> settings;
  for (const Setting& setting : instance.count() <= 1500 ? View<const Setting>(kDense) : View<const Setting>(kLarge))
    if (!scans(setting.pick) || instance.width <= kScanWidth) settings.push_back(setting);
  return settings;
}

// 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ... (Luby, Sinclair, Zuckerman, 1993)
std::int64_t luby(std::int64_t k) {
  for (std::int64_t power = 2;; power *= 2) {
    if (k == power - 1) return power / 2;
    if (k < power - 1) return luby(k - power / 2 + 1);
  }
}

// Between these sizes a failed run costs much, and a fresh one is as likely to succeed.
std::int64_t node_limit(const PackingInstance& instance, const Setting& setting) {
  const bool dear = instance.count() > kSmallItems && instance.count() <= kNoisyItems;
  const std::int64_t patience = dear ? 1 : setting.patience;
  return patience * (std::int64_t{instance.count()} + kExtraNodes);
}

Orders ordered(const PackingInstance& instance, const StopSignal& signal) {
  Poller poller(signal);
  return Orders(instance, poller);
}

}  // namespace

template <class Coord>
Portfolio<Coord>::Portfolio(const PackingInstance& instance, const Options& options, const StopSignal& signal,
                            State& state)
    : instance_(instance),
      searchable_(instance.width <= kSearchWidth),
      capacity_(options.capacity),
      minimize_(options.minimize || options.capacity < 0),
      options_(options),
      signal_(signal),
      state_(state),
      orders_(ordered(instance, signal)),
      searches_(options.threads > 1 ? kLanes : 1) {}

template <class Coord>
void Portfolio<Coord>::run() {
  if (is_crowded()) first_dives();
  if (searchable_) {
    first_fits(1'000'000);
    if (capacity_ >= 0 && state_.bound <= capacity_) all_settings(capacity_);
    if (minimize_) all_settings(state_.bound);
    first_fits(200'000'000);
  }
  make_arms();
  slice_ = kFirstSlice;
  while (!over() && !arms_.empty()) {
    if (ejection_is_due())
      ejection_round();
    else
      arms_round();
  }
}

// --- the fixed part ----------------------------------------------------------------------------------------------

// All orders of first fit, if they are cheap enough and were not tried before.
template <class Coord>
void Portfolio<Coord>::first_fits(std::int64_t most_conflicts) {
  if (over() || first_fits_done_ || FirstFit::conflicts(instance_) > most_conflicts) return;
  Poller poller(signal_);
  const FirstFit first_fit(instance_, poller);
  first_fits_done_ = true;
  for (const FirstFit::Key key : FirstFit::kKeys) {
    if (over()) return;
    Meter meter(signal_, work_left());
    Array<Bytes> offsets = first_fit.place(first_fit.order(key, poller), meter);
    state_.work += meter.used();
    if (!offsets.empty()) keep(std::move(offsets));
  }
}

// Whether so many buffers are alive at once that the search hardly ever ends.
template <class Coord>
bool Portfolio<Coord>::is_crowded() const {
  const auto alive = static_cast<double>(instance_.width) / instance_.sections();
  return instance_.count() > kNoisyItems && alive > kCrowd * instance_.count();
}

// Dives by several rules, if the instance has nothing that they do not know of.
template <class Coord>
void Portfolio<Coord>::first_dives() {
  for (int round = 0; round < kFirstDives / static_cast<int>(kLanes) && may_dive() && !over(); ++round) {
    Array<Task> tasks;
    for (std::size_t k = 0; k < kLanes; ++k)
      tasks.push_back([this, number = dives_++, work = share_left()](std::size_t, const std::atomic<bool>& abandon) {
        return dive(number, work, abandon);
      });
    run_round(tasks);
  }
}

// The settings from `begin` to `end` once each, without noise, at one height.
template <class Coord>
void Portfolio<Coord>::plain_settings(Bytes height, std::size_t begin, std::size_t end) {
  Array<Attempt> attempts;
  const Array<Setting> settings = settings_for(instance_);
  for (std::size_t k = begin; k < std::min(end, settings.size()); ++k)
    attempts.push_back([this, height, setting = settings[k]](std::size_t lane, Meter& meter) {
      Random unused(0);
      return single(search(lane), setting, height, 0, node_limit(instance_, setting), unused, meter);
    });
  run_until_verdict(height, attempts);
}

// Some settings again and again, with a little noise and little patience.
template <class Coord>
void Portfolio<Coord>::noisy_settings(Bytes height, View<const Setting> chosen, std::uint64_t rounds) {
  const std::int64_t nodes = std::int64_t{instance_.count()} + kExtraNodes;
  Array<Attempt> attempts;
  for (std::uint64_t round = 0; round < rounds; ++round)
    for (const Setting& setting : chosen)
      attempts.push_back(
          [this, setting, height, nodes, seed = options_.seed * rounds + round](std::size_t lane, Meter& meter) {
            Random random(seed);
            return single(search(lane), setting, height, kNoises[0], setting.patience * nodes, random, meter);
          });
  run_until_verdict(height, attempts);
}

template <class Coord>
typename Portfolio<Coord>::Outcome Portfolio<Coord>::single(PackingSearch<Coord>& search, const Setting& chosen,
                                                            Bytes height, double noise, std::int64_t nodes,
                                                            Random& random, Meter& meter) const {
  Outcome outcome;
  const std::int64_t before = meter.used();
  outcome.height = height;
  Poller poller(signal_);
  const bool mirrored = noise > 0 ? random.below(2) == 1 : chosen.mirrored;
  outcome.found =
      search.run(height, {chosen.pick, mirrored}, orders_.ranks(chosen.traits, noise, random, poller), nodes, meter);
  if (outcome.found == Verdict::kFeasible)
    for (Id i = 0; i < instance_.count(); ++i) outcome.offsets.push_back(search.offset(i));
  outcome.nodes = search.nodes();
  outcome.work = meter.used() - before;
  return outcome;
}

template <class Coord>
void Portfolio<Coord>::all_settings(Bytes height) {
  plain_settings(height, 0, kFirstSettings);
  if (instance_.count() <= kNoisyItems) noisy_settings(height, kSlackRounds, 12);
  if (instance_.count() > kSmallItems && instance_.count() <= kNoisyItems && instance_.width <= kScanWidth)
    noisy_settings(height, kCountingRounds, 20);
  plain_settings(height, kFirstSettings, kAll);
}

// --- the arms ----------------------------------------------------------------------------------------------------

template <class Coord>
void Portfolio<Coord>::make_arms() {
  struct Row {
    Method method;
    Target target;
    double small, late, medium, large, wide;  // shares; wide: where the complete search takes too much memory
  };
  constexpr Row kRows[] = {{Method::kRestart, Target::kBound, 0.60, 0.03, 0.40, 0.40, 0},
                           {Method::kLocal, Target::kBest, 0.12, 0.46, 0.15, 0.05, 0},
                           {Method::kLocal, Target::kBound, 0.15, 0.02, 0.10, 0.05, 0},
                           {Method::kLocal, Target::kBest, 0.05, 0.46, 0.15, 0.05, 0},
                           {Method::kRestart, Target::kMiddle, 0.03, 0.01, 0.15, 0.35, 0},
                           {Method::kRestart, Target::kBest, 0.05, 0.02, 0.05, 0.10, 0},
                           {Method::kDive, Target::kBest, 0, 0, 0.10, 0.50, 0.50},
                           {Method::kDive, Target::kBest, 0, 0, 0, 0, 0.50}};
  for (const Row& row : kRows) {
    const std::uint64_t seed = options_.seed * 1000 + arms_.size();
    const double share = !searchable_                        ? row.wide
                         : instance_.count() <= kSmallItems  ? row.small
                         : instance_.count() <= kMediumItems ? row.medium
                                                             : row.large;
    const bool small = searchable_ && instance_.count() <= kSmallItems;
    if (share == 0) continue;
    if (row.method == Method::kDive && !may_dive()) continue;
    arms_.push_back({row.method, row.target, share, small ? row.late : share, Random(seed),
                     LocalSearch<Coord>(instance_, seed, static_cast<int>(arms_.size()) / 2)});
  }
  if (!may_eject() || !searchable_ || instance_.count() > kSmallItems) return;
  for (std::size_t k = 0; k < kLanes; ++k)
    ejections_.push_back(make_ejection_search(instance_, state_.height, options_.seed * 1000 + arms_.size() + k));
}

template <class Coord>
void Portfolio<Coord>::arms_round() {
  Array<Task> tasks;
  for (Arm* arm : due_arms()) tasks.push_back(task_of(*arm, std::min(slice_, share_left())));
  run_round(tasks);
  slice_ = std::min(slice_ + slice_ / 8, kLastSlice);
}

template <class Coord>
bool Portfolio<Coord>::is_late() const {
  return std::any_of(arms_.begin(), arms_.end(), [](const Arm& arm) { return arm.restarts > kLateRestarts; });
}

template <class Coord>
bool Portfolio<Coord>::ejection_is_due() const {
  const std::int64_t since = state_.work - kEjectAfter;
  return !ejections_.empty() && since > 0 && is_late() &&
         ejected_ < std::min(since / 2, kEjectFirst + since / kEjectPart);
}

template <class Coord>
void Portfolio<Coord>::ejection_round() {
  Array<Task> tasks;
  const Bytes height = height_of(Target::kBound);
  const std::int64_t work = std::min(kLastSlice, share_left());
  for (const auto& search : ejections_)
    tasks.push_back([this, &search, height, work](std::size_t, const std::atomic<bool>& abandon) {
      Outcome outcome;
      Meter meter(signal_, work, Meter::kPollEvery, &abandon);
      outcome.height = height;
      outcome.found = search->run(height, meter);
      if (outcome.found == Verdict::kFeasible)
        for (Id i = 0; i < instance_.count(); ++i) outcome.offsets.push_back(search->offset(i));
      outcome.work = meter.used();
      return outcome;
    });
  const std::int64_t before = state_.work;
  run_round(tasks);
  ejected_ += state_.work - before;
}

// The arms that have had least of their share.
template <class Coord>
Array<typename Portfolio<Coord>::Arm*> Portfolio<Coord>::due_arms() {
  const bool late = is_late();
  Array<Arm*> order;
  for (Arm& arm : arms_) order.push_back(&arm);
  const auto due = [late](const Arm* arm) {
    const double share = late ? arm->late_share : arm->share;
    return static_cast<double>(arm->used) / share;
  };
  std::stable_sort(order.begin(), order.end(), [&](const Arm* a, const Arm* b) { return due(a) < due(b); });
  order.resize(kLanes);
  return order;
}

template <class Coord>
Bytes Portfolio<Coord>::height_of(Target target) const {
  const Bytes low = minimize_ ? state_.bound : std::max(capacity_, state_.bound);
  const Bytes high = state_.height - 1;
  if (target == Target::kBound || high <= low) return low;
  return target == Target::kBest ? high : low + (high - low) / 2;
}

template <class Coord>
typename Portfolio<Coord>::Task Portfolio<Coord>::task_of(Arm& arm, std::int64_t work) {
  if (arm.method == Method::kLocal && arm.target == Target::kBest) follow_leader(arm);
  const Order order{height_of(arm.target), height_of(Target::kBound), work, std::max(work, share_left())};
  if (arm.method == Method::kDive)
    return [this, &arm, order, number = dives_++](std::size_t, const std::atomic<bool>& abandon) {
      Outcome outcome = dive(number, order.most_work, abandon);
      arm.used += outcome.work;
      return outcome;
    };
  return [this, &arm, order](std::size_t lane, const std::atomic<bool>& abandon) {
    PackingSearch<Coord>& own = search(lane);
    Outcome outcome =
        arm.method == Method::kLocal ? descents(arm, own, order, abandon) : restarts(arm, own, order, abandon);
    arm.used += outcome.work;
    return outcome;
  };
}

// A descent that another one has overtaken goes on from the order of that one.
template <class Coord>
void Portfolio<Coord>::follow_leader(Arm& arm) {
  if (arm.reached <= state_.height) return;
  for (const Arm& other : arms_)
    if (other.reached == state_.height && other.target == Target::kBest) {
      arm.local.follow(other.local);
      arm.reached = state_.height;
      return;
    }
}

// Restarts with noise and growing node limits until the work is used up; the last one runs to its limit.
template <class Coord>
typename Portfolio<Coord>::Outcome Portfolio<Coord>::restarts(Arm& arm, PackingSearch<Coord>& search,
                                                              const Order& order, const std::atomic<bool>& abandon) {
  Outcome total;
  const Array<Setting> settings = settings_for(instance_);
  const auto count = std::ssize(settings);
  while (total.found == Verdict::kUnknown && total.work < order.work) {
    Meter meter(signal_, order.most_work - total.work, Meter::kPollEvery, &abandon);
    // The earlier ones more often: the list is in order of merit.
    const auto setting = as_size(std::min({arm.random.below(count), arm.random.below(count), arm.random.below(count)}));
    const double noise = kNoises[arm.random.below(2)];
    const std::int64_t nodes = luby(++arm.restarts) * node_limit(instance_, settings[setting]);
    Outcome next = single(search, settings[setting], order.height, noise, nodes, arm.random, meter);
    next.work += total.work;
    next.nodes += total.nodes;
    total = std::move(next);
    if (meter.stopped()) break;
  }
  return total;
}

// A local search that is interrupted has found nothing; what was found before it stays.
template <class Coord>
Verdict Portfolio<Coord>::descent(LocalSearch<Coord>& local, PackingSearch<Coord>& search, Bytes height, Meter& meter) {
  try {
    return local.run(search, height, meter);
  } catch (const Interrupted&) {
    return Verdict::kUnknown;
  }
}

// Local search, each placement found setting the next height, until the work is used up.
template <class Coord>
typename Portfolio<Coord>::Outcome Portfolio<Coord>::descents(Arm& arm, PackingSearch<Coord>& search,
                                                              const Order& order, const std::atomic<bool>& abandon) {
  Outcome outcome;
  Meter meter(signal_, order.work, Meter::kPollEvery, &abandon);
  Bytes height = order.height;
  outcome.height = height;
  while (!meter.exhausted()) {
    const Verdict found = descent(arm.local, search, height, meter);
    outcome.nodes += arm.local.nodes();
    if (found == Verdict::kUnknown) break;
    outcome.found = found;
    outcome.height = height;
    if (found == Verdict::kInfeasible) break;  // a placement found before is just above: it is merged by its offsets
    outcome.offsets.resize(instance_.items.size());
    Bytes reached = 0;
    for (Id i = 0; i < instance_.count(); ++i) {
      outcome.offsets[i] = search.offset(i);
      reached = std::max(reached, instance_.top(i, search.offset(i)));
    }
    arm.reached = reached;
    if (reached <= order.floor) break;
    height = std::max(order.floor, reached - 1 - (reached - order.floor) / 64);
  }
  outcome.work = meter.used();
  return outcome;
}

// A dive from the bottom up by a rule of its own, to its end.
template <class Coord>
typename Portfolio<Coord>::Outcome Portfolio<Coord>::dive(std::uint64_t number, std::int64_t work,
                                                          const std::atomic<bool>& abandon) const {
  Outcome outcome;
  Meter meter(signal_, work / kDiveCost, Meter::kPollEvery, &abandon);
  outcome.offsets = plateau_dive(instance_, varied_dive(number, options_.seed), meter);
  outcome.work = meter.used() * kDiveCost;
  if (outcome.offsets.empty()) return outcome;
  outcome.found = Verdict::kFeasible;
  outcome.height = height_of(outcome.offsets);
  return outcome;
}

// --- rounds ------------------------------------------------------------------------------------------------------

template <class Coord>
PackingSearch<Coord>& Portfolio<Coord>::search(std::size_t lane) {
  Poller poller(signal_);
  if (!searches_[lane]) searches_[lane] = std::make_unique<PackingSearch<Coord>>(instance_, options_.rules, poller);
  return *searches_[lane];
}

template <class Coord>
void Portfolio<Coord>::run_round(const Array<Task>& tasks) {
  if (searches_.size() > 1)
    run_in_parallel(tasks);
  else
    run_in_turn(tasks);
  report();
}

template <class Coord>
void Portfolio<Coord>::run_in_turn(const Array<Task>& tasks) {
  const std::atomic<bool> never{false};
  for (const Task& task : tasks) {
    Outcome outcome = task(0, never);
    merge(outcome);
    if (is_answered() || signal_.stopped()) return;
  }
}

// The same outcome as in turn: what follows a task that answers the question is dropped.
template <class Coord>
void Portfolio<Coord>::run_in_parallel(const Array<Task>& tasks) {
  Array<Outcome> outcomes(tasks.size());
  Array<std::atomic<bool>> abandon(tasks.size());
  Array<std::exception_ptr> errors(tasks.size());
  const auto work = [&](std::size_t k) {
    try {
      outcomes[k] = tasks[k](k, abandon[k]);
      if (answers(outcomes[k]))
        for (std::size_t later = k + 1; later < tasks.size(); ++later) abandon[later].store(true);
    } catch (const Interrupted&) {  // nothing to merge
    } catch (...) {
      errors[k] = std::current_exception();
    }
  };
  Array<std::thread> others;
  for (std::size_t k = 1; k < tasks.size(); ++k) others.emplace_back(work, k);
  work(0);
  for (std::thread& other : others) other.join();
  for (std::size_t k = 0; k < tasks.size(); ++k) {
    if (errors[k]) std::rethrow_exception(errors[k]);
    merge(outcomes[k]);
    if (is_answered()) return;
  }
}

// The attempts at a height in their order, until one has a verdict. Each lane takes the next one, however long the
// others take; what follows the first verdict, or the end of the budget, is dropped, so the outcome is the same as in
// turn.
template <class Coord>
void Portfolio<Coord>::run_until_verdict(Bytes height, const Array<Attempt>& attempts) {
  if (over() || state_.height <= height || state_.bound > height) return;
  const std::int64_t left = work_left(), share = share_left();
  Array<Outcome> outcomes(attempts.size());
  Array<std::atomic<bool>> abandon(attempts.size());
  Array<std::exception_ptr> errors(searches_.size());
  std::atomic<std::size_t> next{0};
  std::atomic<std::int64_t> used{0};
  const auto work = [&](std::size_t lane) {
    try {
      for (std::size_t k = next++; k < attempts.size() && used < left && !abandon[k] && !signal_.poll(); k = next++) {
        Meter meter(signal_, std::min(share, left - used), Meter::kPollEvery, &abandon[k]);
        outcomes[k] = attempts[k](lane, meter);
        used += outcomes[k].work;
        if (outcomes[k].found == Verdict::kUnknown) continue;
        for (std::size_t later = k + 1; later < attempts.size(); ++later) abandon[later] = true;
      }
    } catch (const Interrupted&) {  // nothing to merge
    } catch (...) {
      errors[lane] = std::current_exception();
    }
  };
  Array<std::thread> others;
  for (std::size_t lane = 1; lane < searches_.size(); ++lane) others.emplace_back(work, lane);
  work(0);
  for (std::thread& other : others) other.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  for (Outcome& outcome : outcomes) {
    if (outcome.work >= work_left()) {  // in turn it would have been cut off
      state_.work += std::max<std::int64_t>(work_left(), 0);
      break;
    }
    merge(outcome);
    if (outcome.found != Verdict::kUnknown) break;
  }
  report();
}

template <class Coord>
bool Portfolio<Coord>::answers(const Outcome& outcome) const {
  if (outcome.found == Verdict::kUnknown) return false;
  const Bytes next = instance_.next_height(outcome.height);
  return outcome.found == Verdict::kFeasible ? outcome.height <= goal() : next >= state_.height;
}

template <class Coord>
void Portfolio<Coord>::merge(Outcome& outcome) {
  state_.work += outcome.work;
  state_.nodes += outcome.nodes;
  if (!outcome.offsets.empty()) keep(std::move(outcome.offsets));
  if (outcome.found == Verdict::kInfeasible)
    state_.bound = std::max(state_.bound, std::min(instance_.next_height(outcome.height), state_.height));
}

template <class Coord>
Bytes Portfolio<Coord>::height_of(View<const Bytes> offsets) const {
  Bytes height = 0;
  for (Id i = 0; i < instance_.count(); ++i) height = std::max(height, instance_.top(i, offsets[i]));
  return height;
}

template <class Coord>
void Portfolio<Coord>::keep(Array<Bytes> offsets) {
  const Bytes height = height_of(offsets);
  if (height >= state_.height) return;
  state_.height = height;
  state_.offsets = std::move(offsets);
  report();
}

template <class Coord>
std::int64_t Portfolio<Coord>::work_left() const {
  return options_.steps > 0 ? options_.steps * 1000 - state_.work : kUnlimited;
}

// What one task of a round may use of it.
template <class Coord>
std::int64_t Portfolio<Coord>::share_left() const {
  return std::max<std::int64_t>(work_left() / static_cast<std::int64_t>(kLanes), 1);
}

template <class Coord>
void Portfolio<Coord>::report() const {
  if (options_.progress) options_.progress({state_.height, state_.bound, (state_.work + 999) / 1000});
}

template class Portfolio<std::int32_t>;
template class Portfolio<std::int64_t>;

}  // namespace modelplan::solver
