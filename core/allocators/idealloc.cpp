#include "allocators/idealloc.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <queue>
#include <unordered_map>
#include <utility>

#include "place_in_order.hpp"
#include "sorting.hpp"

namespace modelplan::idealloc {
namespace {

const double kMuLimit = (std::sqrt(5.0) - 1) / 2;
constexpr double kDummyFactor = 2216.54;  // the least spread for which the two ends of the epsilon range are in order
constexpr double kHuge = 4e18;

std::int64_t whole(double value) {
  return value >= kHuge ? static_cast<std::int64_t>(kHuge) : static_cast<std::int64_t>(value);
}

// h * ceil(x), capped.
std::int64_t times(std::int64_t h, double x) { return whole(static_cast<double>(h) * std::ceil(x)); }

double squared_log(double r) { return std::log2(r) * std::log2(r); }

// The first exponent whose class (1 + epsilon)^i, rounded down, holds `size`.
std::int64_t class_of(std::int64_t size, double epsilon) {
  const double base = std::log1p(epsilon);
  double i = std::max(0.0, std::floor(std::log(static_cast<double>(size)) / base) - 1);
  while (std::floor(std::exp(i * base)) < static_cast<double>(size) && i * base < 43) ++i;
  return std::max(size, whole(std::floor(std::exp(i * base))));
}

}  // namespace

struct Boxing::Rest {
  Ids jobs;
  Array<std::int64_t> points;  // critical points, rising; nothing lives outside the first and the last
};

std::size_t Boxing::add_box(Ids inside, std::int64_t size) {
  Item box{INT64_MAX, 0, size, std::move(inside)};
  for (const std::size_t id : box.inside) {
    box.birth = std::min(box.birth, pool_[id].birth);
    box.death = std::max(box.death, pool_[id].death);
  }
  pool_.push_back(std::move(box));
  return pool_.size() - 1;
}

std::int64_t Boxing::largest(const Ids& items) const {
  std::int64_t most = 0;
  for (const std::size_t id : items) most = std::max(most, pool_[id].size);
  return most;
}

std::int64_t Boxing::smallest(const Ids& items) const {
  std::int64_t least = INT64_MAX;
  for (const std::size_t id : items) least = std::min(least, pool_[id].size);
  return least;
}

double Boxing::spread(const Ids& items) const {
  return static_cast<double>(largest(items)) / static_cast<double>(smallest(items));
}

std::int64_t Boxing::random_point(const Ids& jobs) {
  const std::uint64_t drawn = random_() % (2 * jobs.size());
  const Item& item = pool_[jobs[drawn / 2]];
  return drawn % 2 == 0 ? item.birth + 1 : item.death - 1;
}

// Earlier births first.
void Boxing::sort_by_birth(Ids& items) const {
  std::ranges::stable_sort(items, {}, [&](std::size_t id) { return pool_[id].birth; });
}

// Later deaths first.
void Boxing::sort_by_death(Ids& items) const {
  std::ranges::stable_sort(items, {}, [&](std::size_t id) { return -pool_[id].death; });
}

// Lowest free row, by birth, of equal births the longest life first: as few rows as jobs are alive at once.
Array<Ids> Boxing::rows(Ids items) const {
  std::ranges::stable_sort(items, {}, [&](std::size_t id) { return std::pair{pool_[id].birth, -pool_[id].death}; });
  using Busy = std::pair<std::int64_t, std::size_t>;  // death, row
  std::priority_queue<Busy, Array<Busy>, std::greater<>> busy;
  std::priority_queue<std::size_t, Ids, std::greater<>> free;
  Array<Ids> rows;
  for (const std::size_t id : items) {
    for (; !busy.empty() && busy.top().first <= pool_[id].birth; busy.pop()) free.push(busy.top().second);
    if (free.empty()) {
      free.push(rows.size());
      rows.emplace_back();
    }
    rows[free.top()].push_back(id);
    busy.emplace(pool_[id].death, free.top());
    free.pop();
  }
  return rows;
}

// All jobs, between the first birth and the last death.
Boxing::Rest Boxing::whole_of(Ids jobs) {
  std::int64_t first = INT64_MAX, last = 0;
  for (const std::size_t id : jobs) {
    first = std::min(first, pool_[id].birth);
    last = std::max(last, pool_[id].death);
  }
  return with_a_cut({std::move(jobs), {first, last}});
}

// Adds a random point where none cuts a job: that would not bring us forward.
Boxing::Rest Boxing::with_a_cut(Rest rest) {
  Array<std::int64_t>& points = rest.points;
  const auto cut = [&](std::size_t id) {
    const auto next = std::upper_bound(points.begin(), points.end(), pool_[id].birth);
    return next != points.end() && *next < pool_[id].death;
  };
  if (std::any_of(rest.jobs.begin(), rest.jobs.end(), cut)) return rest;
  points.push_back(random_point(rest.jobs));
  std::sort(points.begin(), points.end());
  return rest;
}

// X_i: the jobs within [points[i], points[i + 1]]; returns R, the jobs that an inner point cuts.
Ids Boxing::divide(const Rest& rest, Array<Ids>& within) const {
  within.assign(rest.points.size(), {});
  Ids live;
  for (const std::size_t id : rest.jobs) {
    const auto next = std::upper_bound(rest.points.begin(), rest.points.end(), pool_[id].birth);
    if (pool_[id].death <= *next)
      within[(next - rest.points.begin()) - 1].push_back(id);
    else
      live.push_back(id);
  }
  return live;
}

Ids Boxing::theorem2(Ids jobs, std::int64_t height, double epsilon, std::int64_t size) {
  Ids boxes;
  Array<Rest> stack;
  if (!jobs.empty()) stack.push_back(whole_of(std::move(jobs)));
  while (!stack.empty()) {
    Rest rest = std::move(stack.back());
    stack.pop_back();
    sort_by_birth(rest.jobs);
    Array<Ids> within, groups;
    split_live(divide(rest, within), rest.points, groups);
    Ids unresolved;
    for (Ids& group : groups) lemma1(std::move(group), height, epsilon, size, boxes, unresolved);
    const Array<std::int64_t> gaps = box_rows(unresolved, height, size, rest, boxes);
    for (std::size_t i = 0; i + 1 < rest.points.size(); ++i) {
      if (within[i].empty()) continue;
      const auto from = std::upper_bound(gaps.begin(), gaps.end(), rest.points[i]);
      Array<std::int64_t> points{rest.points[i]};
      points.insert(points.end(), from, std::lower_bound(from, gaps.end(), rest.points[i + 1]));
      points.push_back(rest.points[i + 1]);
      stack.push_back(with_a_cut({std::move(within[i]), std::move(points)}));
    }
  }
  return boxes;
}

// Jobs alive at the middle point form one group; those gone before it and those born after it are split further. Each
// half gives its outermost point away as a bound, as the original does: what is left between two points is one group.
void Boxing::split_live(Ids live, const Array<std::int64_t>& points, Array<Ids>& groups) const {
  struct Half {
    Ids jobs;
    std::size_t begin, end;  // of the points; the first and the last are bounds
  };
  Array<Half> stack;
  if (!live.empty()) stack.push_back({std::move(live), 0, points.size()});
  while (!stack.empty()) {
    Half half = std::move(stack.back());
    stack.pop_back();
    if (half.end - half.begin < 3) {
      groups.push_back(std::move(half.jobs));
      continue;
    }
    const std::size_t middle = half.begin + (half.end - half.begin - 1) / 2;
    Ids here, before, after;
    for (const std::size_t id : half.jobs) {
      if (pool_[id].death <= points[middle])
        before.push_back(id);
      else if (pool_[id].birth >= points[middle])
        after.push_back(id);
      else
        here.push_back(id);
    }
    if (!here.empty()) groups.push_back(std::move(here));
    if (!after.empty()) stack.push_back({std::move(after), middle + 1, half.end});
    if (!before.empty()) stack.push_back({std::move(before), half.begin, middle});
  }
}

// Hands out jobs from both ends of time, each once.
class Boxing::Peel {
 public:
  // `by_birth` comes in order of birth.
  Peel(const Ids& by_birth, Ids by_death) : by_birth_(by_birth), by_death_(std::move(by_death)) {
    for (const std::size_t id : by_birth_) taken_.emplace(id, false);
    left_ = by_birth_.size();
  }

