#include "row_graph.hpp"

#include <algorithm>
#include <functional>

namespace modelplan::rows {
namespace {

using Pixels = Array<char>;  // a flag for each

// Which of so many places windows of so many results read.
Pixels places_read(const AxisWindow& window, std::int64_t results, std::int64_t extent) {
  Pixels read(as_size(extent), 0);
  for (std::int64_t i = 0; i < results; ++i) {
    const Span span = window.read(i, i + 1);
    const std::int64_t first = std::clamp<std::int64_t>(span.first, 0, extent);
    std::fill(read.begin() + first, read.begin() + std::clamp(span.end, first, extent), 1);
  }
  return read;
}

// Which pixels of a map an operator reads.
Pixels pixels_read(const Operator& op, const Operand& operand, const MapShape& shape) {
  Pixels read(as_size(shape.rows * shape.columns), 1);
  const bool alike = operand.shape.rows == shape.rows && operand.shape.columns == shape.columns;
  if (operand.whole || !op.by_rows || op.results.empty() || !alike) return read;
  const MapShape& made = op.results[0].shape;
  const Pixels rows = places_read(operand.rows, made.rows, shape.rows);
  Pixels columns(as_size(shape.columns), 1);
  if (operand.by_columns) columns = places_read(operand.columns, made.columns, shape.columns);
  auto at = read.begin();
  for (const char row : rows)
    for (const char column : columns) *at++ = static_cast<char>(row & column);
  return read;
}

// The sets of readers, each once; of more than so many the pixels that all of them hold, as the only one.
Array<Pixels> distinct(const Array<Pixels>& read) {
  constexpr std::size_t kMostSets = 4;
  Array<Pixels> sets;
  for (const Pixels& pixels : read)
    if (std::ranges::find(sets, pixels) == sets.end()) sets.push_back(pixels);
  if (sets.size() <= kMostSets) return sets;
  Pixels common = sets[0];
  for (const Pixels& pixels : sets) std::ranges::transform(common, pixels, common.begin(), std::bit_and<>());
  return {common};
}

std::optional<ReadPixels> read_pixels(const Graph& graph, std::size_t value) {
  ReadPixels found;
  Array<Pixels> read;
  MapShape shape;
  for (std::size_t i = 0; i < graph.operators.size(); ++i)
    for (const Operand& operand : graph.operators[i].operands) {
      if (operand.value != value) continue;
      if (read.empty()) shape = operand.shape;
      read.push_back(pixels_read(graph.operators[i], operand, shape));
      found.readers.emplace_back(i, 0);
    }
  const Array<Pixels> sets = distinct(read);
  if (sets.empty() || (sets.size() == 1 && std::ranges::count(sets[0], 0) == 0)) return std::nullopt;
  found.pixel_bytes = shape.column_bytes;
  for (std::size_t r = 0; r < read.size(); ++r) {
    const auto set = std::ranges::find(sets, read[r]) - sets.begin();
    found.readers[r].second = set < std::ssize(sets) ? static_cast<std::size_t>(set) : 0;
  }
  for (std::size_t bits = 0; bits < std::size_t{1} << sets.size(); ++bits) {
    Array<std::int64_t> before{0};
    for (std::size_t p = 0; p < sets[0].size(); ++p) {
      bool held = false;
      for (std::size_t s = 0; s < sets.size(); ++s) held |= (bits >> s & 1) != 0 && sets[s][p] != 0;
      before.push_back(before.back() + static_cast<std::int64_t>(held));
    }
    found.before.push_back(std::move(before));
  }
  return found;
}

}  // namespace

Bytes ReadPixels::count(std::size_t bits, Bytes first, Bytes end, bool backward) const {
  const Array<std::int64_t>& pixels = before[bits];
  const auto last = std::ssize(pixels) - 1;
  const std::int64_t lo = std::min(first / pixel_bytes, last), hi = std::min(end / pixel_bytes, last);
  if (hi <= lo) return 0;
  const std::int64_t from = backward ? last - hi : lo, to = backward ? last - lo : hi;
  return (pixels[as_size(to)] - pixels[as_size(from)]) * pixel_bytes;
}

void find_read_pixels(Graph& graph) {
  for (std::size_t v = 0; v < graph.values.size(); ++v)
    if (!graph.values[v].kept && !graph.values[v].state) graph.values[v].read = read_pixels(graph, v);
}

}  // namespace modelplan::rows
