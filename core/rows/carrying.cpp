#include "carrying.hpp"

#include <algorithm>
#include <string>

namespace modelplan::rows {
namespace {

constexpr std::int64_t kRank = 4;    // numbers of a begin vector
constexpr std::int64_t kJoined = 2;  // operands of a join

std::int64_t modulo(std::int64_t value, std::int64_t step) { return (value % step + step) % step; }
std::int64_t divided(std::int64_t value, std::int64_t step) { return (value - modulo(value, step)) / step; }

std::int64_t extent_of(const Layer& layer, std::int64_t rows) {
  return (rows - 1) * layer.window.stride + layer.window.reach;
}

// Whether an operator pads by itself in the model and must not pad each of its windows.
bool needs_padding(const Layer& layer) {
  const auto& [reach, stride, before] = layer.window;
  if (layer.kind == Layer::Kind::kPointwise || !layer.own) return false;
  const bool needs = before > 0 || extent_of(layer, layer.rows_out) - before > layer.rows_in || reach > stride;
  if (needs && !layer.paddable) throw IllegalStripe("the windows of an operator take no padding");
  return needs;
}

class Carrying {
 public:
  Carrying(const Stretch& stretch, std::int64_t rows)
      : stretch_(stretch), result_(stretch.operators.back().output), aligned_(stretch.maps.size(), 0) {
    found_.maps.resize(stretch.maps.size());
    const std::int64_t height = stretch.maps[result_].rows;
    for (std::size_t m = 0; m < stretch.maps.size(); ++m) {
      if (!stretch.maps[m].inner) continue;
      found_.maps[m].fresh = rows * stretch.maps[m].rows / height;
      if (height % rows != 0 || rows * stretch.maps[m].rows % height != 0)
        throw IllegalStripe("the rows of a map do not go evenly with those of the result");
    }
    for (const StretchOperator& op : stretch.operators) {
      found_.padded.push_back(needs_padding(op.layer) ? 1 : 0);
      for (const std::size_t x : op.operands)
        if (!stretch.maps[x].inner) aligned_[op.output] = 1;
    }
  }

  CarriedRows rows(std::int64_t most) {
    for (const StretchOperator& op : stretch_.operators) find_ahead(op);
    make_late();
    const std::int64_t height = stretch_.maps[result_].rows;
    const CarriedMap& result = found_.maps[result_];
    found_.iterations = divided(height - result.ahead, result.fresh) + 1;
    if (height / result.fresh < 2 || found_.iterations > most)
      throw IllegalStripe("a loop of " + std::to_string(found_.iterations) + " iterations");
    for (CarriedMap& map : found_.maps) map.held = map.fresh;
    for (const StretchOperator& op : stretch_.operators) {
      const CarriedMap& y = found_.maps[op.output];
      const std::int64_t first = (y.ahead - y.fresh) * op.layer.window.stride - op.layer.window.before;
      for (const std::size_t x : op.operands)
        if (stretch_.maps[x].inner) found_.maps[x].held = std::max(found_.maps[x].held, found_.maps[x].ahead - first);
    }
    return std::move(found_);
  }

 private:
  // How many rows of a map are there behind iteration 0, negative where the first ones come later. Stripes of results
  // and of maps that are made of what enters begin at the border of the map.
  void find_ahead(const StretchOperator& op) {
    const Layer& layer = op.layer;
    const auto& [reach, stride, before] = layer.window;
    if ((layer.kind != Layer::Kind::kPointwise && layer.kind != Layer::Kind::kWindow) || layer.blocks)
      throw IllegalStripe("the rows of an operator cannot be carried");
    CarriedMap& y = found_.maps[op.output];
    y.ahead = y.fresh;
    for (const std::size_t x : op.operands) {
      if (!stretch_.maps[x].inner) continue;
      if (found_.maps[x].fresh != y.fresh * stride)
        throw IllegalStripe("the rows of an operator are not those of its operand in proportion");
      y.ahead = std::min(y.ahead, divided(found_.maps[x].ahead + before - reach, stride) + 1);
    }
    if (aligned_[op.output] != 0 || op.output == result_) y.ahead -= modulo(y.ahead, y.fresh);
  }

  // Maps are made no earlier than a reader needs them, so that fewer of their rows wait.
  void make_late() {
    Array<std::optional<std::int64_t>> needed(stretch_.maps.size());
    for (std::size_t i = stretch_.operators.size(); i-- > 0;) {
      const StretchOperator& op = stretch_.operators[i];
      CarriedMap& y = found_.maps[op.output];
      if (needed[op.output] && aligned_[op.output] == 0) y.ahead = std::min(y.ahead, *needed[op.output]);
      const std::int64_t last = (y.ahead - 1) * op.layer.window.stride - op.layer.window.before + op.layer.window.reach;
      for (const std::size_t x : op.operands)
        if (stretch_.maps[x].inner) needed[x] = std::max(needed[x].value_or(last), last);
    }
  }

