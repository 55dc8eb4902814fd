// Packing of units below a height by constraint search: each unit has a set of places, and what stands narrows others'.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

#include "units.hpp"

namespace modelplan::rigid {

// Looks for places for all units below a limit, unit by unit: first the one with the fewest places left for its weight,
// at the place where it stood last if that is free, else near it. A unit that is left without a place, and the one that
// took it, gain weight. After some failures the search begins again, with these weights and places.
//
// Source: F. Boussemart, F. Hemery, C. Lecoutre, L. Sais, "Boosting systematic search by weighting constraints", ECAI
// 2004.
class ConstraintSearch {
 public:
  ConstraintSearch(const Units& units, std::uint64_t seed);

  // Whether the places of the units below a height are few enough to be kept as sets, and none is pinned.
  static bool takes(const Units& units, std::int64_t height);

  // Tries to bring all units, which it takes, below `limit` in at most `steps` placements; true if it did, else `bases`
  // stay. `steps` is lowered by those that were made.
  bool lower(Array<std::int64_t>& bases, std::int64_t limit, std::int64_t& steps);

 private:
  // Places [from, to), apart from others.
  struct Run {
    std::int64_t from, to;
  };
  // The places that a unit had before some were taken away: `old_` from `runs` on.
  struct Taken {
    std::size_t unit, runs;
    std::int64_t left;
    std::size_t saved;
  };
  struct Level {
    std::size_t unit;
    std::int64_t place;
    std::size_t taken;
  };

  bool begin(const Array<std::int64_t>& bases, std::int64_t limit);
  bool search(std::int64_t failures, std::int64_t& steps);
  std::size_t next_unit() const;
  std::int64_t choose(std::size_t unit);
  bool put(std::size_t unit, std::int64_t place);
  bool take(std::size_t unit, std::int64_t from, std::int64_t to);
  void save(std::size_t unit);
  void undo(std::size_t taken);
  std::int64_t nearest(std::size_t unit, std::int64_t place) const;
  bool has(std::size_t unit, std::int64_t place) const;
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }

  const Units& units_;
  std::mt19937_64 random_;
  Array<Array<Run>> places_;   // that are left to each unit, ascending
  Array<std::int64_t> left_;   // how many these are
  Array<std::int64_t> first_;  // the base of the first place
  Array<std::int64_t> last_;   // the place where the unit stood last
  Array<double> weight_;
  Array<char> placed_;
  Array<std::size_t> free_;  // units to be placed
  Array<Taken> taken_;
  Array<Run> old_;
  Array<std::size_t> saved_;  // at how many levels the places of each unit were last saved
  Array<Level> levels_;
};

}  // namespace modelplan::rigid
