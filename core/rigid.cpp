#include "rigid.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace modelplan {
namespace {

using Clock = std::chrono::steady_clock;

// Distances strictly between `lo` and `hi` are forbidden.
struct Gap {
  std::int64_t lo, hi;
};

// A neighbour of a group and the forbidden distances base(group) - base(neighbour), apart and ascending.
struct Neighbour {
  std::size_t group;
  Array<Gap> gaps;
};

using Grants = std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, Array<std::size_t>>;

Grants grants_of(const Stands& stands) {
  Grants found;
  for (std::size_t i = 0; i < stands.over.size(); ++i)
    found[{stands.over[i], stands.by[i], stands.step[i]}].push_back(i);
  return found;
}

// Appends the distances base(b) - base(a) that segments i of a and j of b forbid.
void forbid(const Segments& s, const Stands& stands, const Grants& grants, std::size_t i, std::size_t j,
            Array<Gap>& out) {
  const std::int64_t lo = s.lo[i] - s.hi[j], hi = s.hi[i] - s.lo[j];
  const std::int64_t from = std::max(s.start[i], s.start[j]), to = std::min(s.end[i], s.end[j]);
  if (to - from == 1) {
    // i is read for the last time in the step in which j is written, or the other way round.
    const bool over_i = s.end[i] == to && s.start[j] == from && s.start[i] < from;
    const bool over_j = s.end[j] == to && s.start[i] == from && s.start[j] < from;
    if (over_i || over_j) {
      const auto found =
          over_i ? grants.find({s.group[i], s.group[j], from}) : grants.find({s.group[j], s.group[i], from});
      if (found != grants.end()) {
        std::int64_t least = std::numeric_limits<std::int64_t>::min();
        Array<std::int64_t> points;
        for (const std::size_t row : found->second) {
          if (stands.exact[row] != 0)
            points.push_back(stands.bound[row]);
          else
            least = std::max(least, stands.bound[row]);
        }
        // In distances base(by) - base(over): forbidden from `least` up, but for the points.
        const std::int64_t low = over_i ? lo : -hi, high = over_i ? hi : -lo;
        std::sort(points.begin(), points.end());
        std::int64_t at = std::max(low, least);
        Array<Gap> pieces;
        for (const std::int64_t point : points) {
          if (point <= at || point >= high) continue;
          pieces.push_back({at, point});
          at = point;
        }
        if (at < high) pieces.push_back({at, high});
        for (const Gap& piece : pieces) out.push_back(over_i ? piece : Gap{-piece.hi, -piece.lo});
        return;
      }
    }
  }
  out.push_back({lo, hi});
}

void merge(Array<Gap>& gaps) {
  std::sort(gaps.begin(), gaps.end(),
            [](const Gap& a, const Gap& b) { return a.lo < b.lo || (a.lo == b.lo && a.hi > b.hi); });
  std::size_t kept = 0;
  for (const Gap& gap : gaps) {
    if (kept != 0 && gap.lo < gaps[kept - 1].hi)
      gaps[kept - 1].hi = std::max(gaps[kept - 1].hi, gap.hi);
    else
      gaps[kept++] = gap;
  }
  gaps.resize(kept);
}

Array<Array<Neighbour>> neighbours_of(std::size_t groups, const Segments& s, const Stands& stands) {
  const Grants grants = grants_of(stands);
  Array<std::size_t> order(s.group.size()), alive;
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return s.start[a] < s.start[b]; });
  Array<std::map<std::size_t, Array<Gap>>> pairs(groups);
  for (const std::size_t j : order) {
    std::erase_if(alive, [&](std::size_t i) { return s.end[i] <= s.start[j]; });
    for (const std::size_t i : alive) {
      if (s.group[i] == s.group[j]) continue;
      const bool swap = s.group[i] > s.group[j];
      const std::size_t a = swap ? j : i, b = swap ? i : j;
      forbid(s, stands, grants, a, b,
             pairs[static_cast<std::size_t>(s.group[a])][static_cast<std::size_t>(s.group[b])]);
    }
    alive.push_back(j);
  }
  Array<Array<Neighbour>> found(groups);
  for (std::size_t a = 0; a < groups; ++a) {
    for (auto& [b, gaps] : pairs[a]) {
      merge(gaps);
      Array<Gap> mirrored;
      for (const Gap& gap : gaps) mirrored.push_back({-gap.hi, -gap.lo});
      std::reverse(mirrored.begin(), mirrored.end());
      found[a].push_back({b, std::move(mirrored)});
      found[b].push_back({a, std::move(gaps)});
    }
  }
  return found;
}

