"""Stretches computed stripe by stripe by one body in a loop: as many operators, however fine the stripes are.

    c -> table -> begin --> SLICE(X) -> an operator -> SLICE (cut) -> ... -> DYNAMIC_UPDATE_SLICE(Y)
    c -> next c                                         ^ begin               ^ begin, from tables

Every iteration takes windows of the same extents out of the maps that enter. With `columns` the map is cut along both
axes, and an iteration makes a tile of it: tiles go from left to right, then from top to bottom.

The result, and rows that are carried, enter the WHILE as variable tensors, which have memory without being written.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from modelplan.model import Graph
from modelplan.rewriting.striped_tflite.layers import steering_operands, takes_anything
from modelplan.rewriting.striped_tflite.steps import Block, GroupOffset, TfliteLoop, TfliteProgram, TfliteStep
from modelplan.rewriting.stripes.loop_rows import IterationRows, Tiling, tiling
from modelplan.rewriting.stripes.stretches import LoopLayers
from modelplan.rewriting.stripes.stripe_program import AddedValue

#: Numbers of a begin vector, and the step of the counter: every table has one vector for an iteration.
_RANK = 4


def append_loop(program: TfliteProgram, base: LoopLayers) -> None:
    """Appends a stretch as one loop.

    Raises:
        IllegalStripeError: the stretch has not one map that leaves it, or no windows of one extent.
    """
    _Writer(program, base, tiling(base)).write()


class LoopWriter(ABC):
    """Appends a loop of so many iterations that reads the maps `entries` and makes `result`.

    The counter goes by `stride`: every table has so many numbers for an iteration.
    """

    def __init__(
        self, program: TfliteProgram, graph: Graph, entries: Sequence[int], result: int, count: int, stride: int = _RANK
    ) -> None:
        self.program, self.graph, self.entries, self.y = program, graph, tuple(entries), result
        self.count, self.stride = count, stride
        self.name = f"{graph.tensors[self.y].name}/loop"
        self.body: list[TfliteStep] = []
        self.held: dict[int, int] = {}
        self.carried: dict[int, int] = {}  # what an iteration leaves to the next, and the value that it makes of it
        program.place(self.y)
        self.counter = self._small("counter", 1)

    def write(self) -> None:
        """Appends the loop."""
        program, stride, end = self.program, self.stride, self.stride * self.count
        counter = self.counter
        following = self._small("counter_next", 1, program.group_offsets[counter])
        flag = program.add_at(AddedValue(f"{self.name}/going", -1, (1,), dtype="bool"), program.new_group())
        slice_size = program.constant((1,))
        going = [0] * (end + 1)
        going[:end:stride] = [1] * self.count
        condition = TfliteStep("SLICE", (self._table("going_on", going, "bool"), counter, slice_size), (flag,))
        self.append_body()
        updated = self._updated()
        steps = [0] * end
        steps[::stride] = [stride * (i + 1) for i in range(self.count)]
        self.body.append(TfliteStep("SLICE", (self._table("next", steps), counter, slice_size), (following,)))
        passed = tuple(self._again(x, x, f"x{i or ''}") for i, x in enumerate(self.entries))
        carried = tuple(self.carried)
        begun = [self._again(c, self._origin(c), f"begun{i}", variable=True) for i, c in enumerate(carried)]
        begun.append(self._again(self.y, self.y, "y", variable=True))
        inputs = (counter, *self.entries, *carried, self.y)
        outputs = (following, *self.entries, *self.carried.values(), updated)
        loop = TfliteLoop(self.count, condition, tuple(self.body), inputs, outputs, carried)
        start = program.constant((0,))
        program.steps.append(
            TfliteStep("WHILE", (start, *self.entries, *begun), (counter, *passed, *carried, self.y), loop=loop)
        )

    @abstractmethod
    def append_body(self) -> None:
        """Appends the steps that make an iteration's rows of the result, which are then held."""

    @abstractmethod
    def result_begins(self) -> tuple[tuple[int, ...], ...]:
        """For each iteration where its part of the result begins."""

    def _origin(self, value: int) -> int:
        """The tensor of the graph whose type and quantisation a value has."""
        return value if value < len(self.graph.tensors) else self.program.added[value - len(self.graph.tensors)].tensor

    def _again(self, value: int, t: int, what: str, *, variable: bool = False) -> int:
        """The same bytes of a value of type `t` under another tensor name."""
        added = AddedValue(f"{self.name}/{what}", t, self.program.shape(value), variable=variable)
        return self.program.add_at(added, self.program.group_offsets[value])

    def _updated(self) -> int:
        """Appends the update of the result; returns the value that has the new rows."""
        begins = self.result_begins()
        begin = self._begin(begins, "result")
        updated = self._again(self.y, self.y, "updated")
        self.body.append(
            TfliteStep("DYNAMIC_UPDATE_SLICE", (self.y, self.held[self.y], begin), (updated,), starts=begins)
        )
        return updated

    def _begin(self, begins: Sequence[tuple[int, ...]], what: str) -> int:
        """The begin vector of this iteration, out of a table."""
        value = self._small(f"{what}_begin", _RANK)
        rest = (0,) * (self.stride - _RANK)
        table = self._table(f"{what}_begins", [at for begin in begins for at in (*begin, *rest)])
        self.body.append(TfliteStep("SLICE", (table, self.counter, self.program.constant((_RANK,))), (value,)))
        return value

    def _small(self, what: str, count: int, place: GroupOffset | None = None) -> int:
        added = AddedValue(f"{self.name}/{what}", -1, (count,), dtype="int32")
        return self.program.add_at(added, place or self.program.new_group())

    def _table(self, what: str, numbers: list[int], dtype: str = "int32") -> int:
        return self.program.add(
            AddedValue(f"{self.name}/{what}", -1, (len(numbers),), numbers=tuple(numbers), dtype=dtype)
        )


