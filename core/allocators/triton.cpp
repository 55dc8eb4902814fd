#include "allocators/triton.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "allocators/neighbours.hpp"
#include "place_in_order.hpp"

namespace modelplan::triton {
namespace {

struct Life {
  std::int64_t start, end;
};

// The waiting buffers by start; finds the first in order whose life lies inside a window and meets a range.
class Waiting {
 public:
  Waiting(const Problem& problem, Ints order) {
    for (std::size_t rank = 0; rank < order.size(); ++rank) {
      const auto b = as_size(order[rank]);
      if (problem.size[b] > 0) leaves_.push_back({problem.start[b], problem.end[b], b, rank});
    }
    std::ranges::stable_sort(leaves_, {}, &Leaf::start);
    Array<Least> least;
    for (const Leaf& leaf : leaves_) least.push_back({leaf.end, leaf.rank});
    least_ = SegmentTree<Least>(least);
    left_ = leaves_.size();
  }

  bool empty() const { return left_ == 0; }

  // The leaf of the buffer of least rank with start in [window.start, range.end) and end in (range.start, window.end].
  std::size_t first(const Life& window, const Life& range) const {
    std::size_t best = kNone;
    least_.for_each(
        below(window.start), below(std::min(window.end, range.end)),
        [&](const Least& least) { return least.end <= window.end && least.rank < rank(best); },
        [&](std::size_t leaf) {
          if (leaves_[leaf].end > range.start) best = leaf;
        });
    return best;
  }

  std::size_t rank(std::size_t leaf) const { return leaf == kNone ? kNone : leaves_[leaf].rank; }
  std::size_t buffer(std::size_t leaf) const { return leaves_[leaf].buffer; }

  void remove(std::size_t leaf) {
    least_.set(leaf, {});
    --left_;
  }

  static constexpr std::size_t kNone = SIZE_MAX;

 private:
  struct Leaf {
    std::int64_t start, end;
    std::size_t buffer, rank;
  };
  struct Least {
    std::int64_t end = INT64_MAX;
    std::size_t rank = kNone;

    static Least joined(const Least& a, const Least& b) { return {std::min(a.end, b.end), std::min(a.rank, b.rank)}; }
  };

  std::size_t below(std::int64_t start) const {
    return as_size(std::ranges::lower_bound(leaves_, start, {}, &Leaf::start) - leaves_.begin());
  }

  Array<Leaf> leaves_;
  SegmentTree<Least> least_;
  std::size_t left_ = 0;
};

// How many open slots cover each stretch between two neighbouring times; finds stretches that none covers.
class Cover {
 public:
  explicit Cover(const Problem& problem) {
    Array<std::int64_t> times{0, INT64_MAX};
    times.insert(times.end(), problem.start.begin(), problem.start.end());
    times.insert(times.end(), problem.end.begin(), problem.end.end());
    times_ = distinct(std::move(times));
    slots_ = SegmentTree<Count>(Array<Count>(times_.size()));
  }

  void add(const Life& range, std::int64_t count) {
    slots_.add(count_below(times_, range.start), count_below(times_, range.end), count);
  }

  // Calls visit(window) for each maximal uncovered window that meets `range`, in order of time.
  template <class Visit>
  void for_each_window(const Life& range, Visit&& visit) const {
    const std::size_t last = times_.size() - 1, until = count_below(times_, range.end);
    const auto is_free = [](const Count& count) { return count.least == 0; };
    const auto is_covered = [](const Count& count) { return count.most > 0; };
    for (std::size_t t = slots_.first_of(count_below(times_, range.start), until, is_free); t < until;) {
      const std::size_t end = slots_.first_of(t, last, is_covered);
      visit(Life{times_[slots_.behind_last_of(t, is_covered)], times_[end]});
      t = slots_.first_of(end, until, is_free);
    }
  }

 private:
  struct Count {
    std::int64_t least = 0, most = 0;

    static Count joined(const Count& a, const Count& b) {
      return {std::min(a.least, b.least), std::max(a.most, b.most)};
    }
    Count plus(std::int64_t amount) const { return {least + amount, most + amount}; }
  };

