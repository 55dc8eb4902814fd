"""Which rows each operator of a loop's body makes, where rows are carried from one iteration to the next.

Every iteration makes `made` new rows of each map and holds them behind the last rows of the iterations before:

    iteration 0   | -2 -1 | 0 1 |          rows of a map in its window of four, of which two are new; rows above the
    iteration 1         | 0 1 | 2 3 |      map hold anything, and no row of the result is made of them
    iteration 2             | 2 3 | 4 5 |

An operator whose window reaches further down makes its rows that much later than the one before, so the last
iterations make the last rows of the first maps once more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from modelplan.rewriting.stripes.loop_rows import IterationRows
from modelplan.rewriting.stripes.regions import CarryingLayers
from modelplan.rewriting.stripes.windows import IllegalStripeError, Layer

#: The most iterations of a loop.
_MOST_ITERATIONS = 512


@dataclass(frozen=True)
class CarriedRows:
    """The rows of a loop that carries: `entries` are the maps that it reads, `result` the one that it makes.

    In iteration k rows up to `upto[t][k]` of a map are there, the last `held[t]` of them in its window, and `made[t]`
    of these are new. `windows` are the operand rows of each operator, some of them outside of the map; operators of
    `padded` have rows of padding there.
    """

    entries: tuple[int, ...]
    result: int
    iterations: int
    made: dict[int, int]
    held: dict[int, int]
    upto: dict[int, tuple[int, ...]]
    windows: dict[int, IterationRows]
    padded: frozenset[int]

    def carried(self, t: int) -> int:
        """How many rows of a map go from one iteration to the next."""
        return self.held[t] - self.made[t]

    def first_held(self, t: int) -> list[int]:
        """In each iteration the row with which the window of a map begins."""
        return [upto - self.held[t] for upto in self.upto[t]]

    def shifts(self, t: int) -> list[int]:
        """By how many rows the window of a map moves on behind each iteration."""
        upto = self.upto[t]
        return [after - before for before, after in zip(upto, upto[1:], strict=False)] + [0]


def carried_rows(base: CarryingLayers) -> CarriedRows:
    """The rows of the loop of a region.

    Raises:
        IllegalStripeError: the region has not one map that leaves it, or operators whose rows cannot be carried.
    """
    graph, ops = base.graph, base.ops
    result = base.output(ops[-1])
    entries = tuple(dict.fromkeys(t for op in ops for t in base.row_operands(op) if t not in base.inner))
    if base.exits != {result} or not entries:
        raise IllegalStripeError("a loop needs one map that leaves it")
    if any(len(graph.tensors[t].shape) != 4 for t in (*entries, *base.inner)):
        raise IllegalStripeError("a loop needs maps of four axes")
    made = _rows_made(base, result)
    ahead = _rows_ahead(base, made)
    rows, height = made[result], base.height(result)
    ahead[result] -= ahead[result] % rows
    count = -(-(height - ahead[result]) // rows) + 1
    if not 2 <= count <= _MOST_ITERATIONS:
        raise IllegalStripeError(f"a loop of {count} iterations")
    upto = {t: tuple(min(made[t] * k + ahead[t], base.height(t)) for k in range(count)) for t in base.inner}
    windows = {op: _windows(base.layers[op], upto[base.output(op)], made[base.output(op)]) for op in ops}
    padded = frozenset(op for op in ops if _needs_padding(base, op, made[base.output(op)], upto[base.output(op)]))
    held = _rows_held(base, made, upto, padded)
    return CarriedRows(entries, result, count, made, held, upto, windows, padded)


def _rows_made(base: CarryingLayers, result: int) -> dict[int, int]:
    """The rows that an iteration makes of each map, in proportion to its height."""
    rows, height = base.region.cuts[1], base.height(result)
    made = {}
    for t in base.inner:
        made[t], rest = divmod(rows * base.height(t), height)
        if rest or height % rows:
            raise IllegalStripeError(f"{base.height(t)} rows of a map do not go evenly with {rows} of {height}")
    return made


def _rows_ahead(base: CarryingLayers, made: dict[int, int]) -> dict[int, int]:
    """How many rows of each map are there behind iteration 0, negative where the first rows come later."""
    ahead: dict[int, int] = {}
    for op in base.ops:
        layer, y = base.layers[op], base.output(op)
        if layer.kind not in ("pointwise", "window") or layer.places or layer.axes or layer.blocks:
            raise IllegalStripeError(f"{base.graph.label(op)}: its rows cannot be carried")
        limits = [_rows_of(layer, ahead[x]) for x in base.row_operands(op) if x in base.inner]
        ahead[y] = min([made[y], *limits])
    return ahead


def _rows_of(layer: Layer, upto: int) -> int:
    """How many rows an operator makes of so many rows of its operand."""
    if layer.kind == "pointwise":
        return upto
    return (upto + layer.above - layer.reach) // layer.stride + 1


def _unbounded(layer: Layer, a: int, b: int) -> tuple[int, int]:
    """The operand's rows behind output rows [a, b), however far they lie outside of the map."""
    if layer.kind == "pointwise":
        return a, b
    return a * layer.stride - layer.above, (b - 1) * layer.stride - layer.above + layer.reach