class _Writer(LoopWriter):
    def __init__(self, program: TfliteProgram, base: LoopLayers, loop_tiling: Tiling) -> None:
        super().__init__(program, base.graph, loop_tiling.entries, loop_tiling.result, len(loop_tiling.tiles))
        self.base, self.tiling = base, loop_tiling
        self.loose = all(takes_anything(base.graph, op) for op in base.ops)

    def append_body(self) -> None:
        for index in self.base.ops:
            self._operator(index)

    def result_begins(self) -> tuple[tuple[int, ...], ...]:
        return self.tiling.begins([axis_rows.result.starts for axis_rows in self.tiling.both_axes])

    def _operator(self, index: int) -> None:
        """One operator of the stretch: its windows, itself, and the cut behind it."""
        graph, layer = self.base.graph, self.base.layers[index]
        op, y = graph.ops[index], graph.ops[index].outputs[0]
        inputs = list(op.inputs)
        for position in layer.operands:
            x = op.inputs[position]
            runs = [axis_rows.taken[index, position] for axis_rows in self.tiling.both_axes]
            source = self.held.get(x, x)
            blocks = self._used(x, (index, position), layer.places) if x not in self.held and self.loose else ()
            inputs[position] = self._rows(x, source, runs, f"op{index}_window", layer.places, blocks)
        computed = [axis_rows.computed[index] for axis_rows in self.tiling.both_axes]
        for position, numbers in steering_operands(graph, op, self._cut(computed)).items():
            inputs[position : position + 1] = [self.program.constant(numbers)]
        value = self._map(y, computed, "made")
        self.body.append(TfliteStep(op.kind, tuple(inputs), (value,), index))
        self.held[y] = self._rows(
            y, value, [axis_rows.kept[index] for axis_rows in self.tiling.both_axes], f"op{index}_cut"
        )

    def _cut(self, computed: Sequence[int]) -> dict[int, int]:
        """Rows along the axes that are cut."""
        return {a: n for a, n in enumerate(computed, 1) if a == self.base.stretch.axis or self.base.stretch.columns}

    def _rows(
        self, t: int, source: int, runs: Sequence[IterationRows], what: str, places: tuple[int, ...] = (),
        used: tuple[Block, ...] = (),
    ) -> int:  # fmt: skip
        """The rows and columns `runs` of a value: itself, or a slice whose begins come from a table.

        They lie along axes 1 and 2 of the value, or where `places` says. The result depends on the blocks `used`.
        """
        extents, axes = list(self.program.shape(source)), (places or (0, 1, 2))[1:3]
        if all(run.is_all_of(extents[axis]) for run, axis in zip(runs, axes, strict=True)):
            return source
        begins = []
        for begin in self.tiling.begins([run.starts for run in runs]):
            turned = [0] * _RANK
            turned[axes[0]], turned[axes[1]] = begin[1:3]
            begins.append(tuple(turned))
        extents[axes[0]], extents[axes[1]] = (run.extent for run in runs)
        begin_vector = self._begin(begins, what)
        added = AddedValue(f"{self.base.graph.tensors[t].name}/{what}", t, tuple(extents))
        value = self.program.add_at(added, self.program.new_group())
        size = self.program.constant(self.program.shape(value))
        self.body.append(TfliteStep("SLICE", (source, begin_vector, size), (value,), starts=tuple(begins), used=used))
        return value

    def _used(self, x: int, operand: tuple[int, int], places: tuple[int, ...]) -> tuple[Block, ...]:
        """The block of an entering map that each tile of the result depends on."""
        first, second = (places or (0, 1, 2))[1:3]
        blocks = []
        for tile in self.tiling.tiles:
            begin, extents = [0] * _RANK, list(self.program.shape(x))
            for axis, axis_rows, at in zip((first, second), self.tiling.both_axes, tile, strict=True):
                lo, hi = axis_rows.used[operand][at]
                begin[axis], extents[axis] = lo, hi - lo
            blocks.append((tuple(begin), tuple(extents)))
        return tuple(blocks)

    def _map(self, t: int, extents: Sequence[int], what: str) -> int:
        shape = self.base.graph.tensors[t].shape
        added = AddedValue(f"{self.base.graph.tensors[t].name}/{what}", t, (shape[0], *extents, shape[3]))
        return self.program.add_at(added, self.program.new_group())
