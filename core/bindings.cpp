// The placement problem on columns of Python, and what is asked of it without a search.
#include "bindings.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include "load_bound.hpp"
#include "place_in_order.hpp"
#include "referee.hpp"

namespace modelplan {
namespace {

using namespace nb::literals;

Column filled(std::size_t count, std::int64_t value) { return column_of(Array<std::int64_t>(count, value)); }

struct NamedFit {
  const char* name;
  Fit fit;
};
constexpr NamedFit kFits[] = {{"lowest", Fit::kLowest},
                              {"tightest", Fit::kTightest},
                              {"widest", Fit::kWidest},
                              {"raw", Fit::kRaw},
                              {"mixed", Fit::kMixed}};

Column place_columns(const BoundProblem& problem, const Column& order, const std::string& fit) {
  const Fit rule = row_named(kFits, fit, "fit").fit;
  return column_of(unlocked([&] { return place_in_order(problem.problem(), view_of(order), rule); }));
}

std::pair<std::int64_t, std::int64_t> load_bound_of(const BoundProblem& problem) {
  const LoadBound bound = unlocked([&] { return load_bound(problem.problem()); });
  return {bound.bytes, bound.step};
}

std::pair<std::int64_t, std::int64_t> find_clash_in(const Column& size, const Column& start, const Column& end,
                                                    const Column& offset, const Table& overlaps,
                                                    const Table& meetings) {
  require_same_length({size.size(), start.size(), end.size(), offset.size()});
  const Columns overlap(overlaps, 3), meeting(meetings, 4);
  const referee::Allowed allowed{.below = overlap[0],
                                 .above = overlap[1],
                                 .bytes = overlap[2],
                                 .first = meeting[0],
                                 .second = meeting[1],
                                 .least = meeting[2],
                                 .most = meeting[3]};
  return unlocked(
      [&] { return referee::find_clash(view_of(size), view_of(start), view_of(end), view_of(offset), allowed); });
}

void require_buffers(Ints ids, std::size_t count, const std::string& what) {
  for (std::size_t k = 0; k < ids.size(); ++k)
    if (ids[k] < 0 || as_size(ids[k]) >= count)
      throw std::invalid_argument(what + " " + std::to_string(k) + ": it names a buffer that does not exist");
}

}  // namespace

BoundProblem::BoundProblem(Column size, Column start, Column end, std::optional<Column> alignment,
                           std::optional<Column> pin, const std::optional<Table>& overlaps,
                           const std::optional<Table>& conflicts, const std::optional<Table>& groups,
                           const std::optional<Table>& meetings)
    : size_(std::move(size)),
      start_(std::move(start)),
      end_(std::move(end)),
      alignment_(alignment ? std::move(*alignment) : filled(size_.size(), 1)),
      pin_(pin ? std::move(*pin) : filled(size_.size(), -1)),
      overlaps_(overlaps, 3),
      conflicts_(conflicts, 2),
      groups_(groups, 3),
      meetings_(meetings, 4),
      problem_{.size = view_of(size_),
               .start = view_of(start_),
               .end = view_of(end_),
               .alignment = view_of(alignment_),
               .pin = view_of(pin_),
               .below = overlaps_[0],
               .above = overlaps_[1],
               .bytes = overlaps_[2],
               .left = conflicts_[0],
               .right = conflicts_[1],
               .member = groups_[0],
               .group = groups_[1],
               .delta = groups_[2],
               .first = meetings_[0],
               .second = meetings_[1],
               .least = meetings_[2],
               .most = meetings_[3]} {
  require_same_length({size_.size(), start_.size(), end_.size(), alignment_.size(), pin_.size()});
  for (const Ints ids : {problem_.below, problem_.above}) require_buffers(ids, problem_.count(), "overlap");
  for (const Ints ids : {problem_.left, problem_.right}) require_buffers(ids, problem_.count(), "conflict");
  require_buffers(problem_.member, problem_.count(), "group row");
  for (const Ints ids : {problem_.first, problem_.second}) require_buffers(ids, problem_.count(), "meeting");
  for (std::size_t b = 0; b < problem_.count(); ++b)
    if (problem_.alignment[b] < 1) throw std::invalid_argument("buffer " + std::to_string(b) + ": alignment below 1");
}

void bind_problem(nb::module_& module) {
  nb::class_<BoundProblem>(module, "Problem", "A placement problem on columns of int64, which are not copied.")
      .def(nb::init<Column, Column, Column, std::optional<Column>, std::optional<Column>, const std::optional<Table>&,
                    const std::optional<Table>&, const std::optional<Table>&, const std::optional<Table>&>(),
           "size"_a, "start"_a, "end"_a, "alignment"_a = nb::none(), "pin"_a = nb::none(), "overlaps"_a = nb::none(),
           "conflicts"_a = nb::none(), "groups"_a = nb::none(), "meetings"_a = nb::none());
  module.def("place_in_order", &place_columns, "problem"_a, "order"_a, "fit"_a,
             "Offsets after placing pinned buffers, then the others in `order`, each by `fit`.");
  module.def("load_bound", &load_bound_of, "problem"_a, "(bytes, step) of the alignment-aware load bound.");
  module.def("find_clash", &find_clash_in, "size"_a, "start"_a, "end"_a, "offset"_a, "overlaps"_a, "meetings"_a,
             "The first pair of buffers alive together that share a byte, or (-1, -1).");
  module.attr("ENDED") = nb::tuple(nb::cast(Array<std::string>(std::begin(kEndedNames), std::end(kEndedNames))));
  module.attr("FITS") = names_of(kFits);
}

}  // namespace modelplan
