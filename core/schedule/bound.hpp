// The least bytes that any order must have in use while one operator runs, by maximum flow, with the flow as witness.
#pragma once

#include <span>
#include <vector>

#include "schedule/cut.hpp"
#include "schedule/instance.hpp"
#include "schedule/live.hpp"
#include "schedule/meter.hpp"

namespace modelplan::schedule {

// One way in which the critical operator may run: the classes of `dying` are written over there and the others are not.
struct FlowCase {
  std::vector<int> dying;
  Bytes saved = 0;
  std::vector<FlowArc> arcs;
};

// Every order needs at least `bytes` while `op` runs: each case has a flow that proves it. Without an op the bytes are
// those alive before the first operator or after the last.
struct Witness {
  int op = -1;
  Bytes bytes = 0;
  std::vector<FlowCase> cases;
};

class Bounder {
 public:
  Bounder(const Instance& instance, Meter& meter);

  // A lower bound on the transient of `op` in every order: the least over the sets closed under predecessors that may
  // precede it. With `witness` the flows are kept. With `done` only the sets count that hold all it has run, which `op`
  // is not among.
  Bytes at(int op, Witness* witness = nullptr, const Live* done = nullptr);

 private:
  void mark_sides(int op, const Live* done);
  bool force_readers(int op, std::span<const int> classes);
  Bytes cut_case(int op, const std::vector<int>& credits, Witness* witness, const Live* done);

  const Instance* g_;
  Meter* meter_;
  CutFinder cut_;
  std::vector<Side> sides_;
  std::vector<int> free_, stack_;
};

// The sets of credits of `op` that may be used together, the empty set first; just the empty set and an empty reply to
// `exact` when there are too many to list.
std::vector<std::vector<int>> credit_sets(const Instance& instance, int op, bool& exact);

// Raises `bound` to the greatest bound of any operator, looking only where it can rise: `most[op]` is the transient of
// `op` in some known order, which no bound of it exceeds. Returns the critical operator, or -1 when none raised it.
// Stops early with the meter, and at `enough`.
int raise_bound(const Instance& instance, std::span<const Bytes> most, Bytes enough, Meter& meter, Bytes& bound);

}  // namespace modelplan::schedule
