#include "allocators/hill_climb.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "allocators/python_random.hpp"
#include "interval_index.hpp"
#include "place_in_order.hpp"

namespace modelplan {
namespace {

constexpr std::int64_t kUnplaced = -1;
constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMostSteps = 99999;
constexpr std::int64_t kPatience = 500;  // steps without gain before giving up
constexpr std::int64_t kStuck = 50;      // steps without gain before a second, wider swap
constexpr std::int64_t kSideways = 30;   // in 101: pick among those that are not alive with the highest buffer

// Where a pass left each buffer. A pass that is broken off leaves older values behind it.
struct State {
  Array<std::int64_t> address, end, below;  // below: the buffer that decided the address
  Array<std::size_t> turn;
};

// A set of turns that remembers in which order they came.
class Turns {
 public:
  explicit Turns(std::size_t n) : seen_(n, false) {}
  void add(std::size_t turn) {
    if (seen_[turn]) return;
    seen_[turn] = true;
    list_.push_back(turn);
  }
  const Array<std::size_t>& list() const { return list_; }

 private:
  Array<bool> seen_;
  Array<std::size_t> list_;
};

class Climber {
 public:
  Climber(const Records& records, Ints alignment, const ClimbOptions& options)
      : records_(records),
        alignment_(alignment),
        options_(options),
        n_(records.size.size()),
        alive_(records.start, records.end),
        random_(options.randomness),
        meter_({kUnlimited, options.seconds, options.cancelled}),
        state_{Array<std::int64_t>(n_, kUnplaced), Array<std::int64_t>(n_, 0), Array<std::int64_t>(n_, kUnplaced),
               Array<std::size_t>(n_, 0)} {
    for (std::size_t i = 0; i < n_; ++i) alive_.insert(i);
  }

  ClimbResult run(Ints first) {
    Array<std::size_t> order(first.begin(), first.end());
    best_ = place(order);
    if (best_ != kUnknown) keep(order);
    if (best_ > options_.load) search(std::move(order));
    return {offsets_, steps_, exhausted_ ? Ended::kBudget : meter_.ended()};
  }

 private:
  // Those alive with `i`, by the first step they share with it, then by number; `i` itself left out.
  const Array<std::size_t>& neighbours(std::size_t i) {
    around_.clear();
    std::ptrdiff_t at_start = 0;
    alive_.for_each_alive(records_.start[i], records_.end[i], [&](std::size_t j) {
      if (j == i) return;
      around_.push_back(j);
      if (records_.start[j] <= records_.start[i]) ++at_start;
    });
    std::sort(around_.begin(), around_.begin() + at_start);  // visited by start, the rest in order already
    work_ += static_cast<std::int64_t>(around_.size());
    return around_;
  }

  void place_one(std::size_t i) {
    std::int64_t address = 0, below = kUnplaced;
    neighbours(i);
    for (bool fits = false; !fits;) {
      fits = true;
      const auto is_passed = [&](std::size_t j) {
        if (state_.address[j] == kUnplaced || state_.end[j] <= address) return true;  // the address only rises
        if (state_.address[j] >= address + records_.size[i]) return false;
        fits = false;
        address = round_up(state_.end[j], alignment_[i]);
        below = static_cast<std::int64_t>(j);
        return true;
      };
      std::erase_if(around_, is_passed);
    }
    state_.address[i] = address;
    state_.end[i] = address + records_.size[i];
    state_.below[i] = below;
  }

  // The height of placing in this order, or the first height above the best known, or kUnknown when it was stopped; a
  // deadline lets the first pass end.
  std::int64_t place(const Array<std::size_t>& order) {
    std::fill(state_.address.begin(), state_.address.end(), kUnplaced);
    std::int64_t height = 0;
    for (std::size_t turn = 0; turn < n_; ++turn) {
      place_one(order[turn]);
      state_.turn[order[turn]] = turn;
      height = std::max(height, state_.end[order[turn]]);
      if (height > best_) break;
      if (!meter_.take() && (best_ != kUnknown || meter_.ended() == Ended::kCancelled)) return kUnknown;
    }
    return height;
  }

