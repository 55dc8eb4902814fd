#include "row_windows.hpp"

#include <algorithm>
#include <string>
#include <tuple>

namespace modelplan::rows {
namespace {

// The quotient rounded down.
std::int64_t floored(std::int64_t value, std::int64_t divisor) {
  return value >= 0 ? value / divisor : -((-value + divisor - 1) / divisor);
}

std::string named(Span made) {
  return "output rows " + std::to_string(made.first) + " to " + std::to_string(made.end - 1);
}

// The window of an enlarging operator: the operand rows that contribute to the rows made.
InputWindow grown(const Layer& layer, Span made) {
  const auto& [reach, stride, before] = layer.window;
  const std::int64_t lo = std::max<std::int64_t>(0, -floored(-(made.first + before - reach + 1), stride));
  const std::int64_t hi = std::min(layer.rows_in, floored(made.end - 1 + before, stride) + 1);
  const std::int64_t computed = layer.own ? (hi - lo) * stride : (hi - lo - 1) * stride + reach;
  const std::int64_t skip = made.first - lo * stride;
  if (skip < 0 || skip + made.end - made.first > computed)
    throw IllegalStripe(named(made) + " are not made of rows in a row");
  return {{lo, hi}, 0, 0, skip, computed, false};
}

// The cheapest window of at least `least` in which the operator's own padding makes the rows as they are.
//
// In a window of n rows from i0 on the operator makes o = ceil(n / stride) rows and pads p above; its row l is row
// l + (i0 - p + above) / stride of the whole, which must be integral.
InputWindow trimmed(const Layer& layer, Span made, Span least) {
  const std::int64_t slack = layer.window.stride + layer.window.reach;
  std::optional<InputWindow> best;
  const auto size = [](const InputWindow& w) { return std::tuple(w.computed, w.rows.end - w.rows.first); };
  for (std::int64_t lo = std::max<std::int64_t>(0, least.first - slack); lo <= least.first; ++lo)
    for (std::int64_t hi = least.end; hi <= std::min(layer.rows_in, least.end + slack); ++hi)
      if (const auto rows = rows_of_window(layer, made, {lo, hi})) {
        const InputWindow window{{lo, hi}, 0, 0, rows->skip, rows->computed, false};
        if (!best || size(window) < size(*best)) best = window;
      }
  if (!best) throw IllegalStripe("no window makes " + named(made) + " as they are");
  return *best;
}

}  // namespace

Span source_rows(const Layer& layer, Span made) {
  if (layer.kind == Layer::Kind::kPointwise) return made;
  if (layer.kind == Layer::Kind::kGrow) return grown(layer, made).rows;
  const Span reached = layer.window.read(made.first, made.end);
  const Span inside{std::max<std::int64_t>(0, reached.first), std::min(layer.rows_in, reached.end)};
  if (inside.first >= inside.end) throw IllegalStripe(named(made) + " consist of padding alone");
  return inside;
}

InputWindow input_window(const Layer& layer, Span made, bool pad) {
  const std::int64_t rows = made.end - made.first;
  if (layer.kind == Layer::Kind::kPointwise) return {made, 0, 0, 0, rows, false};
  if (layer.kind == Layer::Kind::kGrow) return grown(layer, made);
  const Span reached = layer.window.read(made.first, made.end), inside = source_rows(layer, made);
  const bool pads = layer.kind == Layer::Kind::kPad || layer.kind == Layer::Kind::kCut;
  if (pads || (layer.bordered() && pad && layer.paddable))
    return {inside, inside.first - reached.first, reached.end - inside.end, 0, rows, true};
  return layer.bordered() ? trimmed(layer, made, inside) : InputWindow{inside, 0, 0, 0, rows, false};
}

std::optional<RowsMade> rows_of_window(const Layer& layer, Span wanted, Span fed) {
  const auto& [reach, stride, before] = layer.window;
  if (layer.kind != Layer::Kind::kPointwise && layer.kind != Layer::Kind::kWindow) return std::nullopt;
  if (fed.first < 0 || fed.end > layer.rows_in) return std::nullopt;
  const std::int64_t rows = fed.end - fed.first;
  if (layer.kind == Layer::Kind::kPointwise) {
    if (fed.first > wanted.first || wanted.end > fed.end) return std::nullopt;
    return RowsMade{wanted.first - fed.first, rows};
  }
  if (layer.blocks && rows % stride != 0) return std::nullopt;
  const std::int64_t computed = layer.own ? (rows + stride - 1) / stride : floored(rows - reach, stride) + 1;
  const std::int64_t above = layer.own ? std::max<std::int64_t>((computed - 1) * stride + reach - rows, 0) / 2 : 0;
  const std::int64_t shift = floored(fed.first - above + before, stride);
  if (fed.first - above + before != shift * stride) return std::nullopt;
  const Span read = layer.window.read(wanted.first, wanted.end);
  const bool whole = fed.first <= std::max<std::int64_t>(0, read.first) && fed.end >= std::min(layer.rows_in, read.end);
  if (!whole || shift > wanted.first || wanted.end - shift > computed) return std::nullopt;
  return RowsMade{wanted.first - shift, computed};
}

}  // namespace modelplan::rows
