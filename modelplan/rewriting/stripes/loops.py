"""Regions computed stripe by stripe by one body in a loop: as many operators, however fine the stripes are.

    c -> table -> begin --> SLICE(X) -> an operator -> SLICE (cut) -> ... -> DYNAMIC_UPDATE_SLICE(Y)
    c -> next c                                         ^ begin               ^ begin, from tables

Every iteration takes windows of the same extents out of the maps that enter. With `columns` the map is cut along both
axes, and an iteration makes a tile of it: tiles go from left to right, then from top to bottom.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from modelplan.rewriting.stripes.courses import Course, Run, course_of, undivided
from modelplan.rewriting.stripes.layers import sized, takes_anything
from modelplan.rewriting.stripes.program import Added, Block, Home, Loop, Program, Step
from modelplan.rewriting.stripes.regions import Ground
from modelplan.rewriting.stripes.windows import IllegalStripeError

#: Axes of a map, numbers of a begin vector, and the step of the counter: every table has one vector for an iteration.
_RANK = 4
#: The most iterations of a loop: each costs copies, and time in every check of the plan.
_MOST_TILES = 512


@dataclass(frozen=True)
class Tiling:
    """The courses of a loop along height and width, and the tiles of the result as (place along both) in their order.

    `entries` are the maps that the loop takes windows of, `result` the one that it makes.
    """

    entries: tuple[int, ...]
    result: int
    courses: tuple[Course, Course]
    tiles: tuple[tuple[int, int], ...]

    def begins(self, runs: Sequence[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
        """For each tile the begin vector out of the starts along height and width."""
        return tuple((0, *(starts[at] for starts, at in zip(runs, tile, strict=True)), 0) for tile in self.tiles)


def tiling(base: Ground) -> Tiling:
    """How the loop of a region goes over its result.

    Raises:
        IllegalStripeError: the region has not one map of four axes that leaves it, or no windows of one extent.
    """
    entries, result = _ends(base)
    along = course_of(base, base.layers, base.region.cuts[1] - base.region.cuts[0])
    across = undivided(base, 3 - base.region.axis)
    if base.region.columns:
        across = course_of(base, base.across, base.region.columns)
    courses = (along, across) if base.region.axis == 1 else (across, along)
    rows, columns = (range(len(course.result.starts)) for course in courses)
    tiles = tuple(product(rows, columns))
    if not 2 <= len(tiles) <= _MOST_TILES:
        raise IllegalStripeError(f"a loop of {len(tiles)} iterations")
    return Tiling(entries, result, courses, tiles)


def _ends(base: Ground) -> tuple[tuple[int, ...], int]:
    """The maps that enter a region and the one that leaves it."""
    graph = base.graph
    result = graph.ops[base.ops[-1]].outputs[0]
    read = (graph.ops[op].inputs[position] for op in base.ops for position in base.layers[op].operands)
    entries = tuple(dict.fromkeys(t for t in read if t not in base.inner))
    if base.exits != {result} or not entries:
        raise IllegalStripeError("a loop needs one map that leaves it")
    if any(len(graph.tensors[t].shape) != _RANK for t in (*entries, *base.inner)):
        raise IllegalStripeError("a loop needs maps of four axes")
    return entries, result


def looped(program: Program, base: Ground) -> None:
    """Appends a region as one loop.

    Raises:
        IllegalStripeError: the region has not one map that leaves it, or no windows of one extent.
    """
    _Writer(program, base, tiling(base)).write()


class _Writer:
    def __init__(self, program: Program, base: Ground, found: Tiling) -> None:
        self.program, self.base, self.found, self.y = program, base, found, found.result
        self.count = len(found.tiles)
        self.name = f"{base.graph.tensors[self.y].name}/loop"
        self.loose = all(takes_anything(base.graph, op) for op in base.ops)
        self.body: list[Step] = []
        self.held: dict[int, int] = {}

    def write(self) -> None:
        program = self.program
        program.homes[self.y] = Home(program.new_group(), 0)
        counter = self._small("counter", 1)
        following = self._small("counter_next", 1, program.homes[counter])
        flag = program.add(Added(f"{self.name}/going", -1, (1,), dtype="bool"), Home(program.new_group(), 0))
        one = program.constant((1,))
        going = [0] * (_RANK * self.count + 1)
        going[: _RANK * self.count : _RANK] = [1] * self.count
        condition = Step("SLICE", (self._table("going_on", going, "bool"), counter, one), (flag,))
        updated = self._body(counter)
        steps = [0] * (_RANK * self.count)
        steps[::_RANK] = [_RANK * (i + 1) for i in range(self.count)]
        self.body.append(Step("SLICE", (self._table("next", steps), counter, one), (following,)))
        passed = tuple(self._again(x, f"x{i or ''}") for i, x in enumerate(self.found.entries))
        begun = self._again(self.y, "y", variable=True)
        inputs, outputs = (counter, *self.found.entries, self.y), (following, *self.found.entries, updated)
        loop = Loop(self.count, condition, tuple(self.body), inputs, outputs)
        start = program.constant((0,))
        program.steps.append(Step("WHILE", (start, *self.found.entries, begun), (counter, *passed, self.y), loop=loop))

    def _again(self, t: int, what: str, *, variable: bool = False) -> int:
        """A map under another name, where it stands."""
        added = Added(f"{self.name}/{what}", t, self.program.shape(t), variable=variable)
        return self.program.add(added, self.program.homes[t])

    def _body(self, counter: int) -> int:
        """The steps of one iteration; returns the value that is the result with the new rows."""
        for index in self.base.ops:
            self._operator(counter, index)
        begins = self.found.begins([course.result.starts for course in self.found.courses])
        begin = self._begin(counter, begins, "result")
        updated = self._again(self.y, "updated")
        self.body.append(Step("DYNAMIC_UPDATE_SLICE", (self.y, self.held[self.y], begin), (updated,), starts=begins))
        return updated

    def _operator(self, counter: int, index: int) -> None:
        """One operator of the region: its windows, itself, and the cut behind it."""
        graph, layer = self.base.graph, self.base.layers[index]
        op, y = graph.ops[index], graph.ops[index].outputs[0]
        inputs = list(op.inputs)
        for position in layer.operands:
            x = op.inputs[position]
            runs = [course.taken[index, position] for course in self.found.courses]
            source = self.held.get(x, x)
            blocks = self._used(x, (index, position), layer.places) if x not in self.held and self.loose else ()
            inputs[position] = self._rows(counter, x, source, runs, f"op{index}_window", layer.places, blocks)
        made = [course.made[index] for course in self.found.courses]
        if layer.kind == "grow":
            position, size = sized(graph, op, self.base.region.axis, 0)
            size = (size[0], *made, size[3]) if len(size) == _RANK else tuple(made)
            inputs[position] = self.program.constant(size)
        value = self._map(y, made, "made")
        self.body.append(Step(op.kind, tuple(inputs), (value,), index))
        self.held[y] = self._rows(
            counter, y, value, [course.kept[index] for course in self.found.courses], f"op{index}_cut"
        )

    def _rows(
        self,
        counter: int,
        t: int,
        source: int,
        runs: Sequence[Run],
        what: str,
        places: tuple[int, ...] = (),
        used: tuple[Block, ...] = (),
    ) -> int:
        """The rows and columns `runs` of a value: itself, or a copy from a table's places on.

        They lie along axes 1 and 2 of the value, or where `places` says. The result depends on the blocks `used`.
        """
        extents, axes = list(self.program.shape(source)), (places or (0, 1, 2))[1:3]
        if all(run.is_all_of(extents[axis]) for run, axis in zip(runs, axes, strict=True)):
            return source
        begins = []
        for begin in self.found.begins([run.starts for run in runs]):
            turned = [0] * _RANK
            turned[axes[0]], turned[axes[1]] = begin[1:3]
            begins.append(tuple(turned))
        extents[axes[0]], extents[axes[1]] = (run.extent for run in runs)
        begin_vector = self._begin(counter, begins, what)
        added = Added(f"{self.base.graph.tensors[t].name}/{what}", t, tuple(extents))
        value = self.program.add(added, Home(self.program.new_group(), 0))
        size = self.program.constant(self.program.shape(value))
        self.body.append(Step("SLICE", (source, begin_vector, size), (value,), starts=tuple(begins), used=used))
        return value

    def _used(self, x: int, operand: tuple[int, int], places: tuple[int, ...]) -> tuple[Block, ...]:
        """The block of an entering map that the result depends on, for each tile."""
        first, second = (places or (0, 1, 2))[1:3]
        blocks = []
        for tile in self.found.tiles:
            begin, extents = [0] * _RANK, list(self.program.shape(x))
            for axis, course, at in zip((first, second), self.found.courses, tile, strict=True):
                lo, hi = course.used[operand][at]
                begin[axis], extents[axis] = lo, hi - lo
            blocks.append((tuple(begin), tuple(extents)))
        return tuple(blocks)

    def _begin(self, counter: int, begins: Sequence[tuple[int, ...]], what: str) -> int:
        """The begin vector of this iteration, out of a table."""
        value = self._small(f"{what}_begin", _RANK)
        table = self._table(f"{what}_begins", [at for begin in begins for at in begin])
        self.body.append(Step("SLICE", (table, counter, self.program.constant((_RANK,))), (value,)))
        return value

    def _map(self, t: int, extents: Sequence[int], what: str) -> int:
        shape = self.base.graph.tensors[t].shape
        added = Added(f"{self.base.graph.tensors[t].name}/{what}", t, (shape[0], *extents, shape[3]))
        return self.program.add(added, Home(self.program.new_group(), 0))

    def _small(self, what: str, count: int, home: Home | None = None) -> int:
        added = Added(f"{self.name}/{what}", -1, (count,), dtype="int32")
        return self.program.add(added, home or Home(self.program.new_group(), 0))

    def _table(self, what: str, numbers: list[int], dtype: str = "int32") -> int:
        return self.program.add(Added(f"{self.name}/{what}", -1, (len(numbers),), numbers=tuple(numbers), dtype=dtype))
