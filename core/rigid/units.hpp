// What moves as one: a group of buffers or a single buffer, and the distances at which two of them exclude each other.
#pragma once

#include <cstdint>
#include <limits>
#include <map>

#include "../problem.hpp"

namespace modelplan::rigid {

// Distances strictly between `lo` and `hi` are forbidden.
struct Gap {
  std::int64_t lo, hi;
};

// Another unit and the forbidden distances base(this) - base(other), apart and ascending.
struct Neighbour {
  std::size_t unit;
  Array<Gap> gaps;
};

// A base is legal where it leaves the remainder `base` of `step`, and none of the buffers below address 0.
struct Unit {
  std::int64_t step = 1, base = 0;
  std::int64_t least = std::numeric_limits<std::int64_t>::min();  // no base is lower
  std::int64_t low = 0, high = 0;                                 // of the bytes, above the base
  std::int64_t start = std::numeric_limits<std::int64_t>::max();  // of the lives
  std::int64_t end = std::numeric_limits<std::int64_t>::min();
  std::int64_t pin = kFree;

  static constexpr std::int64_t kFree = std::numeric_limits<std::int64_t>::min();

  bool empty() const { return low == high; }
  // The first legal base from `at` on.
  std::int64_t from(std::int64_t at) const { return at + past(base - at); }
  // The last legal base up to `at`.
  std::int64_t until(std::int64_t at) const { return at - past(at - base); }

 private:
  // How far beyond a multiple of the step. Most steps are powers of two: spare them the division.
  std::int64_t past(std::int64_t distance) const {
    return (step & (step - 1)) == 0 ? distance & (step - 1) : (distance % step + step) % step;
  }
};

// Whether a distance lies within one of the gaps.
bool forbids(const Array<Gap>& gaps, std::int64_t distance);

// What facts allow two buffers although they live together: offset(second) - offset(first) in [least, most].
struct Allowed {
  std::int64_t least, most;
};

// Gaps of a pair of units while they are found: rows of two maps forbid mostly what others did, so they are merged
// whenever they have doubled.
struct Growing {
  Array<Gap> gaps;
  std::size_t merged = 0;

  void shorten();
};

// For each unit its gaps with later ones.
using PairGaps = Array<std::map<std::size_t, Growing>>;

// Units by number: groups first, by their numbers, then the buffers in none.
struct Units {
  Array<Unit> units;
  Array<std::size_t> used;             // units with bytes, by their first buffer
  Array<std::size_t> unit;             // of each buffer
  Array<std::int64_t> delta;           // of each buffer above the base of its unit
  Array<Array<Neighbour>> neighbours;  // of each unit
  bool possible = true;  // whether alignments, pins and the distances inside of groups leave any placement

  explicit Units(const Problem& problem);

 private:
  void number(const Problem& problem);
  void join(const Problem& problem, std::size_t buffer);
  void find_gaps(const Problem& problem);
  void forbid(const Problem& problem, std::size_t a, std::size_t b, const Array<Allowed>* allowed, PairGaps& pairs);
  void note_neighbours(PairGaps& pairs);
  void check_pins();
};

// No packing is lower than the tallest unit, or than two of them at their best distance.
std::int64_t extent_bound(const Units& units);

}  // namespace modelplan::rigid
