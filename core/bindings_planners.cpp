// The planners of shared objects and the pieces of single systems, as functions of the module.
#include <nanobind/stl/tuple.h>

#include <tuple>

#include "allocators/glow.hpp"
#include "allocators/hill_climb.hpp"
#include "allocators/objects.hpp"
#include "bindings.hpp"
#include "load_tree.hpp"

namespace modelplan {
namespace {

using namespace nb::literals;

Records records_of(const Column& size, const Column& start, const Column& end) {
  require_same_length({size.size(), start.size(), end.size()});
  return {view_of(size), view_of(start), view_of(end)};
}

template <Array<std::int64_t> (*kPlan)(const Records&)>
Column columns_from(const Column& size, const Column& start, const Column& end) {
  const Records records = records_of(size, start, end);
  return column_of(unlocked([&] { return kPlan(records); }));
}

Column peak_loads_of(const Column& size, const Column& start, const Column& end) {
  const Records records = records_of(size, start, end);
  return column_of(unlocked([&] { return peak_loads(records.size, records.start, records.end); }));
}

std::tuple<Column, std::int64_t, const char*> share_min_cost_of(const Column& size, const Column& start,
                                                                const Column& end, std::int64_t most_steps,
                                                                double seconds) {
  const Records records = records_of(size, start, end);
  FlowShare found = unlocked([&] { return share_min_cost(records, {most_steps, seconds, &interrupted}); });
  return {column_of(std::move(found.holder)), found.steps, finish(found.ended)};
}

std::tuple<Column, Column, Column> stack_of(const Column& size, const Column& start, const Column& end,
                                            const Column& order, bool overlapping) {
  const Records records = records_of(size, start, end);
  Stacked found = unlocked([&] { return stack_in_objects(records, view_of(order), overlapping); });
  return {column_of(std::move(found.holder)), column_of(std::move(found.offset)), column_of(std::move(found.sizes))};
}

Column most_live_first_of(const Column& size, const Column& start, const Column& end, bool by_duration) {
  const Records records = records_of(size, start, end);
  const Preference preference = by_duration ? Preference::kDuration : Preference::kSize;
  return column_of(unlocked([&] { return most_live_first(records, preference); }));
}

std::tuple<Column, std::int64_t, const char*> climb_of(const Column& size, const Column& start, const Column& end,
                                                       const Column& alignment, const Column& order, std::int64_t load,
                                                       std::int64_t limit, std::int64_t most_steps,
                                                       std::int64_t most_work, double seconds, bool restore,
                                                       const Column& randomness) {
  const Records records = records_of(size, start, end);
  const ClimbOptions options{.load = load,
                             .limit = limit,
                             .most_steps = most_steps,
                             .most_work = most_work,
                             .seconds = seconds,
                             .cancelled = &interrupted,
                             .restore = restore,
                             .randomness = view_of(randomness)};
  ClimbResult found = unlocked([&] { return climb(records, view_of(alignment), view_of(order), options); });
  return {column_of(std::move(found.offsets)), found.steps, finish(found.ended)};
}

}  // namespace

void bind_planners(nb::module_& module) {
  module.def("positional_maxima", &columns_from<&positional_maxima>, "size"_a, "start"_a, "end"_a,
             "The largest r-th size among the buffers alive at one step, for every r.");
  module.def("breadth_ranks", &columns_from<&breadth_ranks>, "size"_a, "start"_a, "end"_a,
             "For each buffer the rank of the broadest step that holds it.");
  module.def("peak_loads", &peak_loads_of, "size"_a, "start"_a, "end"_a,
             "The most bytes alive at once in the lifetime of each buffer.");
  module.def("share_by_breadth", &columns_from<&share_by_breadth>, "size"_a, "start"_a, "end"_a,
             "The object of each buffer, steps with the most live bytes first.");
  module.def("share_by_distance", &columns_from<&share_by_distance>, "size"_a, "start"_a, "end"_a,
             "The object of each buffer, by positional maximum and nearness in time.");
  module.def("share_min_cost", &share_min_cost_of, "size"_a, "start"_a, "end"_a, "most_steps"_a, "seconds"_a,
             "(object of each buffer, steps, how it ended) of the minimum-cost flow.");
  module.def("stack_in_objects", &stack_of, "size"_a, "start"_a, "end"_a, "order"_a, "overlapping"_a,
             "(object of each buffer, offset in it, bytes of each object).");
  module.def("most_live_first", &most_live_first_of, "size"_a, "start"_a, "end"_a, "by_duration"_a,
             "The buffers in the order in which Glow takes them.");
  module.def("climb", &climb_of, "size"_a, "start"_a, "end"_a, "alignment"_a, "order"_a, "load"_a, "limit"_a,
             "most_steps"_a, "most_work"_a, "seconds"_a, "restore"_a, "randomness"_a,
             "(offsets, steps, how it ended) of Vela's hill climb.");
}

}  // namespace modelplan
