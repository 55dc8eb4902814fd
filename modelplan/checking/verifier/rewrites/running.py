"""A symbolic run of a .tflite file: what stands in each tensor after each operator, loops iteration by iteration."""

from collections import Counter
from collections.abc import Collection, Hashable, Sequence
from contextlib import suppress
from dataclasses import field, replace
from itertools import pairwise, zip_longest
from math import prod

import numpy as np
import numpy.typing as npt

from modelplan.checking.verifier.rewrites.contents import (
    NOTHING,
    Catalogue,
    Cause,
    Content,
    Fault,
    Numbers,
    Reader,
    Value,
    row_words,
    tells_channel,
    unproved,
    unwritten,
)
from modelplan.checking.verifier.rewrites.interface import HostSide, are_twins, conversion_operation, twin_of
from modelplan.checking.verifier.rewrites.moving import ElementCopy, Given, calculated, check_extents, is_moving, moved
from modelplan.checking.verifier.rewrites.reading import NUMBERS, Cell, Operation, Source, SubgraphPart, digest_of
from modelplan.checking.verifier.rewrites.windows import reshaped_groups, same_in_both, spread_of
from modelplan.checking.verifier.semantics import CONCATENATIONS, POINTWISE, RESHAPES
from modelplan.primitives.lazy_records import dataclass
from modelplan.runtimes.tflm.kernels.custom import OPERATORS

#: Most operators that a run may take, loops counted out.
_MOST_STEPS = 60_000
#: The custom operator of TFLM that unpacks constants.
_UNPACKING = "TFLM_DECODE"
#: Custom operators of TFLM that always write all of their outputs, of nothing but their operands, their options and
#: what each of them keeps for itself. A framer or a stacker leaves its output as it was until it has enough, a circular
#: buffer may end the run, and an Ethos-U works in its operands.
#: Source: tflite-micro, signal/micro/kernels and micro/kernels/detection_postprocess.cc.
_OWN_CUSTOM = {
    "TFLite_Detection_PostProcess", "SignalDelay", "SignalEnergy", "SignalFftAutoScale", "SignalFilterBank",
    "SignalFilterBankLog", "SignalFilterBankSpectralSubtraction", "SignalFilterBankSquareRoot", "SignalIrfft",
    "SignalOverlapAdd", "SignalPCAN", "SignalRfft", "SignalWindow",
}  # fmt: skip
#: Operators that keep values between runs: proved only where both files run all of them in the same order.
_KEEPING = {
    "SVDF", "LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_LSTM", "RNN",
    "UNIDIRECTIONAL_SEQUENCE_RNN", "BIDIRECTIONAL_SEQUENCE_RNN", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE",
}  # fmt: skip


#: Those of them that read or assign the variable that operand 0 names.
_ON_VARIABLES = {"READ_VARIABLE", "ASSIGN_VARIABLE"}


@dataclass(frozen=True, slots=True)
class Event:
    """One run of an operator, or one copy between an operator and the subgraph that it calls.

    Tensors are counted over all subgraphs. `copies` are there where it only moves; `iteration` counts from 1.
    `overwrites` are tensors of a subgraph that it runs, which may hold anything then.
    """

    op: Operation
    where: str
    reads: tuple[tuple[int, Content], ...]
    writes: tuple[tuple[int, Content], ...]
    copies: tuple[ElementCopy, ...] = ()
    passes: bool = False
    overwrites: tuple[int, ...] = ()


@dataclass
class Trace:
    """All that happened in a run, and what its inputs and outputs were; `returned` are these as the model has them.

    `counting` says for each operand of each event which of its elements an output depends on, once that was asked.
    """

    inputs: list[Content] = field(default_factory=list)
    outputs: list[Content] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    values: dict[int, Content] = field(default_factory=dict)
    keeping: list[tuple[Content | None, str, Hashable]] = field(default_factory=list)
    returned: list[Content] = field(default_factory=list)
    iterations: Counter[int] = field(default_factory=Counter)
    counting: list[tuple[npt.NDArray[np.bool_] | None, ...]] | None = None


