// Maximum flow and minimum cut in a directed network with integer capacities.
#pragma once

#include <cstdint>
#include <limits>

#include "array.hpp"

namespace modelplan::schedule {

// Cost: O(nodes^2 arcs) at worst; near linear on the shallow networks of this project.
// Source: E. A. Dinic, Soviet Mathematics Doklady 11 (1970).
class FlowNetwork {
 public:
  static constexpr std::int64_t kUnbounded = std::numeric_limits<std::int64_t>::max() / 4;
  static constexpr int kSource = 0;
  static constexpr int kSink = 1;

  // Empties the network and gives it the source, the sink and `nodes` more.
  void reset(int nodes);
  int add_node();
  // Returns the arc's number.
  int add_arc(int from, int to, std::int64_t capacity);

  std::int64_t maximise();
  std::int64_t flow(int arc) const { return arcs_[arc ^ 1U].room; }
  // After maximise(): the nodes from which the sink cannot be reached are the largest source side of a minimum cut.
  Array<char> largest_source_side() const;
  std::int64_t visits() const { return visits_; }

 private:
  struct Arc {
    int to;
    int next;
    std::int64_t room;
  };

  bool level_nodes();
  std::int64_t augment();

  Array<Arc> arcs_;  // arc a and its reverse a ^ 1
  Array<int> first_, level_, next_try_, queue_;
  Array<int> path_;
  std::int64_t visits_ = 0;
};

}  // namespace modelplan::schedule
