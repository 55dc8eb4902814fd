#include "allocators/usmp.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <stdexcept>

#include "allocators/neighbours.hpp"
#include "place_in_order.hpp"

namespace modelplan::usmp {
namespace {

constexpr std::int64_t kNowhere = -1;

// Where a buffer may start in each pool; kNowhere once it was ruled out.
class Candidates {
 public:
  Candidates(const Problem& problem, const Pools& pools, bool fixed)
      : problem_(problem), pools_(pools), fixed_(fixed), start_(pools.limit.size()) {
    all_.resize(pools.limit.size());
    std::iota(all_.begin(), all_.end(), std::size_t{0});
  }

  const Array<std::size_t>& pools_of(std::size_t b) const {
    return pools_.of.empty() || pools_.of[b].empty() ? all_ : pools_.of[b];
  }

  void begin(std::size_t b) {
    std::fill(start_.begin(), start_.end(), kNowhere);
    for (const std::size_t p : pools_of(b))
      if (fits(p, problem_.size[b])) start_[p] = 0;
  }

  bool open(std::size_t p) const { return start_[p] != kNowhere; }
  std::int64_t start(std::size_t p) const { return start_[p]; }

  // Original: starts are rounded to the alignment of the conflict.
  std::int64_t above(std::size_t b, std::size_t conflict, std::int64_t offset) const {
    const std::int64_t end = offset + problem_.size[conflict];
    return round_up(end, problem_.alignment[fixed_ ? b : conflict]);
  }

  // Original: a pool that was ruled out enters again with a later conflict, at that conflict's end.
  void raise(std::size_t b, std::size_t p, std::int64_t next) {
    if (fixed_ && !open(p)) return;
    start_[p] = fits(p, next + problem_.size[b]) ? std::max(start_[p], next) : kNowhere;
  }

  void assign(std::size_t b, Assignment& plan) const {
    for (const std::size_t p : pools_of(b))
      if (open(p)) {
        plan.pool[b] = static_cast<std::int64_t>(p);
        plan.offset[b] = start_[p];
        return;
      }
    plan.pool[b] = kNowhere;
    plan.offset[b] = 0;
  }

 private:
  bool fits(std::size_t p, std::int64_t end) const { return pools_.limit[p] < 0 || end <= pools_.limit[p]; }

  const Problem& problem_;
  const Pools& pools_;
  bool fixed_;
  Array<std::int64_t> start_;
  Array<std::size_t> all_;
};

void require(const Problem& problem, const Lists& lists, Ints order, const Pools& pools) {
  if (!lists.empty() && lists.size() != problem.count())
    throw std::invalid_argument("the conflicts of some buffers are missing");
  for (const auto& list : lists)
    for (const std::uint32_t c : list)
      if (c >= problem.count()) throw std::invalid_argument("a list names a buffer that does not exist");
  if (pools.limit.empty()) throw std::invalid_argument("no pool given");
  if (!pools.of.empty() && pools.of.size() != problem.count())
    throw std::invalid_argument("the pools of some buffers are missing");
  for (const auto& list : pools.of)
    for (const std::size_t p : list)
      if (p >= pools.limit.size()) throw std::invalid_argument("a buffer names a pool that does not exist");
  require_permutation(order, problem.count());
}

class HillClimb {
 public:
  HillClimb(const Problem& problem, Lists conflicts, Ints order, const Pools& pools, bool fixed, const Limits& limits,
            std::uint32_t seed)
      : problem_(problem),
        pools_(pools),
        fixed_(fixed),
        conflicts_(std::move(conflicts)),
        candidates_(problem, pools, fixed),
        order_(order.begin(), order.end()),
        position_(order.size()),
        attempts_(limits.steps),
        meter_({kUnlimited, limits.seconds, limits.cancelled}),
        random_(seed) {
    for (std::size_t i = 0; i < order_.size(); ++i) position_[order_[i]] = i;
  }

