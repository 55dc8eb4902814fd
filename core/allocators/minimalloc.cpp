#include "allocators/minimalloc.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <stdexcept>

#include "sorting.hpp"

namespace modelplan::minimalloc {
namespace {

using Index = std::int32_t;

constexpr std::int64_t kUnplaced = -1;

struct Range {
  Index begin = 0, end = 0;
};

// What never changes: sections, who lives in them, who overlaps whom. A section lasts from one end of a life to the
// next; only its last moment counts, when all that start in it are alive together.
struct Sweep {
  Array<Range> sections_of;         // per buffer
  Array<Index> neighbours;          // overlapping buffers, one run per buffer
  Array<std::size_t> neighbour_at;  // where each run begins
  Array<Index> residents;           // buffers of each section, one run per section
  Array<std::size_t> resident_at;
  Array<Index> ids;  // buffers that occupy bytes
  Index sections = 0;

  Range range(std::integral auto b) const { return sections_of[b]; }

  template <class Visit>
  void for_each_neighbour(std::size_t b, Visit&& visit) const {
    for (std::size_t i = neighbour_at[b]; i < neighbour_at[b + 1]; ++i) visit(neighbours[i]);
  }
};

Array<std::int64_t> ends_of(const Problem& problem) {
  Array<std::int64_t> ends;
  for (std::size_t b = 0; b < problem.count(); ++b)
    if (problem.size[b] > 0) ends.push_back(problem.end[b]);
  return distinct(std::move(ends));
}

void fill_residents(Sweep& sweep) {
  sweep.resident_at.assign(sweep.sections + 1, 0);
  for (const Index b : sweep.ids)
    for (Index s = sweep.range(b).begin; s < sweep.range(b).end; ++s) ++sweep.resident_at[s + 1];
  std::partial_sum(sweep.resident_at.begin(), sweep.resident_at.end(), sweep.resident_at.begin());
  sweep.residents.resize(sweep.resident_at.back());
  Array<std::size_t> next(sweep.resident_at.begin(), sweep.resident_at.end() - 1);
  for (const Index b : sweep.ids)
    for (Index s = sweep.range(b).begin; s < sweep.range(b).end; ++s) sweep.residents[next[s]++] = b;
}

// A neighbour is met in the first section both live in: the later of the two first sections.
void fill_neighbours(Sweep& sweep, std::size_t n) {
  sweep.neighbour_at.assign(n + 1, 0);
  const auto each_pair = [&](auto&& visit) {
    for (const Index b : sweep.ids) {
      const Index first = sweep.range(b).begin;
      for (std::size_t i = sweep.resident_at[first]; i < sweep.resident_at[first + 1]; ++i) {
        const Index c = sweep.residents[i];
        const bool mine = sweep.range(c).begin < first || (sweep.range(c).begin == first && c < b);
        if (mine) visit(b, c);
      }
    }
  };
  each_pair([&](Index b, Index c) {
    ++sweep.neighbour_at[b + 1];
    ++sweep.neighbour_at[c + 1];
  });
  std::partial_sum(sweep.neighbour_at.begin(), sweep.neighbour_at.end(), sweep.neighbour_at.begin());
  sweep.neighbours.resize(sweep.neighbour_at.back());
  Array<std::size_t> next(sweep.neighbour_at.begin(), sweep.neighbour_at.end() - 1);
  each_pair([&](Index b, Index c) {
    sweep.neighbours[next[b]++] = c;
    sweep.neighbours[next[c]++] = b;
  });
}

Sweep sweep_of(const Problem& problem) {
  Sweep sweep;
  const std::size_t n = problem.count();
  const Array<std::int64_t> ends = ends_of(problem);
  sweep.sections = static_cast<Index>(ends.size());
  sweep.sections_of.resize(n);
  const auto section = [&](std::int64_t t) {
    return static_cast<Index>(std::upper_bound(ends.begin(), ends.end(), t) - ends.begin());
  };
  for (std::size_t b = 0; b < n; ++b) {
    if (problem.size[b] == 0) continue;
    sweep.ids.push_back(static_cast<Index>(b));
    sweep.sections_of[b] = {section(problem.start[b]), section(problem.end[b])};
  }
  fill_residents(sweep);
  fill_neighbours(sweep, n);
  return sweep;
}

// One order's share of the nodes in one round.
class Turn {
 public:
  Turn(Meter& meter, std::int64_t share) : meter_(meter), left_(share) {}

  bool go_on() { return left_-- > 0 && meter_.take(); }
  bool over() const { return left_ < 0; }
  Ended ended() const { return meter_.ended(); }

