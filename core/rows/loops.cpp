#include "loops.hpp"

#include <algorithm>
#include <limits>

namespace modelplan::rows {
namespace {

constexpr std::int64_t kSlack = 12;  // how many rows more than the least a window has at most
constexpr std::int64_t kRank = 4;    // numbers of a begin vector

[[noreturn]] void refuse() { throw IllegalStripe("no window height suits all iterations"); }

// `rows_of_window` of an operator that enlarges its map, where all rows that have a part are in the window.
std::optional<RowsMade> enlarged(const Layer& layer, Span wanted, Span fed) {
  const auto& [reach, stride, before] = layer.window;
  const std::int64_t rows = fed.end - fed.first, skip = wanted.first - fed.first * stride;
  const std::int64_t computed = layer.own ? rows * stride : (rows - 1) * stride + reach;
  if (skip < 0 || skip + wanted.end - wanted.first > computed) return std::nullopt;
  return RowsMade{skip, computed};
}

// The same of a PAD, which puts its borders around every window: they count where the map has them too.
std::optional<RowsMade> bordered(const Layer& layer, Span wanted, Span fed) {
  const std::int64_t above = layer.window.before, below = layer.rows_out - layer.rows_in - above;
  const std::int64_t skip = wanted.first - fed.first, computed = above + fed.end - fed.first + below;
  const std::int64_t end = skip + wanted.end - wanted.first;
  if (skip < 0 || end > computed || (fed.first > 0 && skip < above)) return std::nullopt;
  if (fed.end < layer.rows_in && end > computed - below) return std::nullopt;
  return RowsMade{skip, computed};
}

std::optional<RowsMade> made_of(const Layer& layer, Span wanted, Span fed) {
  if (layer.kind == Layer::Kind::kGrow) return enlarged(layer, wanted, fed);
  return layer.kind == Layer::Kind::kPad ? bordered(layer, wanted, fed) : rows_of_window(layer, wanted, fed);
}

// The lowest windows of one height of which each makes its rows `ends`; what `made` says of each is added to `facts`. A
// window holds the rows `least` and is moved up from there; `made` says nothing where a window makes the rows wrong.
template <class Made, class Fact>
IterationRows common_window(const Array<Span>& ends, const Array<Span>& least, std::int64_t rows_in, Made made,
                            Array<Fact>& facts) {
  std::int64_t shortest = 0;
  for (const Span& rows : least) shortest = std::max(shortest, rows.end - rows.first);
  for (std::int64_t height = shortest; height <= std::min(shortest + kSlack, rows_in); ++height) {
    IterationRows window{{}, height};
    facts.clear();
    for (std::size_t k = 0; k < ends.size() && window.starts.size() == k; ++k) {
      const std::int64_t lowest = std::max<std::int64_t>(0, least[k].end - height);
      for (std::int64_t start = std::min(least[k].first, rows_in - height); start >= lowest; --start)
        if (const auto fact = made(ends[k], Span{start, start + height})) {
          window.starts.push_back(start);
          facts.push_back(*fact);
          break;
        }
    }
    if (window.starts.size() == ends.size()) return window;
  }
  refuse();
}

// The smallest window of one extent that covers all runs in each iteration.
IterationRows covering(const Array<const IterationRows*>& runs, std::int64_t height) {
  IterationRows window = *runs[0];
  for (std::size_t k = 0; k < window.starts.size(); ++k) {
    Span rows = runs[0]->in(k);
    for (const IterationRows* run : runs)
      rows = {std::min(rows.first, run->in(k).first), std::max(rows.end, run->in(k).end)};
    window.starts[k] = rows.first;
    window.extent = std::max(window.extent, rows.end - rows.first);
  }
  for (std::int64_t& start : window.starts) start = std::min(start, height - window.extent);
  return window;
}

// The rows that operators make at a time, found from the last one backwards.
class LoopedRows {
 public:
  LoopedRows(const Stretch& stretch, const Array<Layer>& layers, std::int64_t rows)
      : stretch_(stretch), layers_(layers) {
    const std::int64_t total = layers.back().rows_out;
    for (std::int64_t start = 0; start < total; start += rows)
      found_.result.starts.push_back(std::min(start, total - rows));  // the last run overlaps the one before
    found_.result.extent = rows;
    found_.operators.resize(layers.size());
  }

