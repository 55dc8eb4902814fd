// Packing of rigid groups, as functions of the module.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>

#include <tuple>

#include "bindings.hpp"
#include "rigid.hpp"

namespace modelplan {
namespace {

using namespace nb::literals;

// Segments and stands as tables of five columns each.
struct GroupTables {
  GroupTables(const Table& segments, const Table& stands) {
    for (std::size_t i = 0; i < 5; ++i) {
      segment_[i] = column_of(segments, i);
      stand_[i] = column_of(stands, i);
    }
  }
  Segments segments() const { return {segment_[0], segment_[1], segment_[2], segment_[3], segment_[4]}; }
  Stands stands() const { return {stand_[0], stand_[1], stand_[2], stand_[3], stand_[4]}; }

  Array<std::int64_t> segment_[5], stand_[5];
};

std::tuple<Column, std::int64_t, std::int64_t, std::int64_t> pack_groups_of(const Table& segments, const Table& stands,
                                                                            const Column& alignment,
                                                                            const Column& fixed, std::int64_t tries,
                                                                            double seconds, std::int64_t enough,
                                                                            std::int64_t seed) {
  const GroupTables tables(segments, stands);
  Packed found = unlocked([&] {
    return pack_groups(static_cast<std::int64_t>(alignment.size()), tables.segments(), tables.stands(),
                       view_of(alignment), view_of(fixed), {tries, seed, enough, seconds, &interrupted});
  });
  if (found.cancelled) finish(Ended::kCancelled);
  return {column_of(std::move(found.bases)), found.height, found.bound, found.tries};
}

std::int64_t group_load_of(const Table& segments, const Table& stands) {
  const GroupTables tables(segments, stands);
  return unlocked([&] { return group_load(tables.segments(), tables.stands()); });
}

}  // namespace

void bind_rigid(nb::module_& module) {
  module.def("pack_groups", &pack_groups_of, "segments"_a, "stands"_a, "alignment"_a, "fixed"_a, "tries"_a, "seconds"_a,
             "enough"_a, "seed"_a,
             "(base of each group, height, bound, tries) of the lowest packing of rigid groups that was found.");
  module.def("group_load", &group_load_of, "segments"_a, "stands"_a,
             "The live bytes of the worst step, less what operators may write over: no packing is lower.");
}

}  // namespace modelplan