  bool empty() const { return left_ == 0; }
  Ids earliest_births(std::size_t count) { return take(by_birth_, birth_at_, count); }
  Ids latest_deaths(std::size_t count) { return take(by_death_, death_at_, count); }

 private:
  Ids take(const Ids& from, std::size_t& cursor, std::size_t count) {
    Ids taken;
    for (; cursor < from.size() && taken.size() < count; ++cursor)
      if (!std::exchange(taken_.at(from[cursor]), true)) taken.push_back(from[cursor]);
    left_ -= taken.size();
    return taken;
  }

  Ids by_birth_, by_death_;
  std::unordered_map<std::size_t, bool> taken_;
  std::size_t left_ = 0, birth_at_ = 0, death_at_ = 0;
};

// Jobs that are all alive at one point: the outermost stay unresolved, the others are boxed strip by strip.
void Boxing::lemma1(Ids live, std::int64_t height, double epsilon, std::int64_t size, Ids& boxes, Ids& unresolved) {
  const auto outer = as_size(times(height, 1 / (epsilon * epsilon)));
  const auto strip = as_size(times(height, 1 / epsilon));
  const auto leave = [&](const Ids& jobs) { unresolved.insert(unresolved.end(), jobs.begin(), jobs.end()); };
  if (live.size() <= 2 * outer) return leave(live);
  sort_by_birth(live);
  Ids by_death = live;
  sort_by_death(by_death);
  Peel peel(live, std::move(by_death));
  leave(peel.earliest_births(outer));
  leave(peel.latest_deaths(outer));
  Array<Ids> verticals, horizontals;
  for (bool vertical = true; !peel.empty(); vertical = !vertical) {
    if (vertical)
      verticals.push_back(peel.earliest_births(strip));
    else
      horizontals.push_back(peel.latest_deaths(strip));
  }
  for (Ids& jobs : verticals) {
    sort_by_death(jobs);
    box_strip(jobs, height, size, boxes);
  }
  for (Ids& jobs : horizontals) {
    sort_by_birth(jobs);
    box_strip(jobs, height, size, boxes);
  }
}

void Boxing::box_strip(const Ids& strip, std::int64_t height, std::int64_t size, Ids& boxes) {
  const auto count = as_size(height);
  for (std::size_t i = 0; i < strip.size();) {
    const std::size_t until = std::min(strip.size(), strip.size() - i > count ? i + count : strip.size());
    boxes.push_back(add_box(
        Ids(strip.begin() + static_cast<std::ptrdiff_t>(i), strip.begin() + static_cast<std::ptrdiff_t>(until)), size));
    i = until;
  }
}

// Colours the unresolved jobs, boxes every `height` rows, and returns the ends of the rows' idle stretches, rising.
Array<std::int64_t> Boxing::box_rows(const Ids& jobs, std::int64_t height, std::int64_t size, const Rest& rest,
                                     Ids& boxes) {
  Array<std::int64_t> gaps;
  const Array<Ids> coloured = rows(jobs);
  Ids box;
  for (std::size_t r = 0; r < coloured.size(); ++r) {
    std::int64_t idle_from = rest.points.front();
    for (const std::size_t id : coloured[r]) {
      if (idle_from < pool_[id].birth) gaps.insert(gaps.end(), {idle_from, pool_[id].birth});
      idle_from = pool_[id].death;
    }
    if (idle_from < rest.points.back()) gaps.insert(gaps.end(), {idle_from, rest.points.back()});
    box.insert(box.end(), coloured[r].begin(), coloured[r].end());
    if (static_cast<std::int64_t>(r + 1) % height == 0 || r + 1 == coloured.size())
      boxes.push_back(add_box(std::exchange(box, {}), size));
  }
  return distinct(std::move(gaps));
}

Ids Boxing::corollary15(const Ids& jobs, double size, double epsilon) {
  Ids sorted = jobs, boxes;
  std::ranges::sort(sorted, {}, [&](std::size_t id) { return std::pair{pool_[id].size, id}; });
  for (std::size_t i = 0; i < sorted.size();) {
    const std::int64_t class_height = class_of(pool_[sorted[i]].size, epsilon);
    Ids members;
    for (; i < sorted.size() && pool_[sorted[i]].size <= class_height; ++i) members.push_back(sorted[i]);
    const std::int64_t height = std::max<std::int64_t>(1, whole(std::floor(size / static_cast<double>(class_height))));
    const Ids made = theorem2(std::move(members), height, epsilon, whole(size));
    boxes.insert(boxes.end(), made.begin(), made.end());
  }
  shuffle(boxes);
  return boxes;
}

Ids Boxing::rogue(Ids jobs, double epsilon) {
  for (;;) {
    const double lg2r = squared_log(spread(jobs));
    if (lg2r == 0) return jobs;
    const double mu = epsilon / lg2r;
    const double size = std::ceil(std::pow(mu, 5) * static_cast<double>(largest(jobs)) / lg2r);
    const std::int64_t target = whole(std::floor(mu * size));
    if (mu >= kMuLimit || target < smallest(jobs)) return jobs;
    Ids small, rest;
    for (const std::size_t id : jobs) (pool_[id].size <= target ? small : rest).push_back(id);
    const Ids boxes = corollary15(small, size, mu);
    rest.insert(rest.end(), boxes.begin(), boxes.end());
    jobs = std::move(rest);
  }
}

Start Boxing::best_start(const Ids& jobs) {
  const double r = spread(jobs), lg2r = squared_log(r);
  const double small = std::pow(std::pow(lg2r, 7) / r, 1.0 / 6), big = kMuLimit * lg2r;
  const std::size_t mark = pool_.size();
  Start best{small, 0};
  double least = INFINITY;
  std::mt19937_64 drawn = random_;
  int failures = 0;
  for (double epsilon = small; epsilon < big && failures < 3; epsilon += std::max((big - epsilon) * 0.01, big * 1e-6)) {
    const std::mt19937_64 before = random_;
    const double left = spread(rogue(jobs, epsilon));
    pool_.resize(mark, Item{});
    failures = left < least ? 0 : failures + 1;
    if (left >= least) continue;
    least = left;
    best = {epsilon, epsilon / squared_log(left)};
    drawn = before;
  }
  random_ = drawn;  // the first boxing starts from what was found here
  if (!(best.mu > 0 && best.mu <= kMuLimit)) best.mu = 0.99 * kMuLimit;
  return best;
}

Array<std::int64_t> Boxing::loose_offsets(Ids jobs, const Start& start) {
  const std::size_t mark = pool_.size();
  const double size = static_cast<double>(largest(jobs)) / start.mu;
  shuffle(jobs);
  const Ids items = corollary15(rogue(std::move(jobs), start.epsilon), size, start.mu);
  Array<std::int64_t> offsets(mark, 0);
  unbox(items, 0, offsets);
  pool_.resize(mark, Item{});
  return offsets;
}

// Equal sizes lie in rows, sizes on top of one another in any order; what is in a box starts where the box does.
void Boxing::unbox(const Ids& items, std::int64_t start, Array<std::int64_t>& offsets) {
  std::map<std::int64_t, Ids> by_size;
  for (const std::size_t id : items) by_size[pool_[id].size].push_back(id);
  const bool one_row = rows(items).size() <= 1;
  Array<std::pair<std::int64_t, Ids>> classes(by_size.begin(), by_size.end());
  shuffle(classes);
  for (auto& [size, members] : classes) {
    for (const Ids& row : rows(std::move(members))) {
      for (const std::size_t id : row) {
        if (pool_[id].inside.empty())
          offsets[id] = start;
        else
          unbox(pool_[id].inside, start, offsets);
      }
      if (!one_row) start = start > whole(kHuge) - size ? start : start + size;
    }
  }
}

namespace {

std::int64_t height_of(const Problem& problem, const Array<std::int64_t>& offsets) {
  std::int64_t height = 0;
  for (std::size_t b = 0; b < offsets.size(); ++b)
    if (problem.size[b] > 0) height = std::max(height, offsets[b] + problem.size[b]);
  return height;
}

// Times are doubled, so that even a job of one step is alive somewhere strictly inside.
Array<Item> jobs_of(const Problem& problem) {
  Array<Item> jobs;
  for (std::size_t b = 0; b < problem.count(); ++b)
    jobs.push_back({2 * problem.start[b], 2 * problem.end[b], problem.size[b], {}});
  return jobs;
}

class Driver {
 public:
  Driver(const Problem& problem) : problem_(problem) {}

