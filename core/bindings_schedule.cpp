// The scheduling functions of modelplan._core.
#include <nanobind/stl/optional.h>

#include "bindings.hpp"
#include "schedule/driver.hpp"
#include "schedule/flow_bound.hpp"
#include "schedule/live.hpp"
#include "schedule/order_search.hpp"
#include "schedule/parts.hpp"
#include "schedule/schedule_instance.hpp"

namespace modelplan {
namespace {

using namespace nb::literals;
using schedule::Outcome;
using schedule::Rules;
using schedule::ScheduleInstance;

Column column_of_ops(const Array<int>& ops) { return column_of(Array<std::int64_t>(ops.begin(), ops.end())); }

ScheduleInstance instance_of(std::int64_t ops, const Column& sizes, const Column& writer_ptr, const Column& writer_ops,
                             const Column& reader_ptr, const Column& reader_ops, const Column& from_start,
                             const Column& to_end, const Column& scratch, const Table& edges, const Table& overwrites) {
  const Columns edge(edges, 2), overwrite(overwrites, 4);
  const schedule::ScheduleColumns in{.ops = ops,
                                     .sizes = view_of(sizes),
                                     .writer_ptr = view_of(writer_ptr),
                                     .writer_ops = view_of(writer_ops),
                                     .reader_ptr = view_of(reader_ptr),
                                     .reader_ops = view_of(reader_ops),
                                     .from_start = view_of(from_start),
                                     .to_end = view_of(to_end),
                                     .scratch = view_of(scratch),
                                     .edge_from = edge[0],
                                     .edge_to = edge[1],
                                     .overwrite_op = overwrite[0],
                                     .overwrite_from = overwrite[1],
                                     .overwrite_to = overwrite[2],
                                     .overwrite_bytes = overwrite[3]};
  return unlocked([&] { return schedule::make_instance(in); });
}

constexpr NamedRule<Rules> kRules[] = {{"free_move", &Rules::free_move},
                                       {"macro_move", &Rules::macro_move},
                                       {"commit", &Rules::commit},
                                       {"segment", &Rules::segment},
                                       {"look_ahead", &Rules::look_ahead}};
static_assert(std::size(kRules) * sizeof(bool) == sizeof(Rules), "a rule has no name");

// Calls a callback with the steps so far, now and then; a signal such as Ctrl-C and what the callback raises stop the
// work and are raised in Python afterwards.
class ProgressListener {
 public:
  explicit ProgressListener(nb::object callback) : callback_(std::move(callback)) {}

  Cancelled cancelled() {
    return [this](std::int64_t steps) { return failed_ || fails(steps); };
  }
  // Raises what a signal or the callback raised during the call.
  void finish() const {
    if (failed_) throw nb::python_error();
  }

 private:
  bool fails(std::int64_t steps) {
    const nb::gil_scoped_acquire locked;
    failed_ = PyErr_CheckSignals() != 0;
    if (failed_ || callback_.is_none()) return failed_;
    try {
      callback_(steps);
    } catch (nb::python_error& error) {
      error.restore();
      failed_ = true;
    }
    return failed_;
  }

  nb::object callback_;
  bool failed_ = false;
};

Outcome solve_in(const ScheduleInstance& instance, const std::string& method, const Array<std::string>& without,
                 bool bound, bool search, int width, std::optional<std::int64_t> steps, std::optional<double> seconds,
                 std::size_t states, std::size_t memory, const nb::object& progress) {
  schedule::Request request;
  request.method = method;
  request.rules = rules_without(kRules, without);
  request.bound = bound;
  request.search = search;
  request.width = width;
  request.states = states;
  request.memory = memory;
  ProgressListener listener(progress);
  const StopSignal signal(seconds.value_or(std::numeric_limits<double>::infinity()), listener.cancelled());
  Meter meter(signal, steps.value_or(kUnlimited));
  Outcome outcome = unlocked([&] { return schedule::solve(instance, request, meter); });
  listener.finish();
  return outcome;
}

nb::tuple search_in(const ScheduleInstance& instance, std::int64_t floor, std::int64_t ceiling,
                    const Array<std::string>& without, std::optional<std::int64_t> steps, std::size_t states,
                    std::int64_t look_ahead_after) {
  schedule::SearchLimits limits;
  limits.floor = floor;
  limits.ceiling = ceiling;
  limits.states = states;
  limits.look_ahead_after = look_ahead_after;
  const Rules rules = rules_without(kRules, without);
  ProgressListener listener{nb::none()};
  const StopSignal signal(std::numeric_limits<double>::infinity(), listener.cancelled());
  Meter meter(signal, steps.value_or(kUnlimited));
  const auto found = unlocked([&] { return schedule::search(instance, rules, limits, meter); });
  listener.finish();
  return nb::make_tuple(name_of(found.verdict), column_of_ops(found.order), found.peak, found.proven, found.states);
}

std::optional<ScheduleInstance> reversed_of(const ScheduleInstance& instance) {
  if (!schedule::can_reverse(instance)) return std::nullopt;
  return schedule::reversed(instance);
}

std::int64_t bound_at(const ScheduleInstance& instance, int op) {
  if (op < 0 || op >= instance.ops) throw std::invalid_argument("no such op");
  const StopSignal never;
  Meter meter(never, kUnlimited);
  return schedule::FlowBound(instance, meter).at(op);
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
  module.attr("SCHEDULE_RULES") = names_of(kRules);
  nb::class_<ScheduleInstance>(module, "ScheduleInstance", "A checked scheduling instance.");
  module.def("schedule_instance", &instance_of, "ops"_a, "sizes"_a, "writer_ptr"_a, "writer_ops"_a, "reader_ptr"_a,
             "reader_ops"_a, "from_start"_a, "to_end"_a, "scratch"_a, "edges"_a, "overwrites"_a,
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
      .def_prop_ro("ended", [](const Outcome& o) { return name_of(o.ended); });
  module.def("schedule_solve", &solve_in, "instance"_a, "method"_a = "best", "without"_a = Array<std::string>{},
             "bound"_a = true, "search"_a = true, "width"_a = 16, "steps"_a = nb::none(), "seconds"_a = nb::none(),
             "states"_a = 5'000'000, "memory"_a = std::size_t{1} << 30, "progress"_a = nb::none(),
             "An order by one method, or the best of all, with the bound that holds for every order.");
  module.def("schedule_search", &search_in, "instance"_a, "floor"_a, "ceiling"_a, "without"_a = Array<std::string>{},
             "steps"_a = nb::none(), "states"_a = 5'000'000, "look_ahead_after"_a = 2'000,
             "(verdict, order, peak, proven, states) of one exact search.");
  module.def("schedule_reversed", &reversed_of, "instance"_a,
             "The instance with time reversed, or None where it has none.");
  module.def("schedule_bound_at", &bound_at, "instance"_a, "op"_a,
             "The least bytes that any order has in use while `op` runs, by maximum flow.");
}

}  // namespace modelplan
