#include "portfolio.hpp"

#include <algorithm>
#include <functional>
#include <memory>

#include "ejection_search.hpp"
#include "first_fit.hpp"
#include "lanes.hpp"
#include "local_search.hpp"
#include "order.hpp"
#include "packing_search.hpp"
#include "plateau.hpp"

namespace modelplan::solver {
namespace {

// One way to run the complete search.
struct Setting {
  Pick pick;
  Traits traits;
  std::int64_t patience = 2;  // nodes tried before a state is given up: patience * (buffers + 250)
  bool mirrored = false;
};

constexpr std::size_t kRound = 2;                // tasks per round
constexpr std::int64_t kFirstSlice = 2'000'000;  // work of a task, some milliseconds; grows to
constexpr std::int64_t kLastSlice = 40'000'000;
constexpr std::int64_t kSearchWidth = 30'000'000;  // the search's memory is linear in the width
constexpr double kCrowd = 0.125;  // share of the buffers alive on average: dives come before the search
constexpr int kFirstDives = 4;
constexpr std::int64_t kDiveCost = 4;  // a look of a dive, in looks of the search
constexpr std::int64_t kFewConflicts = 1'000'000, kManyConflicts = 200'000'000;  // for all orders of first fit
constexpr std::int64_t kScanWidth = 400'000;  // above this the picks that count candidates cost too much
constexpr std::int64_t kLateRestarts = 24;
constexpr std::int64_t kEjectAfter = 2'000'000'000;  // work, beyond the default budget; then half of all work goes to
constexpr std::int64_t kEjectFirst = 2'000'000'000;  // ejection searches until they have had this much,
constexpr std::int64_t kEjectPart = 20;              // and one part in so many later
constexpr std::size_t kAll = 1000, kFirstSettings = 8;  // settings
constexpr Id kSmallItems = 500, kNoisyItems = 1500, kMediumItems = 3000;
constexpr std::int64_t kExtraNodes = 250;  // that a run may take beyond one for each buffer
constexpr double kNoises[] = {0.15, 0.3};

// Named by their traits: A for the area, T for the load (total), W for the width, Z for the size, as in MiniMalloc.
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

Orders make_orders(const PackingInstance& instance, const StopSignal& signal) {
  Poller poller(signal);
  return Orders(instance, poller);
}

template <class Coord>
class Portfolio {
 public:
  Portfolio(const PackingInstance& instance, const Options& options, const StopSignal& signal, State& state)
      : instance_(instance),
        searchable_(instance.width <= kSearchWidth),
        options_(options),
        signal_(signal),
        state_(state),
        orders_(make_orders(instance, signal)),
        lanes_(options.threads > 1),
        searches_(lanes_.count()) {}

