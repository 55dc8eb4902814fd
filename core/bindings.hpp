// What all binding files share: columns in and out, the bound problem, rules by name, Python's lock and signals.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/detail/nb_list.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "problem.hpp"
#include "stopping.hpp"

namespace nanobind::detail {

template <class T>
struct type_caster<modelplan::Array<T>> : list_caster<modelplan::Array<T>, T> {};

}  // namespace nanobind::detail

namespace modelplan {

namespace nb = nanobind;

using Column = nb::ndarray<nb::numpy, const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<nb::numpy, const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

inline Ints view_of(const Column& column) { return {column.data(), column.size()}; }

// Hands an array over to numpy without a copy.
inline Column column_of(Array<std::int64_t>&& values) {
  auto* owned = new Array<std::int64_t>(std::move(values));
  const nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<Array<std::int64_t>*>(p); });
  return Column(owned->data(), {owned->size()}, owner);
}

// A copy of one column of a table.
inline Array<std::int64_t> column_of(const Table& table, std::size_t which) {
  Array<std::int64_t> column(table.shape(0));
  if (!column.empty() && which >= table.shape(1)) throw std::invalid_argument("a table has too few columns");
  for (std::size_t row = 0; row < column.size(); ++row) column[row] = table.data()[row * table.shape(1) + which];
  return column;
}

inline void require_same_length(std::initializer_list<std::size_t> lengths) {
  for (const std::size_t length : lengths)
    if (length != *lengths.begin()) throw std::invalid_argument("columns differ in length");
}

// A problem on columns that Python owns: read where they are and kept alive with this. The tables of pairs are copied.
class BoundProblem {
 public:
  BoundProblem(Column size, Column start, Column end, std::optional<Column> alignment, std::optional<Column> pin,
               const std::optional<Table>& overlaps, const std::optional<Table>& conflicts,
               const std::optional<Table>& groups, const std::optional<Table>& meetings);
  BoundProblem(const BoundProblem&) = delete;
  BoundProblem& operator=(const BoundProblem&) = delete;

  const Problem& problem() const { return problem_; }

 private:
  Column size_, start_, end_, alignment_, pin_;
  Array<std::int64_t> below_, above_, bytes_, left_, right_;
  Array<std::int64_t> member_, group_, delta_, first_, second_, least_, most_;
  Problem problem_;
};

// An inference rule of a search, by the name under which Python switches it off.
template <class Rules>
struct NamedRule {
  const char* name;
  bool Rules::* is_on;
};

template <class Rules, std::size_t kCount>
Rules rules_without(const NamedRule<Rules> (&table)[kCount], const Array<std::string>& names) {
  Rules rules;
  for (const std::string& name : names) {
    const auto* found = std::ranges::find(table, name, &NamedRule<Rules>::name);
    if (found == std::end(table)) throw std::invalid_argument("no rule " + name);
    rules.*found->is_on = false;
  }
  return rules;
}

template <class Row, std::size_t kCount>
nb::tuple names_of(const Row (&table)[kCount]) {
  nb::list names;
  for (const Row& row : table) names.append(row.name);
  return nb::tuple(names);
}

// Runs without Python's lock.
template <class Run>
auto unlocked(Run&& run) {
  const nb::gil_scoped_release released;
  return run();
}

// A search asks this now and then: a signal such as Ctrl-C stops it.
inline bool interrupted(std::int64_t) {
  const nb::gil_scoped_acquire locked;
  return PyErr_CheckSignals() != 0;
}

// How a search ended, in the words of Placement. Ctrl-C has done its work when the search comes back with its best;
// whatever else a signal raised goes on.
inline const char* finish(Ended ended) {
  if (ended == Ended::kCancelled && PyErr_Occurred() != nullptr) {
    if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) == 0) throw nb::python_error();
    PyErr_Clear();
  }
  return name_of(ended);
}

// Each binding file adds its part to the module.
void bind_schedule(nb::module_& module);
void bind_solver(nb::module_& module);
void bind_allocators(nb::module_& module);
void bind_planners(nb::module_& module);
void bind_rigid(nb::module_& module);
void bind_verifier(nb::module_& module);
void bind_build(nb::module_& module);

}  // namespace modelplan
