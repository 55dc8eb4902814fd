// All steps of stages with addresses that count from the base of each value, and what each step touches in memory.
#pragma once

#include "byte_lives.hpp"
#include "stage.hpp"

namespace modelplan::rows {

// What a kernel is handed of an operand: rows from row `first` on; `above` rows of the window of the first computed row
// lie above the map. Of a tile `width` columns from column `left` on are there; 0: a row is there as a whole.
struct RowsRead {
  std::int64_t tensor;
  std::size_t value;
  std::int64_t first, rows, above;
  Bytes address;
  std::int64_t left = 0, width = 0;
};

struct RowsWritten {
  std::int64_t tensor;
  std::size_t value;
  std::int64_t first, rows;
  Bytes address;
};

// A kernel computes rows of its results, or of a row columns [left, right) where `cut`; or what is kept of a value
// moves from `address` to `to`; or the caller hands over bytes to `address`.
struct Step {
  enum class Kind : std::uint8_t { kCall, kShift, kArrival };
  Kind kind = Kind::kCall;
  std::int64_t number = 0;       // of the operator
  const Operator* op = nullptr;  // that is called; of a chain the one that stands for it
  Array<RowsRead> reads = {};
  Array<RowsWritten> writes = {};
  bool cut = false;
  std::int64_t left = 0, right = 0;
  std::int64_t scratch = -1;  // a group
  std::size_t value = 0;
  Bytes address = 0, to = 0, nbytes = 0;
};

// The ticks of stages that follow each other: each computes at most a row. Groups are the values, then the scratch of
// operators in the order in which they need it.
class Trace {
 public:
  explicit Trace(const Graph& graph);

  void add(const Stage& stage);

  // A packing problem of all groups: what is fed is there before the first tick, results to the end, state always.
  GroupProblem problem() const;
  // The same of a single stage, with what it reads as the last one and what it makes for later.
  GroupProblem problem_of(const Stage& stage) const;

  const Array<Array<Step>>& stages() const { return stages_; }
  const Array<std::int64_t>& scratch() const { return scratch_; }  // the numbers of operators
  Bytes capacity(std::size_t value) const;                         // its bytes where no stage makes it

 private:
  struct View;

  Array<std::int64_t> alignment() const;
  void set_capacities(const Stage& stage, const Array<Granule>& granules);
  void shift(const Progress& progress, std::size_t value, View& view);
  void touch(std::size_t group, Span span, bool writes);
  void compute(const Stage& stage, const Granule& granule, View& view);
  void compute_chain(const StageOperator& op, const Granule& granule, View& view);
  RowsRead read(const Operand& operand, const Granule& granule, View& view);
  std::int64_t work(const Operator& op);
  void allow(const Operator& op, const Step& call, std::int64_t left);

  const Graph& graph_;
  Array<Bytes> capacity_;  // of values, -1 where no stage makes them
  Array<Array<Step>> stages_;
  Array<Access> accesses_;
  Array<AllowedOverlap> overlaps_;
  Array<std::int64_t> scratch_;
  std::int64_t ticks_ = 0;
};

// The steps of a stage where groups stand at `bases`: ticks of an operator that follow each other, each with the rows
// behind those of the one before, are a single call of its kernel.
Array<Step> joined(const Array<Step>& ticks, const Array<Bytes>& bases);

}  // namespace modelplan::rows
