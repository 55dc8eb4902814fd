#include "schedule/order_search.hpp"

#include <algorithm>
#include <queue>
#include <tuple>

#include "schedule/cut.hpp"
#include "schedule/flow_bound.hpp"
#include "schedule/live.hpp"
#include "schedule/states.hpp"
#include "schedule/walker.hpp"

namespace modelplan::schedule {
namespace {

struct Entry {
  Bytes label;
  int depth;
  Bytes bytes;
  int state;
};

// The least label first; then the deepest, the lightest, the newest.
struct Later {
  bool operator()(const Entry& a, const Entry& b) const {
    return std::tuple(a.label, -a.depth, a.bytes, -a.state) > std::tuple(b.label, -b.depth, b.bytes, -b.state);
  }
};

// The lightest first; then the deepest.
struct Heavier {
  bool operator()(const Entry& a, const Entry& b) const {
    return std::tuple(a.bytes, -a.depth, -a.state) > std::tuple(b.bytes, -b.depth, -b.state);
  }
};

template <class Compare>
using Queue = std::priority_queue<Entry, Array<Entry>, Compare>;

class OrderSearch {
 public:
  OrderSearch(const ScheduleInstance& g, const Rules& rules, const SearchLimits& limits, Meter& meter)
      : g_(&g),
        rules_(rules),
        limits_(limits),
        meter_(&meter),
        walker_(g, meter),
        cut_(g, meter),
        flow_bound_(g, meter),
        table_(g.ops),
        valley_(g.ops),
        sides_(g.ops, Side::waiting) {}

  SearchResult run();

 private:
  void start_here();
  bool step(int s);
  void expand(int s);
  void reach(int parent, View<const int> path, Bytes label);
  Array<int> within(View<const int> path, View<const int> chosen) const;
  bool fits(View<const int> path, Bytes label);
  Array<int> lightest_between(View<const int> path);
  bool look_ahead(int s);
  Bytes bound_beyond();
  bool worth_looking() const;
  void rank_critical();
  bool commit(int s);
  bool macro_move(int s);
  Array<int> find_valley(int s);
  bool valley_reach(int parent, int v, Bytes start, Queue<Heavier>& queue);
  bool worth_a_macro() const {
    return macro_cost_ <= 2 * (meter_->used() - start_steps_ - macro_cost_ - look_cost_) + 20'000;
  }
  bool full() const { return table_.size() >= limits_.states || table_.memory() >= limits_.memory; }

