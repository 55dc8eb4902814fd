#include "pack.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <random>
#include <utility>

#include "../load_bound.hpp"
#include "constraint_search.hpp"
#include "ejecting.hpp"
#include "exact_search.hpp"
#include "few_units.hpp"
#include "packer.hpp"
#include "units.hpp"

namespace modelplan::rigid {
namespace {

constexpr std::int64_t kMany = 1000;  // tries of which some are left for the constraint search

// How a search ended that has reached `height`; `bound` is what no packing goes below.
Ended ended_at(std::int64_t height, std::int64_t bound, const Options& options, const StopSignal& signal) {
  if (height <= bound) return Ended::kOptimal;
  if (height <= options.enough) return Ended::kFits;
  if (signal.cancelled()) return Ended::kCancelled;
  return signal.stopped() ? Ended::kDeadline : Ended::kBudget;
}

// A number for each unit, the same for those of one size that live equally long: stripes of one operator, mostly.
Array<std::size_t> kinds_of(const Packer& packer) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> numbers;
  Array<std::size_t> kinds(packer.units().units.size(), 0);
  for (const std::size_t u : packer.used()) {
    const Unit& one = packer.unit(u);
    kinds[u] = numbers.emplace(std::pair(one.high, one.end - one.start), numbers.size()).first->second;
  }
  return kinds;
}

// Orders to start from: large first, late first, early first, long and large first; with a seed, roughly so.
Array<Array<std::size_t>> first_orders(const Packer& packer, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto sorted = [&](auto&& key) {
    Array<std::size_t> order = packer.used();
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
    for (std::size_t i = 1; seed != 0 && i < order.size(); ++i)
      if (random() % 2 == 0) std::swap(order[i - 1], order[i]);
    return order;
  };
  const auto size = [&](std::size_t u) { return packer.unit(u).high; };
  const auto start = [&](std::size_t u) { return packer.unit(u).start; };
  const auto end = [&](std::size_t u) { return packer.unit(u).end; };
  const auto length = [&](std::size_t u) { return end(u) - start(u); };
  return {
      sorted([&](std::size_t u) { return std::pair(-size(u), -end(u)); }),
      sorted([&](std::size_t u) { return std::pair(-end(u), -size(u)); }),
      sorted([&](std::size_t u) { return std::pair(start(u), -size(u)); }),
      sorted([&](std::size_t u) {
        return std::pair(-static_cast<double>(size(u)) * static_cast<double>(length(u)), -end(u));
      }),
      sorted([&](std::size_t u) { return std::pair(-length(u), -size(u)); }),
  };
}

class Search {
  // Looks of an ejection chain take so many times longer; tries between two looks at the signal.
  static constexpr std::int64_t kDearer = 2, kBetweenPolls = 64;

 public:
  Search(Packer& packer, const Options& options, std::int64_t bound)
      : packer_(packer),
        options_(options),
        bound_(std::max(bound, options.enough)),
        signal_(options.seconds > 0 ? options.seconds : std::numeric_limits<double>::infinity(), options.cancelled),
        random_(options.seed),
        kinds_(kinds_of(packer)),
        before_(packer.work()) {}

