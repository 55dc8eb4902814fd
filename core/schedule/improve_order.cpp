#include "schedule/improve_order.hpp"

#include <algorithm>
#include <compare>

#include "schedule/live.hpp"
#include "schedule/parts.hpp"

namespace modelplan::schedule {
namespace {

constexpr std::size_t kWindows[] = {16, 40, 80};
constexpr std::int64_t kWindowSteps = 400'000;
constexpr std::size_t kWindowStates = 20'000;
constexpr std::size_t kReach = 60;  // how far one operator is moved

struct Score {
  Bytes peak = 0;
  int at_peak = 0;
  double squares = 0;

  auto operator<=>(const Score&) const = default;
};

Score score_of(View<const Bytes> profile) {
  Score score;
  for (const Bytes b : profile) {
    if (b > score.peak) score = {b, 0, score.squares};
    if (b == score.peak) ++score.at_peak;
    score.squares += static_cast<double>(b) * static_cast<double>(b);
  }
  return score;
}

class Improver {
 public:
  Improver(const ScheduleInstance& g, Array<int> order, Bytes enough, const Rules& rules, Meter& meter)
      : g_(&g), order_(std::move(order)), enough_(enough), rules_(rules), meter_(&meter), partition_(g) {}

  Array<int> run() {
    while (!meter_->stopped()) {
      measure();
      if (score_.peak <= enough_ || !(resolve_windows() || move_one())) break;
    }
    return std::move(order_);
  }

 private:
  void measure() {
    profile_ = profile_of(*g_, order_);
    meter_->spend(g_->ops);
    score_ = score_of(profile_);
    peak_at_ = as_size(std::max_element(profile_.begin(), profile_.end()) - profile_.begin());
  }

  Live live_before(std::size_t step) {
    Live live(*g_);
    for (std::size_t i = 0; i < step; ++i) live.add(order_[i]);
    meter_->spend(static_cast<std::int64_t>(step));
    return live;
  }

  // Replaces a window around the first peak step by an order of the same operators with a lower peak.
  bool resolve_windows() {
    for (const std::size_t width : kWindows) {
      const std::size_t from = peak_at_ > width / 2 ? peak_at_ - width / 2 : 0;
      const std::size_t to = std::min(order_.size(), from + width);
      const Part part = partition_.cut(live_before(from), View<const int>(order_).subspan(from, to - from));
      const Meter::Slice slice(*meter_, kWindowSteps);
      SearchLimits limits;
      limits.floor = enough_;
      limits.ceiling = score_.peak - 1;
      limits.states = kWindowStates;
      const SearchResult found = search(part.instance, rules_, limits, *meter_);
      if (found.verdict != Verdict::kFeasible) continue;
      const auto window = part.whole(found.order);
      std::copy(window.begin(), window.end(), order_.begin() + static_cast<std::ptrdiff_t>(from));
      return true;
    }
    return false;
  }

  // The positions that the operator at `step` may take without passing a predecessor or a successor.
  std::pair<std::size_t, std::size_t> slack(std::size_t step) const {
    const int v = order_[step];
    std::size_t low = step, high = step;
    while (low > 0 && step - low < kReach && !g_->preds.has(v, order_[low - 1])) --low;
    while (high + 1 < order_.size() && high - step < kReach && !g_->succs.has(v, order_[high + 1])) ++high;
    return {low, high};
  }

  Array<std::size_t> near_the_peak() const {
    Array<std::size_t> out;
    const std::size_t from = peak_at_ > kReach ? peak_at_ - kReach : 0;
    for (std::size_t i = from; i < std::min(order_.size(), peak_at_ + kReach); ++i) out.push_back(i);
    return out;
  }

  bool move_one() {
    for (const std::size_t step : near_the_peak()) {
      const auto [low, high] = slack(step);
      if (low == high) continue;
      const bool before = step <= peak_at_;  // past the peak, or in front of it
      const std::size_t first = before ? std::max(peak_at_, step + 1) : low;
      const std::size_t last = before ? high : std::min(peak_at_, step - 1);
      for (std::size_t to = first; to <= last && to <= high; ++to)
        if (to >= low && try_move(step, to)) return true;
      if (meter_->stopped()) return false;
    }
    return false;
  }

  bool try_move(std::size_t from, std::size_t to) {
    const std::size_t low = std::min(from, to), high = std::max(from, to);
    auto window = Array<int>(order_.begin() + static_cast<std::ptrdiff_t>(low),
                             order_.begin() + static_cast<std::ptrdiff_t>(high) + 1);
    if (from < to)
      std::rotate(window.begin(), window.begin() + 1, window.end());
    else
      std::rotate(window.begin(), window.end() - 1, window.end());
    Live live = live_before(low);
    auto profile = profile_;
    for (std::size_t i = 0; i < window.size(); ++i) {
      profile[low + i] = live.transient(window[i]);
      if (profile[low + i] > score_.peak) return false;
      live.add(window[i]);
    }
    meter_->spend(static_cast<std::int64_t>(profile.size()));
    if (!(score_of(profile) < score_)) return false;
    std::copy(window.begin(), window.end(), order_.begin() + static_cast<std::ptrdiff_t>(low));
    return true;
  }

  const ScheduleInstance* g_;
  Array<int> order_;
  Bytes enough_;
  Rules rules_;
  Meter* meter_;
  Partition partition_;
  Array<Bytes> profile_;
  Score score_;
  std::size_t peak_at_ = 0;
};

}  // namespace

Array<int> improve_order(const ScheduleInstance& instance, Array<int> order, Bytes enough, const Rules& rules,
                         Meter& meter) {
  if (order.empty()) return order;
  return Improver(instance, std::move(order), enough, rules, meter).run();
}

}  // namespace modelplan::schedule
