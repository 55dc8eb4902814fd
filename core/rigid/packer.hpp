// First fit of units in a given order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "units.hpp"

namespace modelplan::rigid {

class Packer {
 public:
  explicit Packer(const Units& units) : units_(units), placed_(units.units.size(), 0), bases_(units.units.size(), 0) {
    for (std::size_t u = 0; u < bases_.size(); ++u) {
      bases_[u] = home(u);
      first_.push_back(forbidden_.size());
      for (const Neighbour& other : units.neighbours[u])
        for (const Gap& gap : other.gaps) forbidden_.push_back({other.unit, gap});
    }
    first_.push_back(forbidden_.size());
  }

  const Array<std::size_t>& used() const { return units_.used; }
  const Array<std::int64_t>& bases() const { return bases_; }
  const Unit& unit(std::size_t u) const { return units_.units[u]; }
  const Array<Neighbour>& neighbours(std::size_t u) const { return units_.neighbours[u]; }
  const Units& units() const { return units_; }
  // Looks at forbidden distances so far, and how many all units take.
  std::int64_t work() const { return work_; }
  std::int64_t whole() const { return static_cast<std::int64_t>(forbidden_.size() + used().size()); }
  std::int64_t height(const Array<std::int64_t>& bases) const {
    std::int64_t found = 0;
    for (const std::size_t u : used()) found = std::max(found, bases[u] + unit(u).high);
    return found;
  }

  // The height of first fit in `order`, or more than `limit` as soon as that is passed.
  std::int64_t place(const Array<std::size_t>& order, std::int64_t limit) {
    touched_.assign(bases_.size(), 1);
    return place(order, limit, 0, bases_);
  }

  // The height of first fit in `order` behind its first `same` units, which stand at `known`.
  std::int64_t place_behind(const Array<std::size_t>& order, std::size_t same, const Array<std::int64_t>& known) {
    touched_.assign(bases_.size(), 1);
    return place(order, std::numeric_limits<std::int64_t>::max(), same, known);
  }

  // The height where first fit in another order, in which only the units of `moved` stood elsewhere, gave `known`. The
  // first `same` units of both orders are the same ones. A unit whose neighbours stand where they stood, before or
  // behind it as they did, stands where it stood too.
  std::int64_t place_moved(const Array<std::size_t>& order, std::int64_t limit, std::size_t same,
                           const Array<std::int64_t>& known, const Array<std::size_t>& moved) {
    touched_.assign(bases_.size(), 0);
    for (const std::size_t u : moved) {
      touched_[u] = 1;
      touch_around(u);
    }
    return place(order, limit, same, known);
  }

 private:
  std::int64_t place(const Array<std::size_t>& order, std::int64_t limit, std::size_t same,
                     const Array<std::int64_t>& known) {
    ++round_;
    work_ += static_cast<std::int64_t>(order.size());
    std::int64_t height = 0;
    const auto stands = [&](std::size_t u, std::int64_t base) {
      bases_[u] = base;
      placed_[u] = round_;
      height = std::max(height, base + unit(u).high);
    };
    for (const std::size_t u : order)
      if (unit(u).pin != Unit::kFree) stands(u, unit(u).pin);
    for (std::size_t i = 0; i < same; ++i) stands(order[i], known[order[i]]);
    for (std::size_t i = same; i < order.size(); ++i) {
      const std::size_t u = order[i];
      if (unit(u).pin != Unit::kFree) continue;
      const std::int64_t before = known[u];
      stands(u, touched_[u] != 0 ? lowest(u) : before);
      if (height > limit) return height;
      if (bases_[u] != before) touch_around(u);
    }
    return height;
  }

  void touch_around(std::size_t u) {
    for (const Neighbour& other : units_.neighbours[u]) touched_[other.unit] = 1;
  }

  std::int64_t home(std::size_t u) const {
    return unit(u).pin != Unit::kFree ? unit(u).pin : unit(u).from(unit(u).least);
  }

  // The first legal base that no gap forbids: gaps raise it until none does, those below it are left out.
  std::int64_t lowest(std::size_t u) {
    gaps_.clear();
    work_ += static_cast<std::int64_t>(first_[u + 1] - first_[u]);
    std::int64_t at = home(u);
    const auto passes = [&](const Gap& gap) {
      if (gap.lo >= at) return false;
      if (at < gap.hi) at = unit(u).from(gap.hi);
      return true;
    };
    for (std::size_t k = first_[u]; k < first_[u + 1]; ++k) {
      const auto& [other, gap] = forbidden_[k];
      if (placed_[other] != round_) continue;
      const Gap moved{gap.lo + bases_[other], gap.hi + bases_[other]};
      if (!passes(moved)) gaps_.push_back(moved);
    }
    while (std::erase_if(gaps_, passes) != 0) {
    }
    return at;
  }

  const Units& units_;
  Array<std::int64_t> placed_, bases_;
  Array<std::pair<std::size_t, Gap>> forbidden_;  // distances of all units from their neighbours
  Array<std::size_t> first_;                      // of those of each unit
  Array<Gap> gaps_;
  Array<char> touched_;  // units whose place must be looked for
  std::int64_t round_ = 0, work_ = 0;
};

}  // namespace modelplan::rigid