  void keep(const Array<std::size_t>& order) {
    offsets_ = state_.address;
    best_order_ = order;
    if (options_.restore) best_state_ = state_;
  }

  void search(Array<std::size_t> order) {
    std::int64_t gained = 0;
    while (goes_on(gained) && reorder(order, steps_ - gained)) {
      const std::int64_t height = place(order);
      if (height <= best_) {
        if (height < best_) gained = steps_;
        best_ = height;
        keep(order);
      } else {
        order = best_order_;
        if (options_.restore) state_ = best_state_;
      }
      ++steps_;
      if (best_ <= options_.load) return;
    }
  }

  bool goes_on(std::int64_t gained) {
    exhausted_ = steps_ >= options_.most_steps || work_ > options_.most_work;
    if (exhausted_ || meter_.ended() != Ended::kComplete) return false;
    return (best_ > options_.limit && steps_ < kMostSteps) || steps_ - gained < kPatience;
  }

  // Swaps two turns that affect the highest buffer; false when there are not two.
  bool reorder(Array<std::size_t>& order, std::int64_t stuck) {
    const auto top = as_size(std::max_element(state_.end.begin(), state_.end.end()) - state_.end.begin());
    Turns turns(n_);
    add_chain(turns, top);
    for (const std::size_t j : neighbours(top)) add_chain(turns, j);
    const Array<std::size_t> apart = not_alive_with(top, turns.list(), order);
    if (turns.list().size() < 2) return false;
    const std::size_t first = random_.up_to(100) < kSideways && !apart.empty() ? pick(apart) : pick(turns.list());
    std::size_t second = turns.list()[random_.up_to(turns.list().size() - 2)];
    if (second == first) second = turns.list().back();
    std::swap(order[first], order[second]);
    if (stuck > kStuck) swap_wider(order, turns, apart);
    return true;
  }

  void swap_wider(Array<std::size_t>& order, Turns& turns, const Array<std::size_t>& apart) {
    for (const std::size_t turn : apart)
      for (const std::size_t j : neighbours(order[turn])) turns.add(state_.turn[j]);
    const std::size_t first = pick(turns.list()), second = pick(turns.list());
    std::swap(order[first], order[second]);
  }

  std::size_t pick(const Array<std::size_t>& list) { return list[random_.up_to(list.size() - 1)]; }

  void add_chain(Turns& turns, std::size_t i) const {
    turns.add(state_.turn[i]);
    for (std::int64_t j = state_.below[i]; j != kUnplaced; j = state_.below[j]) turns.add(state_.turn[j]);
  }

  Array<std::size_t> not_alive_with(std::size_t top, const Array<std::size_t>& turns,
                                    const Array<std::size_t>& order) const {
    Array<std::size_t> found;
    for (const std::size_t turn : turns) {
      const std::size_t i = order[turn];
      if (records_.start[i] >= records_.end[top] || records_.start[top] >= records_.end[i]) found.push_back(turn);
    }
    return found;
  }

  const Records& records_;
  Ints alignment_;
  ClimbOptions options_;
  std::size_t n_;
  IntervalIndex alive_;
  PythonRandom random_;
  LimitedMeter meter_;
  State state_, best_state_;
  Array<std::size_t> best_order_, around_;
  Array<std::int64_t> offsets_;
  bool exhausted_ = false;
  std::int64_t best_ = kUnknown, steps_ = 0, work_ = 0;
};

}  // namespace

ClimbResult climb(const Records& records, Ints alignment, Ints order, const ClimbOptions& options) {
  require_permutation(order, records.size.size());
  if (order.size() != alignment.size()) throw std::invalid_argument("columns differ in length");
  if (std::any_of(records.size.begin(), records.size.end(), [](std::int64_t size) { return size < 1; }))
    throw std::invalid_argument("an empty record");
  if (order.empty()) return {{}, 0, Ended::kComplete};
  return Climber(records, alignment, options).run(order);
}

}  // namespace modelplan