class Packer {
 public:
  Packer(std::size_t groups, const Segments& s, const Stands& stands, Ints alignment, Ints fixed)
      : neighbours_(neighbours_of(groups, s, stands)),
        alignment_(alignment),
        fixed_(fixed),
        low_(groups, 0),
        extent_(groups, 0),
        placed_(groups, 0),
        bases_(groups, 0) {
    Array<bool> seen(groups, false);
    for (std::size_t i = 0; i < s.group.size(); ++i) {
      const auto g = static_cast<std::size_t>(s.group[i]);
      low_[g] = seen[g] ? std::min(low_[g], s.lo[i]) : s.lo[i];
      extent_[g] = std::max(extent_[g], s.hi[i]);
      if (!seen[g]) used_.push_back(g);
      seen[g] = true;
    }
  }

  const Array<std::size_t>& used() const { return used_; }
  const Array<std::int64_t>& bases() const { return bases_; }
  std::int64_t extent(std::size_t g) const { return extent_[g]; }
  const Array<Neighbour>& neighbours(std::size_t g) const { return neighbours_[g]; }

  // The height of first fit in `order`, or more than `limit` as soon as that is passed.
  std::int64_t place(const Array<std::size_t>& order, std::int64_t limit) {
    ++round_;
    std::int64_t height = 0;
    for (const std::size_t g : order)
      if (fixed_[g] >= 0) {
        bases_[g] = fixed_[g];
        placed_[g] = round_;
        height = std::max(height, bases_[g] + extent_[g]);
      }
    for (const std::size_t g : order) {
      if (fixed_[g] >= 0) continue;
      bases_[g] = lowest(g);
      placed_[g] = round_;
      height = std::max(height, bases_[g] + extent_[g]);
      if (height > limit) return height;
    }
    return height;
  }

 private:
  std::int64_t lowest(std::size_t g) {
    gaps_.clear();
    for (const Neighbour& other : neighbours_[g])
      if (placed_[other.group] == round_)
        for (const Gap& gap : other.gaps) gaps_.push_back({gap.lo + bases_[other.group], gap.hi + bases_[other.group]});
    std::sort(gaps_.begin(), gaps_.end(), [](const Gap& a, const Gap& b) { return a.lo < b.lo; });
    const std::int64_t step = alignment_[g];
    // A group may begin below address 0 as long as none of its bytes does.
    std::int64_t at = -(low_[g] / step) * step;
    if (at < 0) at = 0;
    for (const Gap& gap : gaps_) {
      if (gap.lo >= at) break;
      if (at < gap.hi) at = (gap.hi + step - 1) / step * step;
    }
    return at;
  }

  Array<Array<Neighbour>> neighbours_;
  Ints alignment_, fixed_;
  Array<std::int64_t> low_, extent_, placed_, bases_;
  Array<std::size_t> used_;
  Array<Gap> gaps_;
  std::int64_t round_ = 0;
};

struct Life {
  std::int64_t start = std::numeric_limits<std::int64_t>::max(), end = std::numeric_limits<std::int64_t>::min();
};

// Orders to start from: large first, late first, early first, long and large first.
Array<Array<std::size_t>> first_orders(const Packer& packer, const Segments& s, std::size_t groups) {
  Array<Life> lives(groups);
  for (std::size_t i = 0; i < s.group.size(); ++i) {
    Life& life = lives[static_cast<std::size_t>(s.group[i])];
    life.start = std::min(life.start, s.start[i]);
    life.end = std::max(life.end, s.end[i]);
  }
  const auto sorted = [&](auto&& key) {
    Array<std::size_t> order = packer.used();
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
    return order;
  };
  const auto size = [&](std::size_t g) { return packer.extent(g); };
  const auto length = [&](std::size_t g) { return lives[g].end - lives[g].start; };
  return {
      sorted([&](std::size_t g) { return std::pair(-size(g), -lives[g].end); }),
      sorted([&](std::size_t g) { return std::pair(-lives[g].end, -size(g)); }),
      sorted([&](std::size_t g) { return std::pair(lives[g].start, -size(g)); }),
      sorted([&](std::size_t g) { return std::pair(-size(g) * length(g), -lives[g].end); }),
      sorted([&](std::size_t g) { return std::pair(-length(g), -size(g)); }),
  };
}

