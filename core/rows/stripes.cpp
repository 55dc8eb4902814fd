#include "stripes.hpp"

#include <algorithm>
#include <functional>

namespace modelplan::rows {
namespace {

void check_finished(const Stretch& stretch, const Array<std::int64_t>& upto, std::size_t but) {
  for (std::size_t m = 0; m < stretch.maps.size(); ++m)
    if (stretch.maps[m].exit && m != but && upto[m] != stretch.maps[m].rows)
      throw IllegalStripe("rows of a result are left out");
}

void widen(std::optional<Span>& wanted, Span rows) {
  if (!wanted) wanted = rows;
  wanted = Span{std::min(wanted->first, rows.first), std::max(wanted->end, rows.end)};
}

// Extends the rows kept of a map by those that a later stripe needs of it.
void keep_for_later(const Stretch& stretch, const StripeForm& form, Array<Stripe>& stripes) {
  for (std::size_t m = 0; m < stretch.maps.size(); ++m) {
    if (!stretch.maps[m].inner || !keeps(stretch, form, m)) continue;
    for (std::size_t i = stripes.size(); i-- > 1;) {
      std::optional<Span>& now = stripes[i - 1].seen[m];
      if (now && stripes[i].seen[m]) now->first = std::min(now->first, stripes[i].seen[m]->first);
    }
  }
}

// The rows of a stripe of the result from the last operator backwards; `upto` is how far each map has been made.
Stripe one_stripe(const Stretch& stretch, const StripeForm& form, Span share, const Array<std::int64_t>& upto) {
  Stripe stripe(stretch);
  const std::size_t last = stretch.operators.back().output;
  const std::int64_t total = form.cuts.back();
  Array<std::optional<Span>> wanted(stretch.maps.size());
  for (std::size_t i = stretch.operators.size(); i-- > 0;) {
    const StretchOperator& op = stretch.operators[i];
    const std::size_t y = op.output;
    auto [lo, hi] = wanted[y].value_or(Span{upto[y], upto[y]});
    if (y == last) {
      lo = share.first, hi = share.end;
    } else if (stretch.maps[y].exit) {
      const std::int64_t height = op.layer.rows_out;
      const std::int64_t part = (height * share.end + total - 1) / total;
      lo = std::min(lo, upto[y]);
      hi = std::max(hi, share.end == total ? height : wanted[y] ? hi : part);
    }
    const std::int64_t start = keeps(stretch, form, y) ? std::max(lo, upto[y]) : lo;
    stripe.seen[y] = Span{lo, hi};
    if (start >= hi) continue;
    stripe.computed[y] = Span{start, hi};
    stripe.windows[i] = input_window(op.layer, {start, hi}, form.pad[i] != 0);
    for (const std::size_t x : op.operands) widen(wanted[x], stripe.windows[i]->rows);
  }
  return stripe;
}

Array<Stripe> halo_stripes(const Stretch& stretch, const StripeForm& form) {
  const std::size_t last = stretch.operators.back().output, count = form.cuts.size() - 1;
  const auto other_exit = [&](std::size_t m) { return stretch.maps[m].exit && m != last; };
  bool one_result = stretch.maps[last].exit, any_kept = false;
  for (std::size_t m = 0; m < stretch.maps.size(); ++m) one_result = one_result && !other_exit(m);
  for (const char kept : form.kept) any_kept = any_kept || kept != 0;
  if (form.backward && (any_kept || !one_result))
    throw IllegalStripe("stripes from the last to the first keep no rows and have one result");
  Array<std::int64_t> upto(stretch.maps.size(), 0);
  Array<Stripe> stripes;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = form.backward ? count - 1 - i : i;
    if (form.backward) upto[last] = form.cuts[at];
    stripes.push_back(one_stripe(stretch, form, {form.cuts[at], form.cuts[at + 1]}, upto));
    for (std::size_t m = 0; m < upto.size(); ++m)
      if (const auto& rows = stripes.back().computed[m]) upto[m] = std::max(upto[m], rows->end);
  }
  check_finished(stretch, upto, form.backward ? last : kNobody);
  if (!form.backward) keep_for_later(stretch, form, stripes);
  return stripes;
}

// Rows at the pace of the first operator: all that depends on it follows, what else is read on demand.
class Rolling {
 public:
  using Ends = Array<std::int64_t>;  // how many rows an operator has made behind each tick

