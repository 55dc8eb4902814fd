// Which rows of an operand a run of rows of a result needs, where an operator is handed a part of its map.
#pragma once

#include <optional>
#include <stdexcept>

#include "row_graph.hpp"

namespace modelplan::rows {

// No stripes of this form; says why.
struct IllegalStripe : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// How the rows of an operator depend on those of its operands; `Layer` of row_windows.py says what each kind is.
struct Layer {
  enum class Kind : std::uint8_t { kWindow, kPointwise, kPad, kCut, kGrow };
  Kind kind = Kind::kPointwise;
  std::int64_t rows_in = 1, rows_out = 1, row_macs = 0;
  AxisWindow window;
  bool own = false, paddable = true, blocks = false;
  std::int64_t across = 0;  // columns of padding on both sides together

  bool bordered() const { return kind == Kind::kWindow && own && (window.reach > 1 || window.before > 0); }
};

// Rows of an operand, rows to pad above and below them, and rows made: `skip` too many first. `padded`: the window is
// padded explicitly, so that the operator itself does not pad.
struct InputWindow {
  Span rows = {0, 0};
  std::int64_t above = 0, below = 0, skip = 0, computed = 0;
  bool padded = false;
};

// The window for output rows `made`; `pad` prefers explicit padding to rows too many. Throws IllegalStripe.
InputWindow input_window(const Layer& layer, Span made, bool pad);

// The rows of an operand that output rows `made` are made of, however large a window is. Throws IllegalStripe.
Span source_rows(const Layer& layer, Span made);

// What an operator makes of rows that it is fed: how many rows too many come first, and how many there are.
struct RowsMade {
  std::int64_t skip, computed;
};

// What it makes of rows `fed`, or nothing where that makes the rows `wanted` wrong.
std::optional<RowsMade> rows_of_window(const Layer& layer, Span wanted, Span fed);

}  // namespace modelplan::rows
