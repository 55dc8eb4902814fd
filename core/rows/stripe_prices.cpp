#include "stripe_prices.hpp"

#include <algorithm>
#include <limits>

namespace modelplan::rows {
namespace {

// The operators of all stripes in the order in which they run, and what each needs.
class Pricing {
 public:
  Pricing(const Stretch& stretch, const StripeForm& form, const StripePrices& prices)
      : stretch_(stretch), form_(form), prices_(prices), stripes_(stripes_of(stretch, form)) {
    for (std::size_t i = 0; i < stripes_.size(); ++i) {
      number_.emplace_back(stretch.operators.size(), kNobody);
      for (std::size_t op = 0; op < stretch.operators.size(); ++op) {
        if (!stripes_[i].windows[op]) continue;
        number_[i][op] = runs_.size();
        runs_.push_back({i, op, padded_bytes(stretch.operators[op], *stripes_[i].windows[op])});
      }
    }
  }

  StripeCost cost(Bytes across) {
    StripeCost cost;
    cost.peak = peak(across);
    cost.ops = -static_cast<std::int64_t>(stretch_.operators.size());
    for (const std::int64_t own : prices_.tail) cost.tail -= own;
    for (const Run& run : runs_) {
      const std::int64_t computed = window(run).computed;
      cost.macs += computed * stretch_.operators[run.op].layer.row_macs;
      cost.ops += 1;
      cost.tail += prices_.tail[run.op];
      cost.time += prices_.run[run.op] + prices_.row[run.op] * static_cast<double>(computed);
      count_around(run);
    }
    const std::int64_t count = static_cast<std::int64_t>(form_.cuts.size()) - 1, most = prices_.most_joined;
    const std::int64_t joins = 1 + (count > most ? (count + most - 1) / most : 0);
    for (const StretchMap& map : stretch_.maps)
      for (std::int64_t k = 0; map.exit && k < joins; ++k) add(prices_.join, 0, 2);
    cost.ops += added_.ops;
    cost.tail += added_.tail;
    cost.time += added_.time;
    return cost;
  }

 private:
  struct Run {
    std::size_t stripe, op;
    Bytes padded;  // of the padded window, 0 where there is none
  };

  const InputWindow& window(const Run& run) const { return *stripes_[run.stripe].windows[run.op]; }

  Bytes padded_bytes(const StretchOperator& op, const InputWindow& window) const {
    if (!window.padded || op.layer.kind != Layer::Kind::kWindow) return 0;
    if (window.above == 0 && window.below == 0 && op.layer.across == 0) return 0;
    const StretchMap& x = stretch_.maps[op.first];
    const std::int64_t height = window.rows.end - window.rows.first + window.above + window.below;
    return height * (x.row_bytes / std::max<std::int64_t>(x.columns, 1)) * (x.columns + op.layer.across);
  }

  Bytes peak(Bytes across) {
    live_.assign(runs_.size(), across);
    dying_.assign(runs_.size(), 0);
    for (std::size_t m = 0; m < stretch_.maps.size(); ++m) {
      const StretchMap& map = stretch_.maps[m];
      map.inner && !keeps(stretch_, form_, m) ? live_in_stripes(m) : live_on(m);
    }
    Bytes peak = 0;
    for (std::size_t n = 0; n < runs_.size(); ++n) {
      const StretchOperator& op = stretch_.operators[runs_[n].op];
      const std::int64_t computed = window(runs_[n]).computed;
      const Bytes born = computed * stretch_.maps[op.output].row_bytes, padded = runs_[n].padded;
      const Bytes scratch = prices_.scratch[runs_[n].op] * computed / std::max<std::int64_t>(op.layer.rows_out, 1);
      const Bytes dying = dying_[n] + padded;
      if (padded > 0) peak = std::max(peak, live_[n] + padded);
      peak = std::max(peak, live_[n] + padded + scratch + born - std::min(dying, born));
    }
    return peak;
  }

  // Rows that are recomputed for each stripe live from their making to their last reader there.
  void live_in_stripes(std::size_t m) {
    const StretchMap& map = stretch_.maps[m];
    for (std::size_t i = 0; i < stripes_.size(); ++i) {
      if (!stripes_[i].computed[m]) continue;
      const auto [lo, hi] = *stripes_[i].computed[m];
      const std::size_t first = number_[i][map.maker];
      std::size_t last = first;
      for (const std::size_t r : map.readers)
        if (number_[i][r] != kNobody) last = std::max(last, number_[i][r]);
      for (std::size_t n = first + 1; n <= last; ++n) live_[n] += (hi - lo) * map.row_bytes;
      if (last > first) dying_[last] += (hi - lo) * map.row_bytes;
    }
  }

