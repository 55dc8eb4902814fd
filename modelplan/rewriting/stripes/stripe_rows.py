"""The rows of each map that each stripe of a region makes, reads and keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from modelplan.rewriting.stripes.regions import HaloStripes, KeptHalo, RegionLayers, RollingStripes, UnrolledLayers
from modelplan.rewriting.stripes.windows import IllegalStripeError, InputWindow, Layer, input_window


@dataclass
class StripeRows:
    """What one stripe does: the rows of each map that readers see, the rows made, and the window of each operator."""

    seen: dict[int, tuple[int, int]] = field(default_factory=dict)
    computed: dict[int, tuple[int, int]] = field(default_factory=dict)
    windows: dict[int, InputWindow] = field(default_factory=dict)


def stripe_rows(base: UnrolledLayers) -> list[StripeRows]:
    """For each stripe the rows of each map that are seen and made, from the last operator backwards.

    Raises:
        IllegalStripeError: the rows do not come out in order, or a map is not made to its end.
    """
    region = base.region
    if isinstance(region, RollingStripes):
        return _rolling(base.as_region(region))
    if not isinstance(region, HaloStripes):
        raise TypeError(f"stripes of the unknown strategy {type(region).__name__}")
    stripes: list[StripeRows] = []
    upto = dict.fromkeys(base.inner, 0)  # how far each map has been made
    last, total = base.graph.ops[base.ops[-1]].outputs[0], region.cuts[-1]
    if region.backward and (isinstance(region, KeptHalo) or base.exits != {last}):
        raise IllegalStripeError("stripes from the last to the first keep no rows and have one result")
    shares = list(pairwise(region.cuts))
    for low, high in reversed(shares) if region.backward else shares:
        if region.backward:
            upto[last] = low
        rows = _one_stripe(base, (total, low, high), last, upto)
        for t, (_, end) in rows.computed.items():
            upto[t] = max(upto[t], end)
        stripes.append(rows)
    _check_finished(base, upto, {last} if region.backward else set())
    if not region.backward:
        _keep_for_later(base, stripes)
    return stripes


def _check_finished(base: UnrolledLayers, upto: dict[int, int], but: set[int]) -> None:
    """Refuses stripes that do not make all rows of a result, `but` some that are known to be made."""
    for t in base.exits - but:
        if upto[t] != base.height(t):
            raise IllegalStripeError(f"rows of {base.graph.tensors[t].name!r} are left out")


def _one_stripe(base: UnrolledLayers, share: tuple[int, int, int], last: int, upto: dict[int, int]) -> StripeRows:
    rows, (total, _, high) = StripeRows(), share
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
        start = max(lo, upto[y]) if y in base.kept else lo
        if start >= hi:
            rows.seen[y] = (lo, hi)
            continue
        rows.seen[y], rows.computed[y] = (lo, max(hi, start)), (start, hi)
        window = input_window(layer, start, hi, pad=index in base.region.pad)
        rows.windows[index] = window
        for position in layer.operands:
            x = base.graph.ops[index].inputs[position]
            a, b = wanted.get(x, (window.lo, window.hi))
            wanted[x] = (min(a, window.lo), max(b, window.hi))
    return rows


def _keep_for_later(base: UnrolledLayers, stripes: Sequence[StripeRows]) -> None:
    """Extends the rows kept of a map by those that a later stripe needs of it."""
    for now, later in reversed(list(pairwise(stripes))):
        for t in base.inner:
            if t not in now.seen or t not in later.seen or t not in base.kept:
                continue
            lo, hi = now.seen[t]
            now.seen[t] = (min(lo, later.seen[t][0]), hi)


def _rolling(base: RegionLayers[RollingStripes]) -> list[StripeRows]:
    """Rows at the pace of the first operator: all that depends on it follows at once, what else is read on demand."""
    cuts, height = base.region.cuts, base.layers[base.ops[0]].rows_out
    if cuts[-1] != height:
        raise IllegalStripeError("stripes at the pace of the first operator count its rows")
    followers = _followers(base)
    upto = dict.fromkeys(base.inner, 0)
    stripes: list[StripeRows] = []
    step = max(b - a for a, b in pairwise(cuts))
    most = {op: -(-step * base.layers[op].rows_out // height) for op in followers}
    for end in (*cuts[1:], *([height] * len(base.ops))):
        rows = _one_tick(base, followers, most, upto, end)
        if rows.windows:
            stripes.append(rows)
    _check_finished(base, upto, set())
    _keep_for_later(base, stripes)
    return stripes


def _followers(base: UnrolledLayers) -> tuple[int, ...]:
    """The first operator of a region and all that depend on it."""
    computed: set[int] = set()
    followers: list[int] = []
    for op in base.ops:
        reads = set(base.row_operands(op))
        if op == base.ops[0] or reads & computed:
            computed.add(base.graph.ops[op].outputs[0])
            if base.layers[op].kind != "cut":  # which is made for those that read it
                followers.append(op)
    return tuple(followers)


def _one_tick(
    base: UnrolledLayers, followers: tuple[int, ...], most: dict[int, int], upto: dict[int, int], end: int
) -> StripeRows:
    """The rows of all maps after the first operator's rows reach `end`; `most` bounds each follower's rows."""
    rows = StripeRows()
    followed = {base.graph.ops[op].outputs[0] for op in followers}
    for op in followers:
        y, layer = base.graph.ops[op].outputs[0], base.layers[op]
        reads = set(base.row_operands(op)) & followed
        limit = end if op == base.ops[0] else _limit(layer, upto[y] + most[op])
        ready = limit if op == base.ops[0] else _ready(base, op, upto, reads, limit)
        if ready > upto[y]:
            rows.windows[op] = input_window(layer, upto[y], ready, pad=op in base.region.pad)
            rows.computed[y] = upto[y], ready
            upto[y] = ready
    for op in reversed(base.ops):
        if op not in followers:
            _on_demand(base, op, rows, upto)
    for t in base.inner:
        windows = [w for r, w in rows.windows.items() if t in base.graph.ops[r].inputs]
        rows.seen[t] = min([rows.computed.get(t, (upto[t],))[0], *(w.lo for w in windows)]), upto[t]
    return rows


def _limit(layer: Layer, end: int) -> int:
    """A row count near `end` such that no stripe consists of padding alone."""
    if layer.kind == "pad":
        end = max(end, layer.above + 1)
        return layer.rows_out if end >= layer.above + layer.rows_in else end
    return min(end, layer.rows_out)


def _ready(base: UnrolledLayers, op: int, upto: dict[int, int], reads: set[int], limit: int) -> int:
    """The rows, at most up to `limit`, that an operator can compute from the rows of `reads` made so far."""
    y = base.graph.ops[op].outputs[0]
    have = [upto[t] for t in reads]
    for position in base.layers[op].operands:
        cut = base.graph.producers[base.graph.ops[op].inputs[position]]
        if cut in base.layers and base.layers[cut].kind == "cut":
            have.append(upto[base.graph.ops[cut].inputs[0]] + base.layers[cut].above)
    most = min(have, default=0)
    for end in range(limit, upto[y], -1):
        try:
            if input_window(base.layers[op], upto[y], end, pad=op in base.region.pad).hi <= most:
                return end
        except IllegalStripeError:
            continue
    return upto[y]


def _on_demand(base: UnrolledLayers, op: int, rows: StripeRows, upto: dict[int, int]) -> None:
    """The rows of an operator that the windows of this tick read and that are not there yet."""
    y = base.graph.ops[op].outputs[0]
    wanted = max((w.hi for r, w in rows.windows.items() if y in base.graph.ops[r].inputs), default=0)
    if wanted > upto[y]:
        rows.windows[op] = input_window(base.layers[op], upto[y], wanted, pad=op in base.region.pad)
        rows.computed[y] = upto[y], wanted
        upto[y] = wanted
