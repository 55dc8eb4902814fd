"""Which rows each operator of a loop's body takes, makes and keeps in each iteration, along one axis.

All iterations run the same operators on maps of the same extents; only where the rows begin differs. Near the border
of a map a window is moved inwards until it touches the border, so an operator's own padding is right there; elsewhere
the operator makes some rows that are wrong. Those are cut off behind each operator, or, in chains, passed on to the
next one and cut off once at the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from modelplan.rewriting.stripes.regions import Ground
from modelplan.rewriting.stripes.windows import IllegalStripeError, Layer, fed, needed, rows_behind

#: How many rows more than the least a window may have, so that it is the same for all iterations.
_SLACK = 12


@dataclass(frozen=True, slots=True)
class Run:
    """In iteration k the `extent` rows from row `starts[k]` on."""

    starts: tuple[int, ...]
    extent: int

    def is_all_of(self, extent: int) -> bool:
        """Whether these are all of so many rows, in each iteration."""
        return self.extent == extent and not any(self.starts)


@dataclass
class Course:
    """The rows of a loop along one axis.

    `taken` are rows of what is held of an operand, by operator and position; of a map from outside of the loop all is
    held. An operator makes `made` rows, of which those of `kept` are held. `result` are the rows of the result.
    `used` are the rows [lo, hi) of an operand's map that the result depends on, in each iteration; what else is taken
    may hold anything.
    """

    result: Run
    taken: dict[tuple[int, int], Run] = field(default_factory=dict)
    used: dict[tuple[int, int], tuple[tuple[int, int], ...]] = field(default_factory=dict)
    made: dict[int, int] = field(default_factory=dict)
    kept: dict[int, Run] = field(default_factory=dict)


def result_runs(total: int, rows: int) -> Run:
    """`rows` rows at a time of so many, the last ones moved up where fewer are left."""
    return Run(tuple(min(start, total - rows) for start in range(0, total, rows)), rows)


def undivided(base: Ground, axis: int) -> Course:
    """The course along an axis that is not cut."""
    tensors, ops = base.graph.tensors, base.graph.ops
    course = Course(Run((0,), tensors[ops[base.ops[-1]].outputs[0]].shape[axis]))
    for op in base.ops:
        height = tensors[ops[op].outputs[0]].shape[axis]
        course.made[op], course.kept[op] = height, Run((0,), height)
        for position in base.layers[op].operands:
            place = (base.layers[op].places or range(axis + 1))[axis]
            extent = tensors[ops[op].inputs[position]].shape[place]
            course.taken[op, position], course.used[op, position] = Run((0,), extent), ((0, extent),)
    return course


def course_of(base: Ground, layers: Mapping[int, Layer], rows: int) -> Course:
    """The course along an axis of which the loop makes `rows` rows of the result at a time.

    Raises:
        IllegalStripeError: no window height suits all iterations.
    """
    result = result_runs(layers[base.ops[-1]].rows_out, rows)
    course = _passed_on(base, layers, result) if base.region.lazy else _cut_each(base, layers, result)
    course.used = _used(base, layers, result)
    return course


def _used(base: Ground, layers: Mapping[int, Layer], result: Run) -> dict[tuple[int, int], tuple[tuple[int, int], ...]]:
    """For each operand the rows of its map that the result's rows are made of, in each iteration."""
    ops, found = base.graph.ops, {}
    last = ops[base.ops[-1]].outputs[0]
    wanted = {last: [(start, start + result.extent) for start in result.starts]}
    for op in reversed(base.ops):
        rows = [rows_behind(layers[op], a, b) for a, b in wanted[ops[op].outputs[0]]]
        for position in layers[op].operands:
            found[op, position] = tuple(rows)
            x = ops[op].inputs[position]
            others = wanted.get(x, rows)
            wanted[x] = [(min(a, c), max(b, d)) for (a, b), (c, d) in zip(rows, others, strict=True)]
    return found


def _cut_each(base: Ground, layers: Mapping[int, Layer], result: Run) -> Course:
    """Every operator makes what its readers need; rows that are wrong are cut off at once."""
    ops, course = base.graph.ops, Course(result)
    wanted: dict[int, list[Run]] = {ops[base.ops[-1]].outputs[0]: [result]}
    held: dict[int, Run] = {}
    windows: dict[tuple[int, int], Run] = {}
    for op in reversed(base.ops):
        y, layer = ops[op].outputs[0], layers[op]
        if y not in wanted:
            raise IllegalStripeError(f"{base.graph.label(op)}: nothing in the loop reads what it makes")
        held[y] = _around(wanted[y], layer.rows_out)
        window, skipped, course.made[op] = _fitting(layer, held[y])
        course.kept[op] = Run(skipped, held[y].extent)
        for position in layer.operands:
            windows[op, position] = window
            wanted.setdefault(ops[op].inputs[position], []).append(window)
    for (op, position), window in windows.items():
        x = ops[op].inputs[position]
        first = held[x].starts if x in base.inner else (0,) * len(window.starts)
        course.taken[op, position] = Run(tuple(a - b for a, b in zip(window.starts, first, strict=True)), window.extent)
    return course