 private:
  Meter& meter_;
  std::int64_t left_;
};

// Buffers that have to be solved together, in preorder; a doubly linked list over the ranks of the unplaced ones.
struct Part {
  Array<Index> order;
  Array<Index> next, prev;  // rank + 1; 0 is the anchor
  Range sections;

  void link() {
    next.resize(order.size() + 1);
    prev.resize(order.size() + 1);
    for (std::size_t r = 0; r < next.size(); ++r) {
      next[r] = static_cast<Index>((r + 1) % next.size());
      prev[r] = static_cast<Index>((r + next.size() - 1) % next.size());
    }
  }

  bool empty() const { return next[0] == 0; }

  void take(Index rank) {
    next[prev[(rank + 1)]] = next[rank + 1];
    prev[next[(rank + 1)]] = prev[rank + 1];
  }

  void put_back(Index rank) {
    next[prev[(rank + 1)]] = rank + 1;
    prev[next[(rank + 1)]] = rank + 1;
  }

  template <class Visit>
  void for_each_unplaced(Visit&& visit) const {
    for (Index link = next[0]; link != 0; link = next[link]) visit(link - 1, order[link - 1]);
  }
};

struct Candidate {
  std::int64_t offset;
  Index rank;

  bool before(const Candidate& other, bool by_offset) const {
    return by_offset && offset != other.offset ? offset < other.offset : rank < other.rank;
  }
  bool lower(const Candidate& other) const { return before(other, true); }
};

// One node of the search. A part's first node fails to the frame that split it off, others to the frame below.
struct Frame {
  std::size_t part;
  std::ptrdiff_t on_failure;        // index of the frame whose choice is refuted, -1 for the root
  std::size_t candidate_begin = 0;  // a run of the candidate stack
  std::size_t candidate_end = 0;
  std::size_t cursor = 0;
  Candidate marker;   // canonical: nothing below this any more
  Candidate ceiling;  // hatless: nothing above this any more
  bool capped = false, hatless = false;
  Index placed_rank = -1;
  std::size_t raise_mark = 0, floor_mark = 0, part_mark = 0, pending_mark = 0;
};

constexpr Candidate kLowest{-1, -1};

// Descending sort keys of one buffer, in the order in which a preorder names them.
class Keys {
 public:
  Keys(const Problem& problem, const Sweep& sweep, const Array<std::int64_t>& totals)
      : problem_(problem), sweep_(sweep), totals_(totals) {}

  std::int64_t operator()(char key, Index b) const {
    const Range range = sweep_.range(b);
    const std::int64_t width = problem_.end[b] - problem_.start[b];
    switch (key) {
      case 'A':
        return problem_.size[b] > INT64_MAX / width ? INT64_MAX : problem_.size[b] * width;
      case 'C':
        return range.end - range.begin;
      case 'L':
        return problem_.start[b];
      case 'O':
        return static_cast<std::int64_t>(sweep_.neighbour_at[b + 1] - sweep_.neighbour_at[b]);
      case 'T':
        return *std::max_element(totals_.begin() + range.begin, totals_.begin() + range.end);
      case 'U':
        return problem_.end[b];
      case 'W':
        return width;
      case 'Z':
        return problem_.size[b];
      default:
        throw std::invalid_argument(std::string("unknown sort key '") + key + "', expected one of ACLOTUWZ");
    }
  }

 private:
  const Problem& problem_;
  const Sweep& sweep_;
  const Array<std::int64_t>& totals_;
};

class Search {
 public:
  Search(const Problem& problem, const Sweep& sweep, std::int64_t capacity, const std::string& order,
         const Rules& rules)
      : problem_(problem), sweep_(sweep), capacity_(capacity), key_names_(order), rules_(rules) {
    const std::size_t n = problem.count();
    offset_.assign(n, kUnplaced);
    min_offset_.assign(n, 0);
    floor_.assign(sweep.sections, 0);
    total_.assign(sweep.sections, 0);
    cut_.assign(sweep.sections + 1, 0);
    stamp_.assign(sweep.sections, 0);
    for (const Index b : sweep.ids) {
      min_offset_[b] = std::max<std::int64_t>(problem.pin[b], 0);
      count(as_size(b), 1);
    }
  }