  const Stretch& stretch_;
  std::size_t result_;
  Array<char> aligned_;  // maps that are made of what enters
  CarriedRows found_;
};

// The operators of a body in their order, and what each needs.
class CarryingPricing {
 public:
  CarryingPricing(const Stretch& stretch, const CarriedRows& rows, const StripePrices& prices)
      : stretch_(stretch), rows_(rows), prices_(prices), last_(stretch.maps.size(), kNobody), held_(last_.size(), 0) {}

  StripeCost cost(Bytes across) {
    for (std::size_t i = 0; i < stretch_.operators.size(); ++i)
      for (const std::size_t x : stretch_.operators[i].operands) last_[x] = i;
    Bytes windows = 0;
    for (std::size_t m = 0; m < held_.size(); ++m)
      if (stretch_.maps[m].inner && rows_.maps[m].carried() != 0)
        windows += rows_.maps[m].held * stretch_.maps[m].row_bytes;
    for (const AddedPrice* added : {&prices_.loop, &prices_.update, &prices_.slice, &prices_.slice, &prices_.slice})
      count(*added, kRank, 1);
    for (std::size_t i = 0; i < stretch_.operators.size(); ++i) run(i);
    const double time = static_cast<double>(rows_.iterations) * (time_ + prices_.iteration);
    return {across + windows + worst_ + around(), rows_.iterations * macs_, ops_, tail_, time};
  }

 private:
  void run(std::size_t i) {
    const StretchOperator& op = stretch_.operators[i];
    const StretchMap& y = stretch_.maps[op.output];
    const CarriedMap& rows = rows_.maps[op.output];
    Bytes copies = 0, held = 0;
    for (const std::size_t x : op.operands) copies += copied(i, x);
    for (const Bytes size : held_) held += size;
    const Bytes made = rows.fresh * y.row_bytes, whole = std::max<Bytes>(y.rows * y.row_bytes, 1);
    const bool stays = rows.carried() != 0;
    worst_ = std::max(worst_, held + std::max(copies, stays ? 0 : made) + prices_.scratch[i] * made / whole);
    macs_ += op.layer.row_macs * rows.fresh;
    const double alone = prices_.run[i] + prices_.row[i] * static_cast<double>(op.layer.rows_out);
    time_ += alone * static_cast<double>(made) / static_cast<double>(whole);
    if (stays) {
      add(prices_.join, 0, kJoined);
      count(prices_.moved, rows.carried() * y.row_bytes, y.channels);
    } else {
      held_[op.output] = made;
    }
    for (std::size_t m = 0; m < held_.size(); ++m)
      if (last_[m] == i) held_[m] = 0;
  }

  // Bytes of copies of rows that an operator reads.
  Bytes copied(std::size_t i, std::size_t m) {
    const StretchOperator& op = stretch_.operators[i];
    const StretchMap& x = stretch_.maps[m];
    const std::int64_t extent = extent_of(op.layer, rows_.maps[op.output].fresh);
    const std::int64_t there = x.inner ? rows_.maps[m].held : std::min(extent, x.rows);
    const Bytes copy = x.inner ? 0 : there * x.row_bytes;
    if (copy != 0 || (rows_.padded[i] == 0 && there != extent)) count(prices_.slice, copy, x.channels);
    if (rows_.padded[i] == 0) return copy;
    const Bytes wide = x.row_bytes * (x.columns + op.layer.across) / x.columns;
    const std::int64_t lead = x.inner ? 0 : op.layer.window.before;
    const Bytes padded = (there + lead + std::max<std::int64_t>(1, extent - lead - there)) * wide;
    count(prices_.border, padded, x.channels);
    count(prices_.slice, kRank, 1);
    count(prices_.choice, extent * wide, wide);
    return copy + padded;
  }

  // Bytes of the maps around the loop at its beginning or its end, whichever are more.
  Bytes around() const {
    Bytes entering = 0, kept = 0;
    for (const StretchMap& map : stretch_.maps) {
      if (map.inner) continue;
      entering += map.rows * map.row_bytes;
      kept += map.read_later ? map.rows * map.row_bytes : 0;
    }
    const StretchMap& result = stretch_.maps[stretch_.operators.back().output];
    return std::max(entering, kept + result.rows * result.row_bytes);
  }

  void count(const AddedPrice& added, Bytes elements, Bytes width) {
    add(added, elements, elements / std::max<Bytes>(width, 1));
  }

  void add(const AddedPrice& added, Bytes elements, std::int64_t copies) {
    ++ops_;
    tail_ += added.tail;
    time_ += added.time(elements, copies);
  }

  const Stretch& stretch_;
  const CarriedRows& rows_;
  const StripePrices& prices_;
  Array<std::size_t> last_;  // the last reader of each map in the body
  Array<Bytes> held_;        // of each map that the body makes and does not carry
  Bytes worst_ = 0;
  std::int64_t macs_ = 0, ops_ = 0, tail_ = 0;
  double time_ = 0;
};

}  // namespace

CarriedRows carried_rows(const Stretch& stretch, std::int64_t rows, std::int64_t most) {
  return Carrying(stretch, rows).rows(most);
}

StripeCost cost_of(const Stretch& stretch, const CarriedRows& rows, const StripePrices& prices, Bytes across) {
  return CarryingPricing(stretch, rows, prices).cost(across);
}

}  // namespace modelplan::rows
