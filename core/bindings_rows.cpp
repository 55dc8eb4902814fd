// Plans by rows, as classes of the module: a graph in columns, its stages, and the steps of a plan.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/unique_ptr.h>

#include <memory>

#include "bindings.hpp"
#include "rigid/pack.hpp"
#include "rows/trace.hpp"

namespace modelplan {
namespace {

using namespace nb::literals;
using rows::AxisWindow;
using rows::MapShape;

MapShape shape_of(Row& row) { return {row.number(), row.number(), row.number()}; }
AxisWindow window_of(Row& row) { return {row.number(), row.number(), row.number()}; }

// Adds what an operator reads or makes, or sets that of a member of its chain.
template <class Port>
void add_port(rows::Operator& op, std::int64_t member, const Port& port, Array<Port> rows::Operator::* own,
              Port rows::Member::* of_member) {
  if (member < 0)
    (op.*own).push_back(port);
  else
    op.chain.at(as_size(member)).*of_member = port;
}

// Braces are evaluated from left to right, so that the numbers of a row come in the order of the fields.
rows::Graph graph_of(const Table& values, const Table& operators, const Table& operands, const Table& results,
                     const Table& parts, const Table& in_place, const Table& members, std::size_t count, bool pushed) {
  rows::Graph graph{.values = {}, .operators = {}, .count = count, .pushed = pushed};
  for (std::size_t i = 0; i < values.shape(0); ++i) {
    Row row(values, i, 7);
    graph.values.push_back(
        {row.number(), row.number(), row.number(), row.number(), row.flag(), row.flag(), row.flag(), {}});
  }
  for (std::size_t i = 0; i < operators.shape(0); ++i) {
    Row row(operators, i, 10);
    graph.operators.push_back({row.number(),
                               row.number(),
                               row.flag(),
                               row.flag(),
                               row.flag(),
                               row.flag(),
                               row.flag(),
                               row.number(),
                               row.number(),
                               row.number(),
                               {},
                               {},
                               {},
                               {},
                               {}});
  }
  if (graph.operators.size() != count + (pushed ? 1 : 0)) throw std::invalid_argument("operators are missing");
  const std::size_t ops = graph.operators.size();
  for (std::size_t i = 0; i < members.shape(0); ++i) {
    Row row(members, i, 2);
    const std::size_t op = row.index(ops);
    graph.operators[op].chain.push_back({row.number(), {}, {}});
  }
  for (std::size_t i = 0; i < operands.shape(0); ++i) {
    Row row(operands, i, 15);
    rows::Operator& op = graph.operators[row.index(ops)];
    const std::int64_t member = row.number();
    const rows::Operand operand{
        row.number(),  row.index(graph.values.size()), shape_of(row), row.flag(), row.flag(), window_of(row),
        window_of(row)};
    add_port(op, member, operand, &rows::Operator::operands, &rows::Member::operand);
  }
  for (std::size_t i = 0; i < results.shape(0); ++i) {
    Row row(results, i, 10);
    rows::Operator& op = graph.operators[row.index(ops)];
    const std::int64_t member = row.number();
    const rows::Result result{row.number(), row.index(graph.values.size()), shape_of(row), shape_of(row)};
    add_port(op, member, result, &rows::Operator::results, &rows::Member::result);
  }
  for (std::size_t i = 0; i < parts.shape(0); ++i) {
    Row row(parts, i, 3);
    rows::Operator& op = graph.operators[row.index(ops)];
    op.parts.push_back({row.index(op.operands.size()), row.number()});
  }
  for (std::size_t i = 0; i < in_place.shape(0); ++i) {
    Row row(in_place, i, 2);
    rows::Operator& op = graph.operators[row.index(ops)];
    op.in_place.push_back(row.index(op.operands.size()));
  }
  rows::find_read_pixels(graph);
  return graph;
}

// The columns of a group problem, copied for Python: size, start, end, alignment, group, delta, and its meetings.
nb::tuple columns_of(const rows::GroupProblem& problem) {
  Array<std::int64_t> meetings;
  for (std::size_t k = 0; k < problem.first.size(); ++k)
    meetings.insert(meetings.end(), {problem.first[k], problem.second[k], problem.least[k], problem.most[k]});
  const auto copied = [](const Array<std::int64_t>& column) { return column_of(Array<std::int64_t>(column)); };
  return nb::make_tuple(copied(problem.size), copied(problem.start), copied(problem.end), copied(problem.alignment),
                        copied(problem.group), copied(problem.delta), column_of(std::move(meetings)));
}

Column byte_lives_of(const Table& accesses) {
  Array<rows::Access> touched;
  for (std::size_t i = 0; i < accesses.shape(0); ++i) {
    Row row(accesses, i, 5);
    touched.push_back({as_size(row.number()), row.number(), row.number(), row.number(), row.flag()});
  }
  Array<std::int64_t> out;
  for (const rows::LiveBytes& run : unlocked([&] { return rows::byte_lives(std::move(touched)); }))
    out.insert(out.end(), {static_cast<std::int64_t>(run.group), run.lo, run.hi, run.start, run.end});
  return column_of(std::move(out));
}

// A step as numbers: its kind, then what RowPlan.steps says.
void add_step(const rows::Step& step, Array<std::int64_t>& out) {
  const auto add = [&](std::initializer_list<std::int64_t> numbers) { out.insert(out.end(), numbers); };
  const auto value = static_cast<std::int64_t>(step.value);
  if (step.kind == rows::Step::Kind::kShift) return add({1, value, step.address, step.to, step.nbytes});
  if (step.kind == rows::Step::Kind::kArrival) return add({2, value, step.address, step.nbytes});
  add({0, step.number, step.cut, step.left, step.right, step.scratch, static_cast<std::int64_t>(step.reads.size()),
       static_cast<std::int64_t>(step.writes.size())});
  for (const rows::RowsRead& read : step.reads)
    add({read.tensor, static_cast<std::int64_t>(read.value), read.first, read.rows, read.above, read.address, read.left,
         read.width});
  for (const rows::RowsWritten& write : step.writes)
    add({write.tensor, static_cast<std::int64_t>(write.value), write.first, write.rows, write.address});
}

// The ticks of stages of a graph, which it keeps alive.
class RowPlan {
 public:
  RowPlan(std::shared_ptr<const rows::Graph> graph, const Table& choices) : graph_(std::move(graph)), trace_(*graph_) {
    Array<rows::Choice> stages;
    for (std::size_t i = 0; i < choices.shape(0); ++i) {
      Row row(choices, i, 4);
      stages.push_back({row.index(graph_->count), row.index(graph_->count + 1), row.number(), row.flag()});
    }
    unlocked([&] {
      for (const rows::Choice& choice : stages) trace_.add(rows::Stage(*graph_, choice));
      return 0;
    });
  }

