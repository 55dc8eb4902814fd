"""Stretches computed by one body in a loop that carries rows: as many operators as stripes of rows need, nothing twice.

    carried rows --.
                    '--> window of a map --> PAD --> GATHER (rows of this iteration) --> an operator without padding
    new rows ------'        |
                            '--> SLICE, to the front of the window: what the next iteration finds there

At the border of a map the GATHER takes rows of padding, so that one body serves all iterations.
"""

from collections.abc import Sequence

from modelplan.rewriting.striped_tflite.layers import steering_operands, takes_anything
from modelplan.rewriting.striped_tflite.loops import LoopWriter
from modelplan.rewriting.striped_tflite.steps import GroupOffset, TfliteProgram, TfliteStep, joined
from modelplan.rewriting.stripes.carried_rows import CarriedRows, carried_rows
from modelplan.rewriting.stripes.row_windows import IllegalStripeError
from modelplan.rewriting.stripes.stretches import CarryingLayers
from modelplan.rewriting.stripes.stripe_program import AddedValue

#: Numbers of a begin vector.
_RANK = 4
#: Types that TFLM's GATHER copies.
_CHOSEN_TYPES = frozenset({"int8", "float32"})


def append_carrying_loop(program: TfliteProgram, base: CarryingLayers) -> None:
    """Appends a stretch as one loop that carries rows.

    Raises:
        IllegalStripeError: the stretch has not one map that leaves it, or operators whose rows cannot be carried.
    """
    _Writer(program, base, carried_rows(base)).write()


