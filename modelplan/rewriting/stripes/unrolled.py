"""Regions of a model computed stripe by stripe, each stripe with operators of its own, in standard operators.

row 0 |======|                   stripe 0 of a map, made from a window of its operand
      |======|----carried----.
      |======|               v   the rows that stripe 1 needs again: kept, or made again
      |      |             |======|
      |      |             |======|   stripe 1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from modelplan.model import Graph, Kind, Op
from modelplan.rewriting.stripes.layers import sized
from modelplan.rewriting.stripes.program import MOST_JOINED, VIEWS, Added, Home, Program, Step
from modelplan.rewriting.stripes.regions import Ground, Rows, stripe_rows
from modelplan.rewriting.stripes.windows import IllegalStripeError, Layer, Window, fed


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
        self.targets: dict[int, tuple[Home, list[int]]] = {}
        self.uncut: dict[int, _Held] = {}  # what operators made of maps, rows too many included
        self.loose: set[int] = set()  # maps of which this stripe holds rows too many
        self.pieces: dict[int, list[int]] = {t: [] for t in base.exits}
        for t in base.exits:
            program.homes[t] = Home(program.new_group(), 0)

    def build(self) -> None:
        for number, rows in enumerate(self.rows):
            self.now, self.targets, self.loose = rows, {}, set()
            if self.base.region.early:  # rows that are kept move while nothing but them is there
                ops = (op for op in self.base.ops if op in rows.windows)
                made = [self.graph.ops[op].outputs[0] for op in ops]
                self.targets = {y: self._target(number, rows, y) for y in made}
            for index in self.base.ops:
                if index in rows.windows:
                    self._run(number, rows, index, rows.windows[index])
        for t in sorted(self.base.exits):
            self._finish(t)

    def _new_home(self) -> Home:
        return Home(self.program.new_group(), 0)

    def _row_bytes(self, t: int) -> int:
        tensor = self.graph.tensors[t]
        return tensor.nbytes // tensor.shape[self.axis]

    def _shape(self, t: int, rows: int) -> tuple[int, ...]:
        shape = self.graph.tensors[t].shape
        return (*shape[: self.axis], rows, *shape[self.axis + 1 :])

    def _piece(self, t: int, lo: int, hi: int, home: Home, note: str = "") -> int:
        name = f"{self.graph.tensors[t].name}/rows_{lo}_{hi}{note}"
        return self.program.add(Added(name, self._origin(t), self._shape(t, hi - lo), (lo, hi)), home)

    def _origin(self, t: int) -> int:
        """The map of the model that has the type and the quantisation of a map."""
        return self.base.origin.get(t, t)

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
        target, carried = self.targets.get(y) or self._target(number, rows, y)
        inputs = list(op.inputs)
        whole = self._fed_whole(index, layer, a, b)
        if whole is not None:
            inputs[0], window = whole
        else:
            for position in layer.operands:
                inputs[position] = self._operand(op.inputs[position], window, layer)
        changes: tuple[tuple[str, str], ...] = ()
        if layer.kind == "pad":
            inputs[1] = self._paddings(index, window)
        elif layer.kind == "cut":
            inputs[1:] = self._cut_out(index, b - a)
        elif layer.kind == "grow":
            position, size = sized(self.graph, op, self.axis, window.made)
            inputs[position] = self.program.constant(size)
        elif window.padded:
            inputs[0] = self._padded(op.inputs[0], inputs[0], layer, window)
            changes = (("padding", "VALID"),)
        elif self._turned_valid(index):
            changes = (("padding", "VALID"),)
        source = index if index < len(self.program.graph.ops) else -1
        # Rows too many go where later stripes will write, so where those came first they would do harm.
        aside = window.skip > 0 or (self.base.region.backward and window.made != b - a and y in self.base.exits)
        raw_home = self._new_home() if aside else target
        raw = self._piece(y, a - window.skip, a - window.skip + window.made, raw_home, "_made" * (window.made != b - a))
        self.program.steps.append(Step(op.kind, tuple(inputs), (raw,), source, changes))
        self.uncut[y] = _Held(raw, a - window.skip, a - window.skip + window.made)
        if window.made == b - a or self._stays_uncut(y):
            self._hold(rows, y, raw, carried)
            return
        if self._is_loose(y, carried):
            self.loose.add(y)
            self.held[y] = self.uncut[y]
            return
        kept_home = target if aside and (carried or y in self.base.exits) else None
        piece = self._slice(y, _Held(raw, a - window.skip, a), a, b, kept_home)
        self._hold(rows, y, piece, carried)

    def _stays_uncut(self, y: int) -> bool:
        """Whether every reader of a map takes what was made of it, rows too many included."""
        readers = self.graph.readers[y]
        if not self.base.region.lazy or self.base.keeps(y):
            return False
        return len(readers) == 1 and self._row_operands(readers[0]) == 1 and self._takes(readers[0], y)

    def _is_loose(self, y: int, carried: Sequence[int]) -> bool:
        """Whether rows too many of a map are left on it, since a reader takes them along."""
        if y in self.base.exits or carried:
            return False
        return any(r in self.base.region.along and self._takes(r, y) for r in self.graph.readers[y])

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
        """The operand with rows that are not needed, and the window that it makes.

        They are taken along where the map is not cut off before, or where nothing more is made of them.
        """
        x = self.graph.ops[index].inputs[0]
        source: _Held | None
        if x in self.base.inner and self._stays_uncut(x):
            source = self.uncut[x]
        elif x in self.loose:
            source = self.uncut[x] if index in self.base.region.along and self._takes(index, x) else None
        else:
            source = self._held_with_nothing_more(x, index, layer, (a, b))
        found = fed(layer, a, b, source.lo, source.hi) if source else None
        if source is None or found is None:
            return None
        return source.value, Window(source.lo, source.hi, skip=found[0], made=found[1])

    def _held_with_nothing_more(self, x: int, index: int, layer: Layer, rows: tuple[int, int]) -> _Held | None:
        """The value that holds a map's rows, where an operator makes just `rows` of all of them: no slice is needed."""
        held = self.held.get(x)
        if held is None or layer.operands != (0,) or self.now.windows[index].padded:
            return None
        return held if fed(layer, *rows, held.lo, held.hi) == (0, rows[1] - rows[0]) else None

    def _target(self, number: int, rows: Rows, y: int) -> tuple[Home, list[int]]:
        """Where the new rows of a map go, and the rows kept from the stripes before that they continue."""
        a, _ = rows.made[y]
        if y in self.base.exits:
            return Home(self.program.homes[y].group, a * self._row_bytes(y)), []
        lo, held = rows.seen[y][0], self.held.get(y)
        if lo >= a or held is None:
            return self._new_home(), []
        if held.lo > lo or held.hi < a:
            raise IllegalStripeError(f"stripe {number} needs row {lo} of {self.graph.tensors[y].name!r}, which is gone")
        group = self._new_home().group
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

    def _operand(self, x: int, window: Window, layer: Layer) -> int:
        if layer.places:
            return self._turned(x, window, layer.places[self.axis])
        held = self.held.get(x)
        if held is None:
            held = _Held(x, 0, self.graph.tensors[x].shape[self.axis])
        if held.lo > window.lo or held.hi < window.hi:
            raise IllegalStripeError(f"rows {window.lo} to {window.hi - 1} of {self.graph.tensors[x].name!r} are gone")
        if (held.lo, held.hi) == (window.lo, window.hi):
            return held.value
        return self._slice(x, held, window.lo, window.hi)

    def _turned(self, x: int, window: Window, axis: int) -> int:
        """Rows of a map that lie along another of its axes: a copy."""
        shape = list(self.graph.tensors[x].shape)
        begin, shape[axis] = [0] * len(shape), window.hi - window.lo
        begin[axis] = window.lo
        name = f"{self.graph.tensors[x].name}/rows_{window.lo}_{window.hi}"
        value = self.program.add(Added(name, x, tuple(shape)), self._new_home())
        operands = self.program.constant(begin), self.program.constant(shape)
        self.program.steps.append(Step("SLICE", (x, *operands), (value,)))
        return value

    def _turned_valid(self, index: int) -> bool:
        """Whether an operator pads in the file and does not here, since its map is padded already."""
        before = self.program.graph.ops[index : index + 1]
        return any(op.attribute("padding") != self.graph.ops[index].attribute("padding") for op in before)

    def _cut_out(self, index: int, rows: int) -> list[int]:
        """Begin and size of the columns that a padded map had before."""
        begin = [int(str(v)) for v in _numbers(self.graph.ops[index])]
        begin[self.axis] = 0
        size = self._shape(self.graph.ops[index].outputs[0], rows)
        return [self.program.constant(begin), self.program.constant(size)]

    def _paddings(self, index: int, window: Window) -> int:
        """The paddings of a PAD operator for one stripe: its own, but for the axis of the stripes."""
        numbers = [int(str(v)) for v in _numbers(self.graph.ops[index])]
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
        made = self.program.add(Added(name, self._origin(x), shape), self._new_home())
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
        first = len(self.program.graph.tensors)
        ends = [self.program.added[part - first].rows or (0, 0) for part in parts]
        t = self.program.added[parts[0] - first].tensor
        value = self._piece(t, ends[0][0], ends[-1][1], self.program.homes[parts[0]])
        changes = (("axis", self.axis),)
        self.program.steps.append(Step("CONCATENATION", tuple(parts), (value,), changes=changes))
        return value

    def _finish(self, t: int) -> None:
        if len(self.pieces[t]) == 1:
            raise IllegalStripeError("one stripe is no stripe")
        first = len(self.program.graph.tensors)
        self._join(t, sorted(self.pieces[t], key=lambda piece: self.program.added[piece - first].rows or (0, 0)))


def _numbers(op: Op) -> tuple[object, ...]:
    found = op.attribute("operand 1")
    return found if isinstance(found, tuple) else ()
