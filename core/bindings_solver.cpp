// The solver of modelplan._core. It runs in a thread of its own, so that the calling one can listen to Ctrl-C and
// pass progress on.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "bindings.hpp"
#include "solver/problem.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace modelplan {
namespace {

struct Switch {
  const char* name;
  bool solver::Rules::* on;
};

constexpr Switch kSwitches[] = {{"section_check", &solver::Rules::section_check},
                                {"single_candidate", &solver::Rules::single_candidate},
                                {"support", &solver::Rules::support},
                                {"twins", &solver::Rules::twins},
                                {"backjump", &solver::Rules::backjump},
                                {"pin_jump", &solver::Rules::pin_jump},
                                {"joins", &solver::Rules::joins},
                                {"stacked_sizes", &solver::Rules::stacked_sizes},
                                {"unit_scaling", &solver::Rules::unit_scaling}};

solver::Rules rules_without(const std::vector<std::string>& names) {
  solver::Rules rules;
  for (const std::string& name : names) {
    const auto* found = std::ranges::find(kSwitches, name, &Switch::name);
    if (found == std::end(kSwitches)) throw std::invalid_argument("no rule " + name);
    rules.*found->on = false;
  }
  return rules;
}

const char* name_of(solver::Ended ended) {
  switch (ended) {
    case solver::Ended::kOptimal:
      return "optimal";
    case solver::Ended::kFits:
      return "fits";
    case solver::Ended::kInfeasible:
      return "infeasible";
    case solver::Ended::kSteps:
      return "budget";
    case solver::Ended::kDeadline:
      return "deadline";
    case solver::Ended::kCancelled:
      return "cancelled";
  }
  return "";
}

// One solve in a thread of its own, watched from the thread that has Python's lock.
class WatchedSolve {
 public:
  WatchedSolve(const solver::Problem& problem, solver::Options options, nb::object listener)
      : problem_(problem), options_(std::move(options)), listener_(std::move(listener)) {
    options_.cancel = &cancel_;
    if (!listener_.is_none()) options_.progress = [this](const solver::Progress& progress) { note(progress); };
  }

  solver::Result run() {
    std::thread worker([this] { work(); });
    while (!wait()) listen();
    worker.join();
    listen();
    if (raised_) throw nb::python_error();
    if (error_) std::rethrow_exception(error_);
    return std::move(result_);
  }

 private:
  void work() {
    try {
      result_ = solver::solve(problem_, options_);
    } catch (...) {
      error_ = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    done_ = true;
    changed_.notify_one();
  }

  void note(const solver::Progress& progress) {
    const std::lock_guard lock(mutex_);
    latest_ = progress;
  }

  // Whether the work is done; returns now and then even if it is not.
  bool wait() {
    nb::gil_scoped_release unlocked;
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::milliseconds(10), [this] { return done_; });
  }

  // Ctrl-C ends the search and keeps the best; whatever else Python raises ends the call.
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
    if (raised_ || !latest) return;
    try {
      listener_(latest->height, latest->bound, latest->steps);
    } catch (nb::python_error& error) {
      error.restore();
      raised_ = true;
      cancel_ = true;
    }
  }

  const solver::Problem problem_;
  solver::Options options_;
  nb::object listener_;
  std::atomic<bool> cancel_{false};
  bool raised_ = false;
  solver::Result result_;
  std::exception_ptr error_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::optional<solver::Progress> latest_;
};

nb::tuple solve(const Column& size, const Column& start, const Column& end, const Column& alignment, const Column& pin,
                const Table& overlaps, std::int64_t capacity, bool minimize, std::int64_t steps, double seconds,
                std::uint64_t seed, int threads, const std::vector<std::string>& without, nb::object progress) {
  const std::vector<std::int64_t> below = column_of(overlaps, 0), above = column_of(overlaps, 1),
                                  bytes = column_of(overlaps, 2);
  const solver::Problem problem{span_of(size), span_of(start), span_of(end), span_of(alignment), span_of(pin), below,
                                above,         bytes,          capacity};
  solver::Options options;
  options.steps = steps;
  options.seconds = seconds;
  options.seed = seed;
  options.threads = threads;
  options.minimize = minimize;
  options.rules = rules_without(without);
  solver::Result result = WatchedSolve(problem, options, std::move(progress)).run();
  return nb::make_tuple(column_of(std::move(result.offsets)), result.bound, name_of(result.ended), result.steps,
                        result.nodes);
}

}  // namespace

void bind_solver(nb::module_& module) {
  module.def("solve", &solve, "size"_a, "start"_a, "end"_a, "alignment"_a, "pin"_a, "overlaps"_a, "capacity"_a = -1,
             "minimize"_a = true, "steps"_a = 0, "seconds"_a = 0.0, "seed"_a = 0, "threads"_a = 1,
             "without"_a = std::vector<std::string>{}, "progress"_a = nb::none(),
             "(offsets, bound, ended, steps, nodes); the offsets are empty when the pins exclude every placement.");
  nb::list rules;
  for (const Switch& rule : kSwitches) rules.append(rule.name);
  module.attr("SOLVER_RULES") = nb::tuple(rules);
}

}  // namespace modelplan