  nb::tuple problem() const {
    return columns_of(unlocked([&] { return trace_.problem(); }));
  }
  Array<std::int64_t> scratch() const { return trace_.scratch(); }
  Array<std::int64_t> capacities() const {
    Array<std::int64_t> bytes;
    for (std::size_t v = 0; v < graph_->values.size(); ++v) bytes.push_back(trace_.capacity(v));
    return bytes;
  }
  Array<Array<std::int64_t>> steps(const Array<std::int64_t>& bases) const {
    if (bases.size() != graph_->values.size() + trace_.scratch().size())
      throw std::invalid_argument("a plan needs a base for each group");
    Array<Array<std::int64_t>> stages;
    for (const Array<rows::Step>& ticks : trace_.stages()) {
      stages.emplace_back();
      for (const rows::Step& step : rows::joined(ticks, bases)) add_step(step, stages.back());
    }
    return stages;
  }

 private:
  std::shared_ptr<const rows::Graph> graph_;
  rows::Trace trace_;
};

class RowGraph {
 public:
  RowGraph(const Table& values, const Table& operators, const Table& operands, const Table& results, const Table& parts,
           const Table& in_place, const Table& members, std::size_t count, bool pushed)
      : graph_(std::make_shared<rows::Graph>(
            graph_of(values, operators, operands, results, parts, in_place, members, count, pushed))) {}

