#include "stage.hpp"

namespace modelplan::rows {

Bytes awaited(const Operand& operand, const Granule& granule) {
  const MapShape& shape = operand.shape;
  if (operand.whole) return shape.nbytes();
  const std::int64_t end = std::min(operand.rows.read(granule.row, granule.row + granule.rows).end, shape.rows);
  if (end <= 0) return 0;
  if (!operand.by_columns) return end * shape.row_bytes();
  const std::int64_t right = std::min(operand.columns.read(granule.left, granule.right).end, shape.columns);
  return (end - 1) * shape.row_bytes() + std::max<std::int64_t>(right, 0) * shape.column_bytes;
}

namespace {

// The first byte of an operand that is still read when column `left` of a row of the result comes next.
Bytes still_read(const Operand& operand, std::int64_t row, std::int64_t left) {
  if (operand.whole) return 0;
  const MapShape& shape = operand.shape;
  const std::int64_t top = row * operand.rows.stride - operand.rows.before;
  const Bytes here = std::max<std::int64_t>(top, 0) * shape.row_bytes();
  if (!operand.by_columns || left == 0) return std::min(here, shape.nbytes());
  const std::int64_t column = std::max<std::int64_t>(left * operand.columns.stride - operand.columns.before, 0);
  const Bytes below = std::max<std::int64_t>(top + operand.rows.stride, 0) * shape.row_bytes();
  return std::min({here + std::min(column, shape.columns) * shape.column_bytes, below, shape.nbytes()});
}

StageOperator staged(const Operator& op, const Choice& choice) {
  StageOperator own{&op, op.operands, {}, op.by_rows && (op.caller || choice.parts > 0), 0};
  own.shape = op.results.empty() ? MapShape{1, 1, 0} : op.results[0].shape;
  const std::int64_t parts = std::max<std::int64_t>(choice.parts, 1), columns = own.shape.columns;
  const bool cut = op.caller || (choice.parts > 1 && op.narrow);
  own.width = op.width != 0 ? op.width : cut ? (columns + parts - 1) / parts : columns;
  if (choice.backward)
    for (Operand& operand : own.operands) {
      operand.rows = operand.rows.mirrored(operand.shape.rows, own.shape.rows);
      operand.columns = operand.columns.mirrored(operand.shape.columns, own.shape.columns);
    }
  return own;
}

}  // namespace

Stage::Stage(const Graph& graph, const Choice& choice)
    : graph_(&graph),
      choice_(choice),
      roles_(graph.values.size(), Role::kOther),
      made_by_(graph.values.size(), kNobody),
      readers_(graph.values.size()) {
  operators_.reserve(choice.end - choice.first + 1);
  if (graph.pushed && choice.first == 0) operators_.push_back(staged(graph.operators.back(), choice));
  for (std::size_t i = choice.first; i < choice.end; ++i) operators_.push_back(staged(graph.operators[i], choice));
  const auto first = static_cast<std::int64_t>(choice.first), end = static_cast<std::int64_t>(choice.end);
  for (std::size_t m = 0; m < operators_.size(); ++m) {
    for (const Result& result : operators_[m].facts->results) {
      made_by_[result.value] = m;
      roles_[result.value] = graph.values[result.value].death >= end ? Role::kHeld : Role::kInner;
    }
    for (const Operand& operand : operators_[m].operands) readers_[operand.value].push_back({m, &operand});
  }
  for (std::size_t v = 0; v < roles_.size(); ++v) {
    const Value& value = graph.values[v];
    if (made_by_[v] == kNobody && value.birth < first && value.death >= first) {
      if (value.death < end)
        roles_[v] = Role::kDying;
      else
        passing_ += read_behind(v, value.nbytes);
    }
    if (roles_[v] != Role::kOther) own_.push_back(v);
  }
}

Array<std::size_t> Stage::touched(std::size_t member) const {
  Array<std::size_t> values;
  const auto add = [&](std::size_t value) {
    if (std::ranges::find(values, value) == values.end()) values.push_back(value);
  };
  for (const Operand& operand : operators_[member].operands)
    if (roles_[operand.value] == Role::kInner || roles_[operand.value] == Role::kDying) add(operand.value);
  for (const Result& result : operators_[member].facts->results)
    if (roles_[result.value] == Role::kInner && readers_[result.value].empty()) add(result.value);
  return values;
}

Bytes Stage::read_behind(std::size_t value, Bytes end) const {
  const std::optional<ReadPixels>& read = graph_->values[value].read;
  if (!read) return end;
  std::size_t bits = 0;
  for (const auto& [op, set] : read->readers)
    if (op >= choice_.end) bits |= std::size_t{1} << set;
  return read->count(bits, 0, end, choice_.backward);
}

Load Stage::load(Bytes most) const {
  struct Facts {
    Bytes before, during;
    bool in_place;  // whether a result may lie where an operand dies
    Array<std::size_t> touched;
  };
  Array<Facts> facts;
  for (std::size_t m = 0; m < operators_.size(); ++m) {
    const Operator& op = *operators_[m].facts;
    Array<std::size_t> shared;
    for (const Part& part : op.parts) shared.push_back(op.operands[part.position].value);
    std::ranges::sort(shared);
    shared.erase(std::unique(shared.begin(), shared.end()), shared.end());
    Bytes during = op.scratch + op.tiles_during;
    for (const std::size_t value : shared) during -= graph_->values[value].nbytes;
    const bool in_place = std::ranges::any_of(op.in_place, [&](std::size_t position) {
      const Role role = roles_[op.operands[position].value];
      return role == Role::kInner || role == Role::kDying;
    });
    facts.push_back({op.tiles_before, during, in_place, touched(m)});
  }
  Progress progress(*this);
  Array<Bytes> kept(graph_->values.size(), 0);
  const auto alive = [&](std::size_t v) {
    if (!graph_->values[v].read) return std::max<Bytes>(progress.end(v) - kept[v], 0);
    return roles_[v] == Role::kHeld ? read_behind(v, progress.end(v)) : progress.unfinished(v);
  };
  Bytes total = passing_;
  for (const std::size_t v : own_) total += alive(v);
  Load load{total, true};
  run([&](const Granule& granule) {
    const Facts& own = facts[granule.member];
    load.bytes = std::max(load.bytes, total + own.before);
    const Bytes before = total;
    for (const Result& result : operators_[granule.member].facts->results) {
      const Written written = Progress::written(granule, result);
      total -= alive(written.value);
      progress.set_end(written.value, written.end);
      total += alive(written.value);
    }
    load.bytes = std::max(load.bytes, (own.in_place ? before : total) + own.during);
    for (const std::size_t value : own.touched) total -= alive(value);
    progress.finish(granule);
    for (const std::size_t value : own.touched) {
      kept[value] = std::max(progress.kept_from(value), kept[value]);
      total += alive(value);
    }
    load.bytes = std::max(load.bytes, total);
    load.exact = load.bytes <= most;
    return load.exact;
  });
  return load;
}

Progress::Progress(const Stage& stage)
    : stage_(stage), at_(stage.operators_.size(), {0, 0}), end_(stage.graph_->values.size(), 0) {
  for (const std::size_t v : stage.own_)
    if (stage.roles_[v] == Role::kDying) end_[v] = stage.graph_->values[v].nbytes;
}

void Progress::finish(const Granule& granule) {
  const bool wraps = granule.right == stage_.operators_[granule.member].shape.columns;
  at_[granule.member] =
      wraps ? std::pair{granule.row + granule.rows, std::int64_t{0}} : std::pair{granule.row, granule.right};
}

Written Progress::written(const Granule& granule, const Result& result) {
  const MapShape& shape = result.shape;
  return {result.value, granule.row * shape.row_bytes() + granule.left * shape.column_bytes,
          (granule.row + granule.rows - 1) * shape.row_bytes() + granule.right * shape.column_bytes};
}

Bytes Progress::kept_from(std::size_t value) const {
  Bytes first = end_[value];
  for (const Stage::Reader& reader : stage_.readers_[value]) {
    const auto [row, left] = at_[reader.member];
    if (row < stage_.operators_[reader.member].shape.rows)
      first = std::min(first, still_read(*reader.operand, row, left));
  }
  return first;
}

Bytes Progress::unfinished(std::size_t value) const {
  const ReadPixels& read = *stage_.graph_->values[value].read;
  Array<std::pair<Bytes, std::size_t>> places;  // where each reader goes on, and its set
  for (const Stage::Reader& reader : stage_.readers_[value]) {
    const auto [row, left] = at_[reader.member];
    if (row >= stage_.operators_[reader.member].shape.rows) continue;
    for (const auto& [op, set] : read.readers)
      if (&stage_.graph_->operators[op] == stage_.operators_[reader.member].facts)
        places.emplace_back(still_read(*reader.operand, row, left), set);
  }
  std::ranges::sort(places);
  Bytes found = 0;
  std::size_t bits = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    bits |= std::size_t{1} << places[i].second;
    const Bytes behind = i + 1 < places.size() ? std::min(places[i + 1].first, end_[value]) : end_[value];
    found += read.count(bits, places[i].first, behind, stage_.backward());
  }
  return found;
}

}  // namespace modelplan::rows
