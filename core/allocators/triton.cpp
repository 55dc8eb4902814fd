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

  bool meets(const Life& other) const { return start < other.end && other.start < end; }
};

// The waiting buffers by start; finds the first in order whose life lies inside a window and meets a range.
class Waiting {
 public:
  Waiting(const Problem& problem, Ints order) : end_(problem.end) {
    for (std::size_t r = 0; r < order.size(); ++r) {
      const auto b = as_size(order[r]);
      if (problem.size[b] > 0) leaves_.push_back({problem.start[b], b, r});
    }
    std::stable_sort(leaves_.begin(), leaves_.end(), [](const Leaf& a, const Leaf& b) { return a.start < b.start; });
    while (width_ < std::max<std::size_t>(leaves_.size(), 1)) width_ *= 2;
    nodes_.assign(2 * width_, Node{});
    left_ = leaves_.size();
    for (std::size_t i = 0; i < leaves_.size(); ++i) set(i, {end_[leaves_[i].buffer], leaves_[i].rank});
  }

  bool empty() const { return left_ == 0; }

  // The leaf of the buffer of least rank with start in [window.start, range.end) and end in (range.start, window.end].
  std::size_t first(const Life& window, const Life& range) const {
    const std::size_t from = below(window.start), until = below(std::min(window.end, range.end));
    std::size_t best = kNone;
    walk(1, 0, width_, {from, until}, {range.start, window.end}, best);
    return best;
  }

  std::size_t rank(std::size_t leaf) const { return leaf == kNone ? kNone : leaves_[leaf].rank; }
  std::size_t buffer(std::size_t leaf) const { return leaves_[leaf].buffer; }

  void remove(std::size_t leaf) {
    set(leaf, Node{});
    --left_;
  }

  static constexpr std::size_t kNone = SIZE_MAX;

 private:
  struct Leaf {
    std::int64_t start;
    std::size_t buffer, rank;
  };
  struct Node {
    std::int64_t least_end = INT64_MAX;
    std::size_t least_rank = kNone;
  };
  struct Span {
    std::size_t begin, end;
  };

  std::size_t below(std::int64_t start) const {
    const auto it = std::lower_bound(leaves_.begin(), leaves_.end(), start,
                                     [](const Leaf& leaf, std::int64_t value) { return leaf.start < value; });
    return as_size(it - leaves_.begin());
  }

  void set(std::size_t leaf, Node value) {
    nodes_[width_ + leaf] = value;
    for (std::size_t node = (width_ + leaf) / 2; node > 0; node /= 2) {
      const Node &l = nodes_[2 * node], &r = nodes_[2 * node + 1];
      nodes_[node] = {std::min(l.least_end, r.least_end), std::min(l.least_rank, r.least_rank)};
    }
  }

  void walk(std::size_t node, std::size_t lo, std::size_t hi, Span span, Life ends, std::size_t& best) const {
    if (hi <= span.begin || lo >= span.end || nodes_[node].least_end > ends.end ||
        nodes_[node].least_rank >= rank(best))
      return;
    if (hi - lo == 1) {
      if (nodes_[node].least_end > ends.start) best = lo;
      return;
    }
    const std::size_t mid = (lo + hi) / 2;
    walk(2 * node, lo, mid, span, ends, best);
    walk(2 * node + 1, mid, hi, span, ends, best);
  }

  Ints end_;
  Array<Leaf> leaves_;
  Array<Node> nodes_;
  std::size_t width_ = 1, left_ = 0;
};

// How many open slots cover each stretch between two neighbouring times; finds stretches that none covers.
class Cover {
 public:
  explicit Cover(const Problem& problem) : times_{0, INT64_MAX} {
    times_.insert(times_.end(), problem.start.begin(), problem.start.end());
    times_.insert(times_.end(), problem.end.begin(), problem.end.end());
    std::sort(times_.begin(), times_.end());
    times_.erase(std::unique(times_.begin(), times_.end()), times_.end());
    while (width_ < times_.size()) width_ *= 2;
    nodes_.resize(2 * width_);
  }

  void add(const Life& range, std::int64_t count) { add(1, 0, width_, at(range.start), at(range.end), count); }

  // Calls visit(window) for each maximal uncovered window that meets `range`, in order of time.
  template <class Visit>
  void for_each_window(const Life& range, Visit&& visit) const {
    const std::size_t last = times_.size() - 1, until = at(range.end);
    for (std::size_t t = next(at(range.start), false); t < until;) {
      const std::size_t begin = before(t), end = std::min(next(t, true), last);
      visit(Life{times_[begin], times_[end]});
      t = next(end, false);
    }
  }

 private:
  struct Node {
    std::int64_t least = 0, most = 0, all = 0;  // `all` is added to every stretch below
  };

  std::size_t at(std::int64_t t) const {
    return as_size(std::lower_bound(times_.begin(), times_.end(), t) - times_.begin());
  }

