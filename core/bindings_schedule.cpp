// The scheduling functions of modelplan._core.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "bindings.hpp"
#include "schedule/bound.hpp"
#include "schedule/driver.hpp"
#include "schedule/instance.hpp"
#include "schedule/live.hpp"
#include "schedule/parts.hpp"
#include "schedule/search.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace modelplan {
namespace {

using schedule::Instance;
using schedule::Meter;
using schedule::Outcome;
using schedule::Stop;

std::vector<std::int64_t> list_of(const Column& column) { return {column.data(), column.data() + column.size()}; }

Column column_of_ops(const std::vector<int>& ops) {
  return column_of(std::vector<std::int64_t>(ops.begin(), ops.end()));
}

Instance instance_of(std::int64_t ops, const Column& sizes, const Column& writer_ptr, const Column& writer_ops,
                     const Column& reader_ptr, const Column& reader_ops, const Column& from_start, const Column& to_end,
                     const Column& scratch, const Table& edges, const Table& credits) {
  schedule::Columns in;
  in.ops = ops;
  in.sizes = list_of(sizes);
  in.writer_ptr = list_of(writer_ptr);
  in.writer_ops = list_of(writer_ops);
  in.reader_ptr = list_of(reader_ptr);
  in.reader_ops = list_of(reader_ops);
  in.from_start = list_of(from_start);
  in.to_end = list_of(to_end);
  in.scratch = list_of(scratch);
  in.edge_from = column_of(edges, 0);
  in.edge_to = column_of(edges, 1);
  in.credit_op = column_of(credits, 0);
  in.credit_from = column_of(credits, 1);
  in.credit_to = column_of(credits, 2);
  in.credit_bytes = column_of(credits, 3);
  nb::gil_scoped_release unlocked;
  return schedule::make_instance(in);
}

// Turns a budget into a meter that also listens to Ctrl-C and to a progress callback.
class PythonMeter {
 public:
  PythonMeter(std::optional<std::int64_t> steps, std::optional<double> seconds, nb::object progress)
      : progress_(std::move(progress)) {
    if (steps) meter.budget = *steps;
    if (seconds && std::isfinite(*seconds) && *seconds < 1e9)
      meter.deadline = Meter::Clock::now() + std::chrono::microseconds(static_cast<std::int64_t>(*seconds * 1e6));
    meter.progress = [this](std::int64_t so_far) { return listen(so_far); };
  }

  PythonMeter(const PythonMeter&) = delete;
  PythonMeter& operator=(const PythonMeter&) = delete;

  // Raises what came up in Python during the call.
  void finish() const {
    if (failed_) throw nb::python_error();
  }

  Meter meter;

 private:
  bool listen(std::int64_t so_far) {
    nb::gil_scoped_acquire locked;
    failed_ = failed_ || PyErr_CheckSignals() != 0;
    if (failed_ || progress_.is_none()) return !failed_;
    try {
      progress_(so_far);
    } catch (nb::python_error& error) {
      error.restore();
      failed_ = true;
    }
    return !failed_;
  }