  LoopRows rows(bool trim_late) {
    trim_late ? pass_on() : cut_each();
    find_used();
    return std::move(found_);
  }

 private:
  std::size_t result() const { return stretch_.operators.back().output; }

  // Every operator's surplus rows are cut off at once.
  void cut_each() {
    Array<Array<const IterationRows*>> wanted(stretch_.maps.size());
    wanted[result()].push_back(&found_.result);
    Array<IterationRows> held(stretch_.maps.size()), windows(layers_.size());
    for (std::size_t i = layers_.size(); i-- > 0;) {
      const StretchOperator& op = stretch_.operators[i];
      if (wanted[op.output].empty()) throw IllegalStripe("nothing in the loop reads what an operator makes");
      held[op.output] = covering(wanted[op.output], layers_[i].rows_out);
      windows[i] = window_of(i, held[op.output]);
      for (const std::size_t x : op.operands) wanted[x].push_back(&windows[i]);
    }
    for (std::size_t i = 0; i < layers_.size(); ++i)
      for (const std::size_t x : stretch_.operators[i].operands) {
        IterationRows taken = windows[i];
        for (std::size_t k = 0; k < taken.starts.size() && stretch_.maps[x].inner; ++k)
          taken.starts[k] -= held[x].starts[k];
        found_.operators[i].taken.push_back(std::move(taken));
      }
  }

  // The least window that makes the rows `held` as they are; notes what the operator makes of it.
  IterationRows window_of(std::size_t i, const IterationRows& held) {
    const Layer& layer = layers_[i];
    Array<Span> ends, least;
    for (std::size_t k = 0; k < held.starts.size(); ++k) {
      ends.push_back(held.in(k));
      least.push_back(input_window(layer, ends.back(), layer.paddable).rows);
    }
    Array<RowsMade> made;
    IterationRows window = common_window(
        ends, least, layer.rows_in, [&](Span wanted, Span fed) { return made_of(layer, wanted, fed); }, made);
    found_.operators[i].computed = made[0].computed;
    found_.operators[i].kept.extent = held.extent;
    for (const RowsMade& rows : made) found_.operators[i].kept.starts.push_back(rows.skip);
    return window;
  }

  // A chain of operators in which each takes all rows of the one before.
  void pass_on() {
    std::size_t at = stretch_.operators[0].first;
    for (const StretchOperator& op : stretch_.operators) {
      if (op.operands.size() != 1 || op.operands[0] != op.first || op.first != at)
        throw IllegalStripe("an operator is not a link of a chain");
      at = op.output;
    }
    Array<Span> ends, least;
    for (std::size_t k = 0; k < found_.result.starts.size(); ++k) {
      ends.push_back(found_.result.in(k));
      least.push_back(least_window(ends.back()));
    }
    Array<std::int64_t> cuts;
    IterationRows window = common_window(
        ends, least, layers_[0].rows_in, [&](Span wanted, Span fed) { return cut_behind(wanted, fed); }, cuts);
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      LoopedOperator& op = found_.operators[i];
      op.computed = rows_made(layers_[i], window.extent);
      op.taken.push_back(std::move(window));
      window = op.kept = {Array<std::int64_t>(cuts.size(), 0), op.computed};
    }
    found_.operators.back().kept = {std::move(cuts), found_.result.extent};
  }

  Span least_window(Span rows) const {
    for (std::size_t i = layers_.size(); i-- > 0;) {
      const Layer& layer = layers_[i];
      if (layer.kind != Layer::Kind::kWindow && layer.kind != Layer::Kind::kPointwise)
        throw IllegalStripe("an operator in a loop whose rows are not those of a window");
      rows = input_window(layer, rows, layer.paddable).rows;
    }
    return rows;
  }

  // How many of the last rows that the chain makes of a window come before `rows`; nothing where it makes these wrong.
  std::optional<std::int64_t> cut_behind(Span rows, Span fed) const {
    Array<Span> wanted(layers_.size(), rows);
    for (std::size_t i = layers_.size(); i-- > 1;)
      wanted[i - 1] = input_window(layers_[i], wanted[i], layers_[i].paddable).rows;
    std::int64_t skip = 0;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const auto made = rows_of_window(layers_[i], wanted[i], fed);
      if (!made) return std::nullopt;
      skip = made->skip;
      fed = {wanted[i].first - skip, wanted[i].first - skip + made->computed};
      if (fed.first < 0 || fed.end > layers_[i].rows_out) return std::nullopt;
    }
    return skip;
  }

