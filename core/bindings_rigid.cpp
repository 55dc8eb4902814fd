// Packing of rigid groups: as a function of the module, and as the problem of groups whose bytes live and die.
#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>

#include <memory>
#include <tuple>

#include "bindings.hpp"
#include "load_bound.hpp"
#include "rigid/pack.hpp"
#include "rows/byte_lives.hpp"

namespace modelplan {
namespace {

using namespace nb::literals;

std::tuple<Column, std::int64_t, const char*, std::int64_t> pack_groups(const BoundProblem& problem, std::int64_t tries,
                                                                        double seconds, std::int64_t enough,
                                                                        std::uint64_t seed) {
  rigid::Packed found =
      unlocked([&] { return rigid::pack(problem.problem(), {tries, enough, seed, seconds, &interrupted}); });
  return {column_of(std::move(found.offsets)), found.bound, finish(found.ended), found.tries};
}

// Rows of several parts of a program, one behind the other: the first columns are groups, which each part numbers
// anew, others count ticks from the part's first.
using PartRows = std::tuple<Table, Column, std::int64_t>;
Column joined_rows(const Array<PartRows>& parts, std::size_t groups, std::size_t ticks_from, std::size_t ticks_until) {
  Array<std::int64_t> out;
  for (const auto& [rows, names, tick] : parts)
    for (std::size_t i = 0; i < rows.shape(0); ++i) {
      Row row(rows, i, rows.shape(1));
      for (std::size_t k = 0; k < rows.shape(1); ++k) {
        const bool moves = ticks_from <= k && k < ticks_until;
        out.push_back(k < groups ? names.data()[row.index(names.size())] : row.number() + (moves ? tick : 0));
      }
    }
  return column_of(std::move(out));
}

Array<rows::LiveBytes> lives_of(const Table& lives, std::size_t groups) {
  Array<rows::LiveBytes> runs;
  for (std::size_t i = 0; i < lives.shape(0); ++i) {
    Row row(lives, i, 5);
    runs.push_back({row.index(groups), row.number(), row.number(), row.number(), row.number()});
  }
  return runs;
}

// Groups of bytes that live and die, and working buffers, each a group behind the others. How they may lie to each
// other is told by `relate`, which takes long.
class GroupProblem {
 public:
  GroupProblem(const Table& lives, std::size_t groups, std::int64_t alignment, const Table& scratch)
      : lives_(lives_of(lives, groups)), others_(lives_.size()), alignment_(groups + scratch.shape(0), alignment) {
    for (std::size_t i = 0; i < scratch.shape(0); ++i) {
      Row row(scratch, i, 2);
      const std::int64_t step = row.number();
      lives_.push_back({groups + i, 0, row.number(), step, step + 1});
      steps_.push_back(step);
    }
  }

  std::size_t groups() const { return alignment_.size(); }
  std::size_t count() const { return groups() + lives_.size(); }
  std::int64_t lasting() const { return rows::lasting_bytes(lives_); }

  void relate(const Table& overlaps, const Table& values) {
    Array<rows::AllowedOverlap> allowed;
    for (std::size_t i = 0; i < overlaps.shape(0); ++i) {
      Row row(overlaps, i, 5);
      allowed.push_back({row.index(groups()), row.index(groups()), row.number(), row.number(), row.flag()});
    }
    const Array<rows::LiveBytes> whole = lives_of(values, groups());
    unlocked([&] {
      rows::GroupProblem problem(lives_, alignment_, allowed);
      const auto first = static_cast<std::int64_t>(groups()), behind = first + static_cast<std::int64_t>(others_);
      const Array<rows::LiveBytes> others(lives_.begin(), lives_.begin() + static_cast<std::ptrdiff_t>(others_));
      for (const auto& [own, run] : rows::dead_runs_apart(others, steps_, whole)) {
        problem.left.push_back(behind + static_cast<std::int64_t>(own));
        problem.right.push_back(first + static_cast<std::int64_t>(run));
      }
      problem_ = std::move(problem);
      search_.reset();
      return 0;
    });
  }

  std::int64_t load() const { return problem_ ? load_bound(problem_->problem()).bytes : lasting(); }

