#include "allocators/somas.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "allocators/neighbours.hpp"
#include "place_in_order.hpp"
#include "sorting.hpp"

namespace modelplan::somas {
namespace {

Array<Array<std::size_t>> grouped(Ints group, Ints order) {
  Array<Array<std::size_t>> members;
  for (const std::int64_t i : order) {
    if (i < 0 || as_size(i) >= group.size()) throw std::invalid_argument("a member is out of range");
    const std::int64_t g = group[i];
    if (g < 0 || as_size(g) >= group.size()) throw std::invalid_argument("a group is out of range");
    if (as_size(g) >= members.size()) members.resize(g + 1);
    members[g].push_back(as_size(i));
  }
  for (const auto& list : members)
    if (list.empty()) throw std::invalid_argument("the groups are not numbered without holes");
  return members;
}

// The block cannot start in [from, until): the range of starts that a placed node keeps from it.
struct Forbidden {
  std::int64_t from, until;
};

class Solver {
 public:
  Solver(const Problem& problem, const Blocking& blocking, const Rule& rule)
      : problem_(problem), rule_(rule), placed_(problem), node_of_(blocking.node), offset_(problem.count(), 0) {
    Array<std::int64_t> ids(problem.count());
    for (std::size_t b = 0; b < ids.size(); ++b) ids[b] = static_cast<std::int64_t>(b);
    if (blocking.node.size() != ids.size()) throw std::invalid_argument("not every buffer has a node");
    buffers_ = grouped(blocking.node, ids);
    if (blocking.block.size() != buffers_.size()) throw std::invalid_argument("not every node has a block");
    require_permutation(blocking.chain, buffers_.size());
    nodes_ = grouped(blocking.block, blocking.chain);
    for (const auto& list : buffers_) {
      node_size_.push_back(0);
      for (const std::size_t b : list) node_size_.back() = std::max(node_size_.back(), problem.size[b]);
    }
  }

  std::size_t blocks() const { return nodes_.size(); }

  Array<std::int64_t> run(Ints order) {
    for (const std::int64_t block : order) {
      const std::int64_t size = collect(as_size(block));
      put(as_size(block), size == 0 ? 0 : find(size));
    }
    return std::move(offset_);
  }

 private:
  // Returns the block's size and fills `forbidden_`, merged and rising.
  std::int64_t collect(std::size_t block) {
    raw_.clear();
    std::int64_t position = 0;
    for (const std::size_t node : nodes_[block]) {
      for (const std::size_t b : buffers_[node])
        placed_.for_each(b, [&](std::size_t c) {
          const std::int64_t low = offset_[c], high = low + node_size_[node_of_[c]];
          raw_.push_back({low - position - node_size_[node] + 1, high - position});
        });
      position += node_size_[node];
    }
    sort_by_address(raw_, spare_, [](const Forbidden& f) { return f.from; });
    forbidden_.clear();
    for (const Forbidden& f : raw_) {
      if (!forbidden_.empty() && f.from <= forbidden_.back().until)
        forbidden_.back().until = std::max(forbidden_.back().until, f.until);
      else
        forbidden_.push_back(f);
    }
    return position;
  }

  // The first band with room, or a new one on top.
  std::int64_t find(std::int64_t size) {
    next_ = 0;
    for (std::size_t band = 0; band + 1 < base_.size(); ++band) {
      const bool open_end = band == 0 && rule_.blocks == Blocks::kSingle;
      const std::int64_t last = open_end ? INT64_MAX / 2 : base_[band + 1] - size;
      const Gap gap = band == 0 || rule_.same_gap ? rule_.gap : Gap::kBest;
      if (const auto offset = search(base_[band], last, gap)) {
        base_[band + 1] = std::max(base_[band + 1], *offset + size);
        return *offset;
      }
    }
    const std::int64_t offset = base_.back();
    base_.push_back(offset + size);
    return offset;
  }

  // Among the free starts in [first, last] the one the fit prefers; `next_` skips what lies below all later bands.
  std::optional<std::int64_t> search(std::int64_t first, std::int64_t last, Gap gap) {
    if (last < first) return std::nullopt;
    while (next_ < forbidden_.size() && forbidden_[next_].until <= first) ++next_;
    std::optional<std::int64_t> best;
    std::int64_t least = 0, start = first;
    const auto consider = [&](std::int64_t until) {  // free starts are [start, until]
      if (until < start || (best && until - start >= least)) return;
      best = start;
      least = until - start;
    };
    for (std::size_t i = next_; i < forbidden_.size() && forbidden_[i].from <= last; ++i) {
      consider(forbidden_[i].from - 1);
      if (best && gap == Gap::kSmallest) return best;
      start = std::max(start, forbidden_[i].until);
    }
    consider(last);
    return best;
  }

  void put(std::size_t block, std::int64_t offset) {
    for (const std::size_t node : nodes_[block]) {
      for (const std::size_t b : buffers_[node]) {
        offset_[b] = offset;
        placed_.insert(b);
      }
      offset += node_size_[node];
    }
  }

  const Problem& problem_;
  const Rule& rule_;
  Neighbours placed_;
  Ints node_of_;
  Array<std::int64_t> offset_;
  Array<Array<std::size_t>> buffers_, nodes_;  // of each node, of each block
  Array<std::int64_t> node_size_;
  Array<std::int64_t> base_{0};  // of each band; the last one is empty
  Array<Forbidden> forbidden_, raw_, spare_;
  std::size_t next_ = 0;
};

}  // namespace

Array<std::int64_t> place(const Problem& problem, const Blocking& blocking, Ints order, const Rule& rule) {
  Solver solver(problem, blocking, rule);
  require_permutation(order, solver.blocks());
  return solver.run(order);
}

}  // namespace modelplan::somas
