#include "trace.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace modelplan::rows {
namespace {

// Kernels keep 32-bit numbers in their scratch.
constexpr std::int64_t kScratchAlignment = 4;

// Rows [top, bottom) and columns [left, right) of a map; `above` rows of the window that reads it lie above.
struct Tile {
  std::int64_t top, bottom, left, right, above;

  std::int64_t pixels() const { return (bottom - top) * (right - left); }
  // What of a map an operator reads to compute this tile.
  Tile read(const Operand& operand) const {
    const Span down = operand.rows.read(top, bottom);
    const Span across = (operand.by_columns ? operand.columns : AxisWindow{}).read(left, right);
    const std::int64_t first = std::max<std::int64_t>(down.first, 0), end = std::min(down.end, operand.shape.rows);
    const std::int64_t west = std::max<std::int64_t>(across.first, 0);
    const std::int64_t east = std::min(across.end, operand.shape.columns);
    return {std::min(first, operand.shape.rows), std::max(end, first), west, std::max(east, west),
            std::max<std::int64_t>(-down.first, 0)};
  }
};

}  // namespace

// Where bytes of values are that a stage counts from the front of the value, or backward from its end. `front` is the
// first byte, so counted, that there is room for.
struct Trace::View {
  View(const Trace& trace, const Stage& stage)
      : trace_(trace), backward(stage.backward()), front(trace.graph_.values.size(), 0) {}

  // Bytes [lo, hi) above the base of a value.
  Span span(std::size_t value, Bytes lo, Bytes hi) const {
    const Bytes at = front[value], room = trace_.capacity(value);
    return backward ? Span{room - hi + at, room - lo + at} : Span{lo - at, hi - at};
  }
  // The same for bytes that are counted from the front of the value.
  Span real_span(std::size_t value, Bytes lo, Bytes hi) const {
    const Bytes size = trace_.graph_.values[value].nbytes;
    return backward ? span(value, size - hi, size - lo) : span(value, lo, hi);
  }
  // The first of so many rows or columns, from the front of the map.
  std::int64_t real(std::int64_t first, std::int64_t count, std::int64_t extent) const {
    return backward ? extent - first - count : first;
  }

  const Trace& trace_;
  bool backward;
  Array<Bytes> front;
};

Trace::Trace(const Graph& graph) : graph_(graph), capacity_(graph.values.size(), -1) {}

Bytes Trace::capacity(std::size_t value) const {
  return capacity_[value] >= 0 ? capacity_[value] : graph_.values[value].nbytes;
}

void Trace::add(const Stage& stage) {
  stages_.emplace_back();
  Array<Granule> granules;
  stage.run([&](const Granule& granule) {
    granules.push_back(granule);
    return true;
  });
  set_capacities(stage, granules);
  Progress progress(stage);
  View view(*this, stage);
  for (const Granule& granule : granules) {
    const Array<Result>& results = stage.operators()[granule.member].facts->results;
    for (const Result& result : results)
      if (Progress::written(granule, result).end - view.front[result.value] > capacity_[result.value])
        shift(progress, result.value, view);
    compute(stage, granule, view);
    for (const Result& result : results) progress.set_end(result.value, Progress::written(granule, result).end);
    progress.finish(granule);
  }
}

void Trace::set_capacities(const Stage& stage, const Array<Granule>& granules) {
  for (const std::size_t v : stage.own()) {
    if (stage.role(v) == Role::kHeld) capacity_[v] = graph_.values[v].nbytes;
    if (stage.role(v) == Role::kInner) capacity_[v] = 0;
  }
  Progress progress(stage);
  for (const Granule& granule : granules) {
    for (const Result& result : stage.operators()[granule.member].facts->results) {
      const Written written = Progress::written(granule, result);
      if (stage.role(result.value) == Role::kInner)
        capacity_[result.value] = std::max(capacity_[result.value], written.end - progress.kept_from(result.value));
      progress.set_end(result.value, written.end);
    }
    progress.finish(granule);
  }
}