class _Writer(LoopWriter):
    def __init__(self, program: TfliteProgram, base: CarryingLayers, rows: CarriedRows) -> None:
        self.windows = {op: rows.windows(base.layers[op], base.output(op)) for op in base.ops}
        stride = max([_RANK, *(self.windows[op][1] for op in rows.padded)])
        super().__init__(program, base.graph, rows.entries, rows.result, rows.iterations, stride)
        self.base, self.rows, self.axis = base, rows, base.stretch.axis

    def append_body(self) -> None:
        last = {x: op for op in self.base.ops for x in self.base.row_operands(op)}
        fronts: dict[int, int] = {}
        for op in self.base.ops:
            self._operator(op, fronts)
            for x in dict.fromkeys(self.base.row_operands(op)):
                if last[x] == op and x in fronts:  # what the next iteration needs moves to the front of the window
                    after = self._map(x, self.rows.carried(x), "left", self.program.group_offsets[fronts[x]])
                    self._cut(self.held[x], self.rows.new_rows[x], after)
                    self.carried[fronts[x]] = after

    def result_begins(self) -> tuple[tuple[int, ...], ...]:
        rows, y = self.rows, self.rows.result
        return tuple(self._begin_at(max(end - rows.new_rows[y], 0)) for end in rows.upto(y))

    def _operator(self, index: int, fronts: dict[int, int]) -> None:
        """One operator on its rows of this iteration, put behind those that its map carries, which join `fronts`."""
        op, layer, y = self.graph.ops[index], self.base.layers[index], self.base.output(index)
        if not takes_anything(self.graph, index):
            raise IllegalStripeError(f"{self.graph.label(index)}: not for rows that hold anything")
        inputs = list(op.inputs)
        for position in layer.operands:
            inputs[position] = self._operand(index, op.inputs[position])
        carried, new_rows = self.rows.carried(y), self.rows.new_rows[y]
        for position, numbers in steering_operands(self.graph, op, {self.axis: new_rows}).items():
            inputs[position : position + 1] = [self.program.constant(numbers)]
        start = self.program.new_group()
        value = self._map(y, new_rows, "made", GroupOffset(start.group, carried * self.base.row_bytes(y)))
        changes = (("padding", "VALID"),) if index in self.rows.padded else ()
        self.body.append(TfliteStep(op.kind, tuple(inputs), (value,), index, changes))
        self.held[y] = value
        if carried:
            fronts[y] = self._map(y, carried, "carried", start)
            self.held[y] = self._map(y, carried + new_rows, "window", start)
            self.body.append(joined((fronts[y], value), self.held[y], self.axis))

    def _cut(self, source: int, start: int, value: int) -> None:
        """Appends the slice of rows that begin at the same place in all iterations."""
        operands = self.program.constant(self._begin_at(start)), self.program.constant(self.program.shape(value))
        self.body.append(TfliteStep("SLICE", (source, *operands), (value,)))

    def _operand(self, index: int, x: int) -> int:
        """The rows of a map that an operator reads in this iteration."""
        starts, extent = self.windows[index]
        if x not in self.base.inner:
            source, first = self._entering(x, index)
        else:
            source, first = self.held[x], [end - self.rows.held[x] for end in self.rows.upto(x)]
        if index in self.rows.padded:
            return self._bordered_rows(index, x, source, first)
        if self.program.shape(source)[self.axis] == extent:
            return source
        group, delta = self.program.group_offsets[source]
        skipped = starts[0] - first[0]
        value = self._map(x, extent, f"op{index}_rows", GroupOffset(group, delta + skipped * self.base.row_bytes(x)))
        self._cut(source, skipped, value)
        return value

    def _entering(self, x: int, index: int) -> tuple[int, list[int]]:
        """A copy of rows of a map from outside of the loop, and the first of them in each iteration."""
        (starts, extent), height = self.windows[index], self.base.height(x)
        there = min(extent, height)
        first = [min(max(start, 0), height - there) for start in starts]
        value = self._map(x, there, f"op{index}_window", self.program.new_group())
        begins = tuple(map(self._begin_at, first))
        operands = self._begin(begins, f"op{index}_window"), self.program.constant(self.program.shape(value))
        self.body.append(TfliteStep("SLICE", (x, *operands), (value,), starts=begins))
        return value, first

    def _bordered_rows(self, index: int, x: int, source: int, first: Sequence[int]) -> int:
        """The rows of an operator that pads in the model, with rows and columns of padding where its windows have them.

        No row comes before its place in the padded map, so that the copy may lie where that does.
        """
        program, layer, (starts, extent) = self.program, self.base.layers[index], self.windows[index]
        if self.graph.tensors[x].dtype not in _CHOSEN_TYPES:
            raise IllegalStripeError(f"TFLM's GATHER does not take {self.graph.tensors[x].dtype}")
        there, height = program.shape(source)[self.axis], self.base.height(x)
        lead, behind = self.rows.padding(layer, x, there, extent)
        pads = [0] * 2 * _RANK
        pads[2 * self.axis : 2 * self.axis + 2] = [lead, behind]
        pads[2 * (3 - self.axis) : 2 * (3 - self.axis) + 2] = list(layer.across)
        total, wider = lead + there + behind, sum(layer.across)
        padded = self._map(x, total, f"op{index}_padded", program.new_group(), wider)
        self.body.append(TfliteStep("PAD", (source, program.constant(pads, (_RANK, 2))), (padded,)))
        numbers: list[int] = []
        for start, at in zip(starts, first, strict=True):
            rows = (_place(start + j, j, (at, there, height), lead) for j in range(extent))
            numbers += [*(min(row, total - 1) for row in rows), *(0,) * (self.stride - extent)]
        places = self._small(f"op{index}_places", extent)
        table = self._table(f"op{index}_places_of_all", numbers)
        self.body.append(TfliteStep("SLICE", (table, self.counter, program.constant((extent,))), (places,)))
        value = self._map(x, extent, f"op{index}_gathered", program.new_group(), wider)
        self.body.append(TfliteStep("GATHER", (padded, places), (value,), changes=(("axis", self.axis),)))
        return value

    def _begin_at(self, row: int) -> tuple[int, ...]:
        """The begin vector of a row."""
        return tuple(row if a == self.axis else 0 for a in range(_RANK))

    def _map(self, t: int, rows: int, what: str, place: GroupOffset, wider: int = 0) -> int:
        """So many rows of a map, with columns of padding."""
        shape = list(self.graph.tensors[t].shape)
        shape[self.axis], shape[3 - self.axis] = rows, shape[3 - self.axis] + wider
        added = AddedValue(f"{self.graph.tensors[t].name}/{what}", t, tuple(shape))
        return self.program.add_at(added, place)


def _place(row: int, at: int, window: tuple[int, int, int], lead: int) -> int:
    """The place of a row in the padded window (first row, rows, height of the map); `at` is its place in the copy.

    Rows outside of the map are rows of padding: those above it are among the `lead` of them in front, as far as they
    go. Rows of the map that are not there may be any.
    """
    first, there, height = window
    if row < 0 and at < lead:
        return at
    return max(lead + (row - first if 0 <= row < height else there), at)