class Search {
 public:
  Search(Packer& packer, const PackOptions& options, std::int64_t bound)
      : packer_(packer),
        options_(options),
        bound_(std::max(bound, options.enough)),
        random_(static_cast<std::uint64_t>(options.seed)) {}

  // A tenth of the tries draws orders at random around the given ones; the best of them are improved one by one.
  Packed run(const Array<Array<std::size_t>>& starts) {
    Array<Ranked> ranked;
    for (const auto& start : starts) rank(start, ranked);
    for (std::int64_t i = 0; i < options_.tries / 8 && !done(options_.tries); ++i, ++best_.tries) {
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
    for (std::size_t i = 0; i < most; ++i) climb(ranked[i].second, best_.tries + share);
    while (!done(options_.tries)) climb(order_, std::min(best_.tries + share / 2 + 1, options_.tries));
    best_.bound = bound_;
    return best_;
  }

 private:
  using Ranked = std::pair<std::int64_t, Array<std::size_t>>;

  void rank(const Array<std::size_t>& order, Array<Ranked>& ranked) {
    const std::int64_t height = packer_.place(order, std::numeric_limits<std::int64_t>::max());
    keep(height, order);
    ranked.emplace_back(height, order);
  }

  double unit() { return static_cast<double>(random_() >> 11) * 0x1.0p-53; }

  void keep(std::int64_t height, const Array<std::size_t>& order) {
    if (!order_.empty() && height >= best_.height) return;
    best_.height = height;
    best_.bases = packer_.bases();
    order_ = order;
  }

  bool done(std::int64_t tries) {
    if (best_.tries >= tries || best_.height <= bound_ || best_.cancelled) return true;
    if (best_.tries % 64 == 0) {
      if (options_.interrupted != nullptr && options_.interrupted(best_.tries)) best_.cancelled = true;
      if (options_.seconds > 0 && std::chrono::duration<double>(Clock::now() - begun_).count() > options_.seconds)
        best_.cancelled = true;
    }
    return best_.cancelled;
  }

  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }

  // Moves groups in the order; a height that is not worse is kept, at first also one that is a little worse.
  void climb(Array<std::size_t> order, std::int64_t tries) {
    if (order.size() < 2) {
      best_.tries = options_.tries;
      return;
    }
    std::int64_t height = packer_.place(order, std::numeric_limits<std::int64_t>::max());
    Array<std::int64_t> bases = packer_.bases();
    const std::int64_t first = best_.tries;
    while (!done(tries)) {
      Array<std::size_t> moved = order;
      shuffle(moved, bases, height);
      ++best_.tries;
      const double left = 1.0 - static_cast<double>(best_.tries - first) / static_cast<double>(tries - first + 1);
      const auto slack = static_cast<std::int64_t>(0.04 * left * left * unit() * static_cast<double>(height));
      const std::int64_t found = packer_.place(moved, height + slack);
      if (found > height + slack) continue;
      height = found;
      order = std::move(moved);
      bases = packer_.bases();
      keep(height, order);
    }
  }

  // The group on top, or one beside it, moves to a place before its own; or two groups trade places.
  void shuffle(Array<std::size_t>& order, const Array<std::int64_t>& bases, std::int64_t height) {
    Array<std::size_t> tops;
    for (std::size_t i = 0; i < order.size(); ++i)
      if (bases[order[i]] + packer_.extent(order[i]) == height) tops.push_back(i);
    std::size_t from = tops[below(tops.size())];
    const std::size_t choice = below(4);
    if (choice == 1 || choice == 2) {
      const auto& near = packer_.neighbours(order[from]);
      if (!near.empty()) {
        const std::size_t other = near[below(near.size())].group;
        const auto found = std::find(order.begin(), order.end(), other);
        if (found != order.end()) from = static_cast<std::size_t>(found - order.begin());
      }
    } else if (choice == 3) {
      from = below(order.size());
    }
    const std::size_t to = choice == 2 || choice == 3 ? below(order.size()) : below(from + 1);
    const std::size_t group = order[from];
    order.erase(order.begin() + static_cast<std::ptrdiff_t>(from));
    order.insert(order.begin() + static_cast<std::ptrdiff_t>(std::min(to, order.size())), group);
  }

