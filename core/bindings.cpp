// The module modelplan._core: the only files that know nanobind are core/bindings*.cpp. Columns of int64 in, columns
// out.
#include "bindings.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>

#include "bounds.hpp"
#include "place.hpp"
#include "referee.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace modelplan {
namespace {

Column place_columns(const Column& size, const Column& start, const Column& end, const Column& alignment,
                     const Column& pin, const Table& overlaps, const Table& conflicts, const Column& order, int fit) {
  if (fit < 0 || fit > static_cast<int>(Fit::kMixed)) throw std::invalid_argument("there is no such fit");
  const ProblemColumns problem(size, start, end, alignment, pin, overlaps, conflicts);
  std::vector<std::int64_t> offsets;
  {
    nb::gil_scoped_release unlocked;
    offsets = modelplan::place_in_order(problem.columns(), problem.facts(), span_of(order), static_cast<Fit>(fit));
  }
  return column_of(std::move(offsets));
}

std::pair<std::int64_t, std::int64_t> load_bound_of(const Column& size, const Column& start, const Column& end,
                                                    const Column& alignment, const Column& pin, const Table& overlaps,
                                                    const Table& conflicts) {
  const ProblemColumns problem(size, start, end, alignment, pin, overlaps, conflicts);
  nb::gil_scoped_release unlocked;
  const LoadBound bound = modelplan::load_bound(problem.columns(), problem.facts());
  return {bound.bytes, bound.step};
}

std::pair<std::int64_t, std::int64_t> find_clash_in(const Column& size, const Column& start, const Column& end,
                                                    const Column& offset, const Table& overlaps) {
  require_same_length({size.size(), start.size(), end.size(), offset.size()});
  const std::vector<std::int64_t> below = column_of(overlaps, 0), above = column_of(overlaps, 1),
                                  bytes = column_of(overlaps, 2);
  nb::gil_scoped_release unlocked;
  return referee::find_clash(span_of(size), span_of(start), span_of(end), span_of(offset), {below, above, bytes});
}

}  // namespace

}  // namespace modelplan

NB_MODULE(_core, module) {
  using namespace modelplan;
  bind_schedule(module);
  bind_solver(module);
  module.doc() = "The compiled core of modelplan: columns of int64 in, offsets and bounds out.";
  module.def("place_in_order", &place_columns, "size"_a, "start"_a, "end"_a, "alignment"_a, "pin"_a, "overlaps"_a,
             "conflicts"_a, "order"_a, "fit"_a,
             "Offsets after placing pinned buffers, then the others in `order`, each by `fit` (see Fit).");
  module.def("load_bound", &load_bound_of, "size"_a, "start"_a, "end"_a, "alignment"_a, "pin"_a, "overlaps"_a,
             "conflicts"_a, "(bytes, step) of the alignment-aware load bound.");
  module.def("find_clash", &find_clash_in, "size"_a, "start"_a, "end"_a, "offset"_a, "overlaps"_a,
             "The first pair of buffers alive together that share a byte, or (-1, -1).");
  bind_search(module);
  bind_planners(module);
}