  // Improves the state until the question is answered, the budget is used up, or the signal stops it.
  void run() {
    if (is_crowded()) first_dives();
    if (searchable_) {
      if (instance_.count() > kNoisyItems) first_fits(kFewConflicts);
      if (options_.capacity >= 0) all_settings(options_.capacity);
      if (!options_.decides()) all_settings(state_.bound);
      first_fits(kManyConflicts);
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

 private:
  struct Outcome {
    Verdict found = Verdict::kUnknown;
    Bytes height = 0;      // the height that was asked for
    Array<Bytes> offsets;  // where the verdict is kFeasible
    std::int64_t work = 0, nodes = 0;
  };
  using Task = std::function<Outcome(std::size_t lane, Meter& meter)>;
  using Tasks = Array<Task>;

  enum class Method { kRestart, kLocal, kDive };
  enum class Target { kBound, kMiddle, kBest };
  struct Request {        // fixed when the round is made up
    Bytes height, floor;  // what to ask for, and the least that is of use
    std::int64_t work;    // when to finish
  };
  struct alignas(kCacheLines) Arm {  // one method at one target, with the share of the work that it is due
    Method method;
    Target target;
    double share, late_share;  // late: once the restarts at the bound have failed for long
    Random random;
    LocalSearch<Coord> local;
    std::int64_t used = 0;
    Bytes reached = std::numeric_limits<Bytes>::max();  // by its last descent
    std::int64_t restarts = 0;
  };

  // Dives by several rules, if the instance has nothing that they do not know of.
  void first_dives() {
    for (std::size_t round = 0; round < kFirstDives / kRound && may_dive() && !over(); ++round) {
      Tasks tasks;
      for (std::size_t k = 0; k < kRound; ++k)
        tasks.push_back([this, number = dives_++](std::size_t, Meter& meter) { return dive(number, meter); });
      run_round(tasks);
    }
  }

  void first_fits(std::int64_t most_conflicts) {
    if (over()) return;
    Tasks tasks;
    add_first_fits(tasks, most_conflicts);
    run_round(tasks);
  }

  // Every setting once without noise, and a few of them often with noise, until one of them has a verdict.
  void all_settings(Bytes height) {
    if (over() || state_.height <= height || state_.bound > height) return;
    const bool noisy = instance_.count() <= kNoisyItems;
    Tasks tasks;
    add_plain(tasks, height, 0, 1);
    add_first_fits(tasks, kFewConflicts);
    add_plain(tasks, height, 1, kFirstSettings);
    if (noisy) add_noisy(tasks, height, kSlackRounds, 12);
    if (noisy && instance_.count() > kSmallItems && instance_.width <= kScanWidth)
      add_noisy(tasks, height, kCountingRounds, 20);
    add_plain(tasks, height, kFirstSettings, kAll);
    run_tasks(tasks, [height](const Outcome& outcome) {
      return outcome.found == Verdict::kInfeasible || (outcome.found == Verdict::kFeasible && outcome.height <= height);
    });
  }

  // All orders of first fit, if they are cheap enough and were not tried before.
  void add_first_fits(Tasks& tasks, std::int64_t most_conflicts) {
    if (first_fit_ || FirstFit::conflicts(instance_) > most_conflicts) return;
    Poller poller(signal_);
    first_fit_ = std::make_unique<FirstFit>(instance_, poller);
    for (const FirstFit::Key key : FirstFit::kKeys)
      tasks.push_back([this, key](std::size_t, Meter& meter) {
        Outcome outcome;
        Poller order_poller(signal_);
        outcome.offsets = first_fit_->place(first_fit_->order(key, order_poller), meter);
        outcome.work = meter.used();
        if (outcome.offsets.empty()) return outcome;
        outcome.found = Verdict::kFeasible;
        outcome.height = instance_.height(outcome.offsets);
        return outcome;
      });
  }

  // The settings from `begin` to `end` once each, without noise.
  void add_plain(Tasks& tasks, Bytes height, std::size_t begin, std::size_t end) {
    const Array<Setting> settings = settings_for(instance_);
    for (std::size_t k = begin; k < std::min(end, settings.size()); ++k)
      tasks.push_back([this, height, setting = settings[k]](std::size_t lane, Meter& meter) {
        Random unused(0);
        return single(search(lane), setting, height, 0, node_limit(instance_, setting), unused, meter);
      });
  }

  // Some settings again and again, with a little noise and little patience.
  void add_noisy(Tasks& tasks, Bytes height, View<const Setting> chosen, std::uint64_t rounds) {
    const std::int64_t nodes = std::int64_t{instance_.count()} + kExtraNodes;
    for (std::uint64_t round = 0; round < rounds; ++round)
      for (const Setting& setting : chosen)
        tasks.push_back(
            [this, setting, height, nodes, seed = options_.seed * rounds + round](std::size_t lane, Meter& meter) {
              Random random(seed);
              return single(search(lane), setting, height, kNoises[0], setting.patience * nodes, random, meter);
            });
  }

  void make_arms() {
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
    if (!instance_.is_plain() || !searchable_ || instance_.count() > kSmallItems) return;
    for (std::size_t k = 0; k < kRound; ++k)
      ejections_.push_back(make_ejection_search(instance_, state_.height, options_.seed * 1000 + arms_.size() + k));
  }

  void arms_round() {
    Tasks tasks;
    for (Arm* arm : due_arms()) tasks.push_back(task_of(*arm, std::min(slice_, share_left())));
    run_round(tasks);
    slice_ = std::min(slice_ + slice_ / 8, kLastSlice);
  }

  bool is_late() const {
    return std::any_of(arms_.begin(), arms_.end(), [](const Arm& arm) { return arm.restarts > kLateRestarts; });
  }

  bool ejection_is_due() const {
    const std::int64_t since = state_.work - kEjectAfter;
    return !ejections_.empty() && since > 0 && is_late() &&
           ejected_ < std::min(since / 2, kEjectFirst + since / kEjectPart);
  }

  void ejection_round() {
    Tasks tasks;
    const Bytes height = height_of(Target::kBound);
    for (const auto& search : ejections_)
      tasks.push_back([this, &search, height](std::size_t, Meter& meter) {
        Outcome outcome;
        const Meter::Slice slice(meter, kLastSlice);
        outcome.height = height;
        outcome.found = search->run(height, meter);
        if (outcome.found == Verdict::kFeasible) outcome.offsets = search->offsets();
        outcome.work = meter.used();
        return outcome;
      });
    const std::int64_t before = state_.work;
    run_round(tasks);
    ejected_ += state_.work - before;
  }

  // The arms that have had least of their share.
  Array<Arm*> due_arms() {
    const bool late = is_late();
    Array<Arm*> order;
    for (Arm& arm : arms_) order.push_back(&arm);
    const auto due = [late](const Arm* arm) {
      const double share = late ? arm->late_share : arm->share;
      return static_cast<double>(arm->used) / share;
    };
    std::stable_sort(order.begin(), order.end(), [&](const Arm* a, const Arm* b) { return due(a) < due(b); });
    order.resize(kRound);
    return order;
  }

  // A descent that another one has overtaken goes on from the order of that one.
  void follow_leader(Arm& arm) {
    if (arm.reached <= state_.height) return;
    for (const Arm& other : arms_)
      if (other.reached == state_.height && other.target == Target::kBest) {
        arm.local.follow(other.local);
        arm.reached = state_.height;
        return;
      }
  }

  Task task_of(Arm& arm, std::int64_t work) {
    if (arm.method == Method::kLocal && arm.target == Target::kBest) follow_leader(arm);
    const Request request{height_of(arm.target), height_of(Target::kBound), work};
    const std::uint64_t number = arm.method == Method::kDive ? dives_++ : 0;
    return [this, &arm, request, number](std::size_t lane, Meter& meter) {
      Outcome outcome = arm.method == Method::kDive    ? dive(number, meter)
                        : arm.method == Method::kLocal ? descents(arm, search(lane), request, meter)
                                                       : restarts(arm, search(lane), request, meter);
      arm.used += outcome.work;
      return outcome;
    };
  }

  // Restarts with noise and growing node limits until the work is used up; the last one runs to its limit.
  Outcome restarts(Arm& arm, PackingSearch<Coord>& search, const Request& request, Meter& meter) {
    Outcome total;
    const Array<Setting> settings = settings_for(instance_);
    const auto count = std::ssize(settings);
    while (total.found == Verdict::kUnknown && total.work < request.work && !meter.exhausted()) {
      // The earlier ones more often: the list is in order of merit.
      const auto setting =
          as_size(std::min({arm.random.below(count), arm.random.below(count), arm.random.below(count)}));
      const double noise = kNoises[arm.random.below(2)];
      const std::int64_t nodes = luby(++arm.restarts) * node_limit(instance_, settings[setting]);
      Outcome next = single(search, settings[setting], request.height, noise, nodes, arm.random, meter);
      next.work += total.work;
      next.nodes += total.nodes;
      total = std::move(next);
    }
    return total;
  }

  // Local search, each placement found setting the next height, until the work is used up.
  Outcome descents(Arm& arm, PackingSearch<Coord>& search, const Request& request, Meter& meter) {
    Outcome outcome;
    const Meter::Slice slice(meter, request.work);
    Bytes height = request.height;
    outcome.height = height;
    while (!meter.exhausted()) {
      const Verdict found = descent(arm.local, search, height, meter);
      outcome.nodes += arm.local.nodes();
      if (found == Verdict::kUnknown) break;
      outcome.found = found;
      outcome.height = height;
      if (found == Verdict::kInfeasible) break;  // a placement found before is just above: it is merged by its offsets
      outcome.offsets = search.offsets();
      const Bytes reached = arm.reached = instance_.height(outcome.offsets);
      if (reached <= request.floor) break;
      height = std::max(request.floor, reached - 1 - (reached - request.floor) / 64);
    }
    outcome.work = meter.used();
    return outcome;
  }

  // A local search that is interrupted has found nothing; what was found before it stays.
  static Verdict descent(LocalSearch<Coord>& local, PackingSearch<Coord>& search, Bytes height, Meter& meter) {
    try {
      return local.run(search, height, meter);
    } catch (const Interrupted&) {
      return Verdict::kUnknown;
    }
  }

  // A dive from the bottom up by a rule of its own, to its end.
  Outcome dive(std::uint64_t number, Meter& meter) const {
    Outcome outcome;
    const Meter::Slice slice(meter, meter.left() / kDiveCost);
    outcome.offsets = plateau_dive(instance_, varied_dive(number, options_.seed), meter);
    outcome.work = meter.used() * kDiveCost;
    if (outcome.offsets.empty()) return outcome;
    outcome.found = Verdict::kFeasible;
    outcome.height = instance_.height(outcome.offsets);
    return outcome;
  }

  Outcome single(PackingSearch<Coord>& search, const Setting& chosen, Bytes height, double noise, std::int64_t nodes,
                 Random& random, Meter& meter) const {
    Outcome outcome;
    const std::int64_t before = meter.used();
    outcome.height = height;
    Poller poller(signal_);
    const bool mirrored = noise > 0 ? random.below(2) == 1 : chosen.mirrored;
    outcome.found =
        search.run(height, {chosen.pick, mirrored}, orders_.ranks(chosen.traits, noise, random, poller), nodes, meter);
    if (outcome.found == Verdict::kFeasible) outcome.offsets = search.offsets();
    outcome.nodes = search.nodes();
    outcome.work = meter.used() - before;
    return outcome;
  }

  Bytes height_of(Target target) const {
    const Bytes low = state_.goal(options_), high = state_.height - 1;
    if (target == Target::kBound || high <= low) return low;
    return target == Target::kBest ? high : low + (high - low) / 2;
  }

  // The tasks until one of them answers the question.
  void run_round(const Tasks& tasks) {
    run_tasks(tasks, [this, goal = state_.goal(options_), height = state_.height](const Outcome& outcome) {
      if (outcome.found == Verdict::kFeasible) return outcome.height <= goal;
      return outcome.found == Verdict::kInfeasible && instance_.next_height(outcome.height) >= height;
    });
  }

  using IsLast = std::function<bool(const Outcome&)>;

  // Each lane takes the next task, however long the other one takes, until the question is answered, an outcome is the
  // last that is wanted, or the work left is used up. What comes behind that is dropped and the rest is merged in its
  // order, so the state is the same as after one lane.
  void run_tasks(const Tasks& tasks, const IsLast& is_last) {
    Run run{tasks, is_last, work_left(), share_left()};
    lanes_.run([&](std::size_t lane) {
      try {
        take_tasks(run, lane);
      } catch (const Interrupted&) {  // nothing to merge
      }
    });
    while (!run.ended && run.merged < tasks.size())
      if (run.turns[run.merged].done)
        merge_next(run);
      else
        ++run.merged;  // interrupted
    state_.report(options_);
  }

  // A list of tasks on its way.
  struct Run {
    struct Turn {
      Outcome outcome;
      std::atomic<std::int64_t> charged{0};  // work, at most the share of a task
      std::atomic<bool> done{false}, abandoned{false};
    };

    // What the tasks before this one leave of the work, as far as they are done.
    std::int64_t left_for(std::size_t k) const {
      std::int64_t rest = left;
      for (std::size_t before = 0; before < k; ++before) rest -= turns[before].charged;
      return rest;
    }
    void abandon_from(std::size_t first) {
      for (std::size_t k = first; k < turns.size(); ++k) turns[k].abandoned = true;
    }

    const Tasks& tasks;
    const IsLast& is_last;
    const std::int64_t left, share;  // work at the beginning, and the most that one task may use
    Array<Turn> turns{tasks.size()};
    std::atomic<std::size_t> next{0};
    std::size_t merged = 0;  // turns, of lane 0 alone
    bool ended = false;      // nothing more is merged
  };

  // Lane 0 merges too what is done in the order of the tasks.
  void take_tasks(Run& run, std::size_t lane) {
    for (std::size_t k = run.next++; k < run.tasks.size(); k = run.next++) {
      typename Run::Turn& turn = run.turns[k];
      const std::int64_t rest = run.left_for(k);
      if (rest <= 0 || turn.abandoned || signal_.poll()) return;
      Meter meter(signal_, std::min(run.share, rest), Meter::kPollEvery, &turn.abandoned);
      turn.outcome = run.tasks[k](lane, meter);
      turn.charged = std::min(turn.outcome.work, run.share);
      if (run.is_last(turn.outcome)) run.abandon_from(k + 1);
      turn.done = true;
      if (lane > 0) continue;
      while (!run.ended && run.merged < run.tasks.size() && run.turns[run.merged].done) merge_next(run);
      if (run.ended) return run.abandon_from(run.merged);
    }
  }

  void merge_next(Run& run) {
    const std::int64_t rest = run.left_for(run.merged);
    Outcome& outcome = run.turns[run.merged++].outcome;
    if (rest < run.share && outcome.work >= rest) {  // one lane would have broken it off
      state_.work += std::max<std::int64_t>(work_left(), 0);
      run.ended = true;
      return;
    }
    const bool last = run.is_last(outcome);
    merge(outcome);
    run.ended = last || state_.is_answered(options_);
  }

  void merge(Outcome& outcome) {
    state_.work += outcome.work;
    state_.nodes += outcome.nodes;
    if (!outcome.offsets.empty() && state_.keep(instance_, std::move(outcome.offsets))) state_.report(options_);
    if (outcome.found == Verdict::kInfeasible)
      state_.bound = std::max(state_.bound, std::min(instance_.next_height(outcome.height), state_.height));
  }

  std::int64_t work_left() const { return state_.work_left(options_); }

  // What one task of a round may use of the work that is left.
  std::int64_t share_left() const { return std::max<std::int64_t>(work_left() / static_cast<std::int64_t>(kRound), 1); }

  bool may_dive() const { return !instance_.pinned && !instance_.has_facts(); }

  // Whether so many buffers are alive at once that the search hardly ever ends.
  bool is_crowded() const {
    const auto alive = static_cast<double>(instance_.width) / instance_.sections();
    return instance_.count() > kNoisyItems && alive > kCrowd * instance_.count();
  }

  bool over() const { return state_.is_answered(options_) || work_left() <= 0 || signal_.poll(); }

  PackingSearch<Coord>& search(std::size_t lane) {
    Poller poller(signal_);
    if (!searches_[lane]) searches_[lane] = std::make_unique<PackingSearch<Coord>>(instance_, options_.rules, poller);
    return *searches_[lane];
  }

  const PackingInstance& instance_;
  bool searchable_;  // else the complete search would take too much memory
  const Options& options_;
  const StopSignal& signal_;
  State& state_;
  Orders orders_;
  Lanes lanes_;
  Array<std::unique_ptr<PackingSearch<Coord>>> searches_;  // per lane
  std::unique_ptr<FirstFit> first_fit_;                    // once it was tried
  Array<Arm> arms_;
  Array<std::unique_ptr<EjectionSearch>> ejections_;
  std::int64_t ejected_ = 0;  // work of these
  std::int64_t slice_ = 0;
  std::uint64_t dives_ = 0;
};

}  // namespace

bool State::keep(const PackingInstance& instance, Array<Bytes> placement) {
  const Bytes own = instance.height(placement);
  if (own >= height) return false;
  height = own;
  offsets = std::move(placement);
  return true;
}

template <class Coord>
void run_portfolio(const PackingInstance& instance, const Options& options, const StopSignal& signal, State& state) {
  Portfolio<Coord>(instance, options, signal, state).run();
}

template void run_portfolio<std::int32_t>(const PackingInstance&, const Options&, const StopSignal&, State&);
template void run_portfolio<std::int64_t>(const PackingInstance&, const Options&, const StopSignal&, State&);

}  // namespace modelplan::solver
