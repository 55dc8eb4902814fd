// The doors to core/allocators: conflict-based planners, best fits, boxing and the searches.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

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

using Numbers = Array<std::int64_t>;
using Decision = std::tuple<const char*, Column, std::int64_t>;  // ended, offsets, steps

Column conflict_counts_of(const BoundProblem& problem) {
  return column_of(unlocked([&] { return conflict_counts(problem.problem()); }));
}

Array<Array<std::size_t>> pools_of(const Array<Numbers>& rows) {
  Array<Array<std::size_t>> pools;
  for (const Numbers& row : rows) {
    pools.emplace_back();
    for (const std::int64_t p : row) {
      if (p < 0) throw std::invalid_argument("a pool is negative");
      pools.back().push_back(as_size(p));
    }
  }
  return pools;
}

std::pair<Column, Column> usmp_greedy(const BoundProblem& problem, const usmp::Lists& lists, const Column& order,
                                      const Numbers& limits, const Array<Numbers>& pools, bool fixed) {
  const usmp::Pools allowed{limits, pools_of(pools)};
  auto plan = unlocked([&] { return usmp::greedy(problem.problem(), lists, view_of(order), allowed, fixed); });
  return {column_of(std::move(plan.pool)), column_of(std::move(plan.offset))};
}

std::tuple<Column, Column, std::int64_t, const char*> usmp_hill_climb(const BoundProblem& problem,
                                                                      const usmp::Lists& lists, const Column& order,
                                                                      std::int64_t goal, const Numbers& limits,
                                                                      const Array<Numbers>& pools, bool fixed,
                                                                      std::int64_t attempts, double seconds,
                                                                      std::uint32_t seed) {
  const usmp::Pools allowed{limits, pools_of(pools)};
  auto climb = unlocked([&] {
    return usmp::hill_climb(problem.problem(), lists, view_of(order), goal, allowed, fixed,
                            limits_of(attempts, seconds), seed);
  });
  return {column_of(std::move(climb.best.pool)), column_of(std::move(climb.best.offset)), climb.attempts,
          finish(climb.ended)};
}

Numbers glibc_random(std::uint32_t seed, std::int64_t count) {
  Numbers numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(usmp::rand_r(seed));
  return numbers;
}

std::pair<Column, std::int64_t> triton_place(const BoundProblem& problem, const Column& order) {
  auto plan = unlocked([&] { return triton::place(problem.problem(), view_of(order)); });
  return {column_of(std::move(plan.offsets)), plan.passes};
}

Column xla_best_fit(const BoundProblem& problem, const Column& group, const Column& order, bool own_sizes,
                    std::int64_t limit) {
  return column_of(unlocked([&] {
    return xla::best_fit(problem.problem(), view_of(group), view_of(order),
                         own_sizes ? xla::Commit::kOwn : xla::Commit::kLargest, limit);
  }));
}

Column xla_fast_merge(const BoundProblem& problem, std::int64_t heap_alignment) {
  return column_of(unlocked([&] { return xla::fast_merge(problem.problem(), heap_alignment); }));
}

Column somas_place(const BoundProblem& problem, const Column& node, const Column& block, const Column& chain,
                   const Column& order, bool smallest, bool single, bool same_gap) {
  const somas::Rule rule{smallest ? somas::Gap::kSmallest : somas::Gap::kBest,
                         single ? somas::Blocks::kSingle : somas::Blocks::kMany, same_gap};
  return column_of(unlocked([&] {
    return somas::place(problem.problem(), {view_of(node), view_of(block), view_of(chain)}, view_of(order), rule);
  }));
}

std::tuple<const char*, Column, std::int64_t, double, std::int64_t> idealloc_place(const BoundProblem& problem,
                                                                                   std::int64_t target,
                                                                                   std::uint64_t seed,
                                                                                   std::int64_t steps, double seconds) {
  auto result = unlocked([&] { return idealloc::place(problem.problem(), target, seed, limits_of(steps, seconds)); });
  return {finish(result.ended), column_of(std::move(result.offsets)), result.tries, result.epsilon, result.boxed};
}

