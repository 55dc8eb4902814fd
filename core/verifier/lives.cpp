#include "lives.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>
#include <vector>

namespace modelplan::verifier {
namespace {

using Column = std::span<const std::int64_t>;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

std::vector<std::int64_t> sorted_by(Column key) {
  std::vector<std::int64_t> ids(key.size());
  std::iota(ids.begin(), ids.end(), std::int64_t{0});
  std::stable_sort(ids.begin(), ids.end(), [&](auto a, auto b) { return key[at(a)] < key[at(b)]; });
  return ids;
}

class Sharing {
 public:
  Sharing(const Lives& lives, const Overwrites& overwrites) : lives_(lives) {
    for (std::size_t i = 0; i < overwrites.over.size(); ++i)
      overwrites_.emplace(overwrites.over[i], overwrites.by[i], overwrites.step[i]);
  }

  bool allows(std::int64_t a, std::int64_t b) const {
    return lives_.cls[at(a)] == lives_.cls[at(b)] || may_follow(a, b) || may_follow(b, a);
  }

 private:
  bool may_follow(std::int64_t dying, std::int64_t born) const {
    const std::int64_t step = lives_.first[at(born)];
    return lives_.last[at(dying)] == step && overwrites_.contains({lives_.cls[at(dying)], lives_.cls[at(born)], step});
  }

  const Lives& lives_;
  std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> overwrites_;
};

}  // namespace

std::pair<std::int64_t, std::int64_t> find_shared_bytes(const Lives& lives, const Overwrites& overwrites) {
  const Sharing sharing(lives, overwrites);
  const std::vector<std::int64_t> births = sorted_by(lives.first), deaths = sorted_by(lives.last);
  std::set<std::pair<std::int64_t, std::int64_t>> alive;  // (start, life)
  std::int64_t widest = 0;
  std::size_t dead = 0;
  for (const std::int64_t born : births) {
    const std::int64_t start = lives.start[at(born)], end = lives.end[at(born)];
    for (; lives.last[at(deaths[dead])] < lives.first[at(born)]; ++dead)
      alive.erase({lives.start[at(deaths[dead])], deaths[dead]});
    for (auto it = alive.lower_bound({start - widest, -1}); it != alive.end() && it->first < end; ++it)
      if (lives.end[at(it->second)] > start && !sharing.allows(it->second, born)) return {it->second, born};
    alive.emplace(start, born);
    widest = std::max(widest, end - start);
  }
  return {-1, -1};
}

}  // namespace modelplan::verifier
