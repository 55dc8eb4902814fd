"""Regions computed by one body in a loop that carries rows: as many operators as stripes of rows need, nothing twice.

    carried rows --.
                    '--> window of a map --> PAD --> GATHER (rows of this iteration) --> an operator without padding
    new rows ------'        |
                            '--> SLICE, to the front of the window: what the next iteration finds there

At the border of a map the GATHER takes rows of padding, so that one body serves all iterations.
"""

from __future__ import annotations

from collections.abc import Sequence

from modelplan.rewriting.striped_tflite.loops import LoopWriter
from modelplan.rewriting.striped_tflite.steps import GroupOffset, TfliteProgram, TfliteStep
from modelplan.rewriting.stripes.carried_rows import CarriedRows, carried_rows
from modelplan.rewriting.stripes.program import AddedValue
from modelplan.rewriting.stripes.regions import CarryingLayers
from modelplan.rewriting.stripes.windows import IllegalStripeError

#: Numbers of a begin vector.
_RANK = 4
#: Types that TFLM's GATHER copies.
_GATHERED = frozenset({"int8", "float32"})


def append_carrying_loop(program: TfliteProgram, base: CarryingLayers) -> None:
    """Appends a region as one loop that carries rows.

    Raises:
        IllegalStripeError: the region has not one map that leaves it, or operators whose rows cannot be carried.
    """
    _Writer(program, base, carried_rows(base)).write()