void Trace::touch(std::size_t group, Span span, bool writes) {
  accesses_.push_back({group, span.first, span.end, ticks_, writes});
}

void Trace::shift(const Progress& progress, std::size_t value, View& view) {
  const Bytes first = progress.kept_from(value), end = progress.end(value);
  const Span old = view.span(value, first, end);
  view.front[value] = first;
  const Span now = view.span(value, first, end);
  if (end <= first) return;
  Step step{.kind = Step::Kind::kShift};
  step.value = value, step.address = old.first, step.to = now.first, step.nbytes = end - first;
  stages_.back().push_back(std::move(step));
  touch(value, old, false);
  touch(value, now, true);
  ++ticks_;
}

void Trace::compute(const Stage& stage, const Granule& granule, View& view) {
  const StageOperator& op = stage.operators()[granule.member];
  if (!op.facts->chain.empty()) return compute_chain(op, granule, view);
  Step step{.number = op.facts->number, .op = op.facts};
  for (const Operand& operand : op.operands) step.reads.push_back(read(operand, granule, view));
  Span span{0, 0};
  for (const Result& result : op.facts->results) {
    const Written written = Progress::written(granule, result);
    const Span own = view.span(result.value, written.first, written.end);
    touch(result.value, own, true);
    const std::int64_t row = op.by_rows ? view.real(granule.row, granule.rows, result.shape.rows) : 0;
    step.writes.push_back({result.tensor, result.value, row, op.by_rows ? granule.rows : result.made.rows, own.first});
    if (step.writes.size() == 1) span = own;
  }
  if (op.facts->caller) {
    step = Step{.kind = Step::Kind::kArrival, .value = op.facts->results[0].value};
    step.address = span.first, step.nbytes = span.end - span.first;
    stages_.back().push_back(std::move(step));
  } else {
    const std::int64_t count = granule.right - granule.left;
    const std::int64_t left = view.real(granule.left, count, op.shape.columns);
    step.cut = count != op.shape.columns;
    if (step.cut) step.left = left, step.right = left + count;
    step.scratch = work(*op.facts);
    allow(*op.facts, step, left);
    stages_.back().push_back(std::move(step));
  }
  ++ticks_;
}

// A part of a row by way of tiles: those of the same value all lie in one place.
void Trace::compute_chain(const StageOperator& op, const Granule& granule, View& view) {
  const Array<Member>& chain = op.facts->chain;
  const Result& last = op.facts->results[0];
  const Written written = Progress::written(granule, last);
  const std::int64_t row = view.real(granule.row, 1, last.made.rows), count = granule.right - granule.left;
  const std::int64_t left = view.real(granule.left, count, last.made.columns);
  Array<Tile> tiles{{row, row + 1, left, left + count, 0}};
  for (auto member = chain.rbegin(); member != chain.rend(); ++member)
    tiles.push_back(tiles.back().read(member->operand));
  std::ranges::reverse(tiles);  // the first one is read
  const auto add = [&](const Member& member, const RowsRead& read, const RowsWritten& write, const Tile& tile) {
    Step step{.number = member.number, .op = op.facts};
    step.reads.push_back(read), step.writes.push_back(write);
    step.cut = true, step.left = tile.left, step.right = tile.right;
    stages_.back().push_back(std::move(step));
    ++ticks_;
  };
  const Operand& operand = chain.front().operand;
  const Tile& part = tiles.front();
  const Bytes width = operand.shape.row_bytes(), size = operand.shape.column_bytes;
  for (std::int64_t at = part.top; at < part.bottom; ++at)
    touch(operand.value, view.real_span(operand.value, at * width + part.left * size, at * width + part.right * size),
          false);
  const Bytes address = view.real_span(operand.value, part.top * width, part.bottom * width).first;
  RowsRead read{operand.tensor, operand.value, part.top, part.bottom - part.top, part.above, address};
  for (std::size_t k = 0; k + 1 < chain.size(); ++k) {
    const Result& made = chain[k].result;
    const Tile& tile = tiles[k + 1];
    const Bytes bytes = tile.pixels() * made.made.column_bytes;
    capacity_[made.value] = std::max(capacity_[made.value], bytes);
    touch(made.value, {0, bytes}, true);
    const RowsWritten own{made.tensor, made.value, tile.top, tile.bottom - tile.top, 0};
    add(chain[k], read, own, tile);
    touch(made.value, {0, bytes}, false);
    read = {made.tensor, made.value, tile.top, own.rows, tile.above, 0, tile.left, tile.right - tile.left};
  }
  const Span span = view.span(last.value, written.first, written.end);
  touch(last.value, span, true);
  add(chain.back(), read, {last.tensor, last.value, row, 1, span.first}, tiles.back());
}

