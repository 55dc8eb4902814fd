"""Regions of a model computed stripe by stripe, each stripe with operators of its own, in standard operators.

row 0 |======|                   stripe 0 of a map, made from a window of its operand
      |======|----carried----.
      |======|               v   the rows that stripe 1 needs again: kept, or made again
      |      |             |======|
      |      |             |======|   stripe 1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from modelplan.rewriting.stripes.layers import layer_of
from modelplan.rewriting.stripes.program import MOST_JOINED, VIEWS, Added, Home, Program, Step
from modelplan.rewriting.stripes.windows import IllegalStripeError, Layer, Window, fed, needed
from modelplan.types import Graph, Kind


@dataclass(frozen=True, slots=True)
class Region:
    """Operators at positions [first, last] of an order, computed in stripes along `axis`.

    `cuts` are the borders of the stripes in rows of the last operator's output, from 0 to its height. With `carry`
    rows that the next stripe needs again are kept, else they are made again. `pad` lists the operators whose windows
    are padded explicitly; the others make rows too many. With `lazy` rows too many are passed on to the next operator,
    which makes some more, instead of being cut off each time. With `loop` one body in a WHILE makes all stripes, all as
    high as the first. With `backward` the last stripe comes first, which lets the result lie above
    the map it is made of.
    """

    first: int
    last: int
    axis: int
    cuts: tuple[int, ...]
    carry: bool = True
    pad: frozenset[int] = frozenset()
    lazy: bool = False
    loop: bool = False
    backward: bool = False

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
    """A region with what its stripes stand on: its operators, their layers, its entries and exits."""

    graph: Graph
    region: Region
    ops: tuple[int, ...]
    layers: dict[int, Layer]
    inner: frozenset[int]
    exits: frozenset[int]


def ground(graph: Graph, order: Sequence[int], region: Region) -> Ground:
    """How the rows of each operator of a region depend on its operands, and which maps it makes and reads.

    Raises:
        IllegalStripeError: an operator cannot be computed by rows; names it.
    """
    ops = tuple(order[region.first : region.last + 1])
    layers = {}
    for index in ops:
        layer = layer_of(graph, index, region.axis)
        if isinstance(layer, str):
            raise IllegalStripeError(f"{graph.label(index)}: {layer}")
        layers[index] = layer
    inside = set(ops)
    made = {graph.ops[i].outputs[0] for i in ops}
    exits = {t for t in made if t in graph.outputs or not set(graph.readers[t]) <= inside}
    return Ground(graph, region, ops, layers, frozenset(made), frozenset(exits))


def stripe_rows(base: Ground) -> list[Rows]:
    """For each stripe the rows of each map that are seen and made, from the last operator backwards.

    Raises:
        IllegalStripeError: the rows do not come out in order, or a map is not made to its end.
    """
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
        if upto[t] != base.graph.tensors[t].shape[base.region.axis]:
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
        carried = base.region.carry or y in base.exits
        start = max(lo, upto[y]) if carried else lo
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
            if t not in now.seen or t not in later.seen or not (base.region.carry or t in base.exits):
                continue
            lo, hi = now.seen[t]
            now.seen[t] = (min(lo, later.seen[t][0]), hi)


class Builder:
    """Builds a program in the order in which it runs: call `whole` for an operator, `striped` for a region.

    `file_ops` are the numbers in the file of the graph's operators; without them both count alike.
    """

    def __init__(self, graph: Graph, file_ops: Sequence[int] = ()) -> None:
        self.program = Program(graph, file_ops=tuple(file_ops) or tuple(range(len(graph.ops))))
        for t in graph.inputs:
            self._house(t)

    def whole(self, index: int) -> None:
        """One operator as it stands."""
        op = self.program.graph.ops[index]
        for t in op.writes:
            if op.kind in VIEWS and op.inputs[0] in self.program.homes and t not in self.program.homes:
                self.program.homes[t] = self.program.homes[op.inputs[0]]
            self._house(t)
        self.program.steps.append(Step(op.kind, op.inputs, op.outputs, index))

    def striped(self, base: Ground) -> None:
        """A region in stripes.

        Raises:
            IllegalStripeError: the region has no stripes of this form.
        """
        _Stripes(self.program, base, stripe_rows(base)).build()

    def _house(self, t: int) -> None:
        tensor = self.program.graph.tensors[t]
        if t not in self.program.homes and tensor.kind is Kind.ACTIVATION and tensor.nbytes:
            self.program.homes[t] = Home(self.program.new_group(), 0)


@dataclass
class _Held:
    """The value in which rows [lo, hi) of a map stand at the moment."""

    value: int
    lo: int
    hi: int


class _Stripes:
    def __init__(self, program: Program, base: Ground, rows: Sequence[Rows]) -> None:
        self.program, self.base, self.rows = program, base, rows
        self.graph, self.axis = base.graph, base.region.axis
        self.held: dict[int, _Held] = {}
        self.uncut: dict[int, _Held] = {}  # what operators made of maps, rows too many included
        self.pieces: dict[int, list[int]] = {t: [] for t in base.exits}
        for t in base.exits:
            program.homes[t] = Home(program.new_group(), 0)

    def build(self) -> None:
        for number, rows in enumerate(self.rows):
            self.now = rows
            for index in self.base.ops:
                if index in rows.windows:
                    self._run(number, rows, index, rows.windows[index])
        for t in sorted(self.base.exits):
            self._finish(t)

    def _row_bytes(self, t: int) -> int:
        tensor = self.graph.tensors[t]
        return tensor.nbytes // tensor.shape[self.axis]

    def _shape(self, t: int, rows: int) -> tuple[int, ...]:
        shape = self.graph.tensors[t].shape
        return (*shape[: self.axis], rows, *shape[self.axis + 1 :])

    def _piece(self, t: int, lo: int, hi: int, home: Home, note: str = "") -> int:
        name = f"{self.graph.tensors[t].name}/rows_{lo}_{hi}{note}"
        return self.program.add(Added(name, t, self._shape(t, hi - lo), (lo, hi)), home)

    def _slice(self, t: int, source: _Held, lo: int, hi: int, home: Home | None = None) -> int:
        """Rows [lo, hi) of a map out of the value that holds them: a view, or a copy to `home`."""
        if home is None:
            group, delta = self.program.homes[source.value]
            home = Home(group, delta + (lo - source.lo) * self._row_bytes(t))
        value = self._piece(t, lo, hi, home)
        begin = [0] * len(self.graph.tensors[t].shape)
        begin[self.axis] = lo - source.lo
        operands = self.program.constant(begin), self.program.constant(self._shape(t, hi - lo))
        self.program.steps.append(Step("SLICE", (source.value, *operands), (value,)))
        return value

    def _run(self, number: int, rows: Rows, index: int, window: Window) -> None:
        op, layer = self.graph.ops[index], self.base.layers[index]
        y = op.outputs[0]
        a, b = rows.made[y]
        target, carried = self._target(number, rows, y)
        inputs = list(op.inputs)
        whole = self._fed_whole(index, layer, a, b)
        if whole is not None:
            inputs[0], window = whole
        else:
            for position in layer.operands:
                inputs[position] = self._operand(op.inputs[position], window)
        changes: tuple[tuple[str, str], ...] = ()
        if layer.kind == "pad":
            inputs[1] = self._paddings(y, window)
        elif window.padded:
            inputs[0] = self._padded(op.inputs[0], inputs[0], layer, window)
            changes = (("padding", "VALID"),)
        # Rows too many go where later stripes will write, so where those came first they would do harm.
        aside = window.skip > 0 or (self.base.region.backward and window.made != b - a and y in self.base.exits)
        raw_home = Home(self.program.new_group(), 0) if aside else target
        raw = self._piece(y, a - window.skip, a - window.skip + window.made, raw_home, "_made" * (window.made != b - a))
        self.program.steps.append(Step(op.kind, tuple(inputs), (raw,), index, changes))
        self.uncut[y] = _Held(raw, a - window.skip, a - window.skip + window.made)
        if window.made == b - a or self._stays_uncut(y):
            self._hold(rows, y, raw, carried)
            return
        kept_home = target if aside and (carried or y in self.base.exits) else None
        piece = self._slice(y, _Held(raw, a - window.skip, a), a, b, kept_home)
        self._hold(rows, y, piece, carried)

    def _stays_uncut(self, y: int) -> bool:
        """Whether every reader of a map takes what was made of it, rows too many included."""
        readers = self.graph.readers[y]
        if not self.base.region.lazy or self.base.region.carry or y in self.base.exits:
            return False
        return len(readers) == 1 and self._row_operands(readers[0]) == 1 and self._takes(readers[0], y)

    def _row_operands(self, index: int) -> int:
        """How many operands of an operator have rows."""
        return len(self.base.layers[index].operands)

    def _takes(self, index: int, y: int) -> bool:
        made = self.uncut[y]
        window = self.now.windows.get(index)
        if window is None or self.base.layers[index].operands != (0,):
            return False
        a, b = self.now.made[self.graph.ops[index].outputs[0]]
        return not window.padded and fed(self.base.layers[index], a, b, made.lo, made.hi) is not None

    def _fed_whole(self, index: int, layer: Layer, a: int, b: int) -> tuple[int, Window] | None:
        """The operand with its rows too many, and the window that it makes."""
        x = self.graph.ops[index].inputs[0]
        if x not in self.base.inner or not self._stays_uncut(x):
            return None
        made = self.uncut[x]
        found = fed(layer, a, b, made.lo, made.hi)
        return None if found is None else (made.value, Window(made.lo, made.hi, skip=found[0], made=found[1]))

    def _target(self, number: int, rows: Rows, y: int) -> tuple[Home, list[int]]:
        """Where the new rows of a map go, and the rows kept from the stripes before that they continue."""
        a, _ = rows.made[y]
        if y in self.base.exits:
            return Home(self.program.homes[y].group, a * self._row_bytes(y)), []
        lo = rows.seen[y][0]
        group = self.program.new_group()
        held = self.held.get(y)
        if lo >= a or held is None:
            return Home(group, 0), []
        if held.lo > lo or held.hi < a:
            raise IllegalStripeError(f"stripe {number} needs row {lo} of {self.graph.tensors[y].name!r}, which is gone")
        kept = self._slice(y, held, lo, a, Home(group, 0))
        return Home(group, (a - lo) * self._row_bytes(y)), [kept]

    def _hold(self, rows: Rows, y: int, piece: int, carried: list[int]) -> None:
        """Makes the new rows, with what they continue, the window that readers see."""
        (a, b), lo = rows.made[y], rows.seen[y][0]
        if y in self.base.exits:
            self.pieces[y].append(piece)
            inside = any(reader in self.base.layers for reader in self.graph.readers[y])
            if inside and lo < a:
                if y not in self.held or self.held[y].lo > lo or self.held[y].hi < a:
                    raise IllegalStripeError(f"rows {lo} to {a - 1} of {self.graph.tensors[y].name!r} are not at hand")
                carried = [self._slice(y, self.held[y], lo, a)]
            else:
                lo = a
        if not carried:
            self.held[y] = _Held(piece, a, b)
            return
        group, delta = self.program.homes[carried[0]]
        window = self._piece(y, lo, b, Home(group, delta), "_window")
        self._join(window, [*carried, piece])
        self.held[y] = _Held(window, lo, b)

    def _operand(self, x: int, window: Window) -> int:
        held = self.held.get(x)
        if held is None:
            held = _Held(x, 0, self.graph.tensors[x].shape[self.axis])
        if held.lo > window.lo or held.hi < window.hi:
            raise IllegalStripeError(f"rows {window.lo} to {window.hi - 1} of {self.graph.tensors[x].name!r} are gone")
        if (held.lo, held.hi) == (window.lo, window.hi):
            return held.value
        return self._slice(x, held, window.lo, window.hi)

    def _paddings(self, y: int, window: Window) -> int:
        """The paddings of a PAD operator for one stripe: its own, but for the axis of the stripes."""
        old = next(op for op in self.graph.ops if op.outputs[:1] == (y,)).attribute("operand 1")
        numbers = [int(str(v)) for v in old] if isinstance(old, tuple) else []
        numbers[2 * self.axis : 2 * self.axis + 2] = [window.above, window.below]
        return self.program.constant(numbers, (len(numbers) // 2, 2))

    def _padded(self, x: int, value: int, layer: Layer, window: Window) -> int:
        """The window with rows of zeros at the map's border and zeros across; the same value where there are none."""
        if not any((window.above, window.below, *layer.across)):
            return value
        pads = [0] * 8
        pads[2 * self.axis : 2 * self.axis + 2] = [window.above, window.below]
        pads[2 * (3 - self.axis) : 2 * (3 - self.axis) + 2] = list(layer.across)
        shape = tuple(n + pads[2 * i] + pads[2 * i + 1] for i, n in enumerate(self.program.shape(value)))
        name = f"{self.graph.tensors[x].name}/rows_{window.lo}_{window.hi}_padded"
        made = self.program.add(Added(name, x, shape), Home(self.program.new_group(), 0))
        self.program.steps.append(Step("PAD", (value, self.program.constant(pads, (4, 2))), (made,)))
        return made

    def _join(self, target: int, parts: Sequence[int]) -> None:
        """`parts` put together in `target`, by ten at a time, each where it belongs."""
        parts = list(parts)
        while len(parts) > MOST_JOINED:
            parts = [self._joined_part(parts[i : i + MOST_JOINED]) for i in range(0, len(parts), MOST_JOINED)]
        self.program.steps.append(Step("CONCATENATION", tuple(parts), (target,), changes=(("axis", self.axis),)))

    def _joined_part(self, parts: Sequence[int]) -> int:
        if len(parts) == 1:
            return parts[0]
        first = len(self.graph.tensors)
        ends = [self.program.added[part - first].rows or (0, 0) for part in parts]
        t = self.program.added[parts[0] - first].tensor
        value = self._piece(t, ends[0][0], ends[-1][1], self.program.homes[parts[0]])
        changes = (("axis", self.axis),)
        self.program.steps.append(Step("CONCATENATION", tuple(parts), (value,), changes=changes))
        return value

    def _finish(self, t: int) -> None:
        if len(self.pieces[t]) == 1:
            raise IllegalStripeError("one stripe is no stripe")
        first = len(self.graph.tensors)
        self._join(t, sorted(self.pieces[t], key=lambda piece: self.program.added[piece - first].rows or (0, 0)))