class _Writer(LoopWriter):
    def __init__(self, program: TfliteProgram, base: CarryingLayers, rows: CarriedRows) -> None:
        stride = max([_RANK, *(rows.windows[op].extent for op in rows.padded)])
        super().__init__(program, base.graph, rows.entries, rows.result, rows.iterations, stride)
        self.base, self.rows, self.axis = base, rows, base.region.axis
        self.begins: dict[tuple[tuple[int, ...], ...], int] = {}

    def append_body(self) -> None:
        last = {x: op for op in self.base.ops for x in self.base.row_operands(op)}
        for op in self.base.ops:
            self._operator(op)
            for x in dict.fromkeys(self.base.row_operands(op)):
                if last[x] == op and x in self.base.inner and self.rows.carried(x):
                    self._carry(x)

    def result_begins(self) -> tuple[tuple[int, ...], ...]:
        rows, y = self.rows, self.rows.result
        return self._along_axis([max(end - rows.made[y], 0) for end in rows.upto[y]])

    def _operator(self, index: int) -> None:
        """One operator on its rows of this iteration, put behind those that its map carries."""
        op, layer, y = self.graph.ops[index], self.base.layers[index], self.base.output(index)
        inputs = list(op.inputs)
        for position in layer.operands:
            inputs[position] = self._operand(index, op.inputs[position])
        carried, made = self.rows.carried(y), self.rows.made[y]
        start = self.program.new_group()
        value = self._map(y, made, "made", GroupOffset(start.group, carried * self.base.row_bytes(y)))
        changes = (("padding", "VALID"),) if index in self.rows.padded else ()
        self.body.append(TfliteStep(op.kind, tuple(inputs), (value,), index, changes))
        self.held[y] = value
        if carried:
            before = self._map(y, carried, "carried", start)
            self.carried[before] = before
            self.held[y] = self._map(y, carried + made, "window", start)
            join = TfliteStep("CONCATENATION", (before, value), (self.held[y],), changes=(("axis", self.axis),))
            self.body.append(join)

    def _carry(self, x: int) -> None:
        """Moves the rows that the next iteration needs to the front of the window of a map."""
        before = next(value for value in self.carried if self.program.group_offsets[value] == self._home(x))
        begins = self._along_axis(self.rows.shifts(x))
        after = self._map(x, self.rows.carried(x), "left", self._home(x))
        self._cut(self.held[x], begins, after)
        self.carried[before] = after

    def _home(self, x: int) -> GroupOffset:
        return self.program.group_offsets[self.held[x]]

    def _operand(self, index: int, x: int) -> int:
        """The rows of a map that an operator reads in this iteration."""
        window, height = self.rows.windows[index], self.base.height(x)
        if x in self.base.inner:
            source, first, there = self.held[x], self.rows.first_held(x), self.rows.held[x]
        else:
            there = min(window.extent, height)
            first = [min(max(start, 0), height - there) for start in window.starts]
            source = self._rows_from(x, x, first, there)
        if index in self.rows.padded:
            return self._gathered(index, x, source, first)
        starts = [start - at for start, at in zip(window.starts, first, strict=True)]
        upto = self.rows.upto[self.base.output(index)]
        steady = [start for start, end in zip(starts, upto, strict=True) if end > 0]
        starts = [min(max(start if end > 0 else steady[0], 0), there - window.extent)
                  for start, end in zip(starts, upto, strict=True)]  # fmt: skip
        return self._rows_from(x, source, starts, window.extent)

    def _rows_from(self, t: int, source: int, starts: Sequence[int], extent: int) -> int:
        """So many rows of a value: itself, a view of it, or a copy that begins elsewhere in each iteration."""
        if extent == self.program.shape(source)[self.axis]:
            return source
        if len(set(starts)) > 1:
            value = self._map(t, extent, "rows", self.program.new_group())
            self._cut(source, self._along_axis(starts), value)
            return value
        group, delta = self.program.group_offsets[source]
        value = self._map(t, extent, "rows", GroupOffset(group, delta + starts[0] * self.base.row_bytes(t)))
        operands = self.program.constant(self._along_axis(starts)[0]), self.program.constant(self.program.shape(value))
        self.body.append(TfliteStep("SLICE", (source, *operands), (value,)))
        return value

    def _cut(self, source: int, begins: tuple[tuple[int, ...], ...], value: int) -> None:
        """Appends the slice of a value that begins at a place out of a table."""
        if begins not in self.begins:
            self.begins[begins] = self._begin(begins, f"begin{len(self.begins)}")
        size = self.program.constant(self.program.shape(value))
        self.body.append(TfliteStep("SLICE", (source, self.begins[begins], size), (value,), starts=begins))

    def _gathered(self, index: int, x: int, source: int, first: Sequence[int]) -> int:
        """The rows of an operator that pads in the model, with rows and columns of padding where its windows have them.

        No row comes before its place in the padded map, so that the copy may lie where that does.
        """
        program, layer, window, height = self.program, self.base.layers[index], self.rows.windows[index], self.base.height(x)
        if self.graph.tensors[x].dtype not in _GATHERED:
            raise IllegalStripeError(f"TFLM's GATHER does not take {self.graph.tensors[x].dtype}")
        there = program.shape(source)[self.axis]
        below = max(0, *(start + window.extent - height for start in window.starts))
        total = layer.above + there + below
        pads = [0] * 2 * _RANK
        pads[2 * self.axis : 2 * self.axis + 2] = [layer.above, below]
        pads[2 * (3 - self.axis) : 2 * (3 - self.axis) + 2] = list(layer.across)
        padded = self._map(x, total, "padded", program.new_group(), sum(layer.across))
        self.body.append(TfliteStep("PAD", (source, program.constant(pads, (_RANK, 2))), (padded,)))
        numbers = []
        for start, at in zip(window.starts, first, strict=True):
            places = [_place(start + j, j, (at, there, height), layer.above) for j in range(window.extent)]
            numbers += [min(place, total - 1) for place in places]
            numbers += [0] * (self.stride - window.extent)
        places = self._small(f"rows{index}", window.extent)
        count = program.constant((window.extent,))
        self.body.append(TfliteStep("SLICE", (self._table(f"rows{index}s", numbers), self.counter, count), (places,)))
        value = self._map(x, window.extent, "gathered", program.new_group(), sum(layer.across))
        self.body.append(TfliteStep("GATHER", (padded, places), (value,), changes=(("axis", self.axis),)))
        return value

    def _along_axis(self, starts: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """For each iteration a begin vector."""
        return tuple(tuple(start if a == self.axis else 0 for a in range(_RANK)) for start in starts)

    def _map(self, t: int, rows: int, what: str, place: GroupOffset, wider: int = 0) -> int:
        """So many rows of a map, with columns of padding."""
        shape = list(self.graph.tensors[t].shape)
        shape[self.axis], shape[3 - self.axis] = rows, shape[3 - self.axis] + wider
        number = len(self.program.added)
        added = AddedValue(f"{self.graph.tensors[t].name}/{what}{number}", t, tuple(shape))
        return self.program.add_at(added, place)


def _place(row: int, at: int, window: tuple[int, int, int], above: int) -> int:
    """The place of a row in the padded window (first row, rows, height of the map); `at` is its place in the copy.

    For a row above the map it is one of padding that stays where it is; rows that are not there may be any.
    """
    first, there, height = window
    if row < 0:
        return min(at, max(above - 1, 0))
    if row >= height:
        return above + there + row - height
    return max(above + row - first, at)