  Packer& packer_;
  PackOptions options_;
  std::int64_t bound_;
  std::mt19937_64 random_;
  Packed best_;
  Array<std::size_t> order_;
  Clock::time_point begun_ = Clock::now();
};

void check(std::int64_t groups, const Segments& s, const Stands& stands, Ints alignment, Ints fixed) {
  if (groups < 0 || alignment.size() != static_cast<std::size_t>(groups) || fixed.size() != alignment.size())
    throw std::invalid_argument("alignment and base are not given for each group");
  for (std::size_t i = 0; i < s.group.size(); ++i)
    if (s.group[i] < 0 || s.group[i] >= groups || s.lo[i] < 0 || s.lo[i] >= s.hi[i] || s.start[i] >= s.end[i] ||
        s.hi[i] > (std::int64_t{1} << 48))
      throw std::invalid_argument("a segment of no group, of no bytes or of no steps");
  for (const Ints& column : {stands.over, stands.by})
    for (const std::int64_t g : column)
      if (g < 0 || g >= groups) throw std::invalid_argument("a stand names a group that does not exist");
  for (const std::int64_t a : alignment)
    if (a < 1) throw std::invalid_argument("an alignment is below 1");
}

}  // namespace

std::int64_t group_load(const Segments& s, const Stands& stands) {
  std::map<std::int64_t, std::int64_t> change;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> born, dying;  // bytes by (group, step)
  for (std::size_t i = 0; i < s.group.size(); ++i) {
    const std::int64_t size = s.hi[i] - s.lo[i];
    change[s.start[i]] += size;
    change[s.end[i]] -= size;
    born[{s.group[i], s.start[i]}] += size;
    if (s.end[i] - s.start[i] > 1) dying[{s.group[i], s.end[i] - 1}] += size;
  }
  // What a step may share: of each group that is written, no more than it writes and than dies of what it may go over.
  std::map<std::pair<std::int64_t, std::int64_t>, std::map<std::int64_t, std::int64_t>> shared;
  for (std::size_t i = 0; i < stands.over.size(); ++i)
    shared[{stands.step[i], stands.by[i]}][stands.over[i]] = dying[{stands.over[i], stands.step[i]}];
  std::map<std::int64_t, std::int64_t> relief;
  for (const auto& [key, over] : shared) {
    std::int64_t sum = 0;
    for (const auto& [group, bytes] : over) sum += bytes;
    relief[key.first] += std::min(sum, born[{key.second, key.first}]);
  }
  std::int64_t live = 0, most = 0;
  std::int64_t at = std::numeric_limits<std::int64_t>::min();
  for (const auto& [step, delta] : change) {
    // Between two changes the load is the same in every step, and only steps with operators have relief.
    for (std::int64_t t = std::max(at, step - 1); at != std::numeric_limits<std::int64_t>::min() && t < step; ++t) {
      const auto found = relief.find(t);
      most = std::max(most, live - (found == relief.end() ? 0 : found->second));
    }
    if (at != std::numeric_limits<std::int64_t>::min()) {
      const auto found = relief.find(at);
      most = std::max(most, live - (found == relief.end() ? 0 : found->second));
    }
    live += delta;
    at = step;
  }
  return most;
}

Packed pack_groups(std::int64_t groups, const Segments& segments, const Stands& stands, Ints alignment, Ints fixed,
                   const PackOptions& options) {
  check(groups, segments, stands, alignment, fixed);
  const auto count = static_cast<std::size_t>(groups);
  Packer packer(count, segments, stands, alignment, fixed);
  if (packer.used().empty()) return {Array<std::int64_t>(count, 0), 0, 0, 0, false};
  Search search(packer, options, group_load(segments, stands));
  return search.run(first_orders(packer, segments, count));
}

}  // namespace modelplan
