// What all binding files share: columns in and out, the bound problem, rules by name, Python's lock and signals.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "problem.hpp"
#include "stopping.hpp"

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

// The columns of a table, each in one piece; empty ones where there is no table.
class Columns {
 public:
  Columns(const std::optional<Table>& table, std::size_t count) : columns_(count) {
    if (!table || table->shape(0) == 0) return;
    const std::size_t width = table->shape(1), cells = table->shape(0) * width;
    if (width < count) throw std::invalid_argument("a table has too few columns");
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t cell = i; cell < cells; cell += width) columns_[i].push_back(table->data()[cell]);
  }
  Ints operator[](std::size_t i) const { return columns_[i]; }

 private:
  Array<Array<std::int64_t>> columns_;
};

// A row of a table, whose numbers are taken one after the other.
class Row {
 public:
  Row(const Table& table, std::size_t row, std::size_t columns) : at_(table.data() + row * columns) {
    if (table.shape(1) != columns) throw std::invalid_argument("a table has another number of columns");
  }
  std::int64_t number() { return *at_++; }
  std::size_t index(std::size_t count) {
    const std::int64_t value = number();
    if (value < 0 || as_size(value) >= count) throw std::invalid_argument("a table names what there is not");
    return as_size(value);
  }
  bool flag() { return number() != 0; }

 private:
  const std::int64_t* at_;
};

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
  Columns overlaps_, conflicts_, groups_, meetings_;
  Problem problem_;
};

// The row of a table that has this name; `what` it is goes into the message if there is none.
template <class Row, std::size_t kCount>
const Row& row_named(const Row (&table)[kCount], const std::string& name, const std::string& what) {
  const auto* found = std::ranges::find(table, name, &Row::name);
  if (found == std::end(table)) throw std::invalid_argument("no " + what + " " + name);
  return *found;
}

// An inference rule of a search, by the name under which Python switches it off.
template <class Rules>
struct NamedRule {
  const char* name;
  bool Rules::* is_on;
};

template <class Rules, std::size_t kCount>
Rules rules_without(const NamedRule<Rules> (&table)[kCount], const Array<std::string>& names) {
  Rules rules;
  for (const std::string& name : names) rules.*row_named(table, name, "rule").is_on = false;
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

}  // namespace modelplan
