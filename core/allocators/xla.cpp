#include "allocators/xla.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <stdexcept>

#include "allocators/neighbours.hpp"
#include "place_in_order.hpp"
#include "sorting.hpp"

namespace modelplan::xla {
namespace {

std::int64_t common_alignment(std::int64_t a, std::int64_t b) {
  const std::int64_t factor = a / std::gcd(a, b);
  if (factor > (std::int64_t{1} << 40) / b)
    throw std::invalid_argument("the alignments have no common multiple in range");
  return factor * b;
}

// The members of each group, and the size and alignment that a group needs.
struct Colocations {
  Array<Array<std::size_t>> members;
  Array<std::int64_t> size, alignment;

  Colocations(const Problem& problem, Groups group) {
    const std::size_t n = problem.count();
    if (group.size() != n) throw std::invalid_argument("not every buffer has a group");
    for (std::size_t b = 0; b < n; ++b) {
      if (group[b] < 0 || as_size(group[b]) >= n) throw std::invalid_argument("a group is out of range");
      if (as_size(group[b]) >= members.size()) members.resize(group[b] + 1);
      members[group[b]].push_back(b);
    }
    for (const auto& list : members) {
      if (list.empty()) throw std::invalid_argument("the groups are not numbered without holes");
      size.push_back(0);
      alignment.push_back(1);
      for (const std::size_t b : list) {
        size.back() = std::max(size.back(), problem.size[b]);
        alignment.back() = common_alignment(alignment.back(), problem.alignment[b]);
      }
    }
  }
};

class BestFit {
 public:
  BestFit(const Problem& problem, const Colocations& groups, Commit commit)
      : groups_(groups),
        committed_(problem.size.begin(), problem.size.end()),
        placed_(problem),
        offset_(problem.count(), 0) {
    for (std::size_t g = 0; commit == Commit::kLargest && g < groups.members.size(); ++g)
      for (const std::size_t b : groups.members[g]) committed_[b] = groups.size[g];
  }

  std::int64_t find(std::size_t g) {
    collect(g);
    const std::int64_t size = groups_.size[g];
    std::int64_t free_from = 0, best = -1, best_length = 0;
    const auto consider = [&](std::int64_t until) {
      const std::int64_t length = until - free_from;
      if (length < size || (best >= 0 && length >= best_length)) return;
      best = free_from;
      best_length = length;
    };
    for (const auto& [lo, hi] : used_) {
      consider(lo);
      free_from = std::max(free_from, round_up(hi, groups_.alignment[g]));
    }
    consider(INT64_MAX);
    return best;
  }

  void commit(std::size_t g, std::int64_t offset) {
    for (const std::size_t b : groups_.members[g]) {
      offset_[b] = offset;
      placed_.insert(b);
    }
  }

  const Array<std::int64_t>& offsets() const { return offset_; }

 private:
  void collect(std::size_t g) {
    used_.clear();
    for (const std::size_t b : groups_.members[g])
      placed_.for_each(b, [&](std::size_t c) { used_.emplace_back(offset_[c], offset_[c] + committed_[c]); });
    sort_by_address(used_, spare_, [](const auto& range) { return range.first; });
  }

  const Colocations& groups_;
  Array<std::int64_t> committed_;  // bytes that each buffer keeps from others
  Neighbours placed_;
  Array<std::int64_t> offset_;
  Array<std::pair<std::int64_t, std::int64_t>> used_, spare_;
};

// The free chunks of an open-ended heap: by offset, and by how much of them is usable after alignment.
class FreeChunks {
 public:
  explicit FreeChunks(std::int64_t alignment) : alignment_(alignment) { add(0, INT64_MAX); }

  std::int64_t take(std::int64_t size) {
    const auto it = by_usable_.lower_bound({size, 0});
    const std::int64_t from = it->second, until = by_offset_.at(from);
    remove(from);
    const std::int64_t offset = round_up(from, alignment_);
    if (from < offset) add(from, offset);
    if (offset + size < until) add(offset + size, until);
    return offset;
  }

  void give_back(std::int64_t from, std::int64_t until) {
    auto above = by_offset_.lower_bound(from);
    if (above != by_offset_.end() && above->first == until) {
      until = above->second;
      remove(above->first);
    }
    above = by_offset_.lower_bound(from);
    if (above != by_offset_.begin() && std::prev(above)->second == from) {
      from = std::prev(above)->first;
      remove(from);
    }
    add(from, until);
  }

 private:
  std::int64_t usable(std::int64_t from, std::int64_t until) const {
    return std::max<std::int64_t>(0, until - round_up(from, alignment_));
  }

  void add(std::int64_t from, std::int64_t until) {
    by_offset_[from] = until;
    by_usable_.emplace(usable(from, until), from);
  }

  void remove(std::int64_t from) {
    by_usable_.erase({usable(from, by_offset_.at(from)), from});
    by_offset_.erase(from);
  }

  std::int64_t alignment_;
  std::map<std::int64_t, std::int64_t> by_offset_;
  std::set<std::pair<std::int64_t, std::int64_t>> by_usable_;
};

// The buffers that take bytes, by start, then size descending, then number.
Array<std::size_t> by_start(const Problem& problem) {
  Array<std::size_t> found;
  for (std::size_t b = 0; b < problem.count(); ++b)
    if (problem.size[b] > 0) found.push_back(b);
  std::ranges::stable_sort(found, {}, [&](std::size_t b) { return std::pair{problem.start[b], -problem.size[b]}; });
  return found;
}

}  // namespace

Array<std::int64_t> best_fit(const Problem& problem, Groups group, Ints order, Commit commit, std::int64_t limit) {
  const Colocations groups(problem, group);
  require_permutation(order, groups.members.size());
  Array<std::int64_t> offsets(problem.count(), 0), waiting(order.begin(), order.end());
  std::int64_t unit = 1;
  for (const std::int64_t a : groups.alignment) unit = limit < 0 ? 1 : common_alignment(unit, a);
  for (std::int64_t base = 0; !waiting.empty();) {
    BestFit heap(problem, groups, commit);
    Array<std::int64_t> next;
    std::int64_t top = 0;
    for (const std::int64_t g : waiting) {
      const std::int64_t offset = heap.find(as_size(g)), end = offset + groups.size[g];
      if (limit >= 0 && end > limit && top > 0) {
        next.push_back(g);
        continue;
      }
      heap.commit(as_size(g), offset);
      top = std::max(top, end);
      for (const std::size_t b : groups.members[g]) offsets[b] = base + offset;
    }
    waiting = std::move(next);
    base = round_up(base + top, unit);
  }
  return offsets;
}

Array<std::int64_t> fast_merge(const Problem& problem, std::int64_t alignment) {
  if (alignment < 1) throw std::invalid_argument("an alignment is below 1");
  Array<std::int64_t> offsets(problem.count(), 0);
  FreeChunks free(alignment);
  std::set<std::pair<std::int64_t, std::size_t>> live;  // (end, buffer)
  for (const std::size_t b : by_start(problem)) {
    for (; !live.empty() && live.begin()->first <= problem.start[b]; live.erase(live.begin())) {
      const std::size_t ended = live.begin()->second;
      free.give_back(offsets[ended], offsets[ended] + problem.size[ended]);
    }
    offsets[b] = free.take(problem.size[b]);
    live.emplace(problem.end[b], b);
  }
  return offsets;
}

}  // namespace modelplan::xla
