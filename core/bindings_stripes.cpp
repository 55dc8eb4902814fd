// Stretches in stripes, as a class of the module: operators and maps in tables, their rows and what they cost.
#include <nanobind/stl/optional.h>

#include "bindings.hpp"
#include "rows/carrying.hpp"
#include "rows/loops.hpp"

namespace modelplan {
namespace {

using namespace nb::literals;
using Doubles = nb::ndarray<nb::numpy, const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

rows::StretchMap map_of(const Table& maps, std::size_t at, std::size_t operators) {
  Row row(maps, at, 11);
  const auto operator_or_nobody = [&] {
    const std::int64_t number = row.number();
    if (number >= static_cast<std::int64_t>(operators)) throw std::invalid_argument("a map is made by nobody");
    return number < 0 ? rows::kNobody : as_size(number);
  };
  return {row.number(), row.number(), row.flag(),   row.flag(),           row.flag(),           row.flag(),
          row.number(), row.number(), row.number(), operator_or_nobody(), operator_or_nobody(), {}};
}

rows::Layer layer_of(Row& row) {
  rows::Layer layer;
  layer.kind = static_cast<rows::Layer::Kind>(row.index(5));
  layer.rows_in = row.number();
  layer.rows_out = row.number();
  layer.row_macs = row.number();
  layer.window = {row.number(), row.number(), row.number()};
  layer.own = row.flag();
  layer.paddable = row.flag();
  layer.blocks = row.flag();
  layer.across = row.number();
  if (layer.window.stride < 1) throw std::invalid_argument("windows of a layer do not go forward");
  return layer;
}

// A stretch whose forms are asked for their rows and prices.
class BoundStretch {
 public:
  BoundStretch(const Table& operators, const Table& maps, const Table& reads, const std::optional<Table>& turned)
      : turned_(operators.shape(0)) {
    for (std::size_t i = 0; i < maps.shape(0); ++i) stretch_.maps.push_back(map_of(maps, i, operators.shape(0)));
    for (std::size_t i = 0; i < operators.shape(0); ++i) {
      Row row(operators, i, 14);
      stretch_.operators.push_back({row.number(), layer_of(row), row.index(maps.shape(0)), rows::kNobody, {}, {}});
      if (const std::int64_t first = row.number(); first >= 0 && as_size(first) < maps.shape(0))
        stretch_.operators.back().first = as_size(first);
    }
    if (stretch_.operators.empty()) throw std::invalid_argument("a stretch has operators");
    for (std::size_t i = 0; i < reads.shape(0); ++i) {
      Row row(reads, i, 3);
      const std::size_t op = row.index(operators.shape(0)), map = row.index(maps.shape(0));
      stretch_.operators[op].reads.push_back(map);
      if (row.flag()) stretch_.operators[op].operands.push_back(map);
      stretch_.maps[map].readers.push_back(op);
    }
    for (std::size_t i = 0; turned && i < turned->shape(0); ++i) {
      Row row(*turned, i, 4);
      std::optional<rows::TurnedOperand>& operand = turned_[row.index(operators.shape(0))];
      operand = rows::TurnedOperand{row.number(), row.number(), row.number()};
    }
  }

  // (stripes, seen, computed, windows), or why there are none of this form.
  nb::object rows(const Array<std::int64_t>& cuts, const Array<std::int64_t>& pad, const Array<std::int64_t>& kept,
                  bool rolling, bool backward) const {
    Array<std::int64_t> seen, computed, windows;
    std::int64_t number = 0;
    try {
      for (const rows::Stripe& stripe : rows::stripes_of(stretch_, form(cuts, pad, kept, rolling, backward))) {
        for (std::size_t m = 0; m < stretch_.maps.size(); ++m) {
          const std::int64_t tensor = stretch_.maps[m].tensor;
          if (const auto& run = stripe.seen[m]) seen.insert(seen.end(), {number, tensor, run->first, run->end});
          if (const auto& run = stripe.computed[m])
            computed.insert(computed.end(), {number, tensor, run->first, run->end});
        }
        for (std::size_t i = 0; i < stretch_.operators.size(); ++i)
          if (const auto& w = stripe.windows[i])
            windows.insert(windows.end(), {number, stretch_.operators[i].number, w->rows.first, w->rows.end, w->above,
                                           w->below, w->skip, w->computed, w->padded});
        ++number;
      }
    } catch (const rows::IllegalStripe& reason) {
      return nb::str(reason.what());
    }
    return nb::make_tuple(number, column_of(std::move(seen)), column_of(std::move(computed)),
                          column_of(std::move(windows)));
  }

