// The rows of each map that each stripe of a stretch makes, reads and keeps.
#pragma once

#include <utility>

#include "row_windows.hpp"

namespace modelplan::rows {

// A map that the operators of a stretch read by rows or make. `owner` is the operator whose rows are kept with it,
// which makes the map, or the one that it is a padded copy of.
struct StretchMap {
  std::int64_t tensor = 0, rows = 1;
  bool inner = false, exit = false, read_later = false, turned = false;
  Bytes row_bytes = 0;
  std::int64_t columns = 1, channels = 1;  // along the other axis, along the last one
  std::size_t maker = kNobody, owner = kNobody;
  Array<std::size_t> readers;  // operators of the stretch, in order
};

// `operands` are the maps that go row by row, `reads` all that are made in the stretch, `first` is operand 0.
struct StretchOperator {
  std::int64_t number = 0;
  Layer layer;
  std::size_t output = 0, first = kNobody;
  Array<std::size_t> operands, reads;
};

struct Stretch {
  Array<StretchOperator> operators;
  Array<StretchMap> maps;
};

// How a stretch is cut: at rows of the result, from 0 to its height, or where it is `rolling` at rows of what its first
// operator makes. Operators of `pad` are padded explicitly, what those of `kept` make is kept for the next stripe.
struct StripeForm {
  Array<std::int64_t> cuts;
  Array<char> pad, kept;  // of each operator
  bool rolling = false, backward = false;
};

// What one stripe does: the rows of each map that readers see, the rows made, and the window of each operator.
struct Stripe {
  explicit Stripe(const Stretch& stretch)
      : seen(stretch.maps.size()), computed(stretch.maps.size()), windows(stretch.operators.size()) {}

  Array<std::optional<Span>> seen, computed;
  Array<std::optional<InputWindow>> windows;
};

// Whether the rows of a map are kept for the next stripe, as those of results are.
bool keeps(const Stretch& stretch, const StripeForm& form, std::size_t map);

// The stripes in the order in which they run. Throws IllegalStripe where rows do not come out in order, or a map is not
// made to its end.
Array<Stripe> stripes_of(const Stretch& stretch, const StripeForm& form);

}  // namespace modelplan::rows