  std::pair<std::int64_t, bool> load(std::size_t first, std::size_t end, std::int64_t parts, bool backward,
                                     std::int64_t most) const {
    const rows::Load load =
        unlocked([&] { return rows::Stage(*graph_, checked(first, end, parts, backward)).load(most); });
    return {load.bytes, load.exact};
  }

  // The height of a stage alone with what passes through it, and how the search for it ended.
  std::pair<std::int64_t, const char*> height(std::size_t first, std::size_t end, std::int64_t parts, bool backward,
                                              std::int64_t tries, std::int64_t enough, std::uint64_t seed) const {
    Ended ended = Ended::kComplete;
    const std::int64_t height = unlocked([&] {
      const rows::Stage stage(*graph_, checked(first, end, parts, backward));
      rows::Trace trace(*graph_);
      trace.add(stage);
      const rows::GroupProblem groups = trace.problem_of(stage);
      const Problem problem = groups.problem();
      const std::int64_t limit = enough > stage.passing() ? enough - stage.passing() : 0;
      const rigid::Packed found = rigid::pack(problem, {tries, limit, seed, 0, &interrupted});
      std::int64_t top = 0;
      for (std::size_t b = 0; b < found.offsets.size(); ++b)
        if (problem.size[b] > 0) top = std::max(top, found.offsets[b] + problem.size[b]);
      ended = found.offsets.size() < problem.count() ? Ended::kInfeasible : found.ended;
      return top + stage.passing();
    });
    return {height, finish(ended)};
  }

  std::unique_ptr<RowPlan> plan(const Table& choices) const { return std::make_unique<RowPlan>(graph_, choices); }

 private:
  rows::Choice checked(std::size_t first, std::size_t end, std::int64_t parts, bool backward) const {
    if (first >= end || end > graph_->count) throw std::invalid_argument("a stage holds operators of the order");
    return {first, end, parts, backward};
  }

  std::shared_ptr<const rows::Graph> graph_;
};

}  // namespace

void bind_rows(nb::module_& module) {
  module.def(
      "byte_lives", &byte_lives_of, "accesses"_a,
      "Rows (group, lo, hi, start, end) of the lives of bytes, flat; an access is (group, lo, hi, step, writes).");
  nb::class_<RowPlan>(module, "RowPlan", "The steps of stages, with addresses that count from the base of each group.")
      .def("problem", &RowPlan::problem,
           "Columns of the packing problem of all groups: size, start, end, alignment, group, delta; its meetings, "
           "flat.")
      .def_prop_ro("scratch", &RowPlan::scratch, "The operators that have working memory; groups behind the values.")
      .def_prop_ro("capacities", &RowPlan::capacities, "The bytes that there are of each value at a time.")
      .def(
          "steps", &RowPlan::steps, "bases"_a,
          "For each stage its steps as numbers, one after the other. A call is 0, operator, whether it computes columns"
          " only, these, the address of its scratch, numbers of reads and writes; a read is tensor, value, first, rows,"
          " above, address, left, width; a write tensor, value, first, rows, address. A move is 1, value, from, to,"
          " bytes; an arrival 2, value, address, bytes.");
  nb::class_<RowGraph>(module, "RowGraph", "A graph as a plan by rows sees it, in tables of int64.")
      .def(nb::init<const Table&, const Table&, const Table&, const Table&, const Table&, const Table&, const Table&,
                    std::size_t, bool>(),
           "values"_a, "operators"_a, "operands"_a, "results"_a, "parts"_a, "in_place"_a, "members"_a, "count"_a,
           "pushed"_a)
      .def("load", &RowGraph::load, "first"_a, "end"_a, "parts"_a, "backward"_a, "most"_a,
           "(bytes, exact): the most that are alive at a time in a stage; not exact where they are more than `most`.")
      .def("height", &RowGraph::height, "first"_a, "end"_a, "parts"_a, "backward"_a, "tries"_a, "enough"_a, "seed"_a,
           "(bytes, ended) of the lowest packing that was found of a stage alone.")
      .def("plan", &RowGraph::plan, "choices"_a, "The plan of stages, rows (first, end, parts, backward).");
}

}  // namespace modelplan
