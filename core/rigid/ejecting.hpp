// Packing of units below a height: units that find no place push others out, which then look for one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

#include "units.hpp"

namespace modelplan::rigid {

// Lowers a packing again and again.
//
// Source: Y. Nagata, O. Braysy, "A powerful route minimization heuristic for the vehicle routing problem with time
// windows", Operations Research Letters 37(5), 2009, section 3: what is pushed out often becomes hard to push out.
class Ejector {
 public:
  Ejector(const Units& units, std::uint64_t seed);

  // Tries to bring all units below `limit` in at most `moves` placements, `loose` of them anew whether they fit or
  // not; true if it did, else `bases` stay. No placement begins behind `most_work`.
  bool lower(Array<std::int64_t>& bases, std::int64_t limit, std::size_t loose, std::int64_t moves,
             std::int64_t most_work);

  // Looks at units and forbidden distances so far.
  std::int64_t work() const { return work_; }

 private:
  // Places from one address to before another cost more.
  struct Charge {
    std::int64_t from, until;
    double cost;
  };

  bool begin(std::int64_t limit);
  std::int64_t best_place(std::size_t unit, std::int64_t most);
  void collect(std::size_t unit, std::int64_t most);
  void eject_around(std::size_t unit);
  bool movable(std::size_t unit) const { return units_.units[unit].pin == Unit::kFree; }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }

  const Units& units_;
  std::mt19937_64 random_;
  Array<std::int64_t> bases_;
  Array<char> placed_;
  Array<double> weight_;
  Array<std::size_t> waiting_;
  Array<Charge> charges_;
  Array<std::int64_t> places_;
  Array<double> changes_;  // of the cost, from one place to the next
  std::int64_t work_ = 0;
};

}  // namespace modelplan::rigid