RowsRead Trace::read(const Operand& operand, const Granule& granule, View& view) {
  const MapShape& shape = operand.shape;
  const std::size_t value = operand.value;
  if (operand.whole) {
    const Span span = view.span(value, 0, shape.nbytes());
    touch(value, span, false);
    return {operand.tensor, value, 0, shape.rows, 0, span.first};
  }
  const auto [top, bottom] = operand.rows.read(granule.row, granule.row + granule.rows);
  const std::int64_t first = std::min(std::max<std::int64_t>(top, 0), shape.rows);
  const std::int64_t end = std::max(std::min(bottom, shape.rows), first);
  Span across{0, shape.columns};
  if (operand.by_columns) {
    across = operand.columns.read(granule.left, granule.right);
    across = {std::max<std::int64_t>(across.first, 0), std::min(across.end, shape.columns)};
  }
  const Bytes width = shape.row_bytes(), size = shape.column_bytes;
  if (across.first == 0 && across.end == shape.columns) {
    if (end > first) touch(value, view.span(value, first * width, end * width), false);
  } else if (across.end > across.first) {
    for (std::int64_t row = first; row < end; ++row)
      touch(value, view.span(value, row * width + across.first * size, row * width + across.end * size), false);
  }
  const std::int64_t above = view.backward ? bottom - shape.rows : -top;
  return {operand.tensor,
          value,
          view.real(first, end - first, shape.rows),
          end - first,
          std::max<std::int64_t>(above, 0),
          view.span(value, first * width, end * width).first};
}

// The group of an operator's scratch, which this tick uses; -1 where it has none.
std::int64_t Trace::work(const Operator& op) {
  if (op.scratch == 0) return -1;
  const auto found = std::ranges::find(scratch_, op.number);
  const std::size_t group = graph_.values.size() + as_size(found - scratch_.begin());
  if (found == scratch_.end()) scratch_.push_back(op.number);
  touch(group, {0, op.scratch}, true);
  return static_cast<std::int64_t>(group);
}

// Lets an element-wise result lie on its operand, or before it, and operands where a result has them.
void Trace::allow(const Operator& op, const Step& call, std::int64_t left) {
  for (const Part& part : op.parts) {
    const RowsRead& read = call.reads[part.position];
    const RowsWritten& write = call.writes[0];
    overlaps_.push_back({read.value, write.value, ticks_, read.address - write.address - part.offset, true});
  }
  const auto is_in_place = [&](std::size_t position) {
    return std::ranges::find(op.in_place, position) != op.in_place.end();
  };
  for (const std::size_t position : op.in_place) {
    const RowsRead& read = call.reads[position];
    const RowsWritten& write = call.writes[0];
    bool otherwise = read.value == write.value;
    for (std::size_t k = 0; k < call.reads.size(); ++k)
      otherwise = otherwise || (!is_in_place(k) && call.reads[k].value == read.value);
    if (otherwise) continue;
    const Bytes most = read.address + left * op.operands[position].shape.column_bytes - write.address;
    overlaps_.push_back({read.value, write.value, ticks_, most, false});
  }
}

Array<std::int64_t> Trace::alignment() const {
  Array<std::int64_t> alignment;
  for (const Value& value : graph_.values) alignment.push_back(value.alignment);
  alignment.resize(alignment.size() + scratch_.size(), kScratchAlignment);
  return alignment;
}