  // (peak, macs, ops, tail, time), or None where there are no stripes of this form.
  nb::object price(const Array<std::int64_t>& cuts, const Array<std::int64_t>& pad, const Array<std::int64_t>& kept,
                   bool rolling, bool backward, const rows::StripePrices& prices, std::int64_t across) const {
    if (prices.tail.size() != stretch_.operators.size()) throw std::invalid_argument("each operator has a price");
    return priced([&] { return rows::cost_of(stretch_, form(cuts, pad, kept, rolling, backward), prices, across); });
  }

  // (starts of the result, (computed, kept, their starts) of each operator, (operator, extent, starts) of each operand,
  // rows used of each operator), or why there is no such loop.
  nb::object loop_rows(std::int64_t made, bool trim_late, const std::optional<Table>& layers) const {
    Array<std::int64_t> operators, operands, used;
    try {
      const rows::LoopRows found = rows::loop_rows(stretch_, layers_of(layers), at_least_one(made), trim_late);
      for (std::size_t i = 0; i < found.operators.size(); ++i) {
        const rows::LoopedOperator& op = found.operators[i];
        operators.insert(operators.end(), {op.computed, op.kept.extent});
        operators.insert(operators.end(), op.kept.starts.begin(), op.kept.starts.end());
        for (const rows::IterationRows& taken : op.taken) {
          operands.insert(operands.end(), {static_cast<std::int64_t>(i), taken.extent});
          operands.insert(operands.end(), taken.starts.begin(), taken.starts.end());
        }
        for (const rows::Span& rows : op.used) used.insert(used.end(), {rows.first, rows.end});
      }
      return nb::make_tuple(found.result.starts, column_of(std::move(operators)), column_of(std::move(operands)),
                            column_of(std::move(used)));
    } catch (const rows::IllegalStripe& reason) {
      return nb::str(reason.what());
    }
  }

  // As `price`, of a loop; `layers` are those along the other axis, which is cut into tiles of so many `columns`.
  nb::object loop_price(std::int64_t made, bool trim_late, const std::optional<Table>& layers, std::int64_t columns,
                        const rows::StripePrices& prices, std::int64_t across) const {
    if (prices.tail.size() != stretch_.operators.size()) throw std::invalid_argument("each operator has a price");
    if (columns > 0 && !layers) throw std::invalid_argument("tiles need layers along both axes");
    const rows::LoopForm form{at_least_one(made), trim_late, layers_of(layers), columns, turned_};
    return priced([&] { return rows::cost_of(stretch_, form, prices, across); });
  }

  // (iterations, (tensor, new rows, ahead, held) of each map that is made, operators that are padded), or why there is
  // no loop that carries rows.
  nb::object carried_rows(std::int64_t made, std::int64_t most) const {
    Array<std::int64_t> maps, padded;
    try {
      const rows::CarriedRows found = rows::carried_rows(stretch_, at_least_one(made), most);
      for (std::size_t m = 0; m < stretch_.maps.size(); ++m)
        if (const rows::CarriedMap& map = found.maps[m]; stretch_.maps[m].inner)
          maps.insert(maps.end(), {stretch_.maps[m].tensor, map.fresh, map.ahead, map.held});
      for (std::size_t i = 0; i < stretch_.operators.size(); ++i)
        if (found.padded[i] != 0) padded.push_back(stretch_.operators[i].number);
      return nb::make_tuple(found.iterations, column_of(std::move(maps)), padded);
    } catch (const rows::IllegalStripe& reason) {
      return nb::str(reason.what());
    }
  }