  // Every partition has to be feasible. A node is an opened frame, or a choice that completes its part undivided: what
  // the original counts, so that the turns change at the same nodes.
  Ended run(Turn& turn) {
    const auto too_heavy = [&](std::int64_t total) { return total > capacity_; };
    if (rules_.section_inference && std::any_of(total_.begin(), total_.end(), too_heavy)) return Ended::kInfeasible;
    pending_ = split(sweep_.ids);
    std::reverse(pending_.begin(), pending_.end());  // in order of time
    for (bool opened = start_next_part(); opened; opened = descend()) {
      if (!turn.go_on()) return turn.ended();
      while (!advance(frames_.back()))
        if (!fail()) return Ended::kInfeasible;
      if (is_leaf(frames_.back()) && !turn.go_on()) return turn.ended();
    }
    return Ended::kComplete;
  }

  Array<std::int64_t> offsets() const {
    Array<std::int64_t> offsets(offset_);
    for (std::size_t b = 0; b < offsets.size(); ++b)
      if (problem_.size[b] == 0) offsets[b] = std::max<std::int64_t>(problem_.pin[b], 0);
    return offsets;
  }

 private:
  struct Pending {
    Array<Index> members;
    Range sections;
    std::ptrdiff_t on_failure = -1;
  };
  struct Change {
    std::size_t where;
    std::int64_t before;
  };

  void count(std::size_t b, std::int64_t sign) {
    const Range range = sweep_.range(b);
    for (Index s = range.begin; s < range.end; ++s) total_[s] += sign * problem_.size[b];
    for (Index s = range.begin + 1; s < range.end; ++s) cut_[s] += static_cast<Index>(sign);
  }

  // The runs of sections that no member crosses, with their members; empty runs are dropped.
  Array<Pending> split(Array<Index> members) const {
    Array<Pending> parts;
    std::ranges::stable_sort(members, {}, [&](Index b) { return sweep_.range(b).begin; });
    Index until = 0;
    for (const Index b : members) {
      const Range range = sweep_.range(b);
      if (parts.empty() || range.begin >= until) parts.push_back({{}, {range.begin, range.end}, -1});
      parts.back().members.push_back(b);
      until = std::max(until, range.end);
      parts.back().sections.end = until;
    }
    return parts;
  }

  // Preorders the next pending part and opens its first node; false when nothing is pending.
  bool start_next_part() {
    if (pending_.empty()) return false;
    Pending next = std::move(pending_.back());
    pending_.pop_back();
    Part part;
    part.sections = next.sections;
    part.order = preordered(std::move(next.members));
    part.link();
    parts_.push_back(std::move(part));
    open(parts_.size() - 1, next.on_failure, kLowest);
    return true;
  }

  Array<Index> preordered(Array<Index> members) const {
    std::sort(members.begin(), members.end());
    if (!rules_.static_preordering) return members;
    const Keys keys(problem_, sweep_, total_);
    Array<std::array<std::int64_t, 8>> rows(members.size());
    Array<Index> ids(members.size());
    std::iota(ids.begin(), ids.end(), 0);
    for (std::size_t i = 0; i < members.size(); ++i)
      for (std::size_t k = 0; k < key_names_.size(); ++k) rows[i][k] = keys(key_names_[k], members[i]);
    std::ranges::stable_sort(ids, std::greater<>(), [&](Index i) -> const auto& { return rows[i]; });
    Array<Index> order;
    for (const Index i : ids) order.push_back(members[i]);
    return order;
  }

  void open(std::size_t part, std::ptrdiff_t on_failure, Candidate marker) {
    Frame frame{.part = part, .on_failure = on_failure, .marker = marker, .ceiling = kLowest};
    frame.candidate_begin = frame.cursor = candidates_.size();
    collect(parts_[part], marker);
    frame.candidate_end = candidates_.size();
    frames_.push_back(frame);
  }

  // The unplaced buffers worth a try, in order: neither below the marker nor above something that still fits under.
  void collect(const Part& part, Candidate marker) {
    std::int64_t min_height = INT64_MAX;
    if (rules_.check_dominance)
      part.for_each_unplaced(
          [&](Index, Index b) { min_height = std::min(min_height, min_offset_[b] + problem_.size[b]); });
    const std::size_t begin = candidates_.size();
    part.for_each_unplaced([&](Index rank, Index b) {
      const Candidate candidate{min_offset_[b], rank};
      if (candidate.offset >= min_height) return;
      if (rules_.canonical_only && candidate.lower(marker)) return;
      if (problem_.pin[b] >= 0 && candidate.offset > problem_.pin[b]) return;
      candidates_.push_back(candidate);
    });
    if (rules_.dynamic_ordering)
      std::sort(candidates_.begin() + static_cast<std::ptrdiff_t>(begin), candidates_.end(),
                [](const Candidate& a, const Candidate& b) { return a.lower(b); });
  }

