"""Which rows each operator of a loop's body reads, makes and keeps in each iteration, as the core finds them."""

from collections.abc import Sequence
from dataclasses import field
from itertools import product

from modelplan.primitives.lazy_records import dataclass
from modelplan.rewriting.stripes.row_windows import IllegalStripeError
from modelplan.rewriting.stripes.stretches import LoopLayers
from modelplan.rewriting.stripes.stripe_rows import core_stretch, layer_table

#: The most iterations of a loop: each costs copies, and time in every check of the plan.
MOST_TILES = 512


@dataclass(frozen=True, slots=True)
class IterationRows:
    """The rows [starts[k], starts[k] + extent) in iteration k."""

    starts: tuple[int, ...]
    extent: int

    def is_all_of(self, extent: int) -> bool:
        """Whether every iteration takes all of `extent` rows."""
        return self.extent == extent and not any(self.starts)


@dataclass
class LoopRows:
    """The rows of a loop along one axis.

    `taken` are rows of what is held of an operand, by operator and position; of a map from outside of the loop all is
    held. An operator makes `computed` rows, of which those of `kept` are held. `result` are the rows of the result.
    `used` are the rows [lo, hi) of an operand's map that the result depends on, in each iteration; what else is taken
    may hold anything.
    """

    result: IterationRows
    taken: dict[tuple[int, int], IterationRows] = field(default_factory=dict)
    used: dict[tuple[int, int], tuple[tuple[int, int], ...]] = field(default_factory=dict)
    computed: dict[int, int] = field(default_factory=dict)
    kept: dict[int, IterationRows] = field(default_factory=dict)


def undivided(base: LoopLayers, axis: int) -> LoopRows:
    """The rows of a loop along an axis that is not cut."""
    tensors, ops = base.graph.tensors, base.graph.ops
    axis_rows = LoopRows(IterationRows((0,), tensors[ops[base.ops[-1]].outputs[0]].shape[axis]))
    for op in base.ops:
        height = tensors[ops[op].outputs[0]].shape[axis]
        axis_rows.computed[op], axis_rows.kept[op] = height, IterationRows((0,), height)
        for position in base.layers[op].operands:
            place = (base.layers[op].places or range(axis + 1))[axis]
            extent = tensors[ops[op].inputs[position]].shape[place]
            axis_rows.taken[op, position], axis_rows.used[op, position] = IterationRows((0,), extent), ((0, extent),)
    return axis_rows


def loop_rows(base: LoopLayers, rows: int, *, across: bool = False) -> LoopRows:
    """The rows along an axis, or along the other one, of which the loop makes `rows` rows of the result at a time.

    Raises:
        IllegalStripeError: no window height suits all iterations.
    """
    layers = layer_table(base.across, base.ops) if across else None
    answer = core_stretch(base).loop_rows(rows, base.stretch.trim_late, layers)
    if isinstance(answer, str):
        raise IllegalStripeError(answer)
    starts, operators, operands, used = answer
    axis_rows, count = LoopRows(IterationRows(tuple(starts), rows)), len(starts)
    rows_used = used.reshape(-1, count, 2).tolist()
    for op, (computed, extent, *kept) in zip(base.ops, operators.reshape(-1, 2 + count).tolist(), strict=True):
        axis_rows.computed[op], axis_rows.kept[op] = computed, IterationRows(tuple(kept), extent)
    places = [(at, (op, position)) for at, op in enumerate(base.ops) for position in base.layers[op].operands]
    for (at, operand), (_, extent, *taken) in zip(places, operands.reshape(-1, 2 + count).tolist(), strict=True):
        axis_rows.taken[operand] = IterationRows(tuple(taken), extent)
        axis_rows.used[operand] = tuple((lo, hi) for lo, hi in rows_used[at])
    return axis_rows


@dataclass(frozen=True)
class Tiling:
    """The rows of a loop along height and width, and the tiles of the result as (place along both) in their order.

    `entries` are the maps that the loop takes windows of, `result` the one that it makes.
    """

    entries: tuple[int, ...]
    result: int
    both_axes: tuple[LoopRows, LoopRows]
    tiles: tuple[tuple[int, int], ...]

    def begins(self, runs: Sequence[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
        """For each tile the begin vector out of the starts along height and width."""
        return tuple((0, *(starts[at] for starts, at in zip(runs, tile, strict=True)), 0) for tile in self.tiles)


def tiling(base: LoopLayers) -> Tiling:
    """How the loop of a stretch goes over its result.

    Raises:
        IllegalStripeError: the stretch has not one map of four axes that leaves it, or no windows of one extent.
    """
    stretch = base.stretch
    entries, result = base.ends()
    along = loop_rows(base, stretch.cuts[1] - stretch.cuts[0])
    across = loop_rows(base, stretch.columns, across=True) if stretch.columns else undivided(base, 3 - stretch.axis)
    both = (along, across) if stretch.axis == 1 else (across, along)
    rows, columns = (range(len(axis_rows.result.starts)) for axis_rows in both)
    tiles = tuple(product(rows, columns))
    if not 2 <= len(tiles) <= MOST_TILES:
        raise IllegalStripeError(f"a loop of {len(tiles)} iterations")
    return Tiling(entries, result, both, tiles)