  ClimbResult run(std::int64_t goal) {
    ClimbResult climb;
    for (std::int64_t k = 0; k < attempts_ && !order_.empty(); ++k) {
      const std::optional<Assignment> plan = place();
      if (!plan) break;
      ++climb.attempts;
      if (accept(*plan, k)) {
        result_ = *plan;
        if (reached(goal)) break;
      } else {
        std::swap(order_[swapped_.first], order_[swapped_.second]);
        renumber(swapped_);
        current_ = result_;
      }
      move();
    }
    climb.best = fixed_ && best_ ? *best_ : result_;
    climb.ended = meter_.ended();
    return climb;
  }

 private:
  using Pair = std::pair<std::size_t, std::size_t>;

  // Nothing when it was stopped; a deadline lets the first placement end.
  std::optional<Assignment> place() {
    Assignment plan{Array<std::int64_t>(order_.size(), kNowhere), Array<std::int64_t>(order_.size(), 0)};
    Array<bool> placed(order_.size(), false);
    for (const std::int64_t b : order_) {
      put(as_size(b), plan, placed);
      placed[b] = true;
      if (!meter_.take() && (!result_.pool.empty() || meter_.ended() == Ended::kCancelled)) return std::nullopt;
    }
    return plan;
  }

  // First fit: conflicts by rising offset move the start up only where they really are in the way.
  void put(std::size_t b, Assignment& plan, const Array<bool>& placed) {
    candidates_.begin(b);
    in_the_way_.clear();
    for (const std::uint32_t c : conflicts_[b])
      if (placed[c] && plan.pool[c] != kNowhere) in_the_way_.push_back(c);
    std::sort(in_the_way_.begin(), in_the_way_.end(), [&](auto x, auto y) { return plan.offset[x] < plan.offset[y]; });
    for (const std::uint32_t c : in_the_way_) {
      const std::size_t p = as_size(plan.pool[c]);
      if (!candidates_.open(p)) continue;
      const std::int64_t next = candidates_.above(b, c, plan.offset[c]);
      if (next > candidates_.start(p) && candidates_.start(p) + problem_.size[b] > plan.offset[c])
        candidates_.raise(b, p, next);
    }
    candidates_.assign(b, plan);
  }

  static bool complete(const Assignment& plan) {
    return std::find(plan.pool.begin(), plan.pool.end(), kNowhere) == plan.pool.end();
  }

  Array<std::int64_t> tops(const Assignment& plan) const {
    Array<std::int64_t> tops(pools_.limit.size(), 0);
    for (std::size_t b = 0; b < plan.pool.size(); ++b)
      if (plan.pool[b] != kNowhere)
        tops[plan.pool[b]] = std::max(tops[plan.pool[b]], plan.offset[b] + problem_.size[b]);
    return tops;
  }

  bool accept(const Assignment& plan, std::int64_t attempt) {
    const Array<std::int64_t> pool_tops = tops(plan);
    const std::int64_t total = std::accumulate(pool_tops.begin(), pool_tops.end(), std::int64_t{0});
    const bool fits = complete(plan);
    if (stored_ && !(fits && (total < *stored_ || forgive(total, attempt)))) return false;
    current_ = plan;
    if (fits) {
      if (!best_total_ || total < *best_total_) {
        best_total_ = total;
        best_ = plan;
      }
      stored_ = total;
    }
    return true;
  }

  // A worse plan is kept now and then, less and less often.
  bool forgive(std::int64_t total, std::int64_t attempt) {
    const auto whole = static_cast<std::uint64_t>(total), excess = static_cast<std::uint64_t>(total - *stored_);
    const std::uint64_t chance = total == 0 ? 0 : 50 * excess / whole / static_cast<std::uint64_t>(attempt);
    return static_cast<std::uint64_t>(draw() % 100) < chance;
  }

  bool reached(std::int64_t goal) const { return stored_ && complete(result_) && *stored_ <= goal; }