  // Places the next candidate of the frame that survives the inference; false when there is none.
  bool advance(Frame& frame) {
    if (frame.placed_rank >= 0) undo(frame);
    if (frame.hatless && rules_.hatless_pruning) cap(frame);
    while (frame.cursor < frame.candidate_end) {
      const Candidate candidate = candidates_[frame.cursor++];
      if (frame.capped && frame.ceiling.lower(candidate)) continue;
      if (place(frame, candidate)) return true;
      undo(frame);
      if (frame.hatless && rules_.hatless_pruning) cap(frame);
    }
    return false;
  }

  // The refuted buffer would land at the same offset whatever is placed above it, so nothing above it can help.
  void cap(Frame& frame) {
    const Candidate refuted = candidates_[frame.cursor - 1];
    if (!frame.capped || refuted.lower(frame.ceiling)) frame.ceiling = refuted;
    frame.capped = true;
  }

  bool place(Frame& frame, Candidate candidate) {
    Part& part = parts_[frame.part];
    const std::size_t b = as_size(part.order[candidate.rank]);
    frame.placed_rank = candidate.rank;
    frame.raise_mark = raises_.size();
    frame.floor_mark = floors_.size();
    frame.part_mark = parts_.size();
    frame.pending_mark = pending_.size();
    part.take(candidate.rank);
    offset_[b] = candidate.offset;
    count(b, -1);
    return raise_neighbours(frame, b) && set_floors(b, frame.raise_mark) && clears_monotonic(part, candidate.offset);
  }

  // Lifts unplaced neighbours above the placed buffer; false when one is lifted above its pin.
  bool raise_neighbours(Frame& frame, std::size_t b) {
    const std::int64_t top = offset_[b] + problem_.size[b];
    frame.hatless = true;
    bool fits = true;
    sweep_.for_each_neighbour(b, [&](Index c) {
      if (offset_[c] != kUnplaced) return;
      frame.hatless = false;
      if (min_offset_[c] >= top) return;
      raises_.push_back({as_size(c), min_offset_[c]});
      min_offset_[c] = round_up(top, problem_.alignment[c]);
      fits = fits && (problem_.pin[c] < 0 || min_offset_[c] <= problem_.pin[c]);
    });
    return fits;
  }

  // What is left of the section has to fit above its floor.
  bool set_floor(std::size_t section, std::int64_t floor) {
    floors_.push_back({section, floor_[section]});
    floor_[section] = floor;
    return floor + (rules_.section_inference ? total_[section] : 0) <= capacity_;
  }

  bool set_floors(std::size_t b, std::size_t raise_mark) {
    const Range range = sweep_.range(b);
    const std::int64_t top = offset_[b] + problem_.size[b];
    for (Index s = range.begin; s < range.end; ++s)
      if (!set_floor(as_size(s), top)) return false;
    return !rules_.unallocated_floor || lift_floors(raise_mark);
  }

  bool lift_floors(std::size_t raise_mark) {
    ++now_;
    for (std::size_t i = raise_mark; i < raises_.size(); ++i) {
      const Range touched = sweep_.range(raises_[i].where);
      for (Index s = touched.begin; s < touched.end; ++s)
        if (stamp_[s] != now_) {
          stamp_[s] = now_;
          if (!lift_floor(as_size(s))) return false;
        }
    }
    return true;
  }

  // Nothing unplaced in the section can start below the least of their lowest offsets.
  bool lift_floor(std::size_t section) {
    std::int64_t least = INT64_MAX;
    for (std::size_t i = sweep_.resident_at[section]; i < sweep_.resident_at[section + 1]; ++i) {
      const std::size_t b = as_size(sweep_.residents[i]);
      if (offset_[b] != kUnplaced) continue;
      least = std::min(least, min_offset_[b]);
      if (least <= floor_[section]) return true;
    }
    return least == INT64_MAX || set_floor(section, least);
  }

  // All that is unplaced goes at or above the offset placed last, so every section has to fit above it.
  bool clears_monotonic(const Part& part, std::int64_t offset) const {
    if (!rules_.monotonic_floor || !rules_.section_inference) return true;
    std::int64_t most = 0;
    for (Index s = part.sections.begin; s < part.sections.end; ++s) most = std::max(most, total_[s]);
    return most <= capacity_ - offset;
  }