  // An eighth of the tries draws orders at random around the given ones; the best of them are improved one by one. The
  // last quarter pushes units out of the way.
  void run(const Array<Array<std::size_t>>& starts) {
    Array<Ranked> ranked;
    for (const auto& start : starts) rank(start, ranked);
    for (std::int64_t i = 0; i < options_.tries / 8 && !done(options_.tries); ++i) {
      Array<std::pair<double, std::size_t>> keyed;
      const auto& start = starts[below(starts.size())];
      const double spread = static_cast<double>(start.size()) * 0.25 * static_cast<double>(1 + below(4));
      for (std::size_t k = 0; k < start.size(); ++k)
        keyed.emplace_back(static_cast<double>(k) + spread * unit() * unit(), start[k]);
      std::sort(keyed.begin(), keyed.end());
      Array<std::size_t> order;
      for (const auto& [key, group] : keyed) order.push_back(group);
      rank(order, ranked);
    }
    std::stable_sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) { return a.first < b.first; });
    const std::size_t most = std::min<std::size_t>(6, ranked.size());
    const std::int64_t share = options_.tries / 8;
    for (std::size_t i = 0; i < most; ++i) climb(ranked[i].second, tries() + share);
    const std::int64_t climbing = options_.tries / 4 * 3;
    while (!done(climbing)) climb(order_, std::min(tries() + share / 2 + 1, climbing));
    lower();
  }

  const Array<std::int64_t>& bases() const { return bases_; }
  // Work done, in that of placing all units in an order.
  std::int64_t tries() const { return (packer_.work() - before_ + ejected_) / packer_.whole(); }
  Ended ended(std::int64_t bound) const { return ended_at(height_, bound, options_, signal_); }

 private:
  using Ranked = std::pair<std::int64_t, Array<std::size_t>>;

  // Pushes units out of the way until those at the top fit below it. The step down is halved where it fails; where the
  // smallest one fails, some units are placed anew at the same height. A call counts as many tries as it takes time,
  // and of many units one call may take more than all tries, but not `kOvertime` times as many.
  void lower() {
    constexpr std::int64_t kMoves = 40, kOvertime = 3;
    constexpr std::size_t kLoose = 20;
    Ejector ejector(packer_.units(), options_.seed);
    std::int64_t step = 1;
    for (const std::size_t u : packer_.used()) step = std::max(step, packer_.unit(u).step);
    const std::int64_t moves = kMoves * static_cast<std::int64_t>(packer_.used().size());
    const std::int64_t work = kOvertime * options_.tries * packer_.whole() / kDearer;
    std::int64_t down = round_up(std::max((height_ - bound_) / 4, step), step);
    while (!done(options_.tries) && !signal_.poll(tries())) {
      if (ejector.lower(bases_, std::max(height_ - down, bound_), 0, moves, work)) {
        height_ = packer_.height(bases_);
      } else if (down > step) {
        down = round_up(down / 2, step);
      } else if (ejector.lower(bases_, height_, 1 + packer_.used().size() / kLoose, moves, work)) {
        height_ = packer_.height(bases_);
        down = 8 * step;
      }
      ejected_ = kDearer * ejector.work();
    }
  }

  void rank(const Array<std::size_t>& order, Array<Ranked>& ranked) {
    const std::int64_t height = packer_.place(order, std::numeric_limits<std::int64_t>::max());
    keep(height, order);
    ranked.emplace_back(height, order);
  }

  double unit() { return static_cast<double>(random_() >> 11) * 0x1.0p-53; }

  void keep(std::int64_t height, const Array<std::size_t>& order) {
    if (!order_.empty() && height >= height_) return;
    height_ = height;
    bases_ = packer_.bases();
    order_ = order;
  }

  bool done(std::int64_t tries) {
    if (this->tries() >= tries || height_ <= bound_) return true;
    return ++asked_ % kBetweenPolls == 0 ? signal_.poll(this->tries()) : signal_.stopped();
  }

  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }

  // Moves groups in the order; a height that is not worse is kept, at first also one that is a little worse.
  void climb(Array<std::size_t> order, std::int64_t tries) {
    if (order.size() < 2) {
      ejected_ = options_.tries * packer_.whole();
      return;
    }
    std::int64_t height = packer_.place(order, std::numeric_limits<std::int64_t>::max());
    Array<std::int64_t> bases = packer_.bases();
    const std::int64_t first = this->tries();
    while (!done(tries)) {
      Array<std::size_t> moved = order;
      const Array<std::size_t>& units = shuffle(moved, bases, height);
      const double left = 1.0 - static_cast<double>(this->tries() - first) / static_cast<double>(tries - first + 1);
      const auto slack = static_cast<std::int64_t>(0.04 * left * left * unit() * static_cast<double>(height));
      const auto same = std::mismatch(moved.begin(), moved.end(), order.begin()).first - moved.begin();
      const std::int64_t found = packer_.place_moved(moved, height + slack, as_size(same), bases, units);
      if (found > height + slack) continue;
      height = found;
      order = std::move(moved);
      bases = packer_.bases();
      keep(height, order);
    }
  }

  // The group on top, or one beside it, or any, moves to a place before its own or to any; at times with all of its
  // kind. The units that moved.
  const Array<std::size_t>& shuffle(Array<std::size_t>& order, const Array<std::int64_t>& bases, std::int64_t height) {
    Array<std::size_t> tops;
    for (std::size_t i = 0; i < order.size(); ++i)
      if (bases[order[i]] + packer_.unit(order[i]).high == height) tops.push_back(i);
    std::size_t from = tops[below(tops.size())];
    const std::size_t choice = below(4);
    if (choice == 1 || choice == 2) {
      const auto& near = packer_.neighbours(order[from]);
      if (!near.empty()) {
        const std::size_t other = near[below(near.size())].unit;
        const auto found = std::find(order.begin(), order.end(), other);
        if (found != order.end()) from = static_cast<std::size_t>(found - order.begin());
      }
    } else if (choice == 3) {
      from = below(order.size());
    }
    const std::size_t to = choice == 2 || choice == 3 ? below(order.size()) : below(from + 1);
    const std::size_t group = order[from];
    moved_.assign(1, group);
    if (below(3) == 0) return gather(order, kinds_[group], to);
    order.erase(order.begin() + static_cast<std::ptrdiff_t>(from));
    order.insert(order.begin() + static_cast<std::ptrdiff_t>(std::min(to, order.size())), group);
    return moved_;
  }

  // Puts all groups of a kind at one place of the order.
  const Array<std::size_t>& gather(Array<std::size_t>& order, std::size_t kind, std::size_t to) {
    const auto target = order.begin() + static_cast<std::ptrdiff_t>(to);
    const auto alike = [&](std::size_t u) { return kinds_[u] == kind; };
    std::stable_partition(order.begin(), target, [&](std::size_t u) { return !alike(u); });
    std::stable_partition(target, order.end(), alike);
    moved_.clear();
    std::ranges::copy_if(order, std::back_inserter(moved_), alike);
    return moved_;
  }

  Packer& packer_;
  Options options_;
  std::int64_t bound_;  // a height that ends the search
  StopSignal signal_;
  std::mt19937_64 random_;
  Array<std::size_t> kinds_;
  Array<std::size_t> moved_;  // in the last order
  Array<std::int64_t> bases_;
  std::int64_t height_ = 0, before_ = 0, ejected_ = 0, asked_ = 0;
  Array<std::size_t> order_;
};

