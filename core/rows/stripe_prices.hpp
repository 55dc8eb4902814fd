// What a stretch in stripes costs, from its rows alone. Nothing is built or packed.
#pragma once

#include "stripes.hpp"

namespace modelplan::rows {

// Bytes that a runtime keeps for an operator that stripes add, and its nanoseconds: for a run, for each element
// that it makes and reads, and for each copy.
struct AddedPrice {
  std::int64_t tail = 0;
  double run = 0, output = 0, tap = 0, copy = 0;

  double time(std::int64_t elements, std::int64_t copies) const {
    return run + (output + tap) * static_cast<double>(elements) + copy * static_cast<double>(copies);
  }
};

// What each operator of a stretch costs: bytes kept for one more of it, its working buffers as a whole, nanoseconds of
// each run and of each row. `most_joined` operands at most are joined at once. A loop, which is `loop` beside the
// operators in it, writes into its result by `update` and takes `iteration` nanoseconds each time. One that carries
// rows puts a `border` around them, makes a `choice` of them, and has others `moved`.
struct StripePrices {
  Array<std::int64_t> tail, scratch;
  Array<double> run, row;
  AddedPrice pad, slice, join, update, loop, border, choice, moved;
  std::int64_t most_joined = 1;
  double iteration = 0;
  std::size_t most_tiles = 1;
};

// Bytes of the worst step, multiply-accumulates, operators that are added, bytes that the runtime keeps beyond the
// unsplit operators, nanoseconds of all.
struct StripeCost {
  Bytes peak = 0;
  std::int64_t macs = 0, ops = 0, tail = 0;
  double time = 0;
};

// The cost of a stretch in stripes; `across` are live bytes that it does not touch. The peak supposes that rows die and
// are born one by one, that outputs may run into operands that die, and that nothing is lost between groups. Throws
// IllegalStripe.
StripeCost cost_of(const Stretch& stretch, const StripeForm& form, const StripePrices& prices, Bytes across);

// Operators [first, last] of a plan in stripes: what they need at most, bytes that the runtime keeps for them and
// nanoseconds, both beyond those of the unsplit operators.
struct PricedStretch {
  std::size_t first = 0, last = 0;
  Bytes peak = 0;
  std::int64_t tail = 0;
  double time = 0;
};

// The stretches of the plan of least kept bytes, plus `price` for each nanosecond, of which each step needs at most
// `target`: by itself, as `peaks` say, or in one of the stretches, which are in the order of their last steps. Nothing
// where there is no such plan. Cost: O(steps + stretches).
std::optional<Array<std::size_t>> cheapest_plan(View<const Bytes> peaks, View<const PricedStretch> stretches,
                                                Bytes target, double price);

}  // namespace modelplan::rows