  Result run(std::int64_t target, std::uint64_t seed, const Limits& limits) {
    Array<Item> jobs = jobs_of(problem_);
    Ids ids;
    for (std::size_t b = 0; b < jobs.size(); ++b)
      if (jobs[b].size > 0 && problem_.pin[b] < 0) ids.push_back(b);  // what is pinned lies where it must
    bootstrap();
    if (ids.empty() || equal_sizes(ids)) return std::move(result_);
    add_dummy(jobs, ids);
    Boxing boxing(std::move(jobs), seed);
    LimitedMeter meter(limits, 1);
    Start start;
    while (result_.height > target && meter.take()) {
      if (result_.tries++ == 0) start = boxing.best_start(ids);
      const Array<std::int64_t> loose = boxing.loose_offsets(ids, start);
      const std::int64_t height = keep([&](std::int64_t b) { return loose[b]; }, Fit::kLowest);
      result_.boxed = result_.boxed < 0 ? height : std::min(result_.boxed, height);
    }
    result_.epsilon = start.epsilon;
    result_.ended = meter.ended();
    return std::move(result_);
  }

 private:
  // Places by rising key(buffer), keeps the placement unless one before is lower, and returns its height.
  template <class Key>
  std::int64_t keep(const Key& key, Fit fit) {
    Array<std::int64_t> offsets = place_in_order(problem_, sorted_ids<std::int64_t>(problem_.count(), key), fit);
    const std::int64_t height = height_of(problem_, offsets);
    if (!result_.offsets.empty() && height > result_.height) return height;
    result_.offsets = std::move(offsets);
    result_.height = height;
    return height;
  }