  static std::int64_t rows_made(const Layer& layer, std::int64_t height) {
    const auto& [reach, stride, before] = layer.window;
    if (layer.kind != Layer::Kind::kWindow) return height;
    return layer.own ? (height + stride - 1) / stride : (height - reach) / stride + 1;
  }

  void find_used() {
    Array<Array<Span>> wanted(stretch_.maps.size());
    for (std::size_t k = 0; k < found_.result.starts.size(); ++k) wanted[result()].push_back(found_.result.in(k));
    for (std::size_t i = layers_.size(); i-- > 0;) {
      const StretchOperator& op = stretch_.operators[i];
      Array<Span>& used = found_.operators[i].used;
      for (const Span& rows : wanted[op.output]) used.push_back(source_rows(layers_[i], rows));
      for (const std::size_t x : op.operands)
        for (std::size_t k = 0; k < used.size(); ++k) {
          if (wanted[x].size() == k) wanted[x].push_back(used[k]);
          wanted[x][k] = {std::min(wanted[x][k].first, used[k].first), std::max(wanted[x][k].end, used[k].end)};
        }
    }
  }

  const Stretch& stretch_;
  const Array<Layer>& layers_;
  LoopRows found_;
};

Array<Layer> layers_of(const Stretch& stretch) {
  Array<Layer> layers;
  for (const StretchOperator& op : stretch.operators) layers.push_back(op.layer);
  return layers;
}

// The body of a loop and the maps around it.
class LoopPricing {
 public:
  LoopPricing(const Stretch& stretch, const LoopForm& form, const StripePrices& prices)
      : stretch_(stretch), form_(form), prices_(prices) {
    const std::size_t last = stretch.operators.back().output;
    bool enters = false;
    for (std::size_t m = 0; m < stretch.maps.size(); ++m) {
      if (stretch.maps[m].exit != (m == last)) throw IllegalStripe("a loop needs one map that leaves it");
      enters = enters || !stretch.maps[m].inner;
    }
    if (!enters) throw IllegalStripe("a loop needs a map that enters it");
    along_ = loop_rows(stretch, layers_of(stretch), form.rows, form.trim_late);
    if (form.columns > 0) across_ = loop_rows(stretch, form.across, form.columns, form.trim_late);
    tiles_ = along_.result.starts.size() * (across_ ? across_->result.starts.size() : 1);
    if (tiles_ < 2 || tiles_ > prices.most_tiles) throw IllegalStripe("a loop of too few or too many iterations");
  }

  StripeCost cost(Bytes across) {
    last_.assign(stretch_.maps.size(), kNobody);
    held_.assign(stretch_.maps.size(), 0);
    for (std::size_t i = 0; i < stretch_.operators.size(); ++i)
      for (const std::size_t x : stretch_.operators[i].reads) last_[x] = i;
    for (std::size_t i = 0; i < stretch_.operators.size(); ++i) run(i);
    time_ += prices_.update.time(kept_, kept_ / channels(stretch_.operators.back().output));
    time_ += prices_.iteration + static_cast<double>(2 + slices_) * prices_.slice.time(kRank, 1);
    const auto count = static_cast<std::int64_t>(tiles_);
    const std::int64_t tail = prices_.loop.tail + prices_.update.tail + (2 + 2 * slices_) * prices_.slice.tail;
    return {across + around() + worst_, count * macs_, 4 + 2 * slices_, tail, static_cast<double>(count) * time_};
  }

 private:
  Bytes channels(std::size_t map) const { return std::max<std::int64_t>(stretch_.maps[map].channels, 1); }