  // As `price`, of a loop that carries rows.
  nb::object carrying_price(std::int64_t made, const rows::StripePrices& prices, std::int64_t across) const {
    if (prices.tail.size() != stretch_.operators.size()) throw std::invalid_argument("each operator has a price");
    return priced([&] {
      const rows::CarriedRows found =
          rows::carried_rows(stretch_, at_least_one(made), static_cast<std::int64_t>(prices.most_tiles));
      return rows::cost_of(stretch_, found, prices, across);
    });
  }

 private:
  template <class Price>
  static nb::object priced(Price&& price) {
    try {
      const rows::StripeCost cost = price();
      return nb::make_tuple(cost.peak, cost.macs, cost.ops, cost.tail, cost.time);
    } catch (const rows::IllegalStripe&) {
      return nb::none();
    }
  }

  static std::int64_t at_least_one(std::int64_t rows) {
    if (rows < 1) throw std::invalid_argument("a loop makes rows");
    return rows;
  }

  // The layers of a table, without one those of the operators along their axis.
  Array<rows::Layer> layers_of(const std::optional<Table>& table) const {
    Array<rows::Layer> layers;
    if (table && table->shape(0) != stretch_.operators.size()) throw std::invalid_argument("each operator has a layer");
    for (std::size_t i = 0; i < stretch_.operators.size(); ++i) {
      if (table) {
        Row row(*table, i, 11);
        layers.push_back(layer_of(row));
      } else {
        layers.push_back(stretch_.operators[i].layer);
      }
    }
    return layers;
  }

  rows::StripeForm form(const Array<std::int64_t>& cuts, const Array<std::int64_t>& pad,
                        const Array<std::int64_t>& kept, bool rolling, bool backward) const {
    if (cuts.size() < 2 || cuts.back() < 1) throw rows::IllegalStripe("stripes have two borders, and rows between");
    const auto flags = [&](const Array<std::int64_t>& numbers) {
      Array<char> found;
      for (const rows::StretchOperator& op : stretch_.operators)
        found.push_back(std::ranges::find(numbers, op.number) != numbers.end());
      return found;
    };
    return {cuts, flags(pad), flags(kept), rolling, backward};
  }

  rows::Stretch stretch_;
  Array<std::optional<rows::TurnedOperand>> turned_;  // of each operator
};

rows::AddedPrice added_of(const Doubles& added, std::size_t row) {
  const double* at = added.data() + row * 5;
  return {static_cast<std::int64_t>(at[0]), at[1], at[2], at[3], at[4]};
}

rows::StripePrices prices_of(const Table& kept, const Doubles& times, const Doubles& added, std::int64_t most_joined) {
  if (kept.shape(1) != 2 || times.shape(1) != 2 || times.shape(0) != kept.shape(0) || added.shape(0) != 8 ||
      added.shape(1) != 5 || most_joined < 1)
    throw std::invalid_argument("prices are kept bytes and times of each operator, and of eight that are added");
  rows::StripePrices prices;
  for (std::size_t i = 0; i < kept.shape(0); ++i) {
    prices.tail.push_back(kept.data()[2 * i]);
    prices.scratch.push_back(kept.data()[2 * i + 1]);
    prices.run.push_back(times.data()[2 * i]);
    prices.row.push_back(times.data()[2 * i + 1]);
  }
  prices.pad = added_of(added, 0);
  prices.slice = added_of(added, 1);
  prices.join = added_of(added, 2);
  prices.update = added_of(added, 3);
  prices.loop = added_of(added, 4);
  prices.border = added_of(added, 5);
  prices.choice = added_of(added, 6);
  prices.moved = added_of(added, 7);
  prices.most_joined = most_joined;
  return prices;
}

// Stretches of a model by their last steps, of which plans are made for one target after the other.
class StretchSweep {
 public:
  StretchSweep(const Column& peaks, const Table& stretches, const Array<double>& times)
      : peaks_(peaks.data(), peaks.data() + peaks.size()) {
    require_same_length({stretches.shape(0), times.size()});
    std::size_t last = 0;
    for (const double time : times) {
      Row row(stretches, stretches_.size(), 4);
      const std::size_t first = row.index(peaks.size()), end = row.index(peaks.size());
      if (first > end || end < last) throw std::invalid_argument("stretches are not in the order of their last steps");
      last = end;
      stretches_.push_back({first, end, row.number(), row.number(), time});
    }
  }

