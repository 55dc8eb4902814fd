// Parts of an instance that can be ordered on their own: from a set of executed operators, over the next few.
#pragma once

#include "array.hpp"
#include "schedule/live.hpp"
#include "schedule/schedule_instance.hpp"

namespace modelplan::schedule {

struct Part {
  ScheduleInstance instance;
  Array<int> ops;  // the operator of the whole instance behind each one of the part

  Array<int> whole(View<const int> order) const {
    Array<int> out;
    out.reserve(order.size());
    for (const int v : order) out.push_back(ops[v]);
    return out;
  }
};

class Partition {
 public:
  explicit Partition(const ScheduleInstance& instance);

  // The part that runs `ops` next, after what `live` has run. `ops` is in a valid order, and closed under the
  // predecessors that have not run. Transients in the part equal those in the whole.
  Part cut(const Live& live, View<const int> ops);

 private:
  void gather(View<const int> ops);
  void add_class(const Live& live, Part& part, Links& links, int c);

  const ScheduleInstance* g_;
  Array<int> local_, seen_;
  Array<int> touched_;
  int round_ = 0;
};

// The topological order, split where an operator comparable to all others runs: every order passes these sets.
Array<Array<int>> segments(const ScheduleInstance& instance);

// The same instance with time reversed: its orders are those of the given one backwards, with the same peaks.
// Only where each overwrite writes a class that is read later and that no other operator writes; `can_reverse` says so.
bool can_reverse(const ScheduleInstance& instance);
ScheduleInstance reversed(const ScheduleInstance& instance);

}  // namespace modelplan::schedule