  void run(std::size_t i) {
    const StretchOperator& op = stretch_.operators[i];
    const StretchMap& y = stretch_.maps[op.output];
    const std::optional<TurnedOperand>& turned = form_.turned[i];
    Bytes windows = 0;
    for (std::size_t at = 0; at < op.operands.size(); ++at) {
      const StretchMap& x = stretch_.maps[op.operands[at]];
      const std::int64_t columns = across_  ? across_->operators[i].taken[at].extent
                                   : turned ? turned->columns
                                            : x.columns;
      const Bytes pixel = turned ? turned->pixel : x.row_bytes / x.columns;
      const Bytes size = along_.operators[i].taken[at].extent * columns * pixel;
      if (held_[op.operands[at]] == size) continue;
      windows += size;
      ++slices_;
      time_ += prices_.slice.time(size, size / channels(op.operands[at]));
    }
    const auto made = [&](std::int64_t along, std::int64_t columns) {
      return y.row_bytes / y.columns * along * (across_ ? columns : y.columns);
    };
    const LoopedOperator& rows = along_.operators[i];
    const Bytes computed = made(rows.computed, across_ ? across_->operators[i].computed : 0);
    kept_ = made(rows.kept.extent, across_ ? across_->operators[i].kept.extent : 0);
    const Bytes whole = std::max<Bytes>(y.rows * y.row_bytes, 1);
    Bytes held = 0;
    for (const Bytes size : held_) held += size;
    worst_ = std::max(worst_, held + windows + computed + prices_.scratch[i] * computed / whole);
    macs_ += op.layer.row_macs * computed / std::max<Bytes>(y.row_bytes, 1);
    const double alone = prices_.run[i] + prices_.row[i] * static_cast<double>(op.layer.rows_out);
    time_ += alone * static_cast<double>(computed) / static_cast<double>(whole);
    if (kept_ != computed) {
      ++slices_;
      time_ += prices_.slice.time(kept_, kept_ / channels(op.output));
    }
    held_[op.output] = kept_;
    for (std::size_t m = 0; m < held_.size(); ++m)
      if (!stretch_.maps[m].exit && (last_[m] == kNobody || last_[m] == i)) held_[m] = 0;
  }

  // The most bytes around the loop: of what enters those that are still read, of the result those that are made.
  Bytes around() const {
    Array<Bytes> total(along_.result.starts.size(), 0);
    for (std::size_t m = 0; m < stretch_.maps.size(); ++m)
      if (!stretch_.maps[m].inner) add_entering(m, total);
    const StretchMap& result = stretch_.maps[stretch_.operators.back().output];
    const std::int64_t begun = across_ ? along_.result.extent : 0;  // a stripe of tiles is made in pieces
    Bytes most = 0;
    for (std::size_t k = 0; k < total.size(); ++k)
      most = std::max(most, total[k] + (along_.result.starts[k] + begun) * result.row_bytes);
    return most;
  }

  void add_entering(std::size_t m, Array<Bytes>& total) const {
    const StretchMap& map = stretch_.maps[m];
    Bytes room = map.row_bytes;
    Array<std::int64_t> needed(total.size(), map.read_later ? 0 : std::numeric_limits<std::int64_t>::max());
    for (std::size_t i = stretch_.operators.size(); i-- > 0;) {
      const StretchOperator& op = stretch_.operators[i];
      for (std::size_t at = 0; at < op.operands.size(); ++at) {
        if (op.operands[at] != m) continue;
        if (form_.turned[i]) room = form_.turned[i]->room;
        for (std::size_t k = 0; k < needed.size(); ++k)
          needed[k] = std::min(needed[k], along_.operators[i].taken[at].starts[k]);
      }
    }
    for (std::size_t k = needed.size(); k-- > 1;) needed[k - 1] = std::min(needed[k - 1], needed[k]);
    for (std::size_t k = 0; k < total.size(); ++k) total[k] += map.rows * map.row_bytes - needed[k] * room;
  }

  const Stretch& stretch_;
  const LoopForm& form_;
  const StripePrices& prices_;
  LoopRows along_;
  std::optional<LoopRows> across_;
  std::size_t tiles_ = 0;
  Array<std::size_t> last_;  // the last reader of each map in the body
  Array<Bytes> held_;        // of each map that the body makes
  Bytes worst_ = 0, kept_ = 0;
  std::int64_t macs_ = 0, slices_ = 0;
  double time_ = 0;
};

}  // namespace

LoopRows loop_rows(const Stretch& stretch, const Array<Layer>& layers, std::int64_t rows, bool trim_late) {
  return LoopedRows(stretch, layers, rows).rows(trim_late);
}

StripeCost cost_of(const Stretch& stretch, const LoopForm& form, const StripePrices& prices, Bytes across) {
  return LoopPricing(stretch, form, prices).cost(across);
}

}  // namespace modelplan::rows