  Array<std::int64_t> times_;
  SegmentTree<Count> slots_;
};

class Slots {
 public:
  Slots(const Problem& problem, Ints order) : problem_(problem), waiting_(problem, order), cover_(problem) {}

  Array<std::int64_t> run() {
    Array<std::int64_t> offsets(problem_.count(), 0);
    std::int64_t top = 0;
    open(0, kAlways);
    while (!waiting_.empty()) {
      if (open_.empty()) open(top, kAlways);  // the original never gets here on its own inputs
      const auto [offset, range] = *open_.begin();
      open_.erase(open_.begin());
      cover_.add(range, -1);
      const std::size_t leaf = find(range);
      if (leaf == Waiting::kNone) continue;
      const std::size_t b = waiting_.buffer(leaf);
      waiting_.remove(leaf);
      offsets[b] = round_up(offset, problem_.alignment[b]);
      top = std::max(top, offsets[b] + problem_.size[b]);
      split(offset, range, b, offsets[b] + problem_.size[b]);
    }
    return offsets;
  }

 private:
  static constexpr Life kAlways{0, INT64_MAX};

  void open(std::int64_t offset, const Life& range) {
    open_.emplace(offset, range);
    cover_.add(range, 1);
  }

  // A buffer has to meet this range and no other open slot: it lies in a window that no other slot covers.
  std::size_t find(const Life& range) const {
    std::size_t best = Waiting::kNone;
    cover_.for_each_window(range, [&](const Life& window) {
      const std::size_t leaf = waiting_.first(window, range);
      if (waiting_.rank(leaf) < waiting_.rank(best)) best = leaf;
    });
    return best;
  }

  void split(std::int64_t offset, const Life& range, std::size_t b, std::int64_t top) {
    const Life life{problem_.start[b], problem_.end[b]};
    open(top, Life{std::max(range.start, life.start), std::min(range.end, life.end)});
    if (range.start < life.start) open(offset, Life{range.start, life.end});
    if (life.end < range.end) open(offset, Life{life.start, range.end});
  }

  const Problem& problem_;
  Waiting waiting_;
  Cover cover_;
  std::multimap<std::int64_t, Life> open_;  // equal offsets: oldest first
};

// Where buffers lie: for each stretch of bytes those that touch it. What interferes is looked for here, or among those
// alive together where these are fewer: either list may be long, as in a chain whose values all lie at one address.
class AddressBuckets {
 public:
  AddressBuckets(const Problem& problem, const Array<std::int64_t>& offsets)
      : problem_(problem), neighbours_(problem), conflicts_(conflict_counts(problem)), offsets_(offsets) {
    for (std::size_t b = 0; b < offsets.size(); ++b) neighbours_.insert(b);
    std::int64_t top = 0, mean = 0;
    for (std::size_t b = 0; b < offsets.size(); ++b) {
      top = std::max(top, end(b));
      mean += problem.size[b] / std::ssize(offsets);
    }
    height_ = std::max({std::int64_t{1}, top / 4096, mean});  // on average a buffer touches two stretches
    for (std::size_t b = 0; b < offsets.size(); ++b) add(b);
  }

  void add(std::size_t b) {
    for_each_bucket(b, [&](Array<std::size_t>& bucket) { bucket.push_back(b); });
  }

  void remove(std::size_t b) {
    for_each_bucket(b, [&](Array<std::size_t>& bucket) { std::erase(bucket, b); });
  }

  // Calls visit(c) once for every conflict that shares a byte with `b`.
  template <class Visit>
  void for_each_interferer(std::size_t b, Visit&& visit) {
    std::size_t near = 0;
    for_each_bucket(b, [&](const Array<std::size_t>& bucket) { near += bucket.size(); });
    if (as_size(conflicts_[b]) > near) return for_each_near(b, visit);
    neighbours_.for_each(b, [&](std::size_t c) {
      if (touch(b, c)) visit(c);
    });
  }

  std::int64_t end(std::size_t b) const { return offsets_[b] + problem_.size[b]; }

 private:
  bool touch(std::size_t b, std::size_t c) const { return offsets_[b] < end(c) && offsets_[c] < end(b); }

