// A live-bytes model with the bitset and key of its executed set, which walks from one set to another by their
// difference.
#pragma once

#include <bit>
#include <cstdint>

#include "array.hpp"
#include "schedule/live.hpp"
#include "schedule/states.hpp"
#include "stopping.hpp"

namespace modelplan::schedule {

class Walker {
 public:
  Walker(const ScheduleInstance& g, Meter& meter)
      : live_(g), meter_(&meter), bits_((as_size(g.ops) + 63) / 64, 0), rank_(rank_of(g)), g_(&g) {}

  const Live& live() const { return live_; }
  View<const std::uint64_t> bits() const { return bits_; }
  std::uint64_t key() const { return key_; }
  int depth() const { return depth_; }

  void add(int op) {
    live_.add(op);
    flip(op);
    ++depth_;
    meter_->spend(1);
  }

  void remove(int op) {
    live_.remove(op);
    flip(op);
    --depth_;
    meter_->spend(1);
  }

  // Walks to the set with these bits.
  void go(View<const std::uint64_t> target) {
    leave_.clear();
    enter_.clear();
    meter_->spend(static_cast<std::int64_t>(bits_.size() / 16));
    for (std::size_t w = 0; w < bits_.size(); ++w) {
      collect(bits_[w] & ~target[w], w, leave_);
      collect(target[w] & ~bits_[w], w, enter_);
    }
    for (std::size_t i = leave_.size(); i-- > 0;) remove(g_->topological[leave_[i]]);
    for (const int r : enter_) add(g_->topological[r]);
  }

  // Runs ready operators that fit under `label` and do not raise the live bytes, until there is none; appends them.
  void close(Bytes label, Array<int>& path) {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t i = 0; i < live_.ready().size();) {
        const int v = live_.ready()[i];
        meter_->spend(1);
        if (live_.after(v) > live_.bytes() || live_.transient(v) > label) {
          ++i;
          continue;
        }
        add(v);  // another ready operator takes its place in the list
        path.push_back(v);
        moved = true;
      }
    }
  }

  static Array<int> rank_of(const ScheduleInstance& g) {
    Array<int> rank(g.ops);
    for (std::size_t i = 0; i < g.topological.size(); ++i) rank[g.topological[i]] = static_cast<int>(i);
    return rank;
  }

 private:
  // Bits stand for topological ranks, so that differences are walked in a valid order.
  void flip(int op) {
    const auto r = as_size(rank_[op]);
    bits_[r / 64] ^= std::uint64_t{1} << (r % 64);
    key_ ^= op_key(op);
  }

  static void collect(std::uint64_t word, std::size_t w, Array<int>& out) {
    for (; word != 0; word &= word - 1) out.push_back(static_cast<int>(w * 64) + std::countr_zero(word));
  }

  Live live_;
  Meter* meter_;
  Array<std::uint64_t> bits_;
  std::uint64_t key_ = 0;
  int depth_ = 0;
  Array<int> rank_, leave_, enter_;
  const ScheduleInstance* g_;
};

}  // namespace modelplan::schedule