GroupProblem Trace::problem() const {
  Array<Access> touched;
  Array<LiveBytes> state;
  for (std::size_t v = 0; v < graph_.values.size(); ++v) {
    const Value& value = graph_.values[v];
    if (value.state) state.push_back({v, 0, value.nbytes, -1, ticks_ + 1});
    if (value.fed && capacity_[v] < 0) touched.push_back({v, 0, value.nbytes, -1, true});
  }
  for (const Access& access : accesses_)
    if (access.group >= graph_.values.size() || !graph_.values[access.group].state) touched.push_back(access);
  for (std::size_t v = 0; v < graph_.values.size(); ++v)
    if (graph_.values[v].kept && !graph_.values[v].state)
      touched.push_back({v, 0, graph_.values[v].nbytes, ticks_, false});
  Array<LiveBytes> lives = byte_lives(std::move(touched));
  lives.insert(lives.end(), state.begin(), state.end());
  return {lives, alignment(), overlaps_};
}

GroupProblem Trace::problem_of(const Stage& stage) const {
  Array<Access> touched;
  for (const std::size_t v : stage.own())
    if (stage.role(v) == Role::kDying) touched.push_back({v, 0, graph_.values[v].nbytes, -1, true});
  touched.insert(touched.end(), accesses_.begin(), accesses_.end());
  for (const std::size_t v : stage.own())
    if (stage.role(v) == Role::kHeld) touched.push_back({v, 0, graph_.values[v].nbytes, ticks_, false});
  return {byte_lives(std::move(touched)), alignment(), overlaps_};
}

namespace {

Step based(Step step, const Array<Bytes>& bases) {
  for (RowsRead& read : step.reads) read.address += bases[read.value];
  for (RowsWritten& write : step.writes) write.address += bases[write.value];
  if (step.scratch >= 0) step.scratch = bases[as_size(step.scratch)];
  if (step.kind != Step::Kind::kCall) step.address += bases[step.value];
  if (step.kind == Step::Kind::kShift) step.to += bases[step.value];
  return step;
}

// Whether no result of a call that computes whole rows shares a byte with an operand.
bool apart(const Step& call) {
  for (std::size_t k = 0; k < call.reads.size(); ++k)
    for (std::size_t i = 0; i < call.writes.size(); ++i) {
      const RowsRead& read = call.reads[k];
      const RowsWritten& write = call.writes[i];
      const Bytes read_end = read.address + read.rows * call.op->operands[k].shape.row_bytes();
      const Bytes write_end = write.address + write.rows * call.op->results[i].made.row_bytes();
      if (read.address < write_end && write.address < read_end) return false;
    }
  return true;
}

// Two ticks as one call, where the second computes the rows behind those of the first, from one run of rows.
std::optional<Step> both(const Step& a, const Step& b) {
  if (a.kind != Step::Kind::kCall || b.kind != Step::Kind::kCall || a.number != b.number || a.cut || b.cut) return {};
  if (!a.op->one_kernel) return {};
  Step call = a;
  for (std::size_t k = 0; k < a.reads.size(); ++k) {
    const RowsRead &first = a.reads[k], &then = b.reads[k];
    if (then.address - first.address != (then.first - first.first) * a.op->operands[k].shape.row_bytes()) return {};
    call.reads[k].rows = std::max(first.first + first.rows, then.first + then.rows) - first.first;
  }
  for (std::size_t i = 0; i < a.writes.size(); ++i) {
    const RowsWritten &first = a.writes[i], &then = b.writes[i];
    if (then.address - first.address != first.rows * a.op->results[i].made.row_bytes()) return {};
    call.writes[i].rows += then.rows;
  }
  if (!a.op->in_order && !apart(call)) return {};
  return call;
}

}  // namespace

Array<Step> joined(const Array<Step>& ticks, const Array<Bytes>& bases) {
  Array<Step> steps;
  for (const Step& tick : ticks) {
    Step step = based(tick, bases);
    std::optional<Step> call = steps.empty() ? std::nullopt : both(steps.back(), step);
    if (call)
      steps.back() = std::move(*call);
    else
      steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace modelplan::rows
