// The least bytes that any order must have in use while one operator runs, by maximum flow, with the flow as witness.
#pragma once

#include "array.hpp"
#include "schedule/cut.hpp"
#include "schedule/live.hpp"
#include "schedule/schedule_instance.hpp"
#include "stopping.hpp"

namespace modelplan::schedule {

// One way in which the critical operator may run: the classes of `dying` are written over there and the others are not.
struct FlowCase {
  Array<int> dying;
  Bytes saved = 0;
  Array<FlowArc> arcs;
};

// Every order needs at least `bytes` while `op` runs: each case has a flow that proves it. Without an op the bytes are
// those alive before the first operator or after the last.
struct Witness {
  int op = -1;
  Bytes bytes = 0;
  Array<FlowCase> cases;
};

class FlowBound {
 public:
  FlowBound(const ScheduleInstance& instance, Meter& meter);

  // A lower bound on the transient of `op` in every order: the least over the sets closed under predecessors that may
  // precede it. With `witness` the flows are kept. With `done` only the sets count that hold all it has run, which `op`
  // is not among.
  Bytes at(int op, Witness* witness = nullptr, const Live* done = nullptr);

 private:
  void mark_sides(int op, const Live* done);
  bool force_readers(int op, View<const int> classes);
  Bytes cut_case(int op, const Array<int>& overwrites, Witness* witness, const Live* done);

  const ScheduleInstance* g_;
  Meter* meter_;
  CutFinder cut_;
  Array<Side> sides_;
  Array<int> free_, stack_;
};

// The sets of overwrites of `op` that may be used together, the empty set first; just the empty set and an empty reply
// to `exact` when there are too many to list.
Array<Array<int>> overwrite_sets(const ScheduleInstance& instance, int op, bool& exact);

// Raises `bound` to the greatest bound of any operator, looking only where it can rise: `most[op]` is the transient of
// `op` in some known order, which no bound of it exceeds. Returns the critical operator, or -1 when none raised it.
// Stops early with the meter, and at `enough`.
int raise_bound(const ScheduleInstance& instance, View<const Bytes> most, Bytes enough, Meter& meter, Bytes& bound);

}  // namespace modelplan::schedule
