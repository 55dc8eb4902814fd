// Parts of an instance that can be ordered on their own: from a set of executed operators, over the next few.
#pragma once

#include <span>
#include <vector>

#include "schedule/instance.hpp"
#include "schedule/live.hpp"

namespace modelplan::schedule {

struct Part {
  Instance instance;
  std::vector<int> ops;  // the operator of the whole instance behind each one of the part

  std::vector<int> whole(std::span<const int> order) const {
    std::vector<int> out;
    out.reserve(order.size());
    for (const int v : order) out.push_back(ops[static_cast<std::size_t>(v)]);
    return out;
  }
};

class Partition {
 public:
  explicit Partition(const Instance& instance);

  // The part that runs `ops` next, after what `live` has run. `ops` is in a valid order, and closed under the
  // predecessors that have not run. Transients in the part equal those in the whole.
  Part cut(const Live& live, std::span<const int> ops);

 private:
  void gather(std::span<const int> ops);
  void add_class(const Live& live, Part& part, Links& links, int c);

  const Instance* g_;
  std::vector<int> local_, seen_;
  std::vector<int> touched_;
  int round_ = 0;
};

// The topological order, split where an operator comparable to all others runs: every order passes these sets.
std::vector<std::vector<int>> segments(const Instance& instance);

// The same instance with time reversed: its orders are those of the given one backwards, with the same peaks.
// Only where each credit writes a class that is read later and that no other operator writes; `can_reverse` says so.
bool can_reverse(const Instance& instance);
Instance reversed(const Instance& instance);

}  // namespace modelplan::schedule
