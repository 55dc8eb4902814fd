#include "local_search.hpp"

#include <algorithm>
#include <cmath>

namespace modelplan::solver {
namespace {

constexpr int kPatience = 150;   // trials without improvement before a fresh start
constexpr int kPlainStarts = 6;  // later starts are noisy
constexpr std::int64_t kSpareNodes = 200;
constexpr Pick kPicks[] = {Pick::kLowestTop, Pick::kSlack};
constexpr double kShapes[][2] = {{1, 0}, {1, 0.3}, {0.5, 1}};  // exponents of width and size

}  // namespace

template <class Coord>
void LocalSearch<Coord>::start() {
  pick_ = kPicks[(starts_ + variant_) % 2];
  mirrored_ = starts_ / 6 % 2 == 1;
  const auto& shape = kShapes[starts_ / 2 % 3];
  keys_.resize(instance_.items.size());
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    const Item& item = instance_.items[i];
    keys_[i] = shape[0] * std::log(item.last - item.first) + shape[1] * std::log(static_cast<double>(item.size));
    if (starts_ >= kPlainStarts) keys_[i] += 0.3 * (random_.unit() - 0.5);
  }
  ++starts_;
  missing_ = instance_.count() + 1;
  idle_ = 0;
  trial_ = keys_;
}

template <class Coord>
Verdict LocalSearch<Coord>::evaluate(PackingSearch<Coord>& search, Bytes height, Meter& meter) {
  Poller poller(meter.signal());
  const Verdict found = search.run(height, {pick_, mirrored_}, Orders::ranks_of(trial_, poller),
                                   instance_.count() + kSpareNodes, meter, instance_.count() - missing_);
  nodes_ += search.nodes();
  return found;
}

// Changes the keys of one to eight buffers, half of them from where the last trial failed.
template <class Coord>
void LocalSearch<Coord>::perturb(const PackingSearch<Coord>& search) {
  trial_ = keys_;
  for (std::int64_t moves = 1 + random_.below(8); moves > 0; --moves) {
    const View<const Id> failed = search.failed_members(random_);
    const bool local = random_.below(2) == 0 && !failed.empty();
    const std::int64_t item = local ? failed[random_.below(std::ssize(failed))] : random_.below(instance_.count());
    trial_[item] += 2 * random_.unit() - 0.8;
  }
}

template <class Coord>
void LocalSearch<Coord>::follow(const LocalSearch& leader) {
  pick_ = leader.pick_;
  mirrored_ = leader.mirrored_;
  keys_ = trial_ = leader.keys_;
  height_ = -1;
  idle_ = 0;
}

template <class Coord>
Verdict LocalSearch<Coord>::run(PackingSearch<Coord>& search, Bytes height, Meter& meter) {
  nodes_ = 0;
  if (keys_.empty()) start();
  if (height != height_) {
    height_ = height;
    missing_ = instance_.count() + 1;
    trial_ = keys_;
  }
  while (!meter.exhausted()) {
    const Verdict found = evaluate(search, height, meter);
    const Id missing = instance_.count() - search.deepest();
    if (found == Verdict::kFeasible) {
      keys_ = trial_;
      idle_ = 0;
    }
    if (found != Verdict::kUnknown) return found;
    if (meter.exhausted()) break;  // the trial is repeated by the next run
    ++idle_;
    if (missing < missing_ && missing_ <= instance_.count()) idle_ = 0;
    if (missing <= missing_) {
      missing_ = missing;
      keys_.swap(trial_);
    }
    if (idle_ > kPatience) {
      start();
    } else {
      perturb(search);
    }
  }
  return Verdict::kUnknown;
}

template class LocalSearch<std::int32_t>;
template class LocalSearch<std::int64_t>;

}  // namespace modelplan::solver
