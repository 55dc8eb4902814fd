// The live-bytes model: what is alive after a set of executed operators, kept up to date as operators are run and
// undone. Cost: O(degree of the operator) for each call.
#pragma once

#include <algorithm>

#include "array.hpp"
#include "schedule/schedule_instance.hpp"

namespace modelplan::schedule {

class Live {
 public:
  explicit Live(const ScheduleInstance& instance);

  Bytes bytes() const { return bytes_; }
  bool done(int op) const { return done_[op] != 0; }
  bool alive(int c) const;
  // Readers of class c that have not run.
  int readers_left(int c) const { return left_[c]; }
  // The operators whose predecessors have all run, in no particular order.
  View<const int> ready() const { return ready_; }
  bool is_ready(int op) const { return place_[op] >= 0; }
  // Whether no successor of `op` has run.
  bool can_be_last(int op) const {
    return std::ranges::none_of(g_->succs[op], [&](int s) { return done(s); });
  }

  // Bytes in use while `op` runs next.
  Bytes transient(int op) const;
  // Live bytes once `op` has run next.
  Bytes after(int op) const;
  void add(int op);     // `op` is ready
  void remove(int op);  // no successor of `op` has run

 private:
  bool written(int c) const { return written_[c] > 0; }
  bool dies_at_next_reader(int c) const;
  Bytes overwrite(int op) const;
  void make_ready(int op);
  void drop_ready(int op);

  const ScheduleInstance* g_;
  Bytes bytes_;
  Array<int> written_;  // writers that have run, plus one if alive from the start
  Array<int> left_;
  Array<int> waiting_;  // predecessors that have not run
  Array<int> ready_, place_;
  Array<char> done_;
};

// The highest transient of an order of all operators.
Bytes peak_of(const ScheduleInstance& instance, View<const int> order);

// The transient of each step.
Array<Bytes> profile_of(const ScheduleInstance& instance, View<const int> order);

}  // namespace modelplan::schedule