  template <class Visit>
  void for_each_near(std::size_t b, Visit&& visit) {
    std::int64_t bottom = INT64_MIN;  // a pair counts in the lowest bucket that both touch
    for_each_bucket(b, [&](const Array<std::size_t>& bucket) {
      for (const std::size_t c : bucket)
        if (c != b && meet_in_time(problem_, b, c) && touch(b, c) && (bottom == INT64_MIN || offsets_[c] >= bottom))
          visit(c);
      bottom = bottom == INT64_MIN ? (offsets_[b] / height_ + 1) * height_ : bottom + height_;
    });
    for (const std::size_t c : neighbours_.extra(b))
      if (touch(b, c)) visit(c);
  }

  template <class Visit>
  void for_each_bucket(std::size_t b, Visit&& visit) {
    if (problem_.size[b] == 0) return;
    const auto first = as_size(offsets_[b] / height_);
    const auto last = as_size((end(b) - 1) / height_);
    if (last >= buckets_.size()) buckets_.resize(last + 1);
    for (std::size_t s = first; s <= last; ++s) visit(buckets_[s]);
  }

  const Problem& problem_;
  Neighbours neighbours_;
  Array<std::int64_t> conflicts_;
  const Array<std::int64_t>& offsets_;
  std::int64_t height_ = 1;
  Array<Array<std::size_t>> buckets_;
};

class Repair {
 public:
  Repair(const Problem& problem, Ints order, Array<std::int64_t>& offsets)
      : problem_(problem), buckets_(problem, offsets), order_(order), offsets_(offsets) {}

  std::int64_t run() {
    std::int64_t passes = 0;
    interferes_.resize(offsets_.size());
    moved_.assign(offsets_.size(), true);
    refresh(order_);
    do {
      colour();
      refresh(bump());
      ++passes;
    } while (ends_ > 0);
    return passes;
  }

 private:
  // Forgets the edges of what moved and finds them anew; all other edges stay.
  void refresh(Ints moved) {
    for (const std::int64_t i : moved)
      for (const std::size_t c : interferes_[i])
        if (!moved_[c]) ends_ -= std::erase(interferes_[c], as_size(i));
    for (const std::int64_t i : moved) {
      ends_ -= interferes_[i].size();
      interferes_[i].clear();
    }
    for (const std::int64_t i : moved) {
      const auto b = as_size(i);
      buckets_.for_each_interferer(b, [&](std::size_t c) {
        interferes_[b].push_back(c);
        ++ends_;
        if (moved_[c]) return;
        interferes_[c].push_back(b);
        ++ends_;
      });
    }
    for (const std::int64_t i : moved) moved_[i] = false;
  }

  void colour() {
    colour_.assign(offsets_.size(), kUncoloured);
    Array<std::size_t> used(offsets_.size() + 1, SIZE_MAX);  // who saw the colour last
    for (const std::int64_t i : order_) {
      const auto b = as_size(i);
      for (const std::size_t c : interferes_[b])
        if (colour_[c] != kUncoloured) used[colour_[c]] = b;
      colour_[b] = 0;
      while (used[colour_[b]] == b) ++colour_[b];
    }
  }

  Array<std::int64_t> bump() {
    Array<std::int64_t> moved;
    for (const std::int64_t i : order_) {
      const auto b = as_size(i);
      if (colour_[b] == 0) continue;
      std::int64_t offset = 0;
      for (const std::size_t c : interferes_[b]) offset = std::max(offset, buckets_.end(c));
      buckets_.remove(b);
      offsets_[b] = round_up(offset, problem_.alignment[b]);
      buckets_.add(b);
      moved_[b] = true;
      moved.push_back(i);
    }
    return moved;
  }

  static constexpr std::size_t kUncoloured = SIZE_MAX;

  const Problem& problem_;
  AddressBuckets buckets_;
  Ints order_;
  Array<std::int64_t>& offsets_;
  Array<Array<std::size_t>> interferes_;
  Array<std::size_t> colour_;
  Array<bool> moved_;
  std::size_t ends_ = 0;  // of edges: the lists' lengths together
};

}  // namespace

Plan place(const Problem& problem, Ints order) {
  require_permutation(order, problem.count());
  Plan plan;
  plan.offsets = Slots(problem, order).run();
  plan.passes = Repair(problem, order, plan.offsets).run();
  return plan;
}

}  // namespace modelplan::triton