  Rolling(const Stretch& stretch, const StripeForm& form)
      : stretch_(stretch), form_(form), ends_(stretch.operators.size()), follows_(stretch.operators.size(), 0) {
    Array<char> computed(stretch.maps.size(), 0);
    for (std::size_t i = 0; i < follows_.size(); ++i) {
      const StretchOperator& op = stretch.operators[i];
      const bool depends = std::ranges::any_of(op.operands, [&](std::size_t x) { return computed[x] != 0; });
      if (i != 0 && !depends) continue;
      computed[op.output] = 1;
      follows_[i] = op.layer.kind != Layer::Kind::kCut;  // which is made for those that read it
    }
  }

  Array<Stripe> stripes() {
    const std::int64_t height = stretch_.operators[0].layer.rows_out;
    if (form_.cuts.back() != height) throw IllegalStripe("stripes at the pace of the first operator count its rows");
    Ends first(form_.cuts.begin() + 1, form_.cuts.end());
    first.resize(first.size() + stretch_.operators.size(), height);
    go_as_soon_as_possible(first);
    postpone();
    Array<std::int64_t> upto(stretch_.maps.size(), 0);
    Array<Stripe> stripes;
    for (std::size_t tick = 0; tick < first.size(); ++tick) {
      Stripe stripe = one_tick(tick, upto);
      if (std::ranges::any_of(stripe.windows, [](const auto& window) { return window.has_value(); }))
        stripes.push_back(std::move(stripe));
    }
    check_finished(stretch_, upto, kNobody);
    keep_for_later(stretch_, form_, stripes);
    return stripes;
  }

 private:
  bool follower(std::size_t op) const { return op != kNobody && follows_[op] != 0; }
  bool pads(std::size_t op) const { return form_.pad[op] != 0; }

  // The maps that an operator waits for, each with the rows above it that an operator between takes off.
  Array<std::pair<std::size_t, std::int64_t>> awaited(const StretchOperator& op) const {
    Array<std::pair<std::size_t, std::int64_t>> maps;
    for (const std::size_t x : op.operands) {
      const std::size_t maker = stretch_.maps[x].maker;
      if (maker == kNobody) continue;
      const StretchOperator& before = stretch_.operators[maker];
      if (before.layer.kind == Layer::Kind::kCut)
        maps.emplace_back(before.first, before.layer.window.before);
      else if (follower(maker))
        maps.emplace_back(x, 0);
    }
    return maps;
  }

  // A row count near `end` such that no stripe consists of padding alone.
  static std::int64_t limit(const Layer& layer, std::int64_t end) {
    if (layer.kind != Layer::Kind::kPad) return std::min(end, layer.rows_out);
    end = std::max(end, layer.window.before + 1);
    return end >= layer.window.before + layer.rows_in ? layer.rows_out : end;
  }

  // The end of the rows from `first` on, up to `last`, that an operator can compute from `most` rows of its operand.
  static std::int64_t ready(const Layer& layer, std::int64_t first, std::int64_t last, std::int64_t most, bool pad) {
    for (std::int64_t end = last; end > first; --end) {
      try {
        if (input_window(layer, {first, end}, pad).rows.end <= most) return end;
      } catch (const IllegalStripe&) {
        continue;
      }
    }
    return first;
  }