  nb::object progress_;
  bool failed_ = false;
};

schedule::Rules rules_of(const std::string& letters) {
  const auto has = [&](char c) { return letters.find(c) != std::string::npos; };
  return {has('F'), has('M'), has('C'), has('S'), has('L')};
}

schedule::Method method_of(const std::string& name) {
  using schedule::Method;
  static const std::map<std::string, Method> table = {{"file", Method::file},       {"rpo", Method::reverse_post_order},
                                                      {"list", Method::list},       {"dfs", Method::depth_first},
                                                      {"post", Method::post_order}, {"merge", Method::merge},
                                                      {"beam", Method::beam},       {"best", Method::best}};
  const auto found = table.find(name);
  if (found == table.end()) throw std::invalid_argument("no method " + name);
  return found->second;
}

const char* name_of(Stop stop) {
  switch (stop) {
    case Stop::none:
      return "";
    case Stop::steps:
      return "steps";
    case Stop::seconds:
      return "seconds";
    case Stop::cancelled:
      return "cancelled";
    case Stop::memory:
      return "memory";
  }
  return "";
}

Outcome solve_in(const Instance& instance, const std::string& method, const std::string& rules, bool bound, bool search,
                 int width, std::optional<std::int64_t> steps, std::optional<double> seconds, std::size_t states,
                 std::size_t memory, const nb::object& progress) {
  schedule::Request request;
  request.method = method_of(method);
  request.rules = rules_of(rules);
  request.bound = bound;
  request.search = search;
  request.width = width;
  request.states = states;
  request.memory = memory;
  PythonMeter meter(steps, seconds, progress);
  Outcome outcome;
  {
    nb::gil_scoped_release unlocked;
    outcome = schedule::solve(instance, request, meter.meter);
  }
  meter.finish();
  return outcome;
}

nb::tuple search_in(const Instance& instance, const std::string& rules, std::int64_t floor, std::int64_t ceiling,
                    std::optional<std::int64_t> steps, std::size_t states, std::int64_t look_ahead_after) {
  PythonMeter meter(steps, std::nullopt, nb::none());
  schedule::SearchLimits limits;
  limits.floor = floor;
  limits.ceiling = ceiling;
  limits.states = states;
  limits.look_ahead_after = look_ahead_after;
  schedule::SearchResult found;
  {
    nb::gil_scoped_release unlocked;
    found = schedule::search(instance, rules_of(rules), limits, meter.meter);
  }
  meter.finish();
  const char* ends[] = {"solved", "exhausted", "stopped"};
  return nb::make_tuple(ends[static_cast<int>(found.end)], column_of_ops(found.order), found.peak, found.proven,
                        found.states);
}

std::optional<Instance> reversed_of(const Instance& instance) {
  if (!schedule::can_reverse(instance)) return std::nullopt;
  return schedule::reversed(instance);
}

std::int64_t bound_at(const Instance& instance, int op) {
  if (op < 0 || op >= instance.ops) throw std::invalid_argument("no such op");
  Meter meter;
  return schedule::Bounder(instance, meter).at(op);
}

Column profile_in(const Instance& instance, const Column& order) {
  std::vector<int> ops;
  for (const std::int64_t v : span_of(order)) {
    if (v < 0 || v >= instance.ops) throw std::invalid_argument("no such op");
    ops.push_back(static_cast<int>(v));
  }
  const auto profile = schedule::profile_of(instance, ops);
  return column_of(std::vector<std::int64_t>(profile.begin(), profile.end()));
}

// The flow of one case, a row (from, to, class, amount) for each transfer.
nb::list cases_of(const Outcome& outcome) {
  nb::list out;
  for (const auto& flow : outcome.witness.cases) {
    nb::list arcs;
    for (const auto& arc : flow.arcs) arcs.append(nb::make_tuple(arc.from, arc.to, arc.by, arc.amount));
    nb::list dying;
    for (const int c : flow.dying) dying.append(c);
    out.append(nb::make_tuple(nb::tuple(dying), flow.saved, nb::tuple(arcs)));
  }
  return out;
}

}  // namespace

void bind_schedule(nb::module_& module) {
  nb::class_<Instance>(module, "ScheduleInstance", "A checked scheduling instance.");
  module.def("schedule_instance", &instance_of, "ops"_a, "sizes"_a, "writer_ptr"_a, "writer_ops"_a, "reader_ptr"_a,
             "reader_ops"_a, "from_start"_a, "to_end"_a, "scratch"_a, "edges"_a, "credits"_a,
             "Checks the columns of a scheduling instance.");
  nb::class_<Outcome>(module, "ScheduleOutcome", "An order, its peak, and what is proved about every order.")
      .def_prop_ro(
          "order", [](const Outcome& o) { return column_of_ops(o.order); }, nb::rv_policy::automatic)
      .def_prop_ro("alternatives",
                   [](const Outcome& o) {
                     nb::list out;
                     for (const auto& order : o.alternatives) out.append(column_of_ops(order));
                     return out;
                   })
      .def_ro("peak", &Outcome::peak)
      .def_ro("flow_bound", &Outcome::flow_bound)
      .def_ro("lower_bound", &Outcome::lower_bound)
      .def_ro("found_by", &Outcome::found_by)
      .def_ro("states", &Outcome::states)
      .def_ro("steps", &Outcome::steps)
      .def_ro("segments", &Outcome::segments)
      .def_prop_ro("critical_op", [](const Outcome& o) { return o.witness.op; })
      .def_prop_ro("cases", &cases_of)
      .def_prop_ro("stopped_by", [](const Outcome& o) { return name_of(o.why); });
  module.def("schedule_solve", &solve_in, "instance"_a, "method"_a = "best", "rules"_a = "FMCSL", "bound"_a = true,
             "search"_a = true, "width"_a = 16, "steps"_a = nb::none(), "seconds"_a = nb::none(),
             "states"_a = 5'000'000, "memory"_a = std::size_t{1} << 30, "progress"_a = nb::none(),
             "An order by one method, or the best of all, with the bound that holds for every order.");
  module.def("schedule_search", &search_in, "instance"_a, "rules"_a, "floor"_a, "ceiling"_a, "steps"_a = nb::none(),
             "states"_a = 5'000'000, "look_ahead_after"_a = 2'000,
             "(end, order, peak, proven, states) of one exact search.");
  module.def("schedule_reversed", &reversed_of, "instance"_a,
             "The instance with time reversed, or None where it has none.");
  module.def("schedule_bound_at", &bound_at, "instance"_a, "op"_a,
             "The least bytes that any order has in use while `op` runs, by maximum flow.");
  module.def("schedule_profile", &profile_in, "instance"_a, "order"_a,
             "Bytes in use while each op of a valid order runs.");
}

}  // namespace modelplan
