// The doors to core/allocators: conflict-based planners, best fits, boxing and the searches.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>

#include "allocators/idealloc.hpp"
#include "allocators/minimalloc.hpp"
#include "allocators/neighbours.hpp"
#include "allocators/somas.hpp"
#include "allocators/telamalloc.hpp"
#include "allocators/triton.hpp"
#include "allocators/usmp.hpp"
#include "allocators/xla.hpp"
#include "bindings.hpp"

namespace modelplan {
namespace {

using namespace nb::literals;

Limits limits_of(std::int64_t steps, double seconds) { return {steps, seconds, &interrupted}; }

template <class Run>
auto unlocked(Run&& run) {
  const nb::gil_scoped_release released;
  return run();
}

using Numbers = std::vector<std::int64_t>;
using Found = std::tuple<std::int64_t, Column, std::int64_t>;  // ended, offsets, steps

Column conflict_counts_of(const Column& size, const Column& start, const Column& end, const Column& alignment,
                          const Column& pin, const Table& overlaps, const Table& conflicts) {
  const ProblemColumns problem(size, start, end, alignment, pin, overlaps, conflicts);
  return column_of(unlocked([&] { return conflict_counts(problem.columns(), problem.facts()); }));
}

std::vector<std::vector<std::size_t>> pools_of(const std::vector<Numbers>& rows) {
  std::vector<std::vector<std::size_t>> pools;
  for (const Numbers& row : rows) {
    pools.emplace_back();
    for (const std::int64_t p : row) {
      if (p < 0) throw std::invalid_argument("a pool is negative");
      pools.back().push_back(static_cast<std::size_t>(p));
    }
  }
  return pools;
}

std::pair<Column, Column> usmp_greedy(const Column& size, const Column& start, const Column& end,
                                      const Column& alignment, const Column& pin, const Table& overlaps,
                                      const Table& conflicts, const usmp::Lists& lists, const Column& order,
                                      const Numbers& limits, const std::vector<Numbers>& pools, bool fixed) {
  const ProblemColumns problem(size, start, end, alignment, pin, overlaps, conflicts);
  const usmp::Pools allowed{limits, pools_of(pools)};
  auto plan = unlocked([&] {
    return usmp::greedy(problem.columns(), problem.facts(), lists, span_of(order), allowed, {fixed, fixed, fixed});
  });
  return {column_of(std::move(plan.pool)), column_of(std::move(plan.offset))};
}

std::tuple<Column, Column, std::int64_t, std::int64_t> usmp_hill_climb(
    const Column& size, const Column& start, const Column& end, const Column& alignment, const Column& pin,
    const Table& overlaps, const Table& conflicts, const usmp::Lists& lists, const Column& order, std::int64_t goal,
    const Numbers& limits, const std::vector<Numbers>& pools, bool fixed, std::int64_t attempts, double seconds,
    std::uint32_t seed) {
  const ProblemColumns problem(size, start, end, alignment, pin, overlaps, conflicts);
  const usmp::Pools allowed{limits, pools_of(pools)};
  auto climb = unlocked([&] {
    return usmp::hill_climb(problem.columns(), problem.facts(), lists, span_of(order), goal, allowed,
                            {fixed, fixed, fixed}, limits_of(attempts, seconds), seed);
  });
  settle(climb.ended);
  return {column_of(std::move(climb.best.pool)), column_of(std::move(climb.best.offset)), climb.attempts,
          static_cast<std::int64_t>(climb.ended)};
}

Numbers glibc_random(std::uint32_t seed, std::int64_t count) {
  Numbers numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(usmp::rand_r(seed));
  return numbers;
}

std::pair<Column, std::int64_t> triton_place(const Column& size, const Column& start, const Column& end,
                                             const Column& alignment, const Column& pin, const Table& overlaps,
                                             const Table& conflicts, const Column& order) {
  const ProblemColumns problem(size, start, end, alignment, pin, overlaps, conflicts);
  auto plan = unlocked([&] { return triton::place(problem.columns(), problem.facts(), span_of(order)); });
  return {column_of(std::move(plan.offsets)), plan.passes};
}

Column xla_best_fit(const Column& size, const Column& start, const Column& end, const Column& alignment,
                    const Column& pin, const Table& overlaps, const Table& conflicts, const Column& group,
                    const Column& order, bool own_sizes, std::int64_t limit) {
  const ProblemColumns problem(size, start, end, alignment, pin, overlaps, conflicts);
  return column_of(unlocked([&] {
    return xla::best_fit(problem.columns(), problem.facts(), span_of(group), span_of(order),
                         own_sizes ? xla::Commit::kOwn : xla::Commit::kLargest, limit);
  }));
}

Column xla_fast_merge(const Column& size, const Column& start, const Column& end, const Column& alignment,
                      const Column& pin, const Table& overlaps, const Table& conflicts, const Column& group,
                      std::int64_t heap_alignment) {
  const ProblemColumns problem(size, start, end, alignment, pin, overlaps, conflicts);
  return column_of(unlocked([&] { return xla::fast_merge(problem.columns(), span_of(group), heap_alignment); }));
}

Column somas_place(const Column& size, const Column& start, const Column& end, const Column& alignment,
                   const Column& pin, const Table& overlaps, const Table& conflicts, const Column& node,
                   const Column& block, const Column& chain, const Column& order, bool smallest, bool single,
                   bool same_gap) {
  const ProblemColumns problem(size, start, end, alignment, pin, overlaps, conflicts);
  const somas::Rule rule{smallest ? somas::Gap::kSmallest : somas::Gap::kBest,
                         single ? somas::Blocks::kSingle : somas::Blocks::kMany, same_gap};
  return column_of(unlocked([&] {
    return somas::place(problem.columns(), problem.facts(), {span_of(node), span_of(block), span_of(chain)},
                        span_of(order), rule);
  }));
}

std::tuple<std::int64_t, Column, std::int64_t, double, std::int64_t> idealloc_place(
    const Column& size, const Column& start, const Column& end, const Column& alignment, const Column& pin,
    const Table& overlaps, const Table& conflicts, std::int64_t target, std::uint64_t seed, std::int64_t steps,
    double seconds) {
  const ProblemColumns problem(size, start, end, alignment, pin, overlaps, conflicts);
  auto result = unlocked(
      [&] { return idealloc::place(problem.columns(), problem.facts(), target, seed, limits_of(steps, seconds)); });
  settle(result.ended);
  return {static_cast<std::int64_t>(result.ended), column_of(std::move(result.offsets)), result.tries, result.epsilon,
          result.boxed};
}

// For the tests: the number of the box that Theorem 2 puts each job in.
Numbers idealloc_theorem2(const Column& start, const Column& end, std::int64_t height, double epsilon,
                          std::uint64_t seed) {
  require_same_length({start.size(), end.size()});
  if (height < 1 || !(epsilon > 0)) throw std::invalid_argument("height and epsilon have to be positive");
  std::vector<idealloc::Item> jobs;
  idealloc::Ids ids;
  for (std::size_t b = 0; b < start.size(); ++b) {
    jobs.push_back({2 * start.data()[b], 2 * end.data()[b], 1, {}});
    ids.push_back(b);
  }
  idealloc::Boxing boxing(std::move(jobs), seed);
  Numbers found(ids.size(), -1);
  std::int64_t number = 0;
  for (const std::size_t box : boxing.theorem2(ids, height, epsilon, height)) {
    for (const std::size_t job : boxing.item(box).inside) {
      if (found[job] >= 0) throw std::logic_error("a job is in two boxes");
      found[job] = number;
    }
    ++number;
  }
  return found;
}

Found telamalloc_decide(const Column& size, const Column& start, const Column& end, const Column& alignment,
                        const Column& pin, const Table& overlaps, const Table& conflicts, std::int64_t capacity,
                        const std::vector<bool>& options, std::int64_t stuck_after, std::int64_t steps,
                        double seconds) {
  const ProblemColumns problem(size, start, end, alignment, pin, overlaps, conflicts);
  if (options.size() != 3) throw std::invalid_argument("expected three options");
  if (stuck_after < 1) throw std::invalid_argument("stuck_after is below 1");
  auto answer = unlocked([&] {
    return telamalloc::decide(problem.columns(), problem.facts(), capacity,
                              {options[0], options[1], options[2], stuck_after}, limits_of(steps, seconds));
  });
  settle(answer.ended);
  return {static_cast<std::int64_t>(answer.ended), column_of(std::move(answer.offsets)), answer.steps};
}

Numbers telamalloc_phases(const Column& size, const Column& start, const Column& end, const Column& alignment,
                          const Column& pin, const Table& overlaps, const Table& conflicts) {
  const ProblemColumns problem(size, start, end, alignment, pin, overlaps, conflicts);
  const auto phases = unlocked([&] { return telamalloc::phases(problem.columns()); });
  return {phases.begin(), phases.end()};
}

minimalloc::Rules rules_of(const std::vector<bool>& on) {
  if (on.size() != 9) throw std::invalid_argument("expected nine rules");
  return {on[0], on[1], on[2], on[3], on[4], on[5], on[6], on[7], on[8]};
}

Found minimalloc_decide(const Column& size, const Column& start, const Column& end, const Column& alignment,
                        const Column& pin, const Table& overlaps, const Table& conflicts, std::int64_t capacity,
                        const std::vector<std::string>& orders, const std::vector<bool>& rules, std::int64_t steps,
                        double seconds) {
  const ProblemColumns problem(size, start, end, alignment, pin, overlaps, conflicts);
  if (overlaps.shape(0) + conflicts.shape(0) > 0)
    throw std::invalid_argument("the canonical search knows neither overlaps nor extra conflicts");
  auto answer = unlocked([&] {
    return minimalloc::decide(problem.columns(), capacity, orders, rules_of(rules), limits_of(steps, seconds));
  });
  settle(answer.ended);
  return {static_cast<std::int64_t>(answer.ended), column_of(std::move(answer.offsets)), answer.steps};
}

}  // namespace

#define MODELPLAN_PROBLEM "size"_a, "start"_a, "end"_a, "alignment"_a, "pin"_a, "overlaps"_a, "conflicts"_a

void bind_search(nb::module_& module) {
  module.def("conflict_counts", &conflict_counts_of, MODELPLAN_PROBLEM, "How many conflicts each buffer has.");
  module.def("usmp_greedy", &usmp_greedy, MODELPLAN_PROBLEM, "lists"_a, "order"_a, "limits"_a, "pools"_a, "fixed"_a,
             "(pool, offset) of each buffer, stacked in `order`.");
  module.def("usmp_hill_climb", &usmp_hill_climb, MODELPLAN_PROBLEM, "lists"_a, "order"_a, "goal"_a, "limits"_a,
             "pools"_a, "fixed"_a, "attempts"_a, "seconds"_a, "seed"_a,
             "(pool, offset) of each buffer, the attempts made, how it ended.");
  module.def("glibc_random", &glibc_random, "seed"_a, "count"_a, "The first numbers of glibc's rand_r.");
  module.def("triton_place", &triton_place, MODELPLAN_PROBLEM, "order"_a, "(offsets, passes).");
  module.def("xla_best_fit", &xla_best_fit, MODELPLAN_PROBLEM, "group"_a, "order"_a, "own_sizes"_a, "limit"_a,
             "Offsets of the decreasing best fit.");
  module.def("xla_fast_merge", &xla_fast_merge, MODELPLAN_PROBLEM, "group"_a, "heap_alignment"_a,
             "Offsets of the best fit by start.");
  module.def("somas_place", &somas_place, MODELPLAN_PROBLEM, "node"_a, "block"_a, "chain"_a, "order"_a, "smallest"_a,
             "single"_a, "same_gap"_a, "Offsets of one run of the solver.");
  module.def("idealloc_place", &idealloc_place, MODELPLAN_PROBLEM, "target"_a, "seed"_a, "steps"_a, "seconds"_a,
             "(ended, offsets, tries, epsilon, the lowest height of a boxing or -1).");
  module.def("idealloc_theorem2", &idealloc_theorem2, "start"_a, "end"_a, "height"_a, "epsilon"_a, "seed"_a,
             "For each unit job the number of its box.");
  module.def("telamalloc_decide", &telamalloc_decide, MODELPLAN_PROBLEM, "capacity"_a, "options"_a, "stuck_after"_a,
             "steps"_a, "seconds"_a, "(ended, offsets, steps); no offsets unless feasible.");
  module.def("telamalloc_phases", &telamalloc_phases, MODELPLAN_PROBLEM, "The phase of each buffer.");
  module.def("minimalloc_decide", &minimalloc_decide, MODELPLAN_PROBLEM, "capacity"_a, "orders"_a, "rules"_a, "steps"_a,
             "seconds"_a, "(ended, offsets, steps); no offsets unless feasible.");
}

#undef MODELPLAN_PROBLEM

}  // namespace modelplan
