"""Regions of a model that are computed in stripes, and the rows of each map that each stripe makes and keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from modelplan.model import Graph
from modelplan.rewriting.stripes.layers import layer_of
from modelplan.rewriting.stripes.unfolding import unfolded
from modelplan.rewriting.stripes.windows import IllegalStripeError, Layer, Window, needed


@dataclass(frozen=True, slots=True)
class Region:
    """Operators at positions [first, last] of an order, computed in stripes along `axis`.

    `cuts` are the borders of the stripes in rows of the last operator's output, from 0 to its height. With `carry`
    rows that the next stripe needs again are kept, else they are made again. `pad` lists the operators whose windows
    are padded explicitly; the others make rows too many. With `lazy` rows too many are passed on to the next operator,
    which makes some more, instead of being cut off each time. With `loop` one body in a WHILE makes all stripes, all as
    high as the first, in tiles of `columns` along the other axis where that is not 0. With `backward` the last stripe
    comes first, which lets the result lie above the map it is made of. With `paced` the cuts are rows of the first
    operator's output, and the others make what they can as soon as they can, each at its own rate. With `early` maps
    are padded when they are made, not when they are read.

    Two exceptions where rows are kept: what operators of `again` make is made again all the same, and those of `along`
    take along rows too many of their operand and make some more, which saves an operator that cuts them off.
    """

    first: int
    last: int
    axis: int
    cuts: tuple[int, ...]
    carry: bool = True
    pad: frozenset[int] = frozenset()
    lazy: bool = False
    loop: bool = False
    columns: int = 0
    backward: bool = False
    paced: bool = False
    early: bool = False
    again: frozenset[int] = frozenset()
    along: frozenset[int] = frozenset()

    @property
    def stripes(self) -> int:
        """Number of stripes."""
        return len(self.cuts) - 1


@dataclass
class Rows:
    """What one stripe does: the rows of each map that readers see, the rows made, and the window of each operator."""

    seen: dict[int, tuple[int, int]] = field(default_factory=dict)
    made: dict[int, tuple[int, int]] = field(default_factory=dict)
    windows: dict[int, Window] = field(default_factory=dict)


@dataclass(frozen=True)
class Ground:
    """A region with what its stripes stand on: its operators, their layers, its entries and exits.

    `across` are the layers along the other axis, where that is cut too. `axes` are the axes of the rows of the values
    that are not cut along the region's.

    Where maps are padded early the graph has tensors and operators of its own behind those of the model; `origin` maps
    those tensors to the maps whose type they have.
    """

    graph: Graph
    region: Region
    ops: tuple[int, ...]
    layers: dict[int, Layer]
    inner: frozenset[int]
    exits: frozenset[int]
    origin: dict[int, int] = field(default_factory=dict)
    across: dict[int, Layer] = field(default_factory=dict)
    axes: dict[int, int] = field(default_factory=dict)

    def keeps(self, t: int) -> bool:
        """Whether rows of a map of the region are kept for the next stripe, as those of its results are."""
        producer = self.graph.producers[self.origin.get(t, t)]
        return t in self.exits or (self.region.carry and producer not in self.region.again)

    def height(self, t: int) -> int:
        """How many rows a value has."""
        return self.graph.tensors[t].shape[self.axes.get(t, self.region.axis)]


def ground(graph: Graph, order: Sequence[int], region: Region) -> Ground:
    """How the rows of each operator of a region depend on its operands, and which maps it makes and reads.

    Raises:
        IllegalStripeError: an operator cannot be computed by rows; names it.
    """
    ops = tuple(order[region.first : region.last + 1])
    layers = {index: _layer(graph, index, region.axis) for index in ops}
    for index in ops:
        if layers[index].places and graph.producers[graph.ops[index].inputs[0]] in layers:
            raise IllegalStripeError(f"{graph.label(index)}: its rows lie all over a map that the region makes")
    if region.early:
        found = unfolded(graph, ops, layers, region.pad, region.axis)
        return _ground(found.graph, region, found.ops, found.layers, found.origin)
    base = _ground(graph, region, ops, layers, {})
    if not region.columns:
        return base
    return replace(base, across={index: _layer(graph, index, 3 - region.axis, tiled=True) for index in ops})


def _layer(graph: Graph, index: int, axis: int, *, tiled: bool = False) -> Layer:
    layer = layer_of(graph, index, axis, tiled=tiled)
    if isinstance(layer, str):
        raise IllegalStripeError(f"{graph.label(index)}: {layer}")
    return layer


def _ground(
    graph: Graph, region: Region, ops: tuple[int, ...], layers: dict[int, Layer], origin: dict[int, int]
) -> Ground:
    inside = set(ops)
    made = {graph.ops[i].outputs[0] for i in ops}
    exits = {t for t in made if t in graph.outputs or not set(graph.readers[t]) <= inside}
    return Ground(graph, region, ops, layers, frozenset(made), frozenset(exits), origin)


def stripe_rows(base: Ground) -> list[Rows]:
    """For each stripe the rows of each map that are seen and made, from the last operator backwards.

    Raises:
        IllegalStripeError: the rows do not come out in order, or a map is not made to its end.
    """
    if base.region.paced:
        return _paced(base)
    found: list[Rows] = []
    upto = dict.fromkeys(base.inner, 0)  # how far each map has been made
    last = base.graph.ops[base.ops[-1]].outputs[0]
    shares = list(pairwise(base.region.cuts))
    if base.region.backward and (base.region.carry or base.exits != {last}):
        raise IllegalStripeError("stripes from the last to the first keep no rows and have one result")
    for low, high in reversed(shares) if base.region.backward else shares:
        share = base.region.cuts[-1], low, high
        if base.region.backward:
            upto[last] = low
        rows = _one_stripe(base, share, last, upto)
        for t, (_, end) in rows.made.items():
            upto[t] = max(upto[t], end)
        found.append(rows)
    for t in base.exits - ({last} if base.region.backward else set()):
        if upto[t] != base.height(t):
            raise IllegalStripeError(f"rows of {base.graph.tensors[t].name!r} are left out")
    if not base.region.backward:
        _keep_for_later(base, found)
    return found


def _one_stripe(base: Ground, share: tuple[int, int, int], last: int, upto: dict[int, int]) -> Rows:
    rows, (total, _, high) = Rows(), share
    wanted: dict[int, tuple[int, int]] = {}
    for index in reversed(base.ops):
        y, layer = base.graph.ops[index].outputs[0], base.layers[index]
        lo, hi = wanted.get(y, (upto[y], upto[y]))
        if y == last:
            lo, hi = share[1:]
        elif y in base.exits:
            height = layer.rows_out
            whole = height if high == total else -(-height * high // total) if y not in wanted else hi
            lo, hi = min(lo, upto[y]), max(hi, whole)
        start = max(lo, upto[y]) if base.keeps(y) else lo
        if start >= hi:
            rows.seen[y] = (lo, hi)
            continue
        rows.seen[y], rows.made[y] = (lo, max(hi, start)), (start, hi)
        window = needed(layer, start, hi, pad=index in base.region.pad)
        rows.windows[index] = window
        for position in layer.operands:
            x = base.graph.ops[index].inputs[position]
            a, b = wanted.get(x, (window.lo, window.hi))
            wanted[x] = (min(a, window.lo), max(b, window.hi))
    return rows


def _keep_for_later(base: Ground, found: Sequence[Rows]) -> None:
    """Widens what a stripe keeps of a map by what a later one needs of the rows made so far."""
    for now, later in reversed(list(pairwise(found))):
        for t in base.inner:
            if t not in now.seen or t not in later.seen or not base.keeps(t):
                continue
            lo, hi = now.seen[t]
            now.seen[t] = (min(lo, later.seen[t][0]), hi)


def _paced(base: Ground) -> list[Rows]:
    """Rows at the pace of the first operator: all that depends on it follows at once, what else is read on demand."""
    first, tensors = base.ops[0], base.graph.tensors
    height = base.layers[first].rows_out
    if not base.region.carry or base.region.again or base.region.cuts[-1] != height:
        raise IllegalStripeError("stripes at the pace of the first operator keep their rows and count its own")
    followers = _followers(base)
    upto = dict.fromkeys(base.inner, 0)
    found: list[Rows] = []
    step = max(b - a for a, b in pairwise(base.region.cuts))
    most = {op: -(-step * base.layers[op].rows_out // height) for op in followers}
    for end in (*base.region.cuts[1:], *([height] * len(base.ops))):
        rows = _one_tick(base, followers, most, upto, end)
        if rows.windows:
            found.append(rows)
    for t in base.exits:
        if upto[t] != base.height(t):
            raise IllegalStripeError(f"rows of {tensors[t].name!r} are left out")
    _keep_for_later(base, found)
    return found


def _followers(base: Ground) -> tuple[int, ...]:
    """The first operator of a region and all that depend on it."""
    made: set[int] = set()
    found: list[int] = []
    for op in base.ops:
        reads = {base.graph.ops[op].inputs[p] for p in base.layers[op].operands}
        if op == base.ops[0] or reads & made:
            made.add(base.graph.ops[op].outputs[0])
            if base.layers[op].kind != "cut":  # which is made for those that read it
                found.append(op)
    return tuple(found)


def _one_tick(base: Ground, followers: tuple[int, ...], most: dict[int, int], upto: dict[int, int], end: int) -> Rows:
    """What is made once the first operator has made its rows to `end`; `most` bounds the rows of each follower."""
    rows = Rows()
    fed_by = {base.graph.ops[op].outputs[0] for op in followers}
    for op in followers:
        y, layer = base.graph.ops[op].outputs[0], base.layers[op]
        reads = {base.graph.ops[op].inputs[p] for p in layer.operands} & fed_by
        limit = end if op == base.ops[0] else _limit(layer, upto[y] + most[op])
        ready = limit if op == base.ops[0] else _ready(base, op, upto, reads, limit)
        if ready > upto[y]:
            rows.windows[op] = needed(layer, upto[y], ready, pad=op in base.region.pad)
            rows.made[y] = upto[y], ready
            upto[y] = ready
    for op in reversed(base.ops):
        if op not in followers:
            _on_demand(base, op, rows, upto)
    for t in base.inner:
        windows = [w for r, w in rows.windows.items() if t in base.graph.ops[r].inputs]
        rows.seen[t] = min([rows.made.get(t, (upto[t],))[0], *(w.lo for w in windows)]), upto[t]
    return rows


def _limit(layer: Layer, end: int) -> int:
    """A number of rows near `end` at which no stripe would consist of padding alone."""
    if layer.kind == "pad":
        end = max(end, layer.above + 1)
        return layer.rows_out if end >= layer.above + layer.rows_in else end
    return min(end, layer.rows_out)


def _ready(base: Ground, op: int, upto: dict[int, int], reads: set[int], limit: int) -> int:
    """How far an operator gets, at most to `limit`, with the rows of `reads` that have been made."""
    y = base.graph.ops[op].outputs[0]
    have = [upto[t] for t in reads]
    for position in base.layers[op].operands:
        cut = base.graph.producers[base.graph.ops[op].inputs[position]]
        if cut in base.layers and base.layers[cut].kind == "cut":
            have.append(upto[base.graph.ops[cut].inputs[0]] + base.layers[cut].above)
    most = min(have, default=0)
    for end in range(limit, upto[y], -1):
        try:
            if needed(base.layers[op], upto[y], end, pad=op in base.region.pad).hi <= most:
                return end
        except IllegalStripeError:
            continue
    return upto[y]


def _on_demand(base: Ground, op: int, rows: Rows, upto: dict[int, int]) -> None:
    """The rows of an operator that the windows of this tick read and that are not there yet."""
    y = base.graph.ops[op].outputs[0]
    wanted = max((w.hi for r, w in rows.windows.items() if y in base.graph.ops[r].inputs), default=0)
    if wanted > upto[y]:
        rows.windows[op] = needed(base.layers[op], upto[y], wanted, pad=op in base.region.pad)
        rows.made[y] = upto[y], wanted
        upto[y] = wanted
