// The section with the least key, by blocks of 64 on several levels; recomputes only blocks that were touched.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "array.hpp"
#include "solve.hpp"

namespace modelplan::solver {

class SectionTree {
 public:
  explicit SectionTree(std::size_t sections) : keys_(sections, kNone), stale_(words(sections), ~std::uint64_t{0}) {
    for (std::size_t n = words(sections);; n = words(n)) {
      best_.emplace_back(n, 0);
      touched_.emplace_back(words(n), ~std::uint64_t{0});
      if (n <= 1) break;
    }
  }

  static constexpr double kNone = std::numeric_limits<double>::infinity();

  void touch(Id id) {
    const auto section = static_cast<std::uint32_t>(id);
    stale_[section / 64] |= std::uint64_t{1} << (section % 64);
    mark(section / 64);
  }

  // The key as last computed; out of date if the section was touched since.
  double key(std::size_t section) const { return keys_[section]; }

  void touch_all() {
    stale_.assign(stale_.size(), ~std::uint64_t{0});
    for (PaddedArray<std::uint64_t>& level : touched_) level.assign(level.size(), ~std::uint64_t{0});
  }

  // The section with the least key, the first of them; -1 if all keys are kNone. Calls key(s) for touched sections.
  template <class Key>
  Id best(const Key& key) {
    for (std::size_t level = 0; level < best_.size(); ++level)
      for (std::size_t w = 0; w < touched_[level].size(); ++w)
        for (std::uint64_t bits = touched_[level][w]; bits != 0; bits &= bits - 1) {
          const std::size_t block = w * 64 + as_size(std::countr_zero(bits));
          if (block < best_[level].size()) refresh(level, block, key);
        }
    for (PaddedArray<std::uint64_t>& level : touched_) level.assign(level.size(), 0);
    const std::size_t winner = best_.back()[0];
    return keys_.empty() || keys_[winner] == kNone ? -1 : static_cast<Id>(winner);
  }

 private:
  static std::size_t words(std::size_t n) { return (n + 63) / 64; }

  void mark(std::size_t block) {
    for (PaddedArray<std::uint64_t>& level : touched_) {
      std::uint64_t& word = level[block / 64];
      const std::uint64_t bit = std::uint64_t{1} << (block % 64);
      if ((word & bit) != 0) return;
      word |= bit;
      block /= 64;
    }
  }

  template <class Key>
  void refresh(std::size_t level, std::size_t block, const Key& key) {
    const std::size_t below = level == 0 ? keys_.size() : best_[level - 1].size();
    const std::size_t begin = block * 64, end = begin + 64 < below ? begin + 64 : below;
    if (level == 0) {
      for (std::uint64_t bits = stale_[block]; bits != 0; bits &= bits - 1) {
        const std::size_t s = begin + as_size(std::countr_zero(bits));
        if (s < end) keys_[s] = key(static_cast<Id>(s));
      }
      stale_[block] = 0;
    }
    std::size_t winner = level == 0 ? begin : best_[level - 1][begin];
    for (std::size_t i = begin + 1; i < end; ++i) {
      const std::size_t candidate = level == 0 ? i : best_[level - 1][i];
      if (keys_[candidate] < keys_[winner]) winner = candidate;
    }
    best_[level][block] = static_cast<std::uint32_t>(winner);
  }

  PaddedArray<double> keys_;
  PaddedArray<std::uint64_t> stale_;                 // sections whose key is out of date
  PaddedArray<PaddedArray<std::uint32_t>> best_;     // per level and block: the winning section
  PaddedArray<PaddedArray<std::uint64_t>> touched_;  // per level: blocks to recompute
};

}  // namespace modelplan::solver
