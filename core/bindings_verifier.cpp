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
  const Columns overwrite(overwrites, 3);
  return unlocked([&] {
    return verifier::find_shared_bytes({view_of(start), view_of(end), view_of(first), view_of(last), view_of(cls)},
                                       {overwrite[0], overwrite[1], overwrite[2]});
  });
}

void require_below(Ints ids, std::size_t count) {
  for (const std::int64_t id : ids)
    if (id < 0 || id >= static_cast<std::int64_t>(count))
      throw std::invalid_argument("a row names what does not exist");
}

// Rows that stand in another order would be passed over.
void require_ascending_below(Ints ids, std::size_t count) {
  require_below(ids, count);
  if (!std::ranges::is_sorted(ids)) throw std::invalid_argument("rows are not in order");
}

Column replay_of(std::int64_t steps, const Table& tensors, const Column& inputs, const Column& outputs,
                 const Column& states, const Table& reads, const Table& writes, const Table& scratch,
                 const Table& moves, std::int64_t runs, std::size_t most_pieces) {
  const Columns tensor(tensors, 3), read(reads, 2), write(writes, 2), junk(scratch, 3), move(moves, 4);
  const verifier::Run run{.steps = steps,
                          .size = tensor[0],
                          .address = tensor[1],
                          .planned = tensor[2],
                          .inputs = view_of(inputs),
                          .outputs = view_of(outputs),
                          .states = view_of(states),
                          .read_step = read[0],
                          .read_tensor = read[1],
                          .write_step = write[0],
                          .write_tensor = write[1],
                          .scratch_step = junk[0],
                          .scratch_start = junk[1],
                          .scratch_end = junk[2],
                          .move_write = move[0],
                          .move_source = move[1],
                          .move_start = move[2],
                          .move_length = move[3]};
  for (const auto& ids : {run.inputs, run.outputs, run.states, run.read_tensor, run.write_tensor, run.move_source})
    require_below(ids, run.size.size());
  for (const auto& column : {run.read_step, run.write_step, run.scratch_step})
    require_ascending_below(column, static_cast<std::size_t>(steps));
  require_ascending_below(run.move_write, run.write_step.size());
  const auto fault = unlocked([&] { return verifier::replay(run, runs, most_pieces); });
  if (!fault) return column_of(Array<std::int64_t>());
  return column_of({fault->kind, fault->run, fault->step, fault->tensor, fault->start, fault->end, fault->by_step,
                    fault->by_tensor});
}

}  // namespace

void bind_verifier(nb::module_& module) {
  module.def("find_shared_bytes", &shared_bytes_of, "start"_a, "end"_a, "first"_a, "last"_a, "cls"_a, "overwrites"_a,
             "The first two lives that share bytes and must not, or (-1, -1); rows (over, by, step) of classes may.");
  module.def("replay", &replay_of, "steps"_a, "tensors"_a, "inputs"_a, "outputs"_a, "states"_a, "reads"_a, "writes"_a,
             "scratch"_a, "moves"_a, "runs"_a, "most_pieces"_a,
             "(kind, run, step, tensor, start, end, by step, by tensor) of the first read that does not find its own"
             " bytes; empty if there is none.");
}

}  // namespace modelplan