def trace_run(
    source: Source, catalogue: Catalogue, host: HostSide | None = None, stated: Collection[str] = ()
) -> Trace:
    """Runs a file on unknown inputs, whose program converts them and the outputs where `host` says so.

    `stated` are custom operators for which somebody has kernels; each is taken for an unknown function of its operands
    and options, and of what a node of it keeps for itself from run to run.

    Raises:
        Fault: an operator reads or writes outside of a tensor, or computes what the catalogue's first file does not.
        Unproved: an operator is not known.

    Cost: O(operators run x extents of their tensors).
    """
    return _Runner(source, catalogue, stated).run(host or HostSide((), ()))


class _Runner:
    def __init__(self, source: Source, catalogue: Catalogue, stated: Collection[str]) -> None:
        self.source, self.catalogue = source, catalogue
        self.opaque = {*_OWN_CUSTOM, *stated}
        self.trace = Trace()
        self.held: list[dict[int, Value]] = [{} for _ in source.parts]
        self.iteration: list[int] = []
        self.running: list[int] = []
        self.constants: dict[int, Content] = {}
        self.numbers: dict[int, Numbers | None] = {}
        #: What numbers hold as constants, by the object, which is kept, and the type.
        self.calculated: dict[tuple[int, str], tuple[Numbers, Content]] = {}

    def run(self, host: HostSide) -> Trace:
        main = self.source.parts[0]
        for position, (t, end) in enumerate(zip_longest(main.inputs, host.inputs)):
            cell = main.cells[t] if end is None else end.outer
            fields = [("position", position), ("coding", cell.coding), ("shape", cell.shape)]
            content = self.catalogue.whole("input", fields, cell.shape, "the caller", cell.name)
            if end is not None:
                content = self._converted(f"the program, for input {position},", content, end.outer, end.inner)
            self.held[0][t] = content
            self.trace.inputs.append(content)
        self._part(0)
        self.trace.outputs = [self._content(0, t) for t in main.outputs]
        ends = zip_longest(self.trace.outputs, host.outputs)
        self.trace.returned = [
            output if end is None else self._converted(f"the program, for output {i},", output, end.inner, end.outer)
            for i, (output, end) in enumerate(ends)
        ]
        self.trace.values = {
            main.cells[t].number: value for t, value in self.held[0].items() if isinstance(value, Content)
        }
        return self.trace

    def _converted(self, where: str, content: Content, before: Cell, after: Cell) -> Content:
        """A tensor that the program converts as the model does; codes of the other 8-bit type stand for the same."""
        if are_twins(before.coding, after.coding):
            return self.catalogue.twin(content)
        operation = conversion_operation("QUANTIZE" if before.coding.dtype == "float32" else "DEQUANTIZE")
        try:
            return self._computed(operation, where, [Given(before, content)], [after], 0)
        except Fault as fault:
            refused = fault
        sides = [replace(cell, coding=twin_of(cell.coding)) if cell.coding.scales else cell for cell in (before, after)]
        inner = content if before.coding.dtype == "float32" else self.catalogue.twin(content)
        try:
            converted = self._computed(operation, where, [Given(sides[0], inner)], [sides[1]], 0)
        except Fault:
            raise refused from None
        return self.catalogue.twin(converted) if before.coding.dtype == "float32" else converted

    def _part(self, number: int) -> None:
        part = self.source.parts[number]
        self.running.append(number)
        for op in part.ops:
            if len(self.trace.events) > _MOST_STEPS:
                raise unproved(op, f"the file runs more than {_MOST_STEPS:,} operators")
            if op.kind == "WHILE":
                self._loop(op)
            elif op.kind == "CALL_ONCE":
                self._initialise(op)
            else:
                self._step(part, op)
        self.running.pop()

    def _initialise(self, op: Operation) -> None:
        """A CALL_ONCE that assigns constants to variables before anything reads or assigns one.

        It runs in the first invocation only; what its tensors lie over is counted as lost in each.
        """
        parts = self.source.parts
        if len(op.calls) != 1 or not 0 < op.calls[0] < len(parts) or self.iteration or self.running != [0]:
            raise unproved(op, "calls a subgraph that does not exist, or stands in a loop")
        part = parts[op.calls[0]]
        if self.trace.keeping or any(other.kind not in ("VAR_HANDLE", "ASSIGN_VARIABLE") for other in part.ops):
            raise unproved(op, "does more than to give variables their first values before they are used")
        constants = [(cell.data and digest_of(cell.data), cell.coding, cell.shape) for cell in part.cells]
        steps = tuple((other.kind, other.options, other.inputs, other.outputs) for other in part.ops)
        self.trace.keeping.append((None, op.kind, (steps, tuple(constants))))
        overwritten = tuple(cell.number for cell in part.cells)
        self.trace.events.append(Event(op, self._where(op), (), (), overwrites=overwritten))

    def _where(self, op: Operation) -> str:
        loop = f", iteration {self.iteration[-1]}" if self.iteration else ""
        return f"{op.label}{loop}"

    def _value(self, number: int, t: int) -> Value:
        if t in self.held[number]:
            return self.held[number][t]
        cell = self.source.parts[number].cells[t]
        if cell.data is None:
            return unwritten(cell.shape)
        if cell.coding.dtype in NUMBERS and not cell.coding.scales:
            if cell.number not in self.numbers:
                array = np.frombuffer(cell.data, NUMBERS[cell.coding.dtype])
                whole = array.size == prod(cell.shape)
                self.numbers[cell.number] = Numbers(array.reshape(cell.shape), cell.coding.dtype) if whole else None
            if (numbers := self.numbers[cell.number]) is not None:
                return numbers
        return self._constant(cell)

    def _constant(self, cell: Cell) -> Content:
        if cell.number not in self.constants:
            content = self.catalogue.constant(cell.data or b"", cell.coding, cell.shape, cell.name)
            self.constants[cell.number] = content
        return self.constants[cell.number]

    def _content(self, number: int, t: int) -> Content:
        """What stands in a tensor, numbers as a constant with these values."""
        cell, value = self.source.parts[number].cells[t], self._value(number, t)
        if isinstance(value, Content):
            return value
        if cell.data is not None:
            return self._constant(cell)
        key = id(value), cell.coding.dtype
        if key not in self.calculated:
            content = self.catalogue.constant(value.array.tobytes(), cell.coding, value.array.shape, cell.name)
            self.calculated[key] = value, content
        return self.calculated[key][1]

    def _step(self, part: SubgraphPart, op: Operation) -> None:
        where = self._where(op)
        if op.calls:
            raise unproved(op, "calls subgraphs that depend on data")
        if op.custom and op.kind not in (_UNPACKING, *self.opaque):
            way = "" if op.kind in OPERATORS else f"; --custom {op.kind}=BYTES says that you have a kernel for it"
            raise unproved(op, f"a custom operator{way}")
        number, cells = op.subgraph, part.cells
        outputs = [cells[t] for t in op.outputs if t >= 0]
        if len(outputs) != len(op.outputs) or (not outputs and op.kind != "ASSIGN_VARIABLE"):
            raise unproved(op, "has no output or an absent one")
        given = [self._operands(number, t) if t >= 0 else None for t in op.inputs]
        reads = tuple((x.cell.number, x.content) for x in given if x is not None)
        numbers = None if op.custom else self._calculated(op, given, outputs)
        copies: tuple[ElementCopy, ...] = ()
        if numbers is not None:
            self.held[number][op.outputs[0]] = numbers
            contents: tuple[Content, ...] = (self._content(number, op.outputs[0]),)
        else:
            contents, copies = self._results_of_any_names(op, where, given, outputs)
            self.held[number].update(zip(op.outputs, contents, strict=True))
        for content, cell in zip(contents, outputs, strict=True):
            check_extents(where, content.shape, cell)
        writes = tuple((cell.number, content) for cell, content in zip(outputs, contents, strict=True))
        self.trace.events.append(Event(op, where, reads, writes, copies))

    def _operands(self, number: int, t: int) -> Given:
        value = self._value(number, t)
        numbers = value if isinstance(value, Numbers) else None
        return Given(self.source.parts[number].cells[t], self._content(number, t), numbers)

    def _calculated(self, op: Operation, given: Sequence[Given | None], outputs: Sequence[Cell]) -> Numbers | None:
        known = [x.numbers for x in given if x is not None and x.numbers is not None]
        if not known or len(known) != len(given) or len(outputs) != 1:
            return None
        return calculated(op, known, outputs[0])

    def _results_of_any_names(
        self, op: Operation, where: str, given: Sequence[Given | None], outputs: Sequence[Cell]
    ) -> tuple[tuple[Content, ...], tuple[ElementCopy, ...]]:
        """What an operator makes; of operands whose extents do not say which renamed map they are as each of them."""
        try:
            return self._results(op, where, given, outputs)
        except Fault:
            names = [self.catalogue.other_names(x.content) if x and x.cell.data is None else {} for x in given]
            for axes in dict.fromkeys(axes for known in names for axes in known):
                other = [
                    replace(x, content=known[axes]) if x and axes in known else x
                    for x, known in zip(given, names, strict=True)
                ]
                with suppress(Fault):
                    if other != given:
                        return self._results(op, where, other, outputs)
            raise

    def _results(
        self, op: Operation, where: str, given: Sequence[Given | None], outputs: Sequence[Cell]
    ) -> tuple[tuple[Content, ...], tuple[ElementCopy, ...]]:
        if op.custom or op.kind in _KEEPING:
            return (self._opaque if op.custom else self._kept)(op, where, given, outputs), ()
        if op.kind == "QUANTIZE" and given[0] is not None and are_twins(given[0].cell.coding, outputs[0].coding):
            return (self.catalogue.twin(given[0].content),), ()
        if any(x is not None and x.content.filled for x in given[op.kind == "DYNAMIC_UPDATE_SLICE" :]):
            return tuple(unwritten(cell.shape) for cell in outputs), ()  # of maps that are not complete
        if op.kind == "UNPACK" and (parts := self._taken_apart(op, given, outputs)):
            return parts, ()
        try:
            moves = moved(op, given, outputs)
        except Fault as fault:
            raise Fault(where, str(fault).removeprefix(op.label).strip()) from None
        if moves is not None:
            return moves.contents, moves.copies
        if same := self._same_elements(op, given, outputs[0]):
            return (same,), ()
        present = [x for x in given if x is not None]
        if any(x.content.base == NOTHING for x in present):
            return tuple(unwritten(cell.shape) for cell in outputs), ()
        return tuple(self._computed(op, where, given, outputs, i) for i in range(len(outputs))), ()

    def _taken_apart(
        self, op: Operation, given: Sequence[Given | None], outputs: Sequence[Cell]
    ) -> tuple[Content, ...] | None:
        """What an UNPACK makes: each index along an axis as a block, in the shape without that axis."""
        x = given[0] if given else None
        if x is None or not x.content.shape or len(x.cell.coding.scales) > 1 or x.content.base == NOTHING:
            return None
        axes, at, parts = x.content.axes, op.option("Axis") % len(x.content.shape), list[Content]()
        if len(outputs) != len(axes[at]) or any(y.coding != x.cell.coding for y in outputs):
            return None
        for symbol, y in zip(axes[at], outputs, strict=True):
            content = Content(x.content.base, (*axes[:at], (symbol,), *axes[at + 1 :]))
            if not _differ_in_ones(content.shape, y.shape):
                return None
            parts.append(self.catalogue.renamed(content, y.shape))
        return tuple(parts)

    def _same_elements(self, op: Operation, given: Sequence[Given | None], output: Cell) -> Content | None:
        """What an operator makes that only says other axes, or another order of them."""
        if op.kind in RESHAPES:
            return self._renamed(op, given, output)
        return self._turned(given, output) if op.kind == "TRANSPOSE" else None

    def _turned(self, given: Sequence[Given | None], output: Cell) -> Content | None:
        """What a TRANSPOSE by constants makes: the same elements along other axes."""
        x, order = (*given, None, None)[:2]
        axes = order.integers if x and order and order.cell.data is not None else None
        if x is None or axes is None or x.cell.coding != output.coding or len(output.coding.scales) > 1:
            return None
        return self.catalogue.turned(x.content, axes) if sorted(axes) == list(range(len(output.shape))) else None

    def _renamed(self, op: Operation, given: Sequence[Given | None], output: Cell) -> Content | None:
        """What an operator makes that adds axes of extent 1, or takes them away: the same elements."""
        x = given[0]
        if x is None or x.content.filled or x.cell.coding != output.coding or len(output.coding.scales) > 1:
            return None
        if not _differ_in_ones(x.content.shape, output.shape):
            return None
        if op.kind == "RESHAPE" and reshaped_groups(op, [y.cell if y else None for y in given], output) is None:
            return None
        return self.catalogue.renamed(x.content, output.shape)

    def _computed_renamed(
        self, op: Operation, where: str, given: Sequence[Given | None], output: Cell, position: int
    ) -> Content | None:
        """What an operator that goes element by element makes of renamed maps: that of the maps themselves, renamed."""
        present = [x for x in given if x is not None]
        maps = [x for x in present if x.cell.data is None]
        if op.kind not in POINTWISE or not maps or maps[0].content.base not in self.catalogue.renamed_from:
            return None
        if any(len(cell.coding.scales) > 1 for cell in (output, *(x.cell for x in present))):
            return None
        if any(x.content.shape != output.shape for x in maps):
            return None
        shape = self.catalogue.unrenamed(maps[0].content).shape
        constants = [x.cell.shape for x in present if x.cell.data is not None]
        if any(not _along_last(constant, (shape, output.shape)) for constant in constants):
            return None
        first = [x and self._in_shape(x, shape) for x in given]
        computed = self._computed(op, where, first, [replace(output, shape=shape)] * (position + 1), position)
        return self.catalogue.renamed(computed, output.shape)

    def _in_shape(self, x: Given, shape: tuple[int, ...]) -> Given:
        """A map in another shape with the same elements; a constant as it is."""
        if x.cell.data is not None:
            return x
        return replace(x, cell=replace(x.cell, shape=shape), content=self.catalogue.renamed(x.content, shape))

    def _computed(
        self, op: Operation, where: str, given: Sequence[Given | None], outputs: Sequence[Cell], position: int
    ) -> Content:
        """What an operator that computes makes of its operands.

        Where it goes element by element, its result is that of the operands turned back, turned as the first one is.
        """
        output = outputs[position]
        if op.kind == "RESHAPE" and (reshaped := self._reshaped_turned(op, where, given, output)):
            return reshaped
        if (renamed := self._computed_renamed(op, where, given, output, position)) is not None:
            return renamed
        order = self._order_of(op, given, output)
        if order is None:
            return self._computed_as_is(op, where, given, outputs, position)
        back = sorted(order, key=order.__getitem__)
        turned_back = [x and self._turned_back(x, back) for x in given]
        shape = tuple(output.shape[axis] for axis in back)
        if op.kind in CONCATENATIONS:
            axis = order[op.option("Axis") % len(order)]
            op = replace(op, options=tuple((dict(op.options) | {"Axis": axis}).items()))
        computed = self._computed_as_is(op, where, turned_back, [replace(output, shape=shape)], 0)
        return self.catalogue.turned(computed, order)

    def _reshaped_turned(
        self, op: Operation, where: str, given: Sequence[Given | None], output: Cell
    ) -> Content | None:
        """What a RESHAPE makes of a turned map whose axes it keeps in groups: that map in another shape, turned."""
        x, groups = given[0], reshaped_groups(op, [y.cell if y else None for y in given], output)
        order = self.catalogue.unturned(x.content.base)[1] if x else ()
        if x is None or groups is None or list(order) == sorted(order) or len(x.cell.coding.scales) > 1:
            return None
        roots = [[order[axis] for axis in before] for before, _ in groups]
        if any(not axes or axes != list(range(axes[0], axes[0] + len(axes))) for axes in roots):
            return None
        behind = [axis for _, (_, axes) in sorted(zip(roots, groups, strict=True)) for axis in axes]
        shape = tuple(output.shape[axis] for axis in behind)
        content = self.catalogue.turned_back(x.content)
        back = Given(replace(x.cell, shape=content.shape), content)
        shaped = replace(op, options=(("NewShapeAsNumpy", shape),))
        reshaped = self._computed_as_is(shaped, where, [back], [replace(output, shape=shape)], 0)
        return self.catalogue.turned(reshaped, [behind.index(axis) for axis in range(len(behind))])

    def _turned_back(self, x: Given, back: Sequence[int]) -> Given:
        """An operand with its axes in another order; a single number has none."""
        if x.cell.data is None:
            content = self.catalogue.turned(x.content, back)
        elif x.content.shape and prod(x.content.shape) > 1:
            shape = (*(1,) * (len(back) - len(x.cell.shape)), *x.cell.shape)
            elements = np.frombuffer(x.cell.data, np.uint8).reshape(*shape, len(x.cell.data) // prod(shape))
            data = np.transpose(elements, (*back, len(back))).tobytes()
            shape = tuple(shape[axis] for axis in back)
            content = self.catalogue.constant(data, x.cell.coding, shape, x.cell.name)
        else:
            return x
        return replace(x, cell=replace(x.cell, shape=content.shape), content=content)

    def _order_of(self, op: Operation, given: Sequence[Given | None], output: Cell) -> tuple[int, ...] | None:
        """The axes of a map that operand 0, turned, has along its own, where an operator treats all axes alike."""
        present, rank = [x for x in given if x is not None], len(output.shape)
        maps = [x for x in present if x.cell.data is None]
        joins = op.kind in CONCATENATIONS and rank and len(maps) == len(present)
        constants = [x.cell for x in present if x.cell.data is not None]
        whole = all(len(c.shape) <= rank and len(c.data or b"") % max(prod(c.shape), 1) == 0 for c in constants)
        if not maps or not (joins or (op.kind in POINTWISE and whole)):
            return None
        if any(len(cell.coding.scales) > 1 for cell in (output, *(x.cell for x in present))):
            return None
        if any(len(x.cell.shape) != rank or (not joins and x.cell.shape != output.shape) for x in maps):
            return None
        return self.catalogue.unturned(maps[0].content.base)[1]

    def _computed_as_is(
        self, op: Operation, where: str, given: Sequence[Given | None], outputs: Sequence[Cell], position: int
    ) -> Content:
        output, spread = outputs[position], spread_of(op, given, outputs, position)
        if spread is None:
            raise unproved(op, "its rows are not known")
        options = [(f"option {name}", value) for name, value in same_in_both(op)]
        fields = [*options, *spread.rest, ("output's coding", output.coding), ("output", position)]
        base = self.catalogue.base(op.kind, fields, len(spread.axes), where, output.name)
        if self.catalogue.is_new_map(base):
            raise self._no_such_operator(op, where, given, base)
        self.catalogue.bases[base].uses += 1
        axes = tuple(self.catalogue.coordinates(base, a, windows) for a, windows in enumerate(spread.axes))
        self._note_causes(base, axes, spread.axes, where, output, given)
        return Content(base, axes)

    def _note_causes(
        self,
        base: int,
        axes: Sequence[tuple[int, ...]],
        windows: Sequence[Sequence[tuple[int, ...]]],
        where: str,
        output: Cell,
        given: Sequence[Given | None],
    ) -> None:
        """Keeps where rows that the first file does not make were made first."""
        computed_map = self.catalogue.bases[base]
        if self.catalogue.closed is None:
            return
        readers = tuple(Reader(x.cell.label, x.content) for x in given if x is not None)
        for axis, (symbols, read) in enumerate(zip(axes, windows, strict=True)):
            if max(symbols, default=0) < computed_map.known[axis]:
                continue
            for local, symbol in enumerate(symbols):
                if symbol >= computed_map.known[axis] and (axis, symbol) not in computed_map.causes:
                    computed_map.causes[axis, symbol] = Cause(
                        base, axis, where, output.label, local, read[local], readers
                    )

    def _kept(
        self, op: Operation, where: str, given: Sequence[Given | None], outputs: Sequence[Cell]
    ) -> tuple[Content, ...]:
        """An operator that keeps values: a function of its operands and of its place among those on the same ones.

        A VAR_HANDLE only names a variable, by its options. Operators without one count as on the same values.
        """
        options = [(f"option {name}", value) for name, value in same_in_both(op)]
        if op.kind == "VAR_HANDLE":
            return self._whole(op, where, given, outputs, options)
        variable = given[0].content if op.kind in _ON_VARIABLES and given and given[0] is not None else None
        turn = sum(kept[0] == variable for kept in self.trace.keeping)
        fields: list[tuple[str, Hashable]] = [("variable", variable), ("turn", turn), *options]
        for i, x in enumerate(given):
            kept = x is None or x.cell.variable
            fields.append((f"operand {i}", x and (x.cell.name if kept else x.content, x.cell.coding)))
        if self.iteration:
            raise unproved(op, "keeps values between runs and stands in a loop")
        contents = self._whole(op, where, given, outputs, fields)
        self.trace.keeping.append((variable, op.kind, tuple(fields)))
        return contents

    def _opaque(
        self, op: Operation, where: str, given: Sequence[Given | None], outputs: Sequence[Cell]
    ) -> tuple[Content, ...]:
        """A custom operator: an unknown function of its options and operands, and of what it keeps for itself.

        Both files must run it on the same operands as often, so that it keeps the same in both; one that unpacks
        constants keeps nothing.
        """
        operands = [(f"operand {i}", x and (x.content, x.cell.coding)) for i, x in enumerate(given)]
        if op.kind == _UNPACKING:
            return self._whole(op, where, given, outputs, [*op.options, *operands])
        cells = [*(x.cell for x in given if x is not None), *outputs]
        if self.iteration or any(cell.variable for cell in cells):
            where_not = "stands in a loop" if self.iteration else "has a variable"
            raise unproved(op, f"a custom operator that {where_not}")
        if any(x is not None and (x.content.base == NOTHING or x.content.filled) for x in given):
            raise unproved(op, "a custom operator with an operand that nothing writes")
        fields = [*op.options, *operands, ("outputs", tuple(cell.shape for cell in outputs))]
        contents = self._whole(op, where, given, outputs, fields)
        self.trace.keeping.append((contents[0], op.kind, ()))
        return contents

    def _whole(
        self,
        op: Operation,
        where: str,
        given: Sequence[Given | None],
        outputs: Sequence[Cell],
        fields: Sequence[tuple[str, Hashable]],
    ) -> tuple[Content, ...]:
        """The outputs as wholes that these fields decide."""
        contents = []
        for i, cell in enumerate(outputs):
            whole = [*fields, ("output", i), ("output's coding", cell.coding)]
            content = self.catalogue.whole(op.kind, whole, cell.shape, where, cell.name)
            if self.catalogue.is_new_map(content.base):
                raise self._no_such_operator(op, where, given, content.base)
            contents.append(content)
        return tuple(contents)

    def _no_such_operator(self, op: Operation, where: str, given: Sequence[Given | None], base: int) -> Fault:
        """Why the first file has no such operator: a wrong row in an operand, or the field that differs."""
        for x in given:
            reason = self.catalogue.explain(x.cell.label, x.content) if x is not None else None
            if reason is not None:
                return fault_of(self.catalogue, where, reason, "")
        new_map = self.catalogue.bases[base]
        closed = self.catalogue.closed or 0
        alike = [other for other in self.catalogue.bases[:closed] if other.kind == op.kind]
        if not alike and is_moving(op.kind):
            return Fault(where, "puts together what is not one map of the model, or changes its type or quantisation")
        if not alike:
            raise unproved(op, "the model has no such operator")
        nearest = max(alike, key=lambda other: len(set(other.fields) & set(new_map.fields)))
        differing = [name for name, value in new_map.fields if (name, value) not in nearest.fields]
        there = f"{nearest.made_by}, which makes {nearest.name!r}"
        return Fault(where, f"differs from the model's in {self._differences(differing, given)}; nearest is {there}")

    def _differences(self, fields: Sequence[str], given: Sequence[Given | None]) -> str:
        words = []
        for name in fields:
            kind, _, position = name.partition(" ")
            if kind == "operand" and position.isdigit() and (x := given[int(position)]) is not None:
                words.append(f"operand {position} ({x.cell.label}{self._order(x.content)})")
            else:
                words.append(name)
        return ", ".join(words) or "nothing that can be named"

    def _order(self, content: Content) -> str:
        """Which axis of a tensor is not in order, where one is not."""
        for axis, symbols in enumerate(content.axes):
            if any(b != a + 1 for a, b in pairwise(symbols)):
                return f", which holds {row_words(axis, symbols)} of {self.catalogue.bases[content.base].name!r}"
        return ""

    def _loop(self, op: Operation) -> None:
        """A WHILE, in the order in which TFLM copies its values.

        Source: while.cc and kernel_util.cc of tflite-micro.
        """
        condition, body = self._called(op)
        parts = self.source.parts
        operands, outputs = [(op.subgraph, t) for t in op.inputs], [(op.subgraph, t) for t in op.outputs]
        tested = [(condition, t) for t in parts[condition].inputs]
        self._pass(op, operands, tested)
        self._pass(op, operands, outputs)
        self.iteration.append(0)
        while self._goes_on(op, condition):
            self.iteration[-1] += 1
            self._pass(op, outputs, [(body, t) for t in parts[body].inputs])
            self._part(body)
            self._pass(op, [(body, t) for t in parts[body].outputs], outputs)
            self._pass(op, outputs, tested)
        self.trace.iterations[body] += self.iteration.pop()

    def _called(self, op: Operation) -> tuple[int, int]:
        parts = self.source.parts
        if len(op.calls) != 2 or any(not 0 < n < len(parts) or n in self.running for n in op.calls):
            raise unproved(op, "calls subgraphs that do not exist, or itself")
        if min((*op.inputs, *op.outputs), default=-1) < 0:
            raise unproved(op, "has no value or an absent one")
        condition, body = op.calls
        counts = {len(op.inputs), len(op.outputs), *(len(parts[n].inputs) for n in op.calls), len(parts[body].outputs)}
        if len(counts) != 1 or len(parts[condition].outputs) != 1:
            raise Fault(op.label, "hands over another number of values than its subgraphs take")
        return condition, body

    def _goes_on(self, op: Operation, condition: int) -> bool:
        self._part(condition)
        value = self._value(condition, self.source.parts[condition].outputs[0])
        if not isinstance(value, Numbers) or value.array.size < 1 or value.dtype != "bool":
            raise unproved(op, "how often it runs depends on data")
        return bool(value.array.reshape(-1)[0])

    def _pass(self, op: Operation, sources: Sequence[tuple[int, int]], targets: Sequence[tuple[int, int]]) -> None:
        """Copies values between an operator and a subgraph."""
        where = self._where(op)
        reads, writes, values = [], [], []
        for (a, x), (b, y) in zip(sources, targets, strict=True):
            source, target = self.source.parts[a].cells[x], self.source.parts[b].cells[y]
            if (source.shape, source.coding.dtype) != (target.shape, target.coding.dtype):
                raise Fault(where, f"copies {source.label} to {target.label}, which has another shape or type")
            content = self._content(a, x)
            reads.append((source.number, content))
            writes.append((target.number, content))
            values.append((b, y, self._value(a, x)))
        for b, y, value in values:
            self.held[b][y] = value
        self.trace.events.append(Event(op, where, tuple(reads), tuple(writes), passes=True))


def _along_last(constant: Sequence[int], shapes: Sequence[Sequence[int]]) -> bool:
    """Whether a constant is repeated alike over maps of these shapes: one number, or some along their last axis."""
    if prod(constant) == 1:
        return all(len(constant) <= len(shape) for shape in shapes)
    alike = all(len(constant) <= len(shape) and shape[-1] == constant[-1] for shape in shapes)
    return alike and prod(constant) == constant[-1]


def _differ_in_ones(before: Sequence[int], behind: Sequence[int]) -> bool:
    """Whether two shapes are the same but for axes of extent 1."""
    return [n for n in before if n != 1] == [n for n in behind if n != 1]


def fault_of(catalogue: Catalogue, where: str, reason: tuple[Cause, ...] | str, what: str) -> Fault:
    """The fault behind rows that the first file does not have; `what` says where they were met."""
    if isinstance(reason, str):
        return Fault(where, f"takes what is not there: {reason}{what}")
    cause = reason[0]
    if tells_channel(cause.window):
        phrase = f"makes {row_words(cause.axis, [cause.local])} of {cause.output}"
        return Fault(cause.where, f"{phrase} with a channel, operand 1, a bias or a scale unlike the model's{what}")
    operands = ", ".join(x.label for x in cause.readers if catalogue.bases[x.content.base].kind != "constant")
    text = f"makes {row_words(cause.axis, [cause.local])} of {cause.output} from {row_words(cause.axis, cause.window)}"
    text += f" of what is in {operands}"
    nearest = catalogue.nearest_window(cause.base, cause.axis, cause.window)
    if nearest is not None:
        text += f"; the model makes {row_words(cause.axis, [nearest[0]])} from {row_words(cause.axis, nearest[1])}"
    for reader in reason[1:2]:
        text += f"; {reader.where} reads it"
    return Fault(cause.where, f"{text}{what}")