// Lowers a packing by the constraint search as long as tries are left; a try counts as many steps as it takes time.
void narrow(const Packer& packer, const Options& options, const StopSignal& signal, Array<std::int64_t>& bases,
            Packed& found) {
  constexpr std::int64_t kSteps = 50, kShare = 800;  // steps of a try, tries between two looks at the signal
  const std::int64_t enough = std::max(found.bound, options.enough);
  ConstraintSearch search(packer.units(), options.seed);
  std::int64_t height = packer.height(bases);
  while (height > enough && found.tries < options.tries && !signal.poll(found.tries)) {
    const std::int64_t share = std::min(kShare, options.tries - found.tries);
    std::int64_t steps = share * kSteps;
    while (steps > 0 && height > enough && search.lower(bases, height - 1, steps)) height = packer.height(bases);
    found.tries += share;
  }
  found.ended = ended_at(height, found.bound, options, signal);
}

// The bases of the lowest packing of several searches from some orders, each with its share of the tries up to `tries`:
// where one search ends depends more on where it begins than on how long it takes. With a deadline there is one search.
void search_rounds(Packer& packer, const Options& options, const StopSignal& signal, std::int64_t tries,
                   const Array<Array<std::size_t>>& starts, Array<std::int64_t>& bases, Packed& found) {
  constexpr std::int64_t kRound = 2500;
  constexpr double kLeast = 1e-9;  // of the seconds of a round, of which 0 are no limit
  while (found.ended == Ended::kBudget && found.tries < tries) {
    Options round = options;
    if (options.seconds <= 0)
      round.tries = std::min(kRound, tries - found.tries);
    else
      round.seconds = std::max(signal.left(), kLeast);
    round.seed = options.seed + static_cast<std::uint64_t>(found.tries);
    Search search(packer, round, found.bound);
    search.run(starts);
    found.tries += std::max<std::int64_t>(search.tries(), 1);
    found.ended = search.ended(found.bound);
    if (bases.empty() || packer.height(search.bases()) < packer.height(bases)) bases = search.bases();
  }
}

// The lowest bases of first fit in the first orders.
Array<std::int64_t> first_bases(Packer& packer, std::uint64_t seed) {
  Array<std::int64_t> bases;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const auto& order : first_orders(packer, seed)) {
    const std::int64_t height = packer.place(order, least);
    if (height >= least) continue;
    least = height;
    bases = packer.bases();
  }
  return bases;
}

// Lowers a packing by complete search until it is the lowest one or so many tries are made: a try takes about as long
// as a look at each pair.
void lower_exactly(const Packer& packer, ExactSearch& exact, std::int64_t tries, Array<std::int64_t>& bases,
                   Packed& found) {
  const std::int64_t pairs = std::max<std::int64_t>(static_cast<std::int64_t>(exact.pairs()), 1);
  std::int64_t work = tries * pairs;
  if (exact.lower(bases, packer.height(bases), work)) {
    found.bound = packer.height(bases);
    found.ended = Ended::kOptimal;
  }
  found.tries += tries - work / pairs;
}

