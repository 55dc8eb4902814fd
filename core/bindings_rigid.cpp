// Packing of rigid groups, as a function of the module.
#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>

#include <tuple>

#include "bindings.hpp"
#include "rigid/pack.hpp"

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

}  // namespace

void bind_rigid(nb::module_& module) {
  module.def(
      "pack_groups", &pack_groups, "problem"_a, "tries"_a, "seconds"_a, "enough"_a, "seed"_a,
      "(offsets, bound, ended, tries) of the lowest packing of rigid groups that was found; the offsets are empty"
      " when pins, alignments or the groups themselves exclude every placement.");
}

}  // namespace modelplan