  // Rows that are kept, or of a map from outside, live until nobody reads them any more.
  void live_on(std::size_t m) {
    const StretchMap& map = stretch_.maps[m];
    const bool all =
        map.turned || map.exit || (!map.inner && map.read_later);  // rows lie all over a map that is turned
    needed_.assign(runs_.size() + 1, all ? 0 : map.rows);
    ends_.assign(runs_.size() + 1, map.inner ? 0 : map.rows);
    for (std::size_t i = 0; i < stripes_.size(); ++i) {
      for (const std::size_t r : map.readers)
        if (const std::size_t n = number_[i][r]; n != kNobody)
          needed_[n] = std::min(needed_[n], stripes_[i].windows[r]->rows.first);
      if (map.inner && stripes_[i].computed[m]) ends_[number_[i][map.maker] + 1] = stripes_[i].computed[m]->end;
    }
    for (std::size_t n = runs_.size(); n-- > 0;) needed_[n] = std::min(needed_[n], needed_[n + 1]);
    for (std::size_t n = 0; n < runs_.size(); ++n) {
      if (n > 0) ends_[n] = std::max(ends_[n], ends_[n - 1]);
      const std::int64_t during = std::max<std::int64_t>(ends_[n] - needed_[n], 0);
      const std::int64_t after = std::max<std::int64_t>(ends_[n] - needed_[n + 1], 0);
      live_[n] += during * map.row_bytes;
      dying_[n] += (during - after) * map.row_bytes;
    }
  }

  void add(const AddedPrice& price, Bytes elements, std::int64_t copies) {
    added_.ops += 1;
    added_.tail += price.tail;
    added_.time += price.time(elements, copies);
  }

  void slice(const StretchMap& map, std::int64_t rows) {
    const Bytes elements = rows * map.row_bytes;
    add(prices_.slice, elements, elements / std::max<std::int64_t>(map.channels, 1));
  }

  // Counts the operators that pad, cut and join around one that runs.
  void count_around(const Run& run) {
    const StretchOperator& op = stretch_.operators[run.op];
    const Stripe& stripe = stripes_[run.stripe];
    const StretchMap& y = stretch_.maps[op.output];
    const auto [a, b] = *stripe.computed[op.output];
    const std::int64_t lo = stripe.seen[op.output]->first;
    if (run.padded != 0) add(prices_.pad, run.padded, run.padded / std::max<std::int64_t>(y.channels, 1));
    if (window(run).computed != b - a) slice(y, b - a);
    if (lo < a) {
      slice(y, a - lo);
      add(prices_.join, (b - lo) * y.row_bytes, 2);
    }
    const Span read = window(run).rows;
    for (const std::size_t x : op.operands) {
      const Span there = stripe.seen[x].value_or(Span{0, op.layer.rows_in});
      if (read.first != there.first || read.end != there.end) slice(stretch_.maps[x], read.end - read.first);
    }
  }

  const Stretch& stretch_;
  const StripeForm& form_;
  const StripePrices& prices_;
  Array<Stripe> stripes_;
  Array<Run> runs_;
  Array<Array<std::size_t>> number_;  // the run of each operator in each stripe
  Array<Bytes> live_, dying_;         // of each run
  Array<std::int64_t> needed_, ends_;
  StripeCost added_;
};

}  // namespace

StripeCost cost_of(const Stretch& stretch, const StripeForm& form, const StripePrices& prices, Bytes across) {
  return Pricing(stretch, form, prices).cost(across);
}

std::optional<Array<std::size_t>> cheapest_plan(View<const Bytes> peaks, View<const PricedStretch> stretches,
                                                Bytes target, double price) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  Array<double> costs(peaks.size() + 1, 0.0);                 // of all operators before each step
  Array<std::size_t> chosen(peaks.size(), stretches.size());  // the stretch that ends with each step, if any
  std::size_t next = 0;
  for (std::size_t step = 0; step < peaks.size(); ++step) {
    double least = peaks[step] <= target ? costs[step] : kNone;
    for (; next < stretches.size() && stretches[next].last == step; ++next) {
      const PricedStretch& stretch = stretches[next];
      if (stretch.peak > target) continue;
      const double cost =
          costs[stretch.first] + static_cast<double>(stretch.tail) + price * std::max(stretch.time, 0.0);
      if (cost >= least) continue;
      least = cost;
      chosen[step] = next;
    }
    costs[step + 1] = least;
  }
  if (costs.back() == kNone) return std::nullopt;
  Array<std::size_t> plan;
  for (std::size_t step = peaks.size(); step-- > 0;) {
    if (chosen[step] == stretches.size()) continue;
    plan.push_back(chosen[step]);
    step = stretches[chosen[step]].first;
  }
  std::ranges::reverse(plan);
  return plan;
}

}  // namespace modelplan::rows