  void add(std::size_t node, std::size_t lo, std::size_t hi, std::size_t from, std::size_t until, std::int64_t count) {
    if (from >= hi || until <= lo) return;
    Node& me = nodes_[node];
    if (from <= lo && hi <= until) {
      me = {me.least + count, me.most + count, me.all + count};
      return;
    }
    add(2 * node, lo, (lo + hi) / 2, from, until, count);
    add(2 * node + 1, (lo + hi) / 2, hi, from, until, count);
    me.least = me.all + std::min(nodes_[2 * node].least, nodes_[2 * node + 1].least);
    me.most = me.all + std::max(nodes_[2 * node].most, nodes_[2 * node + 1].most);
  }

  // The first stretch from `t` on that is covered, or is not; the width when there is none.
  std::size_t next(std::size_t t, bool covered) const { return next(1, 0, width_, t, covered, 0); }

  std::size_t next(std::size_t node, std::size_t lo, std::size_t hi, std::size_t t, bool covered,
                   std::int64_t above) const {
    const Node& me = nodes_[node];
    if (hi <= t || (covered ? me.most + above == 0 : me.least + above > 0)) return width_;
    if (hi - lo == 1) return lo;
    const std::size_t mid = (lo + hi) / 2, left = next(2 * node, lo, mid, t, covered, above + me.all);
    return left < width_ ? left : next(2 * node + 1, mid, hi, t, covered, above + me.all);
  }

  // The first stretch of the uncovered run that holds `t`.
  std::size_t before(std::size_t t) const { return before(1, 0, width_, t, 0); }

  std::size_t before(std::size_t node, std::size_t lo, std::size_t hi, std::size_t t, std::int64_t above) const {
    const Node& me = nodes_[node];
    if (lo >= t || me.most + above == 0) return 0;
    if (hi - lo == 1) return hi;
    const std::size_t mid = (lo + hi) / 2, right = before(2 * node + 1, mid, hi, t, above + me.all);
    return right > 0 ? right : before(2 * node, lo, mid, t, above + me.all);
  }

  Array<std::int64_t> times_;
  Array<Node> nodes_;
  std::size_t width_ = 1;
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

// Where buffers lie: for each stretch of bytes those that touch it. A line of addresses holds far fewer buffers than a
// moment has conflicts, so what interferes is looked for here.
class Shelves {
 public:
  Shelves(const Problem& problem, const Array<std::int64_t>& offsets)
      : problem_(problem), extra_(problem), offsets_(offsets) {
    std::int64_t top = 0;
    for (std::size_t b = 0; b < offsets.size(); ++b) top = std::max(top, end(b));
    height_ = std::max<std::int64_t>(1, top / 4096);
    for (std::size_t b = 0; b < offsets.size(); ++b) add(b);
  }

  void add(std::size_t b) {
    for_each_shelf(b, [&](Array<std::size_t>& shelf) { shelf.push_back(b); });
  }

  void remove(std::size_t b) {
    for_each_shelf(b, [&](Array<std::size_t>& shelf) { std::erase(shelf, b); });
  }

  // Calls visit(c) once for every conflict that shares a byte with `b`.
  template <class Visit>
  void for_each_interferer(std::size_t b, Visit&& visit) {
    std::int64_t bottom = INT64_MIN;  // a pair counts on the lowest shelf that both touch
    for_each_shelf(b, [&](const Array<std::size_t>& shelf) {
      for (const std::size_t c : shelf)
        if (c != b && meet_in_time(problem_, b, c) && touch(b, c) && (bottom == INT64_MIN || offsets_[c] >= bottom))
          visit(c);
      bottom = bottom == INT64_MIN ? (offsets_[b] / height_ + 1) * height_ : bottom + height_;
    });
    for (const std::size_t c : extra_.of(b))
      if (touch(b, c)) visit(c);
  }

  std::int64_t end(std::size_t b) const { return offsets_[b] + problem_.size[b]; }

 private:
  bool touch(std::size_t b, std::size_t c) const { return offsets_[b] < end(c) && offsets_[c] < end(b); }

  template <class Visit>
  void for_each_shelf(std::size_t b, Visit&& visit) {
    if (problem_.size[b] == 0) return;
    const auto first = as_size(offsets_[b] / height_);
    const auto last = as_size((end(b) - 1) / height_);
    if (last >= shelves_.size()) shelves_.resize(last + 1);
    for (std::size_t s = first; s <= last; ++s) visit(shelves_[s]);
  }

  const Problem& problem_;
  ExtraConflicts extra_;
  const Array<std::int64_t>& offsets_;
  std::int64_t height_ = 1;
  Array<Array<std::size_t>> shelves_;
};

class Repair {
 public:
  Repair(const Problem& problem, Ints order, Array<std::int64_t>& offsets)
      : problem_(problem), shelves_(problem, offsets), order_(order), offsets_(offsets) {}

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
      shelves_.for_each_interferer(b, [&](std::size_t c) {
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
      for (const std::size_t c : interferes_[b]) offset = std::max(offset, shelves_.end(c));
      shelves_.remove(b);
      offsets_[b] = round_up(offset, problem_.alignment[b]);
      shelves_.add(b);
      moved_[b] = true;
      moved.push_back(i);
    }
    return moved;
  }

  static constexpr std::size_t kUncoloured = SIZE_MAX;

  const Problem& problem_;
  Shelves shelves_;
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
