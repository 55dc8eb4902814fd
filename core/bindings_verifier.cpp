// The loops of the verifier, as functions of the module.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>

#include "bindings.hpp"
#include "verifier/lives.hpp"
#include "verifier/shadow.hpp"

namespace modelplan {
namespace {

using namespace nb::literals;

std::pair<std::int64_t, std::int64_t> shared_bytes_of(const Column& start, const Column& end, const Column& first,
                                                      const Column& last, const Column& cls, const Table& overwrites) {
  require_same_length({start.size(), end.size(), first.size(), last.size(), cls.size()});
  const Array<std::int64_t> over = column_of(overwrites, 0), by = column_of(overwrites, 1),
                            step = column_of(overwrites, 2);
  return unlocked([&] {
    return verifier::find_shared_bytes({view_of(start), view_of(end), view_of(first), view_of(last), view_of(cls)},
                                       {over, by, step});
  });
}

// The columns of a table.
class Columns {
 public:
  Columns(const Table& table, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) columns_.push_back(column_of(table, i));
  }
  std::span<const std::int64_t> operator[](std::size_t i) const { return columns_[i]; }

 private:
  std::vector<Array<std::int64_t>> columns_;
};

void require_below(std::span<const std::int64_t> ids, std::size_t count) {
  for (const std::int64_t id : ids)
    if (id < 0 || id >= static_cast<std::int64_t>(count))
      throw std::invalid_argument("a row names what does not exist");
}

// Rows that stand in another order would be passed over.
void require_ascending_below(std::span<const std::int64_t> ids, std::size_t count) {
  require_below(ids, count);
  if (!std::ranges::is_sorted(ids)) throw std::invalid_argument("rows are not in order");
}

Column replay_of(std::int64_t steps, const Table& tensors, const Column& inputs, const Column& outputs,
                 const Column& states, const Table& reads, const Table& writes, const Table& scratch,
                 const Table& moves, std::int64_t runs) {
  const Columns tensor(tensors, 3), read(reads, 2), write(writes, 2), junk(scratch, 3), move(moves, 4);
  const verifier::Run run{steps,           tensor[0], tensor[1], tensor[2], view_of(inputs), view_of(outputs),
                          view_of(states), read[0],   read[1],   write[0],  write[1],        junk[0],
                          junk[1],         junk[2],   move[0],   move[1],   move[2],         move[3]};
  for (const auto& ids : {run.inputs, run.outputs, run.states, run.read_tensor, run.write_tensor, run.move_source})
    require_below(ids, run.size.size());
  for (const auto& column : {run.read_step, run.write_step, run.scratch_step})
    require_ascending_below(column, static_cast<std::size_t>(steps));
  require_ascending_below(run.move_write, run.write_step.size());
  const auto fault = unlocked([&] { return verifier::replay(run, runs); });
  if (!fault) return column_of(Array<std::int64_t>());
  return column_of({fault->kind, fault->run, fault->step, fault->tensor, fault->start, fault->end, fault->by_step,
                    fault->by_tensor});
}

}  // namespace

void bind_verifier(nb::module_& module) {
  module.def("find_shared_bytes", &shared_bytes_of, "start"_a, "end"_a, "first"_a, "last"_a, "cls"_a, "overwrites"_a,
             "The first two lives that share bytes and must not, or (-1, -1); rows (over, by, step) of classes may.");
  module.def("replay", &replay_of, "steps"_a, "tensors"_a, "inputs"_a, "outputs"_a, "states"_a, "reads"_a, "writes"_a,
             "scratch"_a, "moves"_a, "runs"_a,
             "(kind, run, step, tensor, start, end, by step, by tensor) of the first read that does not find its own"
             " bytes; empty if there is none.");
}

}  // namespace modelplan