// Searches in rounds, then all units completely; of many tries what is left goes to the constraint search, where that
// takes the units.
void search_all(Packer& packer, ExactSearch& exact, const Options& options, const StopSignal& signal,
                const Array<Array<std::size_t>>& starts, Array<std::int64_t>& bases, Packed& found) {
  const bool many = options.tries >= kMany;
  const std::int64_t in_rounds = many ? options.tries / 2 : options.tries / 4 * 3;
  search_rounds(packer, options, signal, in_rounds, starts, bases, found);
  if (found.ended == Ended::kBudget) lower_exactly(packer, exact, options.tries / 4, bases, found);
  if (found.ended == Ended::kBudget && many && ConstraintSearch::takes(packer.units(), packer.height(bases)))
    narrow(packer, options, signal, bases, found);
  search_rounds(packer, options, signal, options.tries, starts, bases, found);
}

// Searches few units completely, which mostly is the end of it, else all. Before long rounds stands a short one.
Array<std::int64_t> first_look(Packer& packer, const Options& options, const StopSignal& signal,
                               Array<std::int64_t> bases, Packed& found) {
  constexpr std::int64_t kShort = 1000, kPart = 16;
  const auto starts = first_orders(packer, options.seed);
  ExactSearch exact(packer.units(), signal);
  Array<std::int64_t> soon = bases;
  found.bound = exact.bound(found.bound, packer.height(bases));
  FewUnits few(packer, signal);
  const std::int64_t height = few.lower(soon, found.bound, options.enough, options.tries / 4);
  found.ended = ended_at(height, found.bound, options, signal);
  if (found.ended == Ended::kBudget && options.tries / 2 > kShort && options.seconds <= 0) {
    Array<std::int64_t> first = bases;
    search_rounds(packer, options, signal, kShort, starts, first, found);
    ExactSearch quick(packer.units(), signal);
    if (found.ended == Ended::kBudget) lower_exactly(packer, quick, options.tries / kPart, first, found);
    if (packer.height(first) < height) soon = first;
  }
  const std::int64_t before = few.tries() + std::exchange(found.tries, 0);
  search_all(packer, exact, options, signal, starts, bases, found);
  found.tries += before;
  return packer.height(soon) < packer.height(bases) ? soon : bases;
}

// The same from a packing that an earlier search has found, which each search lowers further: half the tries are left
// for those of all units.
Array<std::int64_t> longer_look(Packer& packer, const Options& options, const StopSignal& signal,
                                Array<std::int64_t> bases, Packed& found) {
  ExactSearch exact(packer.units(), signal);
  found.bound = exact.bound(found.bound, packer.height(bases));
  FewUnits few(packer, signal);
  const std::int64_t height = few.lower(bases, found.bound, options.enough, options.tries / 4);
  found.ended = ended_at(height, found.bound, options, signal);
  auto starts = first_orders(packer, options.seed);
  starts.push_back(packer.used());
  std::stable_sort(starts.back().begin(), starts.back().end(),
                   [&](std::size_t a, std::size_t b) { return bases[a] < bases[b]; });
  Options half = options;
  half.tries /= 2;
  search_all(packer, exact, half, signal, starts, bases, found);
  found.tries += few.tries();
  return bases;
}

}  // namespace

PackingSearch::PackingSearch(const Problem& problem, std::uint64_t seed)
    : units_(problem), packer_(units_), seed_(seed) {
  if (!units_.possible) return;
  bound_ = std::max(load_bound(problem).bytes, extent_bound(units_));
  bases_ = packer_.bases();
  if (!units_.used.empty()) bases_ = first_bases(packer_, seed);
}

Packed PackingSearch::pack(const Options& options, const Known& known) {
  Packed found;
  if (!units_.possible) return found;
  found.bound = std::max(bound_, known.bound);
  Array<std::int64_t> bases = known.bases.empty() ? bases_ : known.bases;
  found.ended = Ended::kOptimal;
  const StopSignal signal(options.seconds > 0 ? options.seconds : std::numeric_limits<double>::infinity(),
                          options.cancelled);
  if (!units_.used.empty())
    bases = (known.bases.empty() ? first_look : longer_look)(packer_, options, signal, std::move(bases), found);
  for (std::size_t b = 0; b < units_.unit.size(); ++b) found.offsets.push_back(bases[units_.unit[b]] + units_.delta[b]);
  return found;
}

}  // namespace modelplan::rigid
