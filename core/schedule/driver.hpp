// The scheduler: upper bounds, the flow bound, and the exact search on the segments that still matter.
#pragma once

#include <cstdint>
#include <string>

#include "array.hpp"
#include "schedule/flow_bound.hpp"
#include "schedule/order_search.hpp"
#include "schedule/schedule_instance.hpp"
#include "stopping.hpp"

namespace modelplan::schedule {

struct Request {
  // "file", "rpo", "list", "dfs", "post", "merge" or "beam"; "best" takes all but the beam and improves the lowest.
  std::string method = "best";
  Rules rules;
  bool bound = true;   // the flow bound
  bool search = true;  // the exact search, for "best"
  int width = 16;      // of "beam"
  std::size_t states = 5'000'000;
  std::size_t memory = std::size_t{1} << 30;
};

struct Outcome {
  Array<int> order;
  Array<Array<int>> alternatives;  // other orders with the same peak, for "best"
  Bytes peak = 0;
  Bytes flow_bound = 0;   // proven by `witness`
  Bytes lower_bound = 0;  // no order has a peak below this; never below flow_bound
  Witness witness;
  std::string found_by;  // what found the order of the segment with the peak
  std::int64_t states = 0;
  std::int64_t steps = 0;
  int segments = 0;
  Ended ended = Ended::kComplete;  // none: proved optimal, or nothing more was asked for
};

// Throws std::invalid_argument when there is no such method.
Outcome solve(const ScheduleInstance& instance, const Request& request, Meter& meter);

}  // namespace modelplan::schedule