def _windows(layer: Layer, upto: tuple[int, ...], made: int) -> IterationRows:
    """The operand's rows of each iteration, however far they lie outside of the map."""
    rows = [_unbounded(layer, end - made, end) for end in upto]
    return IterationRows(tuple(lo for lo, _ in rows), rows[0][1] - rows[0][0])


def _needs_padding(base: CarryingLayers, op: int, made: int, upto: tuple[int, ...]) -> bool:
    """Whether an operator pads by itself in the model and must not pad each of its windows.

    Raises:
        IllegalStripeError: it must not, and does not take padding.
    """
    layer = base.layers[op]
    if layer.kind == "pointwise" or not layer.own:
        return False
    rows = [_unbounded(layer, max(end - made, 0), end) for end in upto if end > 0]
    needed = layer.reach > layer.stride or any(lo < 0 or hi > layer.rows_in for lo, hi in rows)
    if needed and not layer.paddable:
        raise IllegalStripeError(f"{base.graph.label(op)}: its windows take no padding")
    return needed


def _rows_held(
    base: CarryingLayers, made: dict[int, int], upto: dict[int, tuple[int, ...]], padded: frozenset[int]
) -> dict[int, int]:
    """The rows of each map that its window must have, so that all rows are there when they are read."""
    held = dict(made)
    for op in base.ops:
        for x in base.row_operands(op):
            for k, (lo, hi) in enumerate(_rows_read(base, op, made, upto, padded)):
                if x not in base.inner:
                    if op not in padded and (lo < 0 or hi > base.height(x)):
                        raise IllegalStripeError(f"{base.graph.label(op)}: its first rows are made apart")
                    continue
                if hi > lo and hi > upto[x][k]:
                    raise IllegalStripeError(f"{base.graph.label(op)}: rows that it reads are not there yet")
                held[x] = max(held[x], upto[x][k] - lo) if hi > lo else held[x]
    return held


def _rows_read(
    base: CarryingLayers, op: int, made: dict[int, int], upto: dict[int, tuple[int, ...]], padded: frozenset[int]
) -> Iterator[tuple[int, int]]:
    """Rows [lo, hi) of its operands that an operator reads in each iteration, none where it makes no row of its map."""
    layer, y = base.layers[op], base.output(op)
    for end in upto[y]:
        first = end - made[y]
        if end <= 0:
            yield 0, 0
        elif op in padded:
            lo, hi = _unbounded(layer, max(first, 0), end)
            yield max(lo, 0), min(hi, layer.rows_in)
        else:
            yield _unbounded(layer, first, end)
