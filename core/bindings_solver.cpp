// The solver of modelplan._core. It runs in a thread of its own, so that the calling one can listen to Ctrl-C and
// pass progress on.
#include <chrono>
#include <future>
#include <iterator>
#include <mutex>
#include <optional>

#include "bindings.hpp"
#include "solver/ejection_search.hpp"
#include "solver/solve.hpp"

namespace modelplan {
namespace {

using namespace nb::literals;

constexpr NamedRule<solver::Rules> kRules[] = {{"section_check", &solver::Rules::section_check},
                                               {"single_candidate", &solver::Rules::single_candidate},
                                               {"support", &solver::Rules::support},
                                               {"twins", &solver::Rules::twins},
                                               {"backjump", &solver::Rules::backjump},
                                               {"pin_jump", &solver::Rules::pin_jump},
                                               {"joins", &solver::Rules::joins},
                                               {"stacked_sizes", &solver::Rules::stacked_sizes},
                                               {"unit_scaling", &solver::Rules::unit_scaling}};
static_assert(std::size(kRules) * sizeof(bool) == sizeof(solver::Rules),
              "a rule without a name cannot be switched off");

// One solve in a thread of its own, watched from the thread that has Python's lock.
class WatchedSolve {
 public:
  WatchedSolve(const Problem& problem, solver::Options options, nb::object listener, nb::object cancelled)
      : problem_(problem),
        options_(std::move(options)),
        listener_(std::move(listener)),
        cancelled_(std::move(cancelled)) {
    options_.cancel = &cancel_;
    if (!listener_.is_none()) options_.progress = [this](const solver::Progress& progress) { note(progress); };
  }

  solver::Result run() {
    auto result = std::async(std::launch::async, [this] { return solver::solve(problem_, options_); });
    const Cancelling at_the_end{cancel_};
    while (!is_there(result)) listen();
    listen();
    if (raised_) throw nb::python_error();
    return result.get();
  }

 private:
  // Cancels the search where an exception leaves run(); the future then waits for it.
  struct Cancelling {
    std::atomic<bool>& flag;
    ~Cancelling() { flag = true; }
  };

  void note(const solver::Progress& progress) {
    const std::lock_guard lock(mutex_);
    latest_ = progress;
  }

  // Returns now and then even if the result is not there.
  static bool is_there(const std::future<solver::Result>& result) {
    const nb::gil_scoped_release unlocked;
    return result.wait_for(std::chrono::milliseconds(10)) == std::future_status::ready;
  }

  // Ctrl-C and `cancelled` end the search and keep the best; whatever else Python raises ends the call.
  void listen() {
    if (raised_) return;
    if (PyErr_CheckSignals() != 0) {
      cancel_ = true;
      if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt))
        PyErr_Clear();
      else
        raised_ = true;
    }
    std::optional<solver::Progress> latest;
    {
      const std::lock_guard lock(mutex_);
      latest.swap(latest_);
    }
    if (raised_) return;
    try {
      if (!cancelled_.is_none() && nb::cast<bool>(nb::bool_(cancelled_()))) cancel_ = true;
      if (latest) listener_(latest->height, latest->bound, latest->steps);
    } catch (nb::python_error& error) {
      error.restore();
      raised_ = true;
      cancel_ = true;
    }
  }

  const Problem& problem_;
  solver::Options options_;
  nb::object listener_;
  nb::object cancelled_;
  std::atomic<bool> cancel_{false};
  bool raised_ = false;
  std::mutex mutex_;
  std::optional<solver::Progress> latest_;
};

nb::tuple solve(const BoundProblem& problem, std::int64_t capacity, bool minimize, std::int64_t steps, double seconds,
                std::uint64_t seed, int threads, const Array<std::string>& without, nb::object progress,
                nb::object cancelled) {
  solver::Options options;
  options.capacity = capacity;
  options.steps = steps;
  options.seconds = seconds;
  options.seed = seed;
  options.threads = threads;
  options.minimize = minimize;
  options.rules = rules_without(kRules, without);
  solver::Result result = WatchedSolve(problem.problem(), options, std::move(progress), std::move(cancelled)).run();
  return nb::make_tuple(column_of(std::move(result.offsets)), result.bound, name_of(result.ended), result.steps,
                        result.nodes);
}

nb::object ejection_search(const BoundProblem& problem, std::int64_t height, std::int64_t steps, std::uint64_t seed) {
  const StopSignal signal;
  Poller poller(signal);
  const Problem& rows = problem.problem();
  const solver::PackingInstance instance = solver::prepare(rows, {}, poller);
  if (!instance.is_plain() || !rows.left.empty() || !rows.member.empty())
    throw std::invalid_argument("the ejection search takes no alignments, pins, overlaps, conflicts or groups");
  if (height < instance.bound) return nb::none();
  Meter meter(signal, steps);
  const auto search = solver::make_ejection_search(instance, height, seed);
  if (search->run(height, meter) != Verdict::kFeasible) return nb::none();
  return nb::cast(column_of(instance.caller_offsets(search->offsets())));
}

}  // namespace

void bind_solver(nb::module_& module) {
  module.def("solve", &solve, "problem"_a, "capacity"_a = -1, "minimize"_a = true, "steps"_a = 0, "seconds"_a = 0.0,
             "seed"_a = 0, "threads"_a = 1, "without"_a = Array<std::string>{}, "progress"_a = nb::none(),
             "cancelled"_a = nb::none(),
             "(offsets, bound, ended, steps, nodes); the offsets are empty when the pins exclude every placement.");
  module.def(
      "ejection_search", &ejection_search, "problem"_a, "height"_a, "steps"_a, "seed"_a = 0,
      "Offsets of a placement of at most that height, or None where none is found in so many steps. Buffers have "
      "no alignments, pins, overlaps, conflicts or groups.");
  module.attr("SOLVER_RULES") = names_of(kRules);
}

}  // namespace modelplan