  // Swaps a buffer that precedes a highest one with another that might make room for it.
  void move() {
    Array<std::size_t> highest = by_position(at_the_top());
    if (highest.empty()) return;
    const std::size_t bottleneck = highest[pick(highest.size())];
    Array<std::size_t> first = earlier(bottleneck, bottleneck), second;
    for (const std::uint32_t c : conflicts_[bottleneck])
      for (const std::size_t d : earlier(c, c)) second.push_back(d);
    if (first.empty()) return;
    first = by_position(std::move(first));
    second = by_position(std::move(second));
    const std::size_t a = first[pick(first.size())];
    std::size_t b = a;
    while (b == a) {
      if (!second.empty() && draw() % 100 > 25)
        b = second[pick(second.size())];
      else
        b = first[pick(first.size())];
      if (b == a && first.size() < 2 && second.size() < 2) return;
    }
    swapped_ = {position_[a], position_[b]};
    std::swap(order_[swapped_.first], order_[swapped_.second]);
    renumber(swapped_);
  }

  Array<std::size_t> at_the_top() const {
    const Array<std::int64_t> pool_tops = tops(current_);
    Array<std::size_t> highest;
    for (std::size_t b = 0; b < current_.pool.size(); ++b)
      if (current_.pool[b] != kNowhere && problem_.size[b] > 0 &&
          current_.offset[b] + problem_.size[b] == pool_tops[current_.pool[b]])
        highest.push_back(b);
    return highest;
  }

  Array<std::size_t> earlier(std::size_t of, std::size_t than) const {
    Array<std::size_t> list;
    for (const std::uint32_t c : conflicts_[of])
      if (position_[c] < position_[than]) list.push_back(c);
    return list;
  }

  Array<std::size_t> by_position(Array<std::size_t> list) const {
    std::sort(list.begin(), list.end(), [&](auto x, auto y) { return position_[x] < position_[y]; });
    return list;
  }

  void renumber(Pair pair) {
    position_[order_[pair.first]] = pair.first;
    position_[order_[pair.second]] = pair.second;
  }

  std::int32_t draw() { return usmp::rand_r(random_); }
  std::size_t pick(std::size_t count) { return as_size(draw()) % count; }

  const Problem& problem_;
  const Pools& pools_;
  bool fixed_;
  Lists conflicts_;
  Candidates candidates_;
  Array<std::int64_t> order_;
  Array<std::size_t> position_;
  Array<std::uint32_t> in_the_way_;
  Pair swapped_{0, 0};
  Assignment current_, result_;
  std::optional<Assignment> best_;
  std::optional<std::int64_t> stored_, best_total_;
  std::int64_t attempts_;
  LimitedMeter meter_;
  std::uint32_t random_;
};

}  // namespace

Assignment greedy(const Problem& problem, const Lists& lists, Ints order, const Pools& pools, bool fixed) {
  require(problem, lists, order, pools);
  const std::size_t n = problem.count();
  Assignment plan{Array<std::int64_t>(n, kNowhere), Array<std::int64_t>(n, 0)};
  Candidates candidates(problem, pools, fixed);
  Neighbours placed(problem);
  for (const std::int64_t i : order) {
    const std::size_t b = as_size(i);
    const auto visit = [&](std::size_t c) {  // not placed yet: nowhere
      if (plan.pool[c] != kNowhere) candidates.raise(b, as_size(plan.pool[c]), candidates.above(b, c, plan.offset[c]));
    };
    candidates.begin(b);
    if (lists.empty())
      placed.for_each(b, visit);
    else
      std::for_each(lists[b].begin(), lists[b].end(), visit);
    candidates.assign(b, plan);
    placed.insert(b);
  }
  return plan;
}

ClimbResult hill_climb(const Problem& problem, const Lists& lists, Ints order, std::int64_t goal, const Pools& pools,
                       bool fixed, const Limits& limits, std::uint32_t seed) {
  require(problem, lists, order, pools);
  Lists conflicts = lists.empty() ? conflict_lists(problem) : lists;
  return HillClimb(problem, std::move(conflicts), order, pools, fixed, limits, seed).run(goal);
}

std::int32_t rand_r(std::uint32_t& state) {
  const auto next = [&] {
    state = state * 1103515245U + 12345U;
    return state >> 16;
  };
  std::uint32_t result = next() & 0x7ffU;
  for (int i = 0; i < 2; ++i) result = (result << 10) ^ (next() & 0x3ffU);
  return static_cast<std::int32_t>(result);
}

}  // namespace modelplan::usmp
