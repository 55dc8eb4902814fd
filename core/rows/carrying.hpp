// Which rows each operator of a loop's body makes, where rows are carried from one iteration to the next, and what such
// a loop costs.
//
// Every iteration makes `new_rows` rows of each map and holds them behind the last rows of the iterations before:
//
//     iteration 0   | -2 -1 | 0 1 |          rows of a map in its window of four, of which two are new
//     iteration 1         | 0 1 | 2 3 |
//     iteration 2             | 2 3 | 4 5 |
//
// An operator whose window reaches further down makes its rows that much later than the one before, so there are some
// more iterations than stripes. Rows above a map and below it may hold anything: no row of the result is made of them.
#pragma once

#include "stripe_prices.hpp"

namespace modelplan::rows {

// In iteration k the last row of a map that is there is row `fresh` * k + `ahead` - 1; the last `held` rows up to that
// are in its window, the last `fresh` of them new.
struct CarriedMap {
  std::int64_t fresh = 0, ahead = 0, held = 0;

  std::int64_t carried() const { return held - fresh; }
};

// Of each map that the stretch makes, and of its operators those that have rows of padding where their windows lie
// outside of the map.
struct CarriedRows {
  std::int64_t iterations = 0;
  Array<CarriedMap> maps;
  Array<char> padded;
};

// The rows of a loop over so many rows of its result, at most `most` iterations. Throws IllegalStripe.
CarriedRows carried_rows(const Stretch& stretch, std::int64_t rows, std::int64_t most);

// The cost of such a loop, whose windows stand by themselves all the time, as `cost_of` of stripes.
StripeCost cost_of(const Stretch& stretch, const CarriedRows& rows, const StripePrices& prices, Bytes across);

}  // namespace modelplan::rows