  void bootstrap() {
    const Problem& p = problem_;
    keep([&](std::int64_t b) { return std::pair(-p.size[b], p.start[b] - p.end[b]); }, Fit::kLowest);
  }

  // Equal sizes need no boxing: colouring is optimal. Disjoint lives have been answered by the bootstrap.
  bool equal_sizes(const Ids& ids) {
    for (const std::size_t b : ids)
      if (problem_.size[b] != problem_.size[ids.front()]) return false;
    keep([&](std::int64_t b) { return problem_.start[b]; }, Fit::kTightest);
    return true;
  }

  // Where the sizes are too much alike for any epsilon, one large job that nobody places makes room for it.
  void add_dummy(Array<Item>& jobs, Ids& ids) const {
    std::int64_t least = INT64_MAX, most = 0, last = 0;
    for (const std::size_t b : ids) {
      least = std::min(least, jobs[b].size);
      most = std::max(most, jobs[b].size);
      last = std::max(last, jobs[b].death);
    }
    const double r = static_cast<double>(most) / static_cast<double>(least), lg2r = squared_log(r);
    if (std::pow(std::pow(lg2r, 7) / r, 1.0 / 6) < kMuLimit * lg2r) return;
    ids.push_back(jobs.size());
    jobs.push_back({0, last, whole(std::ceil(kDummyFactor * static_cast<double>(least))), {}});
  }

  const Problem& problem_;
  Result result_;
};

}  // namespace

Result place(const Problem& problem, std::int64_t target, std::uint64_t seed, const Limits& limits) {
  return Driver(problem).run(target, seed, limits);
}

}  // namespace modelplan::idealloc
