"""Stretches of a model computed stripe by stripe, each stripe with operators of its own, in standard operators.

row 0 |======|                   stripe 0 of a map, made from a window of its operand
      |======|----carried----.
      |======|               v   the rows that stripe 1 needs again: kept, or recomputed
      |      |             |======|
      |      |             |======|   stripe 1
"""

from collections.abc import Sequence

from modelplan.model import Op
from modelplan.rewriting.striped_tflite.layers import STEERED, steering_operands
from modelplan.rewriting.striped_tflite.steps import MOST_JOINED, GroupOffset, TfliteProgram, TfliteStep, joined
from modelplan.rewriting.stripes.row_windows import IllegalStripeError, InputWindow, Layer, rows_of_window
from modelplan.rewriting.stripes.stretches import HaloStripes, KeptHalo, UnrolledLayers
from modelplan.rewriting.stripes.stripe_program import AddedValue, HeldRows, StripeLowering


def append_stripes(program: TfliteProgram, base: UnrolledLayers) -> None:
    """Appends a stretch in stripes to a program.

    Raises:
        IllegalStripeError: the stretch has no stripes of this form.
    """
    _Stripes(program, base).append()


class _Stripes(StripeLowering):
    def __init__(self, program: TfliteProgram, base: UnrolledLayers) -> None:
        super().__init__(base)
        self.program, stretch = program, base.stretch
        self.backward = isinstance(stretch, HaloStripes) and stretch.backward
        self.trim_late = isinstance(stretch, HaloStripes) and stretch.trim_late
        self.untrimmed = stretch.untrimmed if isinstance(stretch, KeptHalo) else frozenset[int]()
        self.targets: dict[int, tuple[GroupOffset, list[HeldRows]]] = {}
        self.uncut: dict[int, HeldRows] = {}  # what operators made of maps, rows too many included
        self.loose: set[int] = set()  # maps of which this stripe holds rows too many
        for t in base.exits:
            program.place(t)

    def append(self) -> None:
        super().append()
        for t in sorted(self.base.exits):
            if len(self.pieces[t]) == 1:
                raise IllegalStripeError("one stripe is no stripe")
            self._join(t, t, sorted(self.pieces[t], key=lambda piece: piece.lo))

    def begin_stripe(self) -> None:
        self.targets, self.loose = {}, set()
        if self.base.stretch.pad_early:  # rows that are kept move while nothing but them is there
            computed = [self.base.output(op) for op in self.base.ops if op in self.rows.windows]
            self.targets = {y: self._target(y) for y in computed}

    def _piece(self, t: int, lo: int, hi: int, place: GroupOffset, note: str = "", axis: int = 0) -> int:
        """A value for rows of a map, along the axis of the stripes if no other is named."""
        name = f"{self.graph.tensors[t].name}/rows_{lo}_{hi}{note}"
        shape = self.shape_of(t, axis or self.base.axis_of(t), hi - lo)
        return self.program.add_at(AddedValue(name, self._origin(t), shape), place)

    def _origin(self, t: int) -> int:
        """The tensor of the model whose type and quantisation a map has."""
        return self.base.origin.get(t, t)

    def _slice(self, t: int, source: HeldRows, lo: int, hi: int, place: GroupOffset | None = None) -> int:
        """Rows [lo, hi) of a map out of the value that holds them: a view, or a copy to `place`."""
        if place is None:
            group, delta = self.program.group_offsets[source.value]
            place = GroupOffset(group, delta + (lo - source.lo) * self.base.row_bytes(t))
        value = self._piece(t, lo, hi, place, axis=source.axis)
        begin = [0] * len(self.graph.tensors[t].shape)
        begin[source.axis] = lo - source.lo
        operands = self.program.constant(begin), self.program.constant(self.program.shape(value))
        self.program.steps.append(TfliteStep("SLICE", (source.value, *operands), (value,)))
        return value

    def append_operator(self, index: int, window: InputWindow) -> None:
        op, layer = self.graph.ops[index], self.base.layers[index]
        y = op.outputs[0]
        a, b = self.rows.computed[y]
        target, carried = self.targets.get(y) or self._target(y)
        inputs = list(op.inputs)
        whole = self._untrimmed_operand(index, layer, a, b)
        if whole is not None:
            inputs[0], window = whole
        else:
            for position in layer.operands:
                inputs[position] = self._operand(op.inputs[position], window, layer)
        changes = self._adapt_operands(index, window, inputs)
        source = index if index < len(self.program.graph.ops) else -1
        # Rows too many go where later stripes will write, so where those came first they would do harm.
        aside = window.skip > 0 or (self.backward and window.computed != b - a and y in self.base.exits)
        raw_home = self.program.new_group() if aside else target
        raw = self._piece(
            y, a - window.skip, a - window.skip + window.computed, raw_home, "_made" * (window.computed != b - a)
        )
        self.program.steps.append(TfliteStep(op.kind, tuple(inputs), (raw,), source, changes))
        self.uncut[y] = HeldRows(raw, self.base.axis_of(y), a - window.skip, a - window.skip + window.computed)
        if window.computed == b - a or self._stays_uncut(y):
            self._hold(y, raw, carried)
            return
        if self._is_loose(y, carried):
            self.loose.add(y)
            self.held[y] = self.uncut[y]
            return
        kept_home = target if aside and (carried or y in self.base.exits) else None
        piece = self._slice(y, HeldRows(raw, self.base.axis_of(y), a - window.skip, a), a, b, kept_home)
        self._hold(y, piece, carried)

    def _adapt_operands(self, index: int, window: InputWindow, inputs: list[int]) -> tuple[tuple[str, str], ...]:
        """Gives an operator the operands that it has for these rows; returns the options that it has for them."""
        op, layer = self.graph.ops[index], self.base.layers[index]
        a, b = self.rows.computed[op.outputs[0]]
        cut = {self.base.axis_of(op.outputs[0]): window.computed}
        if layer.kind == "pad":
            inputs[1] = self._paddings(index, window)
        elif layer.kind == "cut":
            inputs[1:] = self._cut_out(index, b - a)
        elif layer.kind == "grow" or op.kind in STEERED:
            for position, numbers in steering_operands(self.graph, op, cut).items():
                inputs[position : position + 1] = [self.program.constant(numbers)]
        elif window.padded or self._is_valid_here(index):
            if window.padded:
                inputs[0] = self._padded(op.inputs[0], inputs[0], layer, window)
            return (("padding", "VALID"),)
        return ()

    def _stays_uncut(self, y: int) -> bool:
        """Whether every reader of a map takes its computed rows, surplus ones included."""
        readers = self.graph.readers[y]
        if not self.trim_late or y in self.base.kept:
            return False
        return len(readers) == 1 and len(self.base.row_operands(readers[0])) == 1 and self._takes(readers[0], y)

    def _is_loose(self, y: int, carried: Sequence[HeldRows]) -> bool:
        """Whether surplus rows of a map stay attached, since a reader takes them along."""
        if y in self.base.exits or carried:
            return False
        return any(r in self.untrimmed and self._takes(r, y) for r in self.graph.readers[y])

    def _takes(self, index: int, y: int) -> bool:
        held = self.uncut[y]
        window = self.rows.windows.get(index)
        if window is None or self.base.layers[index].operands != (0,):
            return False
        a, b = self.rows.computed[self.graph.ops[index].outputs[0]]
        return not window.padded and rows_of_window(self.base.layers[index], a, b, held.lo, held.hi) is not None

    def _untrimmed_operand(self, index: int, layer: Layer, a: int, b: int) -> tuple[int, InputWindow] | None:
        """The operand with rows that are not needed, and the window that it makes.

        They are taken along where the map is not cut off before, or where nothing more is made of them.
        """
        x = self.graph.ops[index].inputs[0]
        source: HeldRows | None
        if x in self.base.inner and self._stays_uncut(x):
            source = self.uncut[x]
        elif x in self.loose:
            source = self.uncut[x] if index in self.untrimmed and self._takes(index, x) else None
        else:
            source = self._held_with_nothing_more(x, index, layer, (a, b))
        row_counts = rows_of_window(layer, a, b, source.lo, source.hi) if source else None
        if source is None or row_counts is None:
            return None
        return source.value, InputWindow(source.lo, source.hi, skip=row_counts[0], computed=row_counts[1])

    def _held_with_nothing_more(self, x: int, index: int, layer: Layer, rows: tuple[int, int]) -> HeldRows | None:
        """The value that holds a map's rows, if it yields exactly `rows` without a slice."""
        held = self.held.get(x)
        if held is None or layer.operands != (0,) or self.rows.windows[index].padded:
            return None
        return held if rows_of_window(layer, *rows, held.lo, held.hi) == (0, rows[1] - rows[0]) else None

    def _target(self, y: int) -> tuple[GroupOffset, list[HeldRows]]:
        """Where the new rows of a map go, and the rows kept from the stripes before that they continue."""
        a, _ = self.rows.computed[y]
        if y in self.base.exits:
            group, start = self.program.group_offsets[y]
            return GroupOffset(group, start + a * self.base.row_bytes(y)), []
        lo = self.rows.seen[y][0]
        if lo >= a or y not in self.held:
            return self.program.new_group(), []
        held, (group, start) = self.kept_rows(y, lo, a), self.program.new_group()
        kept = self._slice(y, held, lo, a, GroupOffset(group, start))
        return GroupOffset(group, (a - lo) * self.base.row_bytes(y)), [HeldRows(kept, self.base.axis_of(y), lo, a)]

    def _hold(self, y: int, piece: int, carried: list[HeldRows]) -> None:
        """Joins new and kept rows into the window that readers see."""
        (a, b), lo = self.rows.computed[y], self.rows.seen[y][0]
        if y in self.base.exits:
            self.pieces[y].append(HeldRows(piece, self.base.axis_of(y), a, b))
            inside = any(reader in self.base.layers for reader in self.graph.readers[y])
            if inside and lo < a:
                kept = self._slice(y, self.kept_rows(y, lo, a), lo, a)
                carried = [HeldRows(kept, self.base.axis_of(y), lo, a)]
            else:
                lo = a
        if not carried:
            self.held[y] = HeldRows(piece, self.base.axis_of(y), a, b)
            return
        window = self._piece(y, lo, b, self.program.group_offsets[carried[0].value], "_window")
        self._join(y, window, [*carried, HeldRows(piece, self.base.axis_of(y), a, b)])
        self.held[y] = HeldRows(window, self.base.axis_of(y), lo, b)

    def _operand(self, x: int, window: InputWindow, layer: Layer) -> int:
        if layer.places:  # rows along another axis, as a copy
            along = HeldRows(x, layer.axes[0], 0, layer.rows_in)
            return self._slice(x, along, window.lo, window.hi, self.program.new_group())
        held = self.held.get(x)
        if held is None:
            held = HeldRows(x, self.base.axis_of(x), 0, self.base.height(x))
        if held.lo > window.lo or held.hi < window.hi:
            raise IllegalStripeError(f"rows {window.lo} to {window.hi - 1} of {self.graph.tensors[x].name!r} are gone")
        if (held.lo, held.hi) == (window.lo, window.hi):
            return held.value
        return self._slice(x, held, window.lo, window.hi)

    def _is_valid_here(self, index: int) -> bool:
        """Whether an operator that pads in the file gets VALID padding, since its map is padded already."""
        before = self.program.graph.ops[index : index + 1]
        return any(op.attribute("padding") != self.graph.ops[index].attribute("padding") for op in before)

    def _cut_out(self, index: int, rows: int) -> list[int]:
        """Begin and size of the columns that a padded map had before."""
        begin, y = [int(str(v)) for v in _numbers(self.graph.ops[index])], self.base.output(index)
        begin[self.base.axis_of(y)] = 0
        size = self.shape_of(y, self.base.axis_of(y), rows)
        return [self.program.constant(begin), self.program.constant(size)]

    def _paddings(self, index: int, window: InputWindow) -> int:
        """The paddings of a PAD operator for one stripe: its own, but for the axis of the stripes."""
        numbers, axis = (
            [int(str(v)) for v in _numbers(self.graph.ops[index])],
            self.base.axis_of(self.base.output(index)),
        )
        numbers[2 * axis : 2 * axis + 2] = [window.above, window.below]
        return self.program.constant(numbers, (len(numbers) // 2, 2))

    def _padded(self, x: int, value: int, layer: Layer, window: InputWindow) -> int:
        """The window with rows of zeros at the map's border and zeros across; the same value where there are none."""
        if not any((window.above, window.below, *layer.across)):
            return value
        pads, axis = [0] * 8, self.base.axis_of(x)
        pads[2 * axis : 2 * axis + 2] = [window.above, window.below]
        pads[2 * (3 - axis) : 2 * (3 - axis) + 2] = list(layer.across)
        shape = tuple(n + pads[2 * i] + pads[2 * i + 1] for i, n in enumerate(self.program.shape(value)))
        name = f"{self.graph.tensors[x].name}/rows_{window.lo}_{window.hi}_padded"
        computed = self.program.add_at(AddedValue(name, self._origin(x), shape), self.program.new_group())
        self.program.steps.append(TfliteStep("PAD", (value, self.program.constant(pads, (4, 2))), (computed,)))
        return computed

    def _join(self, t: int, target: int, parts: Sequence[HeldRows]) -> None:
        """Rows of a map put together in `target`, as many at a time as the operator takes, each where it belongs."""
        while len(parts) > MOST_JOINED:
            parts = [self._joined(t, parts[i : i + MOST_JOINED]) for i in range(0, len(parts), MOST_JOINED)]
        self.program.steps.append(joined([part.value for part in parts], target, self.base.axis_of(t)))

    def _joined(self, t: int, parts: Sequence[HeldRows]) -> HeldRows:
        if len(parts) == 1:
            return parts[0]
        lo, hi = parts[0].lo, parts[-1].hi
        value = self._piece(t, lo, hi, self.program.group_offsets[parts[0].value])
        self._join(t, value, parts)
        return HeldRows(value, self.base.axis_of(t), lo, hi)


def _numbers(op: Op) -> tuple[object, ...]:
    operand = op.attribute("operand 1")
    return operand if isinstance(operand, tuple) else ()