def _around(runs: Sequence[Run], height: int) -> Run:
    """The least rows of one extent that hold all of `runs` in each iteration."""
    low = [min(run.starts[k] for run in runs) for k in range(len(runs[0].starts))]
    high = [max(run.starts[k] + run.extent for run in runs) for k in range(len(runs[0].starts))]
    extent = max(b - a for a, b in zip(low, high, strict=True))
    return Run(tuple(min(start, height - extent) for start in low), extent)


def _fitting(layer: Layer, run: Run) -> tuple[Run, tuple[int, ...], int]:
    """The least window that makes the rows of `run` as they are, how many wrong rows come first, how many it makes."""
    ends = [(start, start + run.extent) for start in run.starts]
    least = [needed(layer, a, b, pad=layer.paddable) for a, b in ends]
    shortest = max(window.hi - window.lo for window in least)
    for height in range(shortest, min(shortest + _SLACK, layer.rows_in) + 1):
        found = [_placed(layer, a, b, w.lo, w.hi, height) for (a, b), w in zip(ends, least, strict=True)]
        placed = [at for at in found if at is not None]
        if len(placed) == len(found):
            starts, skipped, made = zip(*placed, strict=True)
            return Run(starts, height), skipped, made[0]
    raise IllegalStripeError("no window height suits all iterations")


def _placed(layer: Layer, a: int, b: int, lo: int, hi: int, height: int) -> tuple[int, int, int] | None:
    """Where a window of a height that makes rows [a, b) begins, the wrong rows before them, and the rows made."""
    for start in range(min(lo, layer.rows_in - height), max(-1, hi - height - 1), -1):
        found = (
            _enlarged(layer, a, b, start, height) if layer.kind == "grow" else fed(layer, a, b, start, start + height)
        )
        if found is not None:
            return start, *found
    return None


def _enlarged(layer: Layer, a: int, b: int, start: int, height: int) -> tuple[int, int] | None:
    """`fed` for an operator that enlarges its map, where the window holds all rows that have a part in rows [a, b)."""
    made = height * layer.stride if layer.own else (height - 1) * layer.stride + layer.reach
    skip = a - start * layer.stride
    return (skip, made) if skip >= 0 and skip + b - a <= made else None


def _passed_on(base: Ground, layers: Mapping[int, Layer], result: Run) -> Course:
    """A chain in which each operator takes all that the one before it made."""
    _check_chain(base)
    chain, course = [layers[op] for op in base.ops], Course(result)
    least = [_least_window(chain, a, a + result.extent) for a in result.starts]
    shortest = max(hi - lo for lo, hi in least)
    for height in range(shortest, min(shortest + _SLACK, chain[0].rows_in) + 1):
        found = [_start(chain, a, a + result.extent, height, lo, hi)
                 for a, (lo, hi) in zip(result.starts, least, strict=True)]  # fmt: skip
        placed = [at for at in found if at is not None]
        if len(placed) == len(found):
            starts, cuts = zip(*placed, strict=True)
            _note_chain(base, layers, course, Run(starts, height), Run(cuts, result.extent))
            return course
    raise IllegalStripeError("no window height suits all iterations")


def _check_chain(base: Ground) -> None:
    graph = base.graph
    at = graph.ops[base.ops[0]].inputs[0]
    for index in base.ops:
        op = graph.ops[index]
        if base.layers[index].operands != (0,) or op.inputs[0] != at:
            raise IllegalStripeError(f"{graph.label(index)}: not a link of a chain")
        at = op.outputs[0]


def _note_chain(base: Ground, layers: Mapping[int, Layer], course: Course, window: Run, cut: Run) -> None:
    whole = window
    for op in base.ops:
        layer = layers[op]
        course.taken[op, 0] = whole
        course.made[op] = _made(layer, whole.extent)
        whole = Run((0,) * len(cut.starts), course.made[op])
        course.kept[op] = whole
    course.kept[base.ops[-1]] = cut


def _made(layer: Layer, height: int) -> int:
    """Rows that an operator makes of a window."""
    if layer.kind != "window":
        return height
    return -(-height // layer.stride) if layer.own else (height - layer.reach) // layer.stride + 1


def _least_window(layers: Sequence[Layer], a: int, b: int) -> tuple[int, int]:
    for layer in reversed(layers):
        if layer.kind not in ("window", "pointwise"):
            raise IllegalStripeError("an operator in a loop whose rows are not those of a window")
        window = needed(layer, a, b, pad=layer.paddable)
        a, b = window.lo, window.hi
    return a, b


def _start(layers: Sequence[Layer], a: int, b: int, height: int, lo: int, hi: int) -> tuple[int, int] | None:
    """(first row of the window, rows to cut) for output rows [a, b), None where no window of that height does."""
    for start in range(min(lo, layers[0].rows_in - height), max(-1, hi - height - 1), -1):
        cut = _cut(layers, a, b, start, height)
        if cut is not None:
            return start, cut
    return None


def _cut(layers: Sequence[Layer], a: int, b: int, start: int, height: int) -> int | None:
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
