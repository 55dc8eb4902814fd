#include "referee.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace modelplan::referee {
namespace {

using Column = std::span<const std::int64_t>;

class Sweep {
 public:
  Sweep(Column size, Column start, Column end, Column offset, const Allowed& allowed)
      : size_(size), start_(start), end_(end), offset_(offset), special_(size.size(), false) {
    for (std::size_t i = 0; i < allowed.below.size(); ++i) {
      std::int64_t& bytes = bytes_[{allowed.below[i], allowed.above[i]}];
      bytes = std::max(bytes, allowed.bytes[i]);
      special_[static_cast<std::size_t>(allowed.below[i])] = true;
      special_[static_cast<std::size_t>(allowed.above[i])] = true;
    }
    for (std::size_t i = 0; i < allowed.first.size(); ++i) {
      meetings_[{allowed.first[i], allowed.second[i]}].emplace_back(allowed.least[i], allowed.most[i]);
      special_[static_cast<std::size_t>(allowed.first[i])] = true;
      special_[static_cast<std::size_t>(allowed.second[i])] = true;
    }
  }

  // Births in order of time; before each, the buffers that have ended leave.
  std::pair<std::int64_t, std::int64_t> run() {
    const std::vector<std::int64_t> births = sorted_by(start_), deaths = sorted_by(end_);
    std::size_t dead = 0;
    for (const std::int64_t b : births) {
      for (; dead < deaths.size() && end_[at(deaths[dead])] <= start_[at(b)]; ++dead) leave(deaths[dead]);
      if (size_[at(b)] == 0) continue;
      if (const std::int64_t other = clash(b); other >= 0) return {other, b};
      (special_[at(b)] ? live_special_ : live_plain_).emplace(offset_[at(b)], b);
    }
    return {-1, -1};
  }

 private:
  using Live = std::multimap<std::int64_t, std::int64_t>;  // offset -> buffer

  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

  std::vector<std::int64_t> sorted_by(Column key) const {
    std::vector<std::int64_t> ids(key.size());
    std::iota(ids.begin(), ids.end(), std::int64_t{0});
    std::stable_sort(ids.begin(), ids.end(), [&](auto a, auto b) { return key[at(a)] < key[at(b)]; });
    return ids;
  }

  void leave(std::int64_t b) {
    Live& live = special_[at(b)] ? live_special_ : live_plain_;
    const auto [first, last] = live.equal_range(offset_[at(b)]);
    for (auto it = first; it != last; ++it)
      if (it->second == b) {
        live.erase(it);
        return;
      }
  }

  // Live plain buffers are pairwise apart, so only the nearest one on each side can touch `b`.
  std::int64_t clash(std::int64_t b) const {
    const auto above = live_plain_.lower_bound(offset_[at(b)]);
    if (above != live_plain_.end() && meet(above->second, b)) return above->second;
    if (above != live_plain_.begin() && meet(std::prev(above)->second, b)) return std::prev(above)->second;
    for (const auto& [offset, other] : live_special_)
      if (meet(other, b)) return other;
    return -1;
  }

  bool meet(std::int64_t a, std::int64_t b) const {
    return !clear_below(a, b) && !clear_below(b, a) && !may_meet(a, b) && !may_meet(b, a);
  }

  bool may_meet(std::int64_t first, std::int64_t second) const {
    const auto fact = meetings_.find({first, second});
    if (fact == meetings_.end()) return false;
    const std::int64_t distance = offset_[at(first)] - offset_[at(second)];
    for (const auto& [least, most] : fact->second)
      if (least <= distance && distance <= most) return true;
    return false;
  }

  bool clear_below(std::int64_t low, std::int64_t high) const {
    const auto fact = bytes_.find({low, high});
    const std::int64_t reach = fact == bytes_.end() ? 0 : fact->second;
    return offset_[at(low)] + size_[at(low)] - reach <= offset_[at(high)];
  }

  Column size_, start_, end_, offset_;
  std::vector<bool> special_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> bytes_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::pair<std::int64_t, std::int64_t>>> meetings_;
  Live live_plain_, live_special_;
};

}  // namespace

std::pair<std::int64_t, std::int64_t> find_clash(Column size, Column start, Column end, Column offset,
                                                 const Allowed& allowed) {
  return Sweep(size, start, end, offset, allowed).run();
}

}  // namespace modelplan::referee
