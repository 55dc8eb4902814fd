"""Regions computed stripe by stripe by one body in a loop: as many operators, however fine the stripes are.

    c -> table -> begin --> SLICE(X) -> the region's operators as they are -> SLICE (cut) -> DYNAMIC_UPDATE_SLICE(Y)
    c -> next c                                                                ^ begin         ^ begin, from tables

Every iteration takes a window of the same height out of X. At the border of the map the window touches it, so the
operators' own padding is right there; elsewhere they make some rows that are wrong, and the cut leaves those out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from modelplan.rewriting.stripes.program import Added, Home, Loop, Program, Step
from modelplan.rewriting.stripes.regions import Ground
from modelplan.rewriting.stripes.windows import IllegalStripeError, Layer, fed, needed

#: Numbers of a begin vector of a map, and the step of the counter: every table has one vector for each iteration.
_RANK = 4
#: How many rows more than the least a window may have, so that it is the same for all iterations.
_SLACK = 12


@dataclass(frozen=True)
class Course:
    """The iterations of a loop: window height, first row of each window, rows to cut first, first row of the result."""

    height: int
    windows: tuple[int, ...]
    cuts: tuple[int, ...]
    results: tuple[int, ...]
    made: tuple[int, ...]


def course(layers: list[Layer], rows: int) -> Course:
    """The loop over a chain of operators that makes `rows` rows at a time.

    Raises:
        IllegalStripeError: no window height suits all iterations.
    """
    total = layers[-1].rows_out
    results = tuple(min(start, total - rows) for start in range(0, total, rows))
    least = [_least_window(layers, start, start + rows) for start in results]
    for height in range(max(hi - lo for lo, hi in least), layers[0].rows_in + 1):
        if height > max(hi - lo for lo, hi in least) + _SLACK:
            break
        found = [_start(layers, start, start + rows, height, lo, hi)
                 for start, (lo, hi) in zip(results, least, strict=True)]  # fmt: skip
        if all(found):
            pairs = [pair for pair in found if pair]
            return Course(
                height, tuple(s for s, _ in pairs), tuple(c for _, c in pairs), results, _made(layers, height)
            )
    raise IllegalStripeError("no window height suits all iterations")


def _least_window(layers: list[Layer], a: int, b: int) -> tuple[int, int]:
    for layer in reversed(layers):
        if layer.kind not in ("window", "pointwise"):
            raise IllegalStripeError("an operator in a loop whose rows are not those of a window")
        window = needed(layer, a, b, pad=layer.paddable)
        a, b = window.lo, window.hi
    return a, b


def _start(layers: list[Layer], a: int, b: int, height: int, lo: int, hi: int) -> tuple[int, int] | None:
    """(first row of the window, rows to cut) for output rows [a, b), None where no window of that height does."""
    for start in range(min(lo, layers[0].rows_in - height), max(-1, hi - height - 1), -1):
        cut = _cut(layers, a, b, start, height)
        if cut is not None:
            return start, cut
    return None


def _cut(layers: list[Layer], a: int, b: int, start: int, height: int) -> int | None:
    """Follows the rows of a window through the chain: how many of the last rows come before row a."""
    wanted = [(a, b)]
    for layer in reversed(layers[1:]):
        window = needed(layer, *wanted[0], pad=layer.paddable)
        wanted.insert(0, (window.lo, window.hi))
    lo, hi = start, start + height
    skip = 0
    for layer, (first, last) in zip(layers, wanted, strict=True):
        found = fed(layer, first, last, lo, hi)
        if found is None:
            return None
        skip, made = found
        lo, hi = first - skip, first - skip + made
        if lo < 0 or hi > layer.rows_out:
            return None
    return skip


def _made(layers: list[Layer], height: int) -> tuple[int, ...]:
    """Rows that each operator makes of a window."""
    made = []
    for layer in layers:
        if layer.kind == "window":
            height = -(-height // layer.stride) if layer.own else (height - layer.reach) // layer.stride + 1
        made.append(height)
    return tuple(made)


def chain(base: Ground) -> tuple[int, int, list[Layer]]:
    """The map that enters, the one that leaves, and the layers of a region that is a chain of single operands.

    Raises:
        IllegalStripeError: it is none.
    """
    graph, layers = base.graph, []
    at = graph.ops[base.ops[0]].inputs[0]
    entry = at
    for index in base.ops:
        op, layer = graph.ops[index], base.layers[index]
        if layer.operands != (0,) or op.inputs[0] != at or layer.kind not in ("window", "pointwise"):
            raise IllegalStripeError(f"{graph.label(index)}: not a link of a chain")
        layers.append(layer)
        at = op.outputs[0]
    shapes = graph.tensors[entry].shape, graph.tensors[at].shape
    if base.exits != {at} or entry in base.inner or any(len(shape) != _RANK for shape in shapes):
        raise IllegalStripeError("a loop needs one map of four axes that enters and one that leaves")
    return entry, at, layers


def looped(program: Program, base: Ground) -> None:
    """Appends a region as one loop.

    Raises:
        IllegalStripeError: the region is no chain, or has no windows of one height.
    """
    x, y, layers = chain(base)
    rows = base.region.cuts[1] - base.region.cuts[0]
    found = course(layers, rows)
    if len(found.results) < 2:
        raise IllegalStripeError("one stripe is no stripe")
    _Writer(program, base, x, y, found, rows).write()


class _Writer:
    def __init__(self, program: Program, base: Ground, x: int, y: int, found: Course, rows: int) -> None:
        self.program, self.base, self.x, self.y = program, base, x, y
        self.course, self.rows, self.axis = found, rows, base.region.axis
        self.count = len(found.results)
        self.name = f"{base.graph.tensors[y].name}/loop"
        self.body: list[Step] = []

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
        passed = program.add(Added(f"{self.name}/x", self.x, program.shape(self.x)), program.homes[self.x])
        begun = program.add(
            Added(f"{self.name}/y", self.y, program.shape(self.y), variable=True), program.homes[self.y]
        )
        loop = Loop(self.count, condition, tuple(self.body), (counter, self.x, self.y), (following, self.x, updated))
        start = program.constant((0,))
        program.steps.append(Step("WHILE", (start, self.x, begun), (counter, passed, self.y), loop=loop))

    def _body(self, counter: int) -> int:
        """The steps of one iteration; returns the value that is the result with the new rows."""
        program, graph = self.program, self.base.graph
        value = self._slice(counter, self.x, self.x, self.course.windows, self.course.height, "window")
        for index, made in zip(self.base.ops, self.course.made, strict=True):
            op = graph.ops[index]
            output = self._map(op.outputs[0], made, "made")
            self.body.append(Step(op.kind, (value, *op.inputs[1:]), (output,), index))
            value = output
        if self.course.made[-1] != self.rows:
            value = self._slice(counter, self.y, value, self.course.cuts, self.rows, "cut")
        begin = self._begin(counter, self.course.results, "result")
        updated = program.add(Added(f"{self.name}/updated", self.y, program.shape(self.y)), program.homes[self.y])
        starts = self.course.results
        self.body.append(Step("DYNAMIC_UPDATE_SLICE", (self.y, value, begin), (updated,), starts=starts))
        return updated

    def _slice(self, counter: int, t: int, source: int, starts: tuple[int, ...], rows: int, what: str) -> int:
        """Rows of a value from a table's row on."""
        begin = self._begin(counter, starts, what)
        value = self._map(t, rows, what)
        size = self.program.constant(self.program.shape(value))
        self.body.append(Step("SLICE", (source, begin, size), (value,), starts=starts))
        return value

    def _begin(self, counter: int, starts: tuple[int, ...], what: str) -> int:
        """The begin vector of this iteration, out of a table."""
        value = self._small(f"{what}_begin", _RANK)
        table = self._table(f"{what}_begins", [v for start in starts for v in self._vector(start)])
        self.body.append(Step("SLICE", (table, counter, self.program.constant((_RANK,))), (value,)))
        return value

    def _vector(self, start: int) -> Iterator[int]:
        return (start if axis == self.axis else 0 for axis in range(_RANK))

    def _map(self, t: int, rows: int, what: str) -> int:
        shape = self.program.graph.tensors[t].shape
        name = f"{self.base.graph.tensors[t].name}/{what}"
        added = Added(name, t, (*shape[: self.axis], rows, *shape[self.axis + 1 :]))
        return self.program.add(added, Home(self.program.new_group(), 0))

    def _small(self, what: str, count: int, home: Home | None = None) -> int:
        added = Added(f"{self.name}/{what}", -1, (count,), dtype="int32")
        return self.program.add(added, home or Home(self.program.new_group(), 0))

    def _table(self, what: str, numbers: list[int], dtype: str = "int32") -> int:
        return self.program.add(Added(f"{self.name}/{what}", -1, (len(numbers),), numbers=tuple(numbers), dtype=dtype))