  // The places of the stretches of the cheapest plan, or None where there is none.
  nb::object cheapest(Bytes target, double price) const {
    const auto plan = rows::cheapest_plan(peaks_, stretches_, target, price);
    return plan ? nb::cast(*plan) : nb::none();
  }

 private:
  Array<Bytes> peaks_;
  Array<rows::PricedStretch> stretches_;
};

}  // namespace

void bind_stripes(nb::module_& module) {
  nb::class_<rows::StripePrices>(module, "StripePrices", "What operators of a stretch and those that stripes add cost.")
      .def(
          "__init__",
          [](rows::StripePrices* self, const Table& kept, const Doubles& times, const Doubles& added,
             std::int64_t most_joined) { new (self) rows::StripePrices(prices_of(kept, times, added, most_joined)); },
          "kept"_a, "times"_a, "added"_a, "most_joined"_a)
      .def_rw("iteration", &rows::StripePrices::iteration, "Nanoseconds of an iteration beside its operators.")
      .def_rw("most_tiles", &rows::StripePrices::most_tiles, "The most iterations of a loop.");
  nb::class_<BoundStretch>(module, "Stretch", "Operators that run together stripe by stripe, in tables of int64.")
      .def(nb::init<const Table&, const Table&, const Table&, const std::optional<Table>&>(), "operators"_a, "maps"_a,
           "reads"_a, "turned"_a.none() = nb::none())
      .def(
          "rows", &BoundStretch::rows, "cuts"_a, "pad"_a, "kept"_a, "rolling"_a, "backward"_a,
          "(stripes, seen, computed, windows): rows (stripe, tensor, first, end), twice, and (stripe, operator, first, "
          "end, above, below, skip, computed, padded), flat; or why there are no stripes of this form.")
      .def("price", &BoundStretch::price, "cuts"_a, "pad"_a, "kept"_a, "rolling"_a, "backward"_a, "prices"_a,
           "across"_a, "(peak, macs, ops, tail, time), or None where there are no stripes of this form.")
      .def("loop_rows", &BoundStretch::loop_rows, "rows"_a, "trim_late"_a, "layers"_a.none() = nb::none(),
           "(starts of the result, (computed, kept, their starts) of each operator, (operator, extent, starts) of each "
           "operand, (first, end) used of each operator in each iteration), flat; or why there is no such loop.")
      .def("loop_price", &BoundStretch::loop_price, "rows"_a, "trim_late"_a, "layers"_a.none(), "columns"_a, "prices"_a,
           "across"_a, "As `price`, of a loop over so many rows, in tiles of so many columns where not 0.")
      .def("carried_rows", &BoundStretch::carried_rows, "rows"_a, "most"_a,
           "(iterations, rows (tensor, new, ahead, held), flat, padded operators) of a loop that carries rows; or why "
           "there is none.")
      .def("carrying_price", &BoundStretch::carrying_price, "rows"_a, "prices"_a, "across"_a,
           "As `price`, of a loop that carries rows.");
  nb::class_<StretchSweep>(module, "StretchSweep", "Plans of stretches (first, last, peak, tail) with their times.")
      .def(nb::init<const Column&, const Table&, const Array<double>&>(), "peaks"_a, "stretches"_a, "times"_a)
      .def("cheapest", &StretchSweep::cheapest, "target"_a, "price"_a,
           "Places of the stretches of the plan of least tail and priced time whose steps need at most `target`.");
}

}  // namespace modelplan
