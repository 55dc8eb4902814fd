// Which rows each operator of a loop's body reads, makes and keeps in each iteration, and what such a loop costs.
//
// All iterations run the same operators on maps of the same extents; only where the rows begin differs. Near the border
// of a map a window is moved inwards until it touches the border, so an operator's own padding is right there;
// elsewhere the operator makes some rows that are wrong. Those are cut off behind each operator, or, in chains, passed
// on to the next one and cut off once at the end.
#pragma once

#include "stripe_prices.hpp"

namespace modelplan::rows {

// The rows [starts[k], starts[k] + extent) in iteration k.
struct IterationRows {
  Array<std::int64_t> starts;
  std::int64_t extent = 0;

  Span in(std::size_t k) const { return {starts[k], starts[k] + extent}; }
};

// What an operator of a loop does along one axis. `taken` are rows of what is held of each operand that goes row by
// row; of a map from outside of the loop all is held. It makes `computed` rows, of which those of `kept` are held. The
// result depends on the rows `used` of its operands' maps, in each iteration; what else is taken may hold anything.
struct LoopedOperator {
  Array<IterationRows> taken;
  Array<Span> used;
  std::int64_t computed = 0;
  IterationRows kept;
};

// The rows of a loop along one axis, and those of its result.
struct LoopRows {
  IterationRows result;
  Array<LoopedOperator> operators;
};

// The rows along an axis, in which operators go as `layers` say, of which the loop makes `rows` rows of the result at a
// time; with `trim_late` wrong rows are passed on. Throws IllegalStripe where no window suits all iterations.
LoopRows loop_rows(const Stretch& stretch, const Array<Layer>& layers, std::int64_t rows, bool trim_late);

// An operator that reads a map of which the rows lie along another axis: bytes of an element with all its channels, how
// many elements it has along the axis that is not that of the rows, and the bytes behind each row.
struct TurnedOperand {
  Bytes pixel = 0;
  std::int64_t columns = 1;
  Bytes room = 0;
};

// How a stretch is a loop: over so many rows of its result, in tiles where `across` says how operators go along the
// other axis, of so many `columns`. `turned` are those of the stretch, by operator.
struct LoopForm {
  std::int64_t rows = 1;
  bool trim_late = false;
  Array<Layer> across;
  std::int64_t columns = 0;
  Array<std::optional<TurnedOperand>> turned;
};

// The cost of a stretch as a loop, as `cost_of` of stripes. Throws IllegalStripe.
StripeCost cost_of(const Stretch& stretch, const LoopForm& form, const StripePrices& prices, Bytes across);

}  // namespace modelplan::rows
