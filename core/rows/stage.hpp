// Operators that run together: in which order their rows are computed, and how many bytes are alive at a time.
#pragma once

#include <algorithm>
#include <utility>

#include "row_graph.hpp"

namespace modelplan::rows {

// An operator of a stage, by its number there, computes columns [left, right) of rows [row, row + rows).
struct Granule {
  std::size_t member;
  std::int64_t row, rows, left, right;
};

// The bytes of a value, from its front, that a granule writes.
struct Written {
  std::size_t value;
  Bytes first, end;
};

// An operator of a stage; its windows are mirrored where rows are counted from the end.
struct StageOperator {
  const Operator* facts;
  Array<Operand> operands;
  MapShape shape;  // of the first result
  bool by_rows;
  std::int64_t width;

  Granule next(std::size_t member, std::int64_t row, std::int64_t left) const {
    if (!by_rows) return {member, 0, shape.rows, 0, shape.columns};
    return {member, row, 1, left, std::min(left + width, shape.columns)};
  }
};

// What a stage does with a value: it makes it and alone reads it, makes it for later, reads it as the last one, or
// nothing of these.
enum class Role : std::uint8_t { kOther, kInner, kHeld, kDying };

struct Load {
  Bytes bytes;
  bool exact;  // else more than was asked for, and at least so many
};

class Stage {
 public:
  Stage(const Graph& graph, const Choice& choice);

  bool backward() const { return choice_.backward; }
  const Array<StageOperator>& operators() const { return operators_; }
  Role role(std::size_t value) const { return roles_[value]; }
  const Array<std::size_t>& own() const { return own_; }  // the values with a role
  Bytes passing() const { return passing_; }              // bytes of other values that live through it

  // All granules in order, as long as `visit` returns true: of the results that nobody in the stage reads the least
  // complete is next, and before it what it waits for.
  template <class Visit>
  void run(Visit visit) const;

  // The most bytes that are alive at a time, at least; no longer exact once they are more than `most`.
  Load load(Bytes most) const;

 private:
  friend class Progress;
  struct Reader {
    std::size_t member;
    const Operand* operand;
  };

  Array<std::size_t> touched(std::size_t member) const;
  // Bytes in front of `end` of a value that operators behind the stage read.
  Bytes read_behind(std::size_t value, Bytes end) const;

  const Graph* graph_;
  Choice choice_;
  Array<StageOperator> operators_;
  Array<Role> roles_;
  Array<std::size_t> own_, made_by_;  // made_by_: the member that makes each value, kNobody
  Array<Array<Reader>> readers_;      // of each value
  Bytes passing_ = 0;
};

// Which bytes of each value of a stage are there and still read, granule by granule.
class Progress {
 public:
  explicit Progress(const Stage& stage);

  Bytes end(std::size_t value) const { return end_[value]; }
  void set_end(std::size_t value, Bytes end) { end_[value] = end; }
  void finish(const Granule& granule);
  // What a granule makes of a result.
  static Written written(const Granule& granule, const Result& result);
  // The first byte that somebody in the stage still reads; the end where nobody does.
  Bytes kept_from(std::size_t value) const;
  // The bytes, of those that are there, that somebody in the stage still reads of a value whose read pixels are known.
  Bytes unfinished(std::size_t value) const;

 private:
  const Stage& stage_;
  Array<std::pair<std::int64_t, std::int64_t>> at_;  // row and column of each member that come next
  Array<Bytes> end_;
};

// How many bytes of a value, from its front, a granule waits for.
Bytes awaited(const Operand& operand, const Granule& granule);

template <class Visit>
void Stage::run(Visit visit) const {
  Array<std::pair<std::int64_t, std::int64_t>> at(operators_.size(), {0, 0});
  Array<Bytes> available(graph_->values.size());
  for (std::size_t v = 0; v < available.size(); ++v)
    available[v] = made_by_[v] == kNobody ? graph_->values[v].nbytes : 0;
  const auto done = [&](std::size_t member) { return at[member].first >= operators_[member].shape.rows; };
  struct Pending {
    Granule granule;
    std::size_t next;  // the operand that it waits for
  };
  Array<Pending> pending;
  const auto wait = [&](std::size_t member) {
    pending.push_back({operators_[member].next(member, at[member].first, at[member].second), 0});
  };
  const auto advance = [&](std::size_t member) {
    pending.clear();
    wait(member);
    while (!pending.empty()) {
      Pending& top = pending.back();
      const StageOperator& op = operators_[top.granule.member];
      while (top.next < op.operands.size() &&
             available[op.operands[top.next].value] >= awaited(op.operands[top.next], top.granule))
        ++top.next;
      if (top.next < op.operands.size()) {
        wait(made_by_[op.operands[top.next].value]);
        continue;
      }
      const Granule granule = top.granule;
      pending.pop_back();
      if (!visit(granule)) return false;
      auto& [row, left] = at[granule.member];
      const bool wraps = granule.right == op.shape.columns;
      row = wraps ? granule.row + granule.rows : granule.row;
      left = wraps ? 0 : granule.right;
      for (const Result& result : op.facts->results)
        available[result.value] = row * result.shape.row_bytes() + left * result.shape.column_bytes;
    }
    return true;
  };
  Array<std::size_t> last;
  for (std::size_t m = 0; m < operators_.size(); ++m) {
    const Operator& facts = *operators_[m].facts;
    const bool read = std::ranges::any_of(facts.results, [&](const Result& r) { return !readers_[r.value].empty(); });
    if (!facts.caller && !read) last.push_back(m);
  }
  while (true) {
    std::size_t least = kNobody;
    double share = 0;
    for (const std::size_t m : last) {
      if (done(m)) continue;
      const double own = static_cast<double>(at[m].first) / static_cast<double>(operators_[m].shape.rows);
      if (least == kNobody || own < share) least = m, share = own;
    }
    if (least == kNobody) break;
    if (!advance(least)) return;
  }
  for (std::size_t m = 0; m < operators_.size(); ++m) {
    const Operator& facts = *operators_[m].facts;
    const bool wanted = !facts.caller || roles_[facts.results[0].value] == Role::kHeld;
    while (wanted && !done(m))
      if (!advance(m)) return;
  }
}

}  // namespace modelplan::rows