  void go_as_soon_as_possible(const Ends& first) {
    std::int64_t step = first.front();
    for (std::size_t k = 1; k < first.size(); ++k) step = std::max(step, first[k] - first[k - 1]);
    Array<std::int64_t> upto(stretch_.maps.size(), 0);
    for (const std::int64_t end : first) {
      upto[stretch_.operators[0].output] = end;
      ends_[0].push_back(end);
      for (std::size_t i = 1; i < ends_.size(); ++i) {
        if (!follower(i)) continue;
        const StretchOperator& op = stretch_.operators[i];
        std::optional<std::int64_t> have;
        for (const auto& [map, above] : awaited(op))
          have = std::min(have.value_or(upto[map] + above), upto[map] + above);
        std::int64_t& made = upto[op.output];
        const std::int64_t most = (step * op.layer.rows_out + first.back() - 1) / first.back();
        made = ready(op.layer, made, limit(op.layer, made + most), have.value_or(0), pads(i));
        ends_[i].push_back(made);
      }
    }
  }

  // Lets the operators of a branch wait for the other branch, where that keeps fewer bytes.
  //
  // Where two branches are added, one of them has the longer windows. The other need not make its rows before the sum:
  // the rows of its operand are kept anyway, for these windows. No more rows are made at once for it.
  void postpone() {
    Array<Ends> waiting(ends_.size());  // of operators that wait their rows as they were
    Array<std::size_t> unpaid;          // those of them whose wait pays only if an operator before them waits too
    for (std::size_t i = ends_.size(); i-- > 0;) {
      if (!follower(i) || !may_wait(i, waiting)) continue;
      const Ends before = ends_[i], needed = needed_ends(i);
      const std::int64_t kept = kept_bytes(i);
      std::int64_t gain = 0;
      for (std::size_t delay = 1; needed != before && delay < before.size(); ++delay) {
        Ends later = needed;
        for (std::size_t k = delay; k < later.size(); ++k) later[k] = std::max(later[k], before[k - delay]);
        const Ends now = std::exchange(ends_[i], later);
        const std::optional<std::int64_t> bytes = bytes_if_legal(i);
        if (!bytes || kept - *bytes < gain || made_at_once(later) > made_at_once(before)) {
          ends_[i] = now;
          break;
        }
        if (waiting[i].empty()) waiting[i] = before;
        gain = kept - *bytes;
        if (later == needed) break;
      }
      if (gain > 0)
        unpaid.clear();
      else if (!waiting[i].empty())
        unpaid.push_back(i);
    }
    for (const std::size_t i : unpaid) ends_[i] = waiting[i];
  }

  bool may_wait(std::size_t op, const Array<Ends>& waiting) const {
    const StretchMap& map = stretch_.maps[stretch_.operators[op].output];
    if (map.exit || !std::ranges::all_of(map.readers, [&](std::size_t r) { return follower(r); })) return false;
    return std::ranges::any_of(
        map.readers, [&](std::size_t r) { return !waiting[r].empty() || stretch_.operators[r].operands.size() > 1; });
  }

  // How many rows of an operator's result its readers have read behind each tick.
  Ends needed_ends(std::size_t op) const {
    Ends needed(ends_[op].size(), 0);
    for (const std::size_t r : stretch_.maps[stretch_.operators[op].output].readers)
      for_each_window(r, [&](std::size_t tick, const InputWindow& window) {
        needed[tick] = std::max(needed[tick], window.rows.end);
      });
    for (std::size_t k = 1; k < needed.size(); ++k) needed[k] = std::max(needed[k], needed[k - 1]);
    return needed;
  }

  template <class Visit>
  void for_each_window(std::size_t op, Visit visit) const {
    for (std::size_t k = 0; k < ends_[op].size(); ++k) {
      const Span made{k == 0 ? 0 : ends_[op][k - 1], ends_[op][k]};
      if (made.first < made.end) visit(k, input_window(stretch_.operators[op].layer, made, pads(op)));
    }
  }

  static Ends made_at_once(const Ends& ends) {
    Ends rows;
    for (std::size_t k = 0; k < ends.size(); ++k) rows.push_back(ends[k] - (k == 0 ? 0 : ends[k - 1]));
    std::ranges::sort(rows, std::greater<>());
    return rows;
  }

