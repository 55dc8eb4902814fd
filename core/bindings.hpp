// What all binding files share: numpy columns in and out.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <initializer_list>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "place.hpp"
#include "stop.hpp"

namespace modelplan {

namespace nb = nanobind;

using Column = nb::ndarray<nb::numpy, const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<nb::numpy, const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

inline Ints span_of(const Column& column) { return {column.data(), column.size()}; }

inline std::vector<std::int64_t> column_of(const Table& table, std::size_t which) {
  std::vector<std::int64_t> column(table.shape(0));
  if (!column.empty() && which >= table.shape(1)) throw std::invalid_argument("a table has too few columns");
  for (std::size_t row = 0; row < column.size(); ++row) column[row] = table.data()[row * table.shape(1) + which];
  return column;
}

// Hands a vector over to numpy without a copy.
inline Column column_of(std::vector<std::int64_t>&& values) {
  auto* owned = new std::vector<std::int64_t>(std::move(values));
  const nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<std::int64_t>*>(p); });
  return Column(owned->data(), {owned->size()}, owner);
}

// A search asks this now and then: a signal such as Ctrl-C stops it.
inline bool interrupted() {
  const nb::gil_scoped_acquire locked;
  return PyErr_CheckSignals() != 0;
}

// Ctrl-C has done its work when a search comes back with its best; whatever else a signal raised goes on.
inline void settle(Ended ended) {
  if (ended != Ended::kCancelled || PyErr_Occurred() == nullptr) return;
  if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) == 0) throw nb::python_error();
  PyErr_Clear();
}

inline void require_same_length(std::initializer_list<std::size_t> lengths) {
  for (const std::size_t length : lengths)
    if (length != *lengths.begin()) throw std::invalid_argument("columns differ in length");
}

// Adds the functions of bindings_schedule.cpp.
void bind_schedule(nb::module_& module);
// Adds the functions of bindings_solver.cpp.
void bind_solver(nb::module_& module);

// The columns of a problem as the core wants them, with the fact tables taken apart and checked.
class ProblemColumns {
 public:
  ProblemColumns(const Column& size, const Column& start, const Column& end, const Column& alignment, const Column& pin,
                 const Table& overlaps, const Table& conflicts)
      : columns_{span_of(size), span_of(start), span_of(end), span_of(alignment), span_of(pin)},
        below_(column_of(overlaps, 0)),
        above_(column_of(overlaps, 1)),
        bytes_(column_of(overlaps, 2)),
        left_(column_of(conflicts, 0)),
        right_(column_of(conflicts, 1)) {
    require_same_length({size.size(), start.size(), end.size(), alignment.size(), pin.size()});
    for (const auto* ids : {&below_, &above_, &left_, &right_})
      for (const std::int64_t id : *ids)
        if (id < 0 || static_cast<std::size_t>(id) >= size.size())
          throw std::invalid_argument("a fact names a buffer that does not exist");
    for (const std::int64_t a : columns_.alignment)
      if (a < 1) throw std::invalid_argument("an alignment is below 1");
  }

  const Columns& columns() const { return columns_; }
  Facts facts() const { return {below_, above_, bytes_, left_, right_}; }

 private:
  Columns columns_;
  std::vector<std::int64_t> below_, above_, bytes_, left_, right_;
};

// Each binding file adds its functions to the module.
void bind_search(nb::module_& module);
void bind_planners(nb::module_& module);

}  // namespace modelplan