// For the tests: the number of the box that Theorem 2 puts each job in.
Numbers idealloc_theorem2(const Column& start, const Column& end, std::int64_t height, double epsilon,
                          std::uint64_t seed) {
  require_same_length({start.size(), end.size()});
  if (height < 1 || !(epsilon > 0)) throw std::invalid_argument("height and epsilon have to be positive");
  Array<idealloc::Item> jobs;
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

constexpr NamedRule<telamalloc::Options> kTelamallocRules[] = {
    {"phases", &telamalloc::Options::phases},
    {"smart_backtracks", &telamalloc::Options::smart_backtracks},
    {"priorities", &telamalloc::Options::priorities}};

// The trees of a table with a row for each node, no trees of an empty one.
telamalloc::Trees trees_of(const Table& table) {
  Array<telamalloc::TreeNode> nodes;
  if (table.shape(0) > 0 && table.shape(1) != 4) throw std::invalid_argument("a table of trees has four columns");
  for (std::size_t row = 0; row < table.shape(0); ++row) {
    const std::int64_t* node = table.data() + 4 * row;
    nodes.push_back({node[0], node[1], node[2], node[3]});
  }
  return telamalloc::Trees(std::move(nodes));
}

telamalloc::Answer telamalloc_answer(const BoundProblem& problem, std::int64_t capacity, const Table& trees,
                                     telamalloc::Options options, std::int64_t steps, double seconds) {
  if (options.stuck_after < 1) throw std::invalid_argument("stuck_after is below 1");
  if (options.record_every < 1) throw std::invalid_argument("every is below 1");
  const telamalloc::Trees learned = trees_of(trees);
  if (!learned.empty()) options.trees = &learned;
  return unlocked([&] { return telamalloc::decide(problem.problem(), capacity, options, limits_of(steps, seconds)); });
}

Decision telamalloc_decide(const BoundProblem& problem, std::int64_t capacity, const Array<std::string>& without,
                           std::int64_t stuck_after, const Table& trees, std::int64_t learned_after, std::int64_t steps,
                           double seconds) {
  telamalloc::Options options = rules_without(kTelamallocRules, without);
  options.stuck_after = stuck_after;
  options.learned_after = learned_after;
  auto answer = telamalloc_answer(problem, capacity, trees, options, steps, seconds);
  return {finish(answer.ended), column_of(std::move(answer.offsets)), answer.steps};
}

using BacktrackRow = std::tuple<Column, Column, Column>;  // buffers, offsets, features one decision after the other

std::tuple<const char*, std::int64_t, std::int64_t, std::int64_t, Array<BacktrackRow>> telamalloc_backtracks(
    const BoundProblem& problem, std::int64_t capacity, const Array<std::string>& without, std::int64_t stuck_after,
    const Table& trees, std::int64_t learned_after, std::int64_t steps, std::int64_t most, std::int64_t every) {
  telamalloc::Options options = rules_without(kTelamallocRules, without);
  options.stuck_after = stuck_after;
  options.learned_after = learned_after;
  options.record_most = most;
  options.record_every = every;
  auto answer = telamalloc_answer(problem, capacity, trees, options, steps, std::numeric_limits<double>::infinity());
  Array<BacktrackRow> rows;
  for (telamalloc::Record& record : answer.records) {
    Array<std::int64_t> features;
    for (const telamalloc::Features& own : record.features) features.insert(features.end(), own.begin(), own.end());
    rows.emplace_back(column_of(std::move(record.buffers)), column_of(std::move(record.offsets)),
                      column_of(std::move(features)));
  }
  return {finish(answer.ended), answer.steps, answer.minor, answer.major, std::move(rows)};
}

Numbers telamalloc_phases(const BoundProblem& problem) {
  const auto phases = unlocked([&] { return telamalloc::phases(problem.problem()); });
  return {phases.begin(), phases.end()};
}

using minimalloc::Rules;
constexpr NamedRule<Rules> kMinimallocRules[] = {{"canonical_only", &Rules::canonical_only},
                                                 {"section_inference", &Rules::section_inference},
                                                 {"dynamic_ordering", &Rules::dynamic_ordering},
                                                 {"check_dominance", &Rules::check_dominance},
                                                 {"unallocated_floor", &Rules::unallocated_floor},
                                                 {"static_preordering", &Rules::static_preordering},
                                                 {"dynamic_decomposition", &Rules::dynamic_decomposition},
                                                 {"monotonic_floor", &Rules::monotonic_floor},
                                                 {"hatless_pruning", &Rules::hatless_pruning}};
static_assert(std::size(kMinimallocRules) * sizeof(bool) == sizeof(Rules), "a rule has no name");

Decision minimalloc_decide(const BoundProblem& problem, std::int64_t capacity, const Array<std::string>& orders,
                           const Array<std::string>& without, std::int64_t steps, double seconds) {
  if (!problem.problem().below.empty() || !problem.problem().left.empty())
    throw std::invalid_argument("the canonical search knows neither overlaps nor extra conflicts");
  const Rules rules = rules_without(kMinimallocRules, without);
  auto answer = unlocked(
      [&] { return minimalloc::decide(problem.problem(), capacity, orders, rules, limits_of(steps, seconds)); });
  return {finish(answer.ended), column_of(std::move(answer.offsets)), answer.steps};
}

}  // namespace