  std::optional<std::int64_t> bytes_if_legal(std::size_t op) const {
    try {
      return kept_bytes(op);
    } catch (const IllegalStripe&) {  // rows of padding alone
      return std::nullopt;
    }
  }

  // Bytes of an operator's result and its operands that are kept from a tick to the next, in all ticks together.
  std::int64_t kept_bytes(std::size_t op) const {
    Array<std::size_t> maps = stretch_.operators[op].operands;
    maps.push_back(stretch_.operators[op].output);
    std::ranges::sort(maps);
    maps.erase(std::unique(maps.begin(), maps.end()), maps.end());
    std::int64_t total = 0;
    for (const std::size_t m : maps) {
      const StretchMap& map = stretch_.maps[m];
      if (map.exit) continue;
      Ends first(ends_[op].size() + 1, map.rows);  // the first row that is read from each tick on
      for (const std::size_t r : map.readers)
        if (follower(r))
          for_each_window(
              r, [&](std::size_t k, const InputWindow& window) { first[k] = std::min(first[k], window.rows.first); });
      std::int64_t rows = 0;
      for (std::size_t k = ends_[op].size(); k-- > 0;) {
        const std::int64_t there = follower(map.maker) ? ends_[map.maker][k] : map.rows;
        rows += std::max<std::int64_t>(there - first[k + 1], 0);
        first[k] = std::min(first[k], first[k + 1]);
      }
      total += rows * map.row_bytes;
    }
    return total;
  }

  void make(Stripe& stripe, std::size_t op, std::int64_t end, Array<std::int64_t>& upto) const {
    const std::size_t y = stretch_.operators[op].output;
    const Span made{upto[y], end};
    stripe.windows[op] = input_window(stretch_.operators[op].layer, made, pads(op));
    stripe.computed[y] = made;
    upto[y] = end;
  }

  Stripe one_tick(std::size_t tick, Array<std::int64_t>& upto) const {
    Stripe stripe(stretch_);
    const auto read = [&](std::size_t map, auto&& visit) {
      for (std::size_t r = 0; r < stretch_.operators.size(); ++r)
        if (stripe.windows[r] && std::ranges::count(stretch_.operators[r].reads, map) != 0)
          visit(stripe.windows[r]->rows);
    };
    for (std::size_t i = 0; i < ends_.size(); ++i)
      if (follower(i) && ends_[i][tick] > upto[stretch_.operators[i].output]) make(stripe, i, ends_[i][tick], upto);
    for (std::size_t i = ends_.size(); i-- > 0;) {
      if (follower(i)) continue;
      std::int64_t wanted = 0;  // that is not there yet
      read(stretch_.operators[i].output, [&](Span rows) { wanted = std::max(wanted, rows.end); });
      if (wanted > upto[stretch_.operators[i].output]) make(stripe, i, wanted, upto);
    }
    for (std::size_t m = 0; m < stretch_.maps.size(); ++m) {
      if (!stretch_.maps[m].inner) continue;
      std::int64_t first = stripe.computed[m] ? stripe.computed[m]->first : upto[m];
      read(m, [&](Span rows) { first = std::min(first, rows.first); });
      stripe.seen[m] = Span{first, upto[m]};
    }
    return stripe;
  }

  const Stretch& stretch_;
  const StripeForm& form_;
  Array<Ends> ends_;  // of the operators that follow the first one
  Array<char> follows_;
};

}  // namespace

bool keeps(const Stretch& stretch, const StripeForm& form, std::size_t map) {
  const StretchMap& facts = stretch.maps[map];
  return facts.exit || (facts.owner != kNobody && form.kept[facts.owner] != 0);
}

Array<Stripe> stripes_of(const Stretch& stretch, const StripeForm& form) {
  return form.rolling ? Rolling(stretch, form).stripes() : halo_stripes(stretch, form);
}

}  // namespace modelplan::rows
