#include "schedule/cut.hpp"

#include <algorithm>

namespace modelplan::schedule {
namespace {

constexpr std::int64_t kVisitsPerStep = 4;
constexpr int kOutside = -1;  // the graph's own input or output
constexpr int kNone = -2;
constexpr int kSeveral = -3;

// The operators at one end of a class: one on a fixed side, or the free ones among `ops`.
struct End {
  int fixed = kNone;
  int free_count = 0;
  int one_free = kNone;
};

End look(View<const int> ops, const Array<Side>& sides, Side fixed_side, bool outside) {
  End end;
  for (const int v : ops) {
    const Side side = sides[v];
    if (side == fixed_side && end.fixed == kNone) end.fixed = v;
    if (side == Side::free) {
      ++end.free_count;
      end.one_free = v;
    }
  }
  if (end.fixed == kNone && outside) end.fixed = kOutside;
  return end;
}

}  // namespace

CutFinder::CutFinder(const ScheduleInstance& g, Meter& meter)
    : g_(&g), meter_(&meter), node_(g.ops, 0), seen_(g.classes, 0) {}

Bytes CutFinder::least(const Array<Side>& sides, View<const int> free_ops, View<const int> skipped, bool touched_only) {
  ++round_;
  constant_ = 0;
  class_arcs_.clear();
  precedences_.clear();
  fixed_.clear();
  net_.reset(static_cast<int>(free_ops.size()));
  for (std::size_t i = 0; i < free_ops.size(); ++i) node_[free_ops[i]] = static_cast<int>(i) + 2;
  for (const int c : skipped) seen_[c] = round_;
  add_precedences(sides, free_ops);
  const auto add_once = [&](int c) {
    if (seen_[c] == round_) return;
    seen_[c] = round_;
    add_class(sides, c);
  };
  for (const int v : free_ops) {
    for (const int c : g_->writes[v]) add_once(c);
    for (const int c : g_->reads[v]) add_once(c);
  }
  if (!touched_only)
    for (int c = 0; c < g_->classes; ++c) add_once(c);
  const std::int64_t before = net_.visits();
  const Bytes found = constant_ + net_.maximise();
  meter_->spend((net_.visits() - before) / kVisitsPerStep + static_cast<std::int64_t>(free_ops.size()));
  return found;
}

void CutFinder::add_precedences(const Array<Side>& sides, View<const int> free_ops) {
  for (const int v : free_ops)
    for (const int p : g_->preds[v])
      if (sides[p] == Side::free)
        precedences_.push_back({{v, p, -1, 0}, net_.add_arc(open_end(v), open_end(p), FlowNetwork::kUnbounded)});
}

void CutFinder::add_class(const Array<Side>& sides, int c) {
  const auto i = as_size(c);
  const End in = look(g_->writers[c], sides, Side::executed, g_->from_start[i] != 0);
  const End out = look(g_->readers[c], sides, Side::waiting, g_->to_end[i] != 0);
  if (g_->size[i] == 0 || (in.fixed == kNone && in.free_count == 0)) return;
  if (out.fixed == kNone && out.free_count == 0) return;
  if (in.fixed != kNone && out.fixed != kNone) {
    constant_ += g_->size[i];
    fixed_.push_back({in.fixed, out.fixed, c, g_->size[i]});
    return;
  }
  ClassArcs arcs{c, -1, in.fixed, out.fixed, {}, {}};
  int from = FlowNetwork::kSource;
  int to = FlowNetwork::kSink;
  if (in.fixed == kNone) {
    arcs.one_in = in.free_count == 1 ? in.one_free : kSeveral;
    from = in.free_count == 1 ? open_end(in.one_free) : net_.add_node();
  }
  if (out.fixed == kNone) {
    arcs.one_out = out.free_count == 1 ? out.one_free : kSeveral;
    to = out.free_count == 1 ? open_end(out.one_free) : net_.add_node();
  }
  arcs.middle = net_.add_arc(from, to, g_->size[i]);
  if (arcs.one_in == kSeveral)
    for (const int w : g_->writers[c])
      if (sides[w] == Side::free) arcs.in.push_back({w, net_.add_arc(open_end(w), from, FlowNetwork::kUnbounded)});
  if (arcs.one_out == kSeveral)
    for (const int r : g_->readers[c])
      if (sides[r] == Side::free) arcs.out.push_back({r, net_.add_arc(to, open_end(r), FlowNetwork::kUnbounded)});
  class_arcs_.push_back(std::move(arcs));
}

Array<int> CutFinder::largest_set(View<const int> free_ops) const {
  const auto side = net_.largest_source_side();
  Array<int> out;
  for (const int v : free_ops)
    if (side[open_end(v)] != 0) out.push_back(v);
  return out;
}

// Pairs what enters a class with what leaves it; both sum to the flow through its middle arc.
Array<FlowArc> CutFinder::shares(const ClassArcs& arcs) const {
  const Bytes through = net_.flow(arcs.middle);
  const auto ends = [&](int one, const Array<OpArc>& several) {
    Array<std::pair<int, Bytes>> out;
    if (one != kSeveral) out.emplace_back(one, through);
    for (const OpArc& t : several)
      if (net_.flow(t.arc) > 0) out.emplace_back(t.op, net_.flow(t.arc));
    return out;
  };
  auto in = ends(arcs.one_in, arcs.in);
  auto out = ends(arcs.one_out, arcs.out);
  Array<FlowArc> found;
  for (std::size_t i = 0, o = 0; i < in.size() && o < out.size() && through > 0;) {
    const Bytes amount = std::min(in[i].second, out[o].second);
    if (amount > 0) found.push_back({in[i].first, out[o].first, arcs.by, amount});
    in[i].second -= amount;
    out[o].second -= amount;
    if (in[i].second == 0)
      ++i;
    else
      ++o;
  }
  return found;
}

Array<FlowArc> CutFinder::transfers() const {
  Array<FlowArc> out = fixed_;
  for (const ClassArcs& arcs : class_arcs_) {
    const auto found = shares(arcs);
    out.insert(out.end(), found.begin(), found.end());
  }
  for (const auto& [arc, number] : precedences_)
    if (net_.flow(number) > 0) out.push_back({arc.from, arc.to, -1, net_.flow(number)});
  return out;
}

}  // namespace modelplan::schedule