  // The bases of the groups, the height, the bound, and how the search ended.
  std::tuple<Array<std::int64_t>, std::int64_t, std::int64_t, const char*> pack(std::int64_t tries, std::uint64_t seed,
                                                                                const Array<std::int64_t>& known,
                                                                                std::int64_t bound) {
    const Problem problem = related().problem();
    if (!known.empty() && known.size() != groups())
      throw std::invalid_argument("known bases are not those of all groups");
    const rigid::Packed found = unlocked([&] {
      if (!search_ || search_->seed() != seed) search_ = std::make_unique<rigid::PackingSearch>(problem, seed);
      return search_->pack({tries, 0, seed, 0, &interrupted}, {known, bound});
    });
    if (found.offsets.size() < problem.count()) throw std::invalid_argument("no packing of these groups is possible");
    std::int64_t height = 0;
    for (std::size_t b = groups(); b < problem.count(); ++b)
      height = std::max(height, found.offsets[b] + problem.size[b]);
    Array<std::int64_t> bases(found.offsets.begin(), found.offsets.begin() + static_cast<std::ptrdiff_t>(groups()));
    return {std::move(bases), height, found.bound, finish(found.ended)};
  }

  // Size, start, end, alignment, groups and distances; then the flat rows of meetings and of conflicts.
  nb::tuple columns() const {
    const rows::GroupProblem& problem = related();
    Array<std::int64_t> meetings, apart;
    for (std::size_t k = 0; k < problem.first.size(); ++k)
      meetings.insert(meetings.end(), {problem.first[k], problem.second[k], problem.least[k], problem.most[k]});
    for (std::size_t k = 0; k < problem.left.size(); ++k)
      apart.insert(apart.end(), {problem.left[k], problem.right[k]});
    const auto copied = [](const Array<std::int64_t>& column) { return column_of(Array<std::int64_t>(column)); };
    return nb::make_tuple(copied(problem.size), copied(problem.start), copied(problem.end), copied(problem.alignment),
                          copied(problem.group), copied(problem.delta), column_of(std::move(meetings)),
                          column_of(std::move(apart)));
  }

 private:
  const rows::GroupProblem& related() const {
    if (!problem_) throw std::invalid_argument("how the groups may lie to each other is not told");
    return *problem_;
  }

  Array<rows::LiveBytes> lives_;
  std::size_t others_;
  Array<std::int64_t> alignment_, steps_ = {};
  std::optional<rows::GroupProblem> problem_ = {};
  std::unique_ptr<rigid::PackingSearch> search_ = {};  // by the last seed
};

}  // namespace

void bind_rigid(nb::module_& module) {
  module.def(
      "pack_groups", &pack_groups, "problem"_a, "tries"_a, "seconds"_a, "enough"_a, "seed"_a,
      "(offsets, bound, ended, tries) of the lowest packing of rigid groups that was found; the offsets are empty"
      " when pins, alignments or the groups themselves exclude every placement.");
  module.def("joined_rows", &joined_rows, "parts"_a, "groups"_a, "ticks_from"_a, "ticks_until"_a,
             "Rows of parts (rows, groups, tick), flat: so many first columns are groups, by which those of the program"
             " stand; the tick is added to other columns.");
  nb::class_<GroupProblem>(module, "GroupProblem", "Groups of bytes that live and die, with working buffers.")
      .def(nb::init<const Table&, std::size_t, std::int64_t, const Table&>(), "lives"_a, "groups"_a, "alignment"_a,
           "scratch"_a)
      .def("__len__", &GroupProblem::count)
      .def_prop_ro("groups", &GroupProblem::groups, "How many, working buffers with them.")
      .def("relate", &GroupProblem::relate, "overlaps"_a, "values"_a,
           "Finds which runs may share bytes, and which dead ones of `values` lie apart from working buffers.")
      .def_prop_ro("load", &GroupProblem::load,
                   "A bound of bytes; without relations those that last from a step to the next.")
      .def(
          "pack", &GroupProblem::pack, "tries"_a, "seed"_a, "known"_a, "bound"_a,
          "(bases of the groups, height, bound, ended) of the lowest packing that was found, from the known bases of an"
          " earlier one where there are any.")
      .def("columns", &GroupProblem::columns,
           "Size, start, end, alignment, group, delta; its meetings and its conflicts, flat.");
}

}  // namespace modelplan