  const ScheduleInstance* g_;
  Rules rules_;
  SearchLimits limits_;
  Meter* meter_;
  Walker walker_;
  CutFinder cut_;
  FlowBound flow_bound_;
  StateTable table_, valley_;
  Queue<Later> queue_;
  Array<Side> sides_;
  Array<int> prefix_, path_;
  Array<int> ready_;
  Bytes level_ = 0;
  Bytes root_bytes_ = 0;
  Bytes blocked_ = std::numeric_limits<Bytes>::max();
  std::int64_t popped_ = 0;
  std::int64_t macro_cost_ = 0;
  Array<int> critical_;  // operators, those that last raised a label first
  std::int64_t look_cost_ = 0;
  std::int64_t looks_ = 0;
  std::int64_t raised_ = 0;
  std::int64_t start_steps_ = 0;
};

SearchResult OrderSearch::run() {
  start_steps_ = meter_->used();
  level_ = limits_.floor;
  if (rules_.free_move) walker_.close(level_, prefix_);
  start_here();
  SearchResult result;
  while (!queue_.empty()) {
    const Entry top = queue_.top();
    level_ = std::max(level_, top.label);
    result.proven = level_;
    result.states = popped_;
    if (!meter_->spend(1) || full()) {
      result.ended = meter_->stopped() ? meter_->ended() : Ended::kMemory;
      return result;
    }
    queue_.pop();
    if (table_[top.state].label < top.label) continue;
    ++popped_;
    if (!step(top.state)) continue;
    result.verdict = Verdict::kFeasible;
    result.states = popped_;
    result.order = prefix_;
    const auto rest = table_.path_to(top.state);
    result.order.insert(result.order.end(), rest.begin(), rest.end());
    result.peak = peak_of(*g_, result.order);
    return result;
  }
  result.verdict = Verdict::kInfeasible;
  result.proven = blocked_;
  result.states = popped_;
  return result;
}

// Makes the walker's set the only state.
void OrderSearch::start_here() {
  table_.clear();
  queue_ = {};
  root_bytes_ = walker_.live().bytes();
  const int s = table_.add({walker_.key(), walker_.live().bytes(), level_, 0, -1, walker_.depth()}, walker_.bits());
  queue_.push({level_, walker_.depth(), walker_.live().bytes(), s});
}

// Handles one state; true when it holds all operators.
bool OrderSearch::step(int s) {
  if (table_[s].depth == g_->ops) return true;
  walker_.go(table_.bits(s));
  if (rules_.commit && s != 0 && table_[s].bytes <= root_bytes_ && commit(s)) return false;
  if (rules_.look_ahead && table_[s].bound == 0 && worth_looking() && look_ahead(s)) return false;
  if (rules_.macro_move && worth_a_macro()) {
    const std::int64_t before = meter_->used();
    const bool found = macro_move(s);
    macro_cost_ += found ? 0 : meter_->used() - before;
    if (found) return false;
  }
  expand(s);
  return false;
}

// Few looks that raise nothing are a reason to look more rarely.
bool OrderSearch::worth_looking() const {
  constexpr int kMostOps = 3000;  // beyond that ranking the operators alone costs more than it brings
  return g_->ops <= kMostOps && popped_ >= limits_.look_ahead_after &&
         (looks_ < 500 || raised_ * 25 >= looks_ || popped_ % 64 == 0);
}

// Raises the label of a state to what some operator beyond it will need; true when that puts the state off.
bool OrderSearch::look_ahead(int s) {
  ++looks_;
  const std::int64_t before = meter_->used();
  const Bytes bound = bound_beyond();
  look_cost_ += meter_->used() - before;
  table_[s].bound = std::max<Bytes>(bound, 1);
  if (bound <= table_[s].label) return false;
  ++raised_;
  if (bound > limits_.ceiling) {
    blocked_ = std::min(blocked_, bound);
    return true;
  }
  table_[s].label = bound;
  queue_.push({bound, table_[s].depth, table_[s].bytes, s});
  return true;
}

// The flow bound beyond the walker's set at the operators that raised labels of late, and at one more in turn.
Bytes OrderSearch::bound_beyond() {
  constexpr int kTried = 3;
  if (critical_.empty()) rank_critical();
  Bytes most = 0;
  int tried = 0;
  const std::size_t turn = as_size(looks_) % critical_.size();
  for (std::size_t i = 0; i < critical_.size() && tried <= kTried; ++i) {
    const std::size_t at = tried < kTried ? i : (i + turn) % critical_.size();
    const int v = critical_[at];
    if (walker_.live().done(v)) continue;
    ++tried;
    most = std::max(most, flow_bound_.at(v, nullptr, &walker_.live()));
    if (most <= level_) continue;
    std::rotate(critical_.begin(), critical_.begin() + static_cast<std::ptrdiff_t>(at),
                critical_.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    break;
  }
  return most;
}

// The operators with the highest flow bounds of their own first.
void OrderSearch::rank_critical() {
  Array<Bytes> own;
  for (int v = 0; v < g_->ops; ++v) {
    critical_.push_back(v);
    own.push_back(meter_->stopped() ? 0 : flow_bound_.at(v));
  }
  std::stable_sort(critical_.begin(), critical_.end(), [&](int a, int b) { return own[a] > own[b]; });
}

void OrderSearch::expand(int s) {
  const auto ready = walker_.live().ready();
  ready_.assign(ready.begin(), ready.end());
  std::sort(ready_.begin(), ready_.end());
  const Bytes label = table_[s].label;
  for (const int v : ready_) {
    meter_->spend(1);
    const Bytes reached = std::max(label, walker_.live().transient(v));
    if (reached > limits_.ceiling) {
      blocked_ = std::min(blocked_, reached);
      continue;
    }
    const int one[] = {v};
    reach(s, one, reached);
  }
}

// Adds the state that `path` leads to from `parent`, the set of the walker, which returns to it.
void OrderSearch::reach(int parent, View<const int> path, Bytes label) {
  path_.assign(path.begin(), path.end());
  for (const int v : path) walker_.add(v);
  if (rules_.free_move) walker_.close(label, path_);
  int s = table_.find(walker_.key(), walker_.bits());
  if (s >= 0) label = std::max(label, table_[s].bound);
  const bool better = s < 0 || table_[s].label > label;
  if (s < 0) s = table_.add({walker_.key(), walker_.live().bytes(), label, 0, parent, walker_.depth()}, walker_.bits());
  if (better) {
    table_[s].label = label;
    table_[s].parent = parent;
    table_.set_path(s, path_);
    queue_.push({label, walker_.depth(), walker_.live().bytes(), s});
  }
  for (std::size_t i = path_.size(); i-- > 0;) walker_.remove(path_[i]);
}

Array<int> OrderSearch::within(View<const int> path, View<const int> chosen) const {
  Array<char> keep(g_->ops, 0);
  for (const int v : chosen) keep[v] = 1;
  Array<int> out;
  for (const int v : path)
    if (keep[v] != 0) out.push_back(v);
  return out;
}

// Whether `path`, from the set of the walker, stays under the label; the walker returns.
bool OrderSearch::fits(View<const int> path, Bytes label) {
  std::size_t ran = 0;
  while (ran < path.size() && walker_.live().transient(path[ran]) <= label) walker_.add(path[ran++]);
  for (std::size_t i = ran; i-- > 0;) walker_.remove(path[i]);
  return ran == path.size();
}

// The part of `path`, from the set of the walker, that leads to the largest of the lightest sets on the way.
Array<int> OrderSearch::lightest_between(View<const int> path) {
  for (int v = 0; v < g_->ops; ++v) sides_[v] = walker_.live().done(v) ? Side::executed : Side::waiting;
  for (const int v : path) sides_[v] = Side::free;
  cut_.least(sides_, path, {}, true);
  return within(path, cut_.largest_set(path));
}

// From the committed set to a state no heavier: some least-peak order passes the lightest set between, so start there.
bool OrderSearch::commit(int s) {
  const auto path = table_.path_to(s);
  walker_.go(table_.bits(0));
  const auto chosen = lightest_between(path);
  if (chosen.empty() || !fits(chosen, level_)) {
    walker_.go(table_.bits(s));
    return false;
  }
  prefix_.insert(prefix_.end(), chosen.begin(), chosen.end());
  for (const int v : chosen) walker_.add(v);
  if (rules_.free_move) walker_.close(level_, prefix_);
  start_here();
  return true;
}

bool OrderSearch::macro_move(int s) {
  const auto path = find_valley(s);
  walker_.go(table_.bits(s));
  if (path.empty()) return false;
  const auto chosen = lightest_between(path);
  if (chosen.empty() || !fits(chosen, level_)) return false;
  reach(s, chosen, level_);
  return true;
}

// A path of few steps under the level to a set no heavier than the state; empty when 64 looks find none.
Array<int> OrderSearch::find_valley(int s) {
  constexpr int kLooks = 64;
  valley_.clear();
  Queue<Heavier> queue;
  const Bytes start = table_[s].bytes;
  valley_.add({walker_.key(), start, level_, 0, -1, walker_.depth()}, walker_.bits());
  queue.push({level_, walker_.depth(), start, 0});
  for (int looks = 0; looks < kLooks && !queue.empty(); ++looks) {
    const int from = queue.top().state;
    queue.pop();
    walker_.go(valley_.bits(from));
    const auto ready = walker_.live().ready();
    ready_.assign(ready.begin(), ready.end());
    std::sort(ready_.begin(), ready_.end());
    for (const int v : ready_)
      if (valley_reach(from, v, start, queue)) return valley_.path_to(static_cast<int>(valley_.size()) - 1);
  }
  return {};
}

// Tries `v` from a state of the valley search; true when the newest state is no heavier than the start.
bool OrderSearch::valley_reach(int parent, int v, Bytes start, Queue<Heavier>& queue) {
  meter_->spend(1);
  if (walker_.live().transient(v) > level_) return false;
  path_.assign(1, v);
  walker_.add(v);
  walker_.close(level_, path_);
  const bool light = walker_.live().bytes() <= start;
  if (valley_.find(walker_.key(), walker_.bits()) < 0) {
    const int t =
        valley_.add({walker_.key(), walker_.live().bytes(), level_, 0, parent, walker_.depth()}, walker_.bits());
    valley_.set_path(t, path_);
    queue.push({level_, walker_.depth(), walker_.live().bytes(), t});
  }
  for (std::size_t i = path_.size(); i-- > 0;) walker_.remove(path_[i]);
  return light;
}

}  // namespace

SearchResult search(const ScheduleInstance& instance, const Rules& rules, const SearchLimits& limits, Meter& meter) {
  return OrderSearch(instance, rules, limits, meter).run();
}

}  // namespace modelplan::schedule