void bind_allocators(nb::module_& module) {
  module.def("conflict_counts", &conflict_counts_of, "problem"_a, "How many conflicts each buffer has.");
  module.def("usmp_greedy", &usmp_greedy, "problem"_a, "lists"_a, "order"_a, "limits"_a, "pools"_a, "fixed"_a,
             "(pool, offset) of each buffer, stacked in `order`.");
  module.def("usmp_hill_climb", &usmp_hill_climb, "problem"_a, "lists"_a, "order"_a, "goal"_a, "limits"_a, "pools"_a,
             "fixed"_a, "attempts"_a, "seconds"_a, "seed"_a,
             "(pool, offset) of each buffer, the attempts made, how it ended.");
  module.def("glibc_random", &glibc_random, "seed"_a, "count"_a, "The first numbers of glibc's rand_r.");
  module.def("triton_place", &triton_place, "problem"_a, "order"_a, "(offsets, passes).");
  module.def("xla_best_fit", &xla_best_fit, "problem"_a, "group"_a, "order"_a, "own_sizes"_a, "limit"_a,
             "Offsets of the decreasing best fit.");
  module.def("xla_fast_merge", &xla_fast_merge, "problem"_a, "heap_alignment"_a, "Offsets of the best fit by start.");
  module.def("somas_place", &somas_place, "problem"_a, "node"_a, "block"_a, "chain"_a, "order"_a, nb::kw_only(),
             "smallest"_a, "single"_a, "same_gap"_a, "Offsets of one run of the solver.");
  module.def("idealloc_place", &idealloc_place, "problem"_a, "target"_a, "seed"_a, "steps"_a, "seconds"_a,
             "(ended, offsets, tries, epsilon, the lowest height of a boxing or -1).");
  module.def("idealloc_theorem2", &idealloc_theorem2, "start"_a, "end"_a, "height"_a, "epsilon"_a, "seed"_a,
             "For each unit job the number of its box.");
  module.def("telamalloc_decide", &telamalloc_decide, "problem"_a, "capacity"_a, "without"_a, "stuck_after"_a,
             "trees"_a, "learned_after"_a, "steps"_a, "seconds"_a,
             "(ended, offsets, steps); no offsets unless feasible.");
  module.def("telamalloc_backtracks", &telamalloc_backtracks, "problem"_a, "capacity"_a, "without"_a, "stuck_after"_a,
             "trees"_a, "learned_after"_a, "steps"_a, "most"_a, "every"_a,
             "(ended, steps, minor backtracks, major backtracks, of some of these (buffers, offsets, features)).");
  module.def("telamalloc_phases", &telamalloc_phases, "problem"_a, "The phase of each buffer.");
  module.def("minimalloc_decide", &minimalloc_decide, "problem"_a, "capacity"_a, "orders"_a, "without"_a, "steps"_a,
             "seconds"_a, "(ended, offsets, steps); no offsets unless feasible.");
  module.attr("MINIMALLOC_RULES") = names_of(kMinimallocRules);
  module.attr("TELAMALLOC_RULES") = names_of(kTelamallocRules);
}

}  // namespace modelplan
