// Minimum cuts over the sets closed under predecessors: the least live bytes that some set between two given ones must
// hold.
#pragma once

#include <utility>

#include "array.hpp"
#include "schedule/flow.hpp"
#include "schedule/schedule_instance.hpp"
#include "stopping.hpp"

namespace modelplan::schedule {

enum class Side : char { free, executed, waiting };

// `amount` bytes of class `by` pass from a writer to a reader of it; by = -1 is a precedence, which lets any amount
// pass from an operator back to its predecessor. from = -1 is the graph's own input, to = -1 its own output.
struct FlowArc {
  int from = 0;
  int to = 0;
  int by = 0;
  Bytes amount = 0;
};

// Cost: one maximum flow for each call, on a network with a node for each free operator.
class CutFinder {
 public:
  CutFinder(const ScheduleInstance& instance, Meter& meter);

  // The least bytes, over the sets Y that hold every executed operator and no waiting one, of the classes alive after
  // Y. `sides` names every operator, `free_ops` lists the free ones; `skipped` classes count nothing. With
  // `touched_only` only the classes that touch a free operator count: enough to find the set, not its bytes.
  Bytes least(const Array<Side>& sides, View<const int> free_ops, View<const int> skipped, bool touched_only);

  // After least(): the free operators of the largest Y that reaches it.
  Array<int> largest_set(View<const int> free_ops) const;
  // After least(): the flow, as transfers of classes and precedences, none of them zero.
  Array<FlowArc> transfers() const;

 private:
  struct OpArc {
    int op;
    int arc;
  };
  // A class in the network: its middle arc, and what enters and leaves it.
  struct ClassArcs {
    int by;
    int middle;
    int one_in, one_out;  // the operator at that end when it is just one, with no arcs of its own
    Array<OpArc> in, out;
  };

  void add_precedences(const Array<Side>& sides, View<const int> free_ops);
  void add_class(const Array<Side>& sides, int c);
  int open_end(int op) const { return node_[op]; }
  Array<FlowArc> shares(const ClassArcs& arcs) const;

  const ScheduleInstance* g_;
  Meter* meter_;
  FlowNetwork net_;
  Bytes constant_ = 0;
  int round_ = 0;
  Array<int> node_, seen_;
  Array<ClassArcs> class_arcs_;
  Array<std::pair<FlowArc, int>> precedences_;
  Array<FlowArc> fixed_;
};

}  // namespace modelplan::schedule
