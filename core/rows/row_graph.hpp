// A graph as a plan by rows sees it: values are runs of bytes, operators make rows of some from rows of others.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "../array.hpp"

namespace modelplan::rows {

constexpr std::size_t kNobody = ~std::size_t{0};

// Places [first, end).
struct Span {
  std::int64_t first, end;
};

// Place i of a result reads `reach` places of an operand from i * stride - before on; some may lie outside.
struct AxisWindow {
  std::int64_t reach = 1, stride = 1, before = 0;

  Span read(std::int64_t first, std::int64_t end) const {
    const std::int64_t start = first * stride - before;
    return {start, start + (end - 1 - first) * stride + reach};
  }
  // The same window where both sides are counted from the end; `extent` is that of the operand.
  AxisWindow mirrored(std::int64_t extent, std::int64_t results) const {
    return {reach, stride, (results - 1) * stride - before + reach - extent};
  }
};

// The rows of a tensor: their number, their columns and the bytes of each column.
struct MapShape {
  std::int64_t rows = 1, columns = 1, column_bytes = 0;

  Bytes row_bytes() const { return columns * column_bytes; }
  Bytes nbytes() const { return rows * row_bytes(); }
};

// How an operator reads a value: whole, or its rows, and its columns where rows need not be computed at once.
struct Operand {
  std::int64_t tensor = 0;
  std::size_t value = 0;
  MapShape shape;
  bool whole = true, by_columns = false;
  AxisWindow rows, columns;
};

// What an operator makes: `shape` is what it makes at a time, `made` are the rows that a call of it counts.
struct Result {
  std::int64_t tensor = 0;
  std::size_t value = 0;
  MapShape shape, made;
};

// An operand whose bytes become the result's from `offset` on.
struct Part {
  std::size_t position;
  Bytes offset;
};

// An operator of a chain, which makes a tile for the next one.
struct Member {
  std::int64_t number;
  Operand operand;
  Result result;
};

// An operator of the order; `number` is what it is called outside. It computes `width` columns at a time, 0: as many
// as the parts of a row have where it is `narrow`. The caller, who hands over rows of the input, is one too.
struct Operator {
  std::int64_t number = 0, width = 0;
  bool by_rows = false, narrow = false, caller = false, one_kernel = true, in_order = true;
  Bytes scratch = 0, tiles_before = 0, tiles_during = 0;
  Array<Operand> operands;
  Array<Result> results;
  Array<Part> parts;
  Array<std::size_t> in_place;  // positions of operands
  Array<Member> chain;
};

// Which pixels the readers of a value read, where one of them does not read all. Readers of the same pixels share a
// set, and sets are bits of a number: `before[bits][i]` are the pixels in front of pixel i that some of these sets
// hold.
struct ReadPixels {
  Array<std::pair<std::size_t, std::size_t>> readers;  // an operator of the order, and its set
  Bytes pixel_bytes = 0;
  Array<Array<std::int64_t>> before;

  // The bytes at [first, end) that some of the sets hold; `backward` they are counted from the end of the value.
  Bytes count(std::size_t bits, Bytes first, Bytes end, bool backward) const;
};

// Bytes that are made by the operator of the order at `birth`, and read until the one at `death`. The caller feeds some
// before the first operator; state outlives all.
struct Value {
  Bytes nbytes = 0;
  std::int64_t alignment = 1, birth = 0, death = 0;
  bool fed = false, state = false, kept = false;
  std::optional<ReadPixels> read = {};  // nothing where all is read
};

// Operators in order; where rows of the input are `pushed`, the last one of the array is the caller.
struct Graph {
  Array<Value> values;
  Array<Operator> operators;
  std::size_t count = 0;  // of the order
  bool pushed = false;
};

// Sets the pixels that are read of all values.
void find_read_pixels(Graph& graph);

// Operators [first, end) of the order run together, each row in `parts` parts at most; 0: all rows at once. Backward
// the last rows come first.
struct Choice {
  std::size_t first, end;
  std::int64_t parts;
  bool backward;
};

}  // namespace modelplan::rows
