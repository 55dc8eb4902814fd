// The portfolio: which methods run on an instance, in what order, on what share of the work, until the best
// height meets the bound or the budget ends.
//
// Work is cut into tasks, and lists of these are handed out to the lanes in their order. The tasks of a list see the
// same best height and bound, and what they found is merged in their order, so the answer to a step budget is the same
// for one lane and for two.
#pragma once

#include <functional>
#include <limits>
#include <memory>

#include "array.hpp"
#include "ejection_search.hpp"
#include "first_fit.hpp"
#include "lanes.hpp"
#include "local_search.hpp"
#include "order.hpp"
#include "packing_search.hpp"

namespace modelplan::solver {

// What is known so far; heights in bytes, offsets in units per item.
struct State {
  Array<Bytes> offsets;
  Bytes height = std::numeric_limits<Bytes>::max();
  Bytes bound = 0;
  std::int64_t work = 0;
  std::int64_t nodes = 0;

  // Takes a placement if it is lower than the best so far; whether it was.
  bool keep(const PackingInstance& instance, Array<Bytes> placement);
  // The height at which nothing is left to do.
  Bytes goal(const Options& options) const { return options.decides() ? std::max(options.capacity, bound) : bound; }
  // Whether that is reached or, where only the capacity is asked for, proved to be out of reach.
  bool is_answered(const Options& options) const {
    return height <= goal(options) || (options.decides() && bound > options.capacity);
  }
  std::int64_t work_left(const Options& options) const {
    return options.steps > 0 ? options.steps * 1000 - work : kUnlimited;
  }
  std::int64_t steps() const { return (work + 999) / 1000; }
  void report(const Options& options) const {
    if (options.progress) options.progress({height, bound, steps()});
  }
};

// One way to run the complete search.
struct Setting {
  Pick pick;
  Traits traits;
  std::int64_t patience = 2;  // nodes tried before a state is given up: patience * (buffers + 250)
  bool mirrored = false;
};

template <class Coord>
class Portfolio {
 public:
  Portfolio(const PackingInstance& instance, const Options& options, const StopSignal& signal, State& state);

  // Improves the state until the question is answered, the budget is used up, or the signal stops it.
  void run();

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

  void first_dives();
  void first_fits(std::int64_t most_conflicts);
  void all_settings(Bytes height);
  void add_first_fits(Tasks& tasks, std::int64_t most_conflicts);
  void add_plain(Tasks& tasks, Bytes height, std::size_t begin, std::size_t end);
  void add_noisy(Tasks& tasks, Bytes height, View<const Setting> chosen, std::uint64_t rounds);
  void make_arms();
  void arms_round();
  bool is_late() const;
  bool ejection_is_due() const;
  void ejection_round();
  Array<Arm*> due_arms();
  void follow_leader(Arm& arm);
  Task task_of(Arm& arm, std::int64_t work);
  Outcome restarts(Arm& arm, PackingSearch<Coord>& search, const Request& request, Meter& meter);
  Outcome descents(Arm& arm, PackingSearch<Coord>& search, const Request& request, Meter& meter);
  static Verdict descent(LocalSearch<Coord>& local, PackingSearch<Coord>& search, Bytes height, Meter& meter);
  Outcome dive(std::uint64_t number, Meter& meter) const;
  Outcome single(PackingSearch<Coord>& search, const Setting& chosen, Bytes height, double noise, std::int64_t nodes,
                 Random& random, Meter& meter) const;
  Bytes height_of(Target target) const;

  void run_round(const Tasks& tasks);
  using IsLast = std::function<bool(const Outcome&)>;
  void run_tasks(const Tasks& tasks, const IsLast& is_last);
  struct Run;  // of a list of tasks
  void take_tasks(Run& run, std::size_t lane);
  void merge_next(Run& run);
  void merge(Outcome& outcome);
  std::int64_t work_left() const { return state_.work_left(options_); }
  std::int64_t share_left() const;
  bool may_dive() const { return !instance_.pinned && !instance_.has_facts(); }

  bool is_crowded() const;
  bool over() const { return state_.is_answered(options_) || work_left() <= 0 || signal_.poll(); }
  PackingSearch<Coord>& search(std::size_t lane);

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

extern template class Portfolio<std::int32_t>;
extern template class Portfolio<std::int64_t>;

}  // namespace modelplan::solver