  void undo(Frame& frame) {
    Part& part = parts_[frame.part];
    const std::size_t b = as_size(part.order[frame.placed_rank]);
    for (; raises_.size() > frame.raise_mark; raises_.pop_back())
      min_offset_[raises_.back().where] = raises_.back().before;
    for (; floors_.size() > frame.floor_mark; floors_.pop_back()) floor_[floors_.back().where] = floors_.back().before;
    parts_.resize(frame.part_mark);
    if (pending_.size() > frame.pending_mark) pending_.resize(frame.pending_mark);  // parts split off by this choice
    count(b, 1);
    offset_[b] = kUnplaced;
    part.put_back(frame.placed_rank);
    frame.placed_rank = -1;
  }

  // Pops the exhausted frame and all above the choice it refutes; false when that refutes the whole problem.
  bool fail() {
    const std::ptrdiff_t target = frames_.back().on_failure;
    while (static_cast<std::ptrdiff_t>(frames_.size()) - 1 > target) {
      if (frames_.back().placed_rank >= 0) undo(frames_.back());
      candidates_.resize(frames_.back().candidate_begin);
      frames_.pop_back();
    }
    return !frames_.empty();
  }

  // Opens what follows the choice just made; false when every buffer has its place.
  bool descend() {
    const auto top = static_cast<std::ptrdiff_t>(frames_.size()) - 1;
    const Frame frame = frames_.back();
    const Part& part = parts_[frame.part];
    if (falls_apart(frame)) {
      Array<Index> members;
      part.for_each_unplaced([&](Index, Index b) { members.push_back(b); });
      Array<Pending> parts = split(std::move(members));
      for (std::size_t i = parts.size(); i-- > 0;) {
        parts[i].on_failure = top;
        pending_.push_back(std::move(parts[i]));
      }
      return start_next_part();
    }
    if (part.empty()) return start_next_part();
    open(frame.part, top, candidates_[frame.cursor - 1]);
    return true;
  }

  // Whether the buffer just placed was the last one to cross from some section into the next.
  bool falls_apart(const Frame& frame) const {
    if (!rules_.dynamic_decomposition) return false;
    const Range range = sweep_.range(parts_[frame.part].order[frame.placed_rank]);
    return std::any_of(cut_.begin() + range.begin + 1, cut_.begin() + range.end,
                       [](Index crossing) { return crossing == 0; });
  }

  bool is_leaf(const Frame& frame) const { return parts_[frame.part].empty() && !falls_apart(frame); }

  const Problem& problem_;
  const Sweep& sweep_;
  std::int64_t capacity_;
  const std::string& key_names_;
  const Rules& rules_;
  Array<std::int64_t> offset_, min_offset_;
  Array<std::int64_t> floor_, total_;
  Array<Index> cut_;  // unplaced buffers that cross into each section
  Array<std::int64_t> stamp_;
  std::int64_t now_ = 0;
  Array<Change> raises_, floors_;
  Array<Candidate> candidates_;
  Array<Frame> frames_;
  Array<Part> parts_;
  Array<Pending> pending_;
};

bool pins_fit(const Problem& problem, std::int64_t capacity) {
  for (std::size_t b = 0; b < problem.count(); ++b)
    if (problem.size[b] > 0 && std::max<std::int64_t>(problem.pin[b], 0) > capacity - problem.size[b]) return false;
  return true;
}

void require_orders(const Array<std::string>& orders) {
  if (orders.empty()) throw std::invalid_argument("no order of the buffers given");
  for (const std::string& order : orders)
    if (order.size() > 8 || order.find_first_not_of("ACLOTUWZ") != std::string::npos)
      throw std::invalid_argument("order '" + order + "' is not made of at most eight of the keys ACLOTUWZ");
}

}  // namespace

Answer decide(const Problem& problem, std::int64_t capacity, const Array<std::string>& orders, const Rules& rules,
              const Limits& limits) {
  require_orders(orders);
  if (!pins_fit(problem, capacity)) return {Ended::kInfeasible, {}, 0};
  const Sweep sweep = sweep_of(problem);
  LimitedMeter meter(limits);
  auto share = static_cast<std::int64_t>(2 * std::max<std::size_t>(problem.count(), 1));
  for (;; share *= 2) {
    for (const std::string& order : orders) {
      Search search(problem, sweep, capacity, order, rules);
      Turn turn(meter, orders.size() == 1 ? INT64_MAX : share);
      const Ended ended = search.run(turn);
      if (turn.over()) continue;
      return {ended, ended == Ended::kComplete ? search.offsets() : Array<std::int64_t>{}, meter.used()};
    }
  }
}

}  // namespace modelplan::minimalloc
