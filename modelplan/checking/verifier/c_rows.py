"""Proves the plan of a model in plain C from its steps alone: what stands in each byte of the buffer, step by step.

A byte that was computed is known by the tensor and the place in it. Each row that a kernel reads must be there, and be
the right one; what the model gives out must be there in the end. Which rows an operator reads follows from the options
in the file; the plan is believed in nothing.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from modelplan.answers.proof_outcomes import Verdict
from modelplan.checking.verifier.byte_runs import ByteRuns
from modelplan.checking.verifier.c_windows import (
    MapRows,
    RowReads,
    folded_reads,
    is_by_pixel,
    made_rows,
    map_rows,
    row_reads,
    several_kernels,
    whole_runs,
)
from modelplan.checking.verifier.moves import Run
from modelplan.checking.verifier.rewrites.contents import EDGE
from modelplan.checking.verifier.rewrites.reading import Cell, Operation, Source
from modelplan.checking.verifier.semantics import JOINS, PADS, POINTWISE, RESHAPES
from modelplan.model.c_program import CProgram, KernelCall, RowsArrival, RowsRead, RowsWritten, ValueShift
from modelplan.primitives.errors import BrokenPlanError
from modelplan.primitives.number_types import nbytes

_TILED = {"CONV_2D", "DEPTHWISE_CONV_2D", "AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"}
#: Operands that no kernel reads, as the file says the extents of the result.
_UNREAD = {"TRANSPOSE_CONV": (0,), "SHAPE": (0,)}
#: Operators whose results may lie on an operand, whatever the library: no kernel of one computes them otherwise.
_IN_PLACE = {*POINTWISE, "DYNAMIC_UPDATE_SLICE"}
#: Kernels keep 32-bit numbers in their working memory.
_SCRATCH_ALIGNMENT = 4
LEVEL = "rows in C"
Span = tuple[int, int]


def rows_verdict(source: Source, program: CProgram) -> Verdict:
    """The verdict of the steps of a plan.

    Cost: O(rows that all steps read and write), however long they are.
    """
    try:
        replay = _RowReplay(source, program)
        replay.run()
    except BrokenPlanError as fault:
        return Verdict(LEVEL, "broken", str(fault))
    return Verdict(LEVEL, "ok", f"{replay.calls:,} calls of kernels, {replay.rows:,} rows, {program.nbytes:,} bytes")


@dataclass
class _RowReplay:
    source: Source
    program: CProgram
    calls: int = 0
    rows: int = 0
    arrived: int = 0
    place: str = ""
    #: By the number of an operator: which of its inputs are in the buffer, these and its results; what `_found_rule`
    #: said of each of the inputs; and whether it calls kernels one after the other.
    _ends: dict[int, tuple[list[int], list[int], list[int]]] = field(default_factory=dict, init=False)
    _rules: dict[int, list[RowReads | None]] = field(default_factory=dict, init=False)
    _parted: dict[int, bool] = field(default_factory=dict, init=False)
    #: By the number of a tensor, its bytes and those of an element.
    _sizes: dict[int, int] = field(default_factory=dict, init=False)
    _widths: dict[int, int] = field(default_factory=dict, init=False)
    _whole_runs: dict[int, dict[int, Run]] = field(default_factory=dict, init=False)
    _maps: dict[int, MapRows] = field(default_factory=dict, init=False)
    _made_of: dict[tuple[int, int], MapRows] = field(default_factory=dict, init=False)
    #: The number of the first byte of each tensor that was met, and how many bytes have one.
    _firsts: dict[int, int] = field(default_factory=dict, init=False)
    _numbered: int = field(default=0, init=False)
    #: The first column that a rule reads and the one behind the last, by the rule and the columns that are computed.
    _columns: dict[tuple[int, Span | None], Span] = field(default_factory=dict, init=False)

    @cached_property
    def content(self) -> ByteRuns:
        """What stands in the buffer, by the numbers of bytes."""
        return ByteRuns(self.program.nbytes)

    def _byte(self, tensor: int, position: int) -> int:
        """The number of a byte of a tensor, or of what it is a view of."""
        root = self.roots.get(tensor, tensor)
        if root not in self._firsts:
            self._firsts[root], self._numbered = self._numbered, self._numbered + self._size(root)
        return self._firsts[root] + position

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """The tensors of the main subgraph."""
        return self.source.parts[0].cells

    @cached_property
    def _called(self) -> set[int]:
        return {s.operator for stage in self.program.stages for s in stage.steps if isinstance(s, KernelCall)}

    @cached_property
    def roots(self) -> dict[int, int]:
        """For each tensor the one whose bytes it is: views that no kernel makes are their operands."""
        roots: dict[int, int] = {}
        for op in self.source.parts[0].ops:
            if op.number not in self._called and (op.kind in RESHAPES or self._is_unchanged(op)):
                x, y = op.inputs[0], op.outputs[0]
                if self._size(x) != self._size(y):
                    raise self._broken(f"{op.label} is no view")
                roots[y] = roots.get(x, x)
        return roots

    def _size(self, tensor: int) -> int:
        if tensor not in self._sizes:
            cell = self.cells[tensor]
            self._sizes[tensor] = nbytes(cell.coding.dtype, cell.shape)
        return self._sizes[tensor]

    def _map(self, tensor: int) -> MapRows:
        if tensor not in self._maps:
            self._maps[tensor] = map_rows(self.cells[tensor], self._size(tensor))
        return self._maps[tensor]

    def _made(self, call: KernelCall, tensor: int) -> MapRows:
        """The rows of a result that are made at a time; those of its map where nothing is read but constants."""
        key = call.operator, tensor
        if key not in self._made_of:
            op, computed = self.source.parts[0].ops[call.operator], self._is_computed
            reads = any(t >= 0 and computed(t) for t in op.inputs)
            cell, size = self.cells[tensor], self._size(tensor)
            self._made_of[key] = made_rows(op, self._operands(op), cell, size) if reads else self._map(tensor)
        return self._made_of[key]

    def _broken(self, why: str) -> BrokenPlanError:
        return BrokenPlanError(f"{self.place}: {why}" if self.place else why)

    def run(self) -> None:
        """Follows all steps."""
        self._check_variables()
        part = self.source.parts[0]
        pushed = part.inputs[:1] if self.program.pushed else ()
        held = [(t, v) for t, v in zip(part.inputs, self.program.inputs, strict=True) if t not in pushed]
        variables = [(value.tensors[0], v) for v, value in enumerate(self.program.values) if value.variable]
        for tensor, value in (*held, *variables):
            self._write(tensor, 0, self.program.values[value].offset, self._size(tensor))
        for number, stage in enumerate(self.program.stages):
            for index, step in enumerate(stage.steps):
                self.place = f"stage {number}, step {index}"
                if isinstance(step, KernelCall):
                    self._call(step)
                elif isinstance(step, ValueShift):
                    self._shift(step)
                else:
                    self._arrive(step)
        self.place = "the end"
        outputs = list(zip(part.outputs, self.program.outputs, strict=True))
        for tensor, value in (*outputs, *variables):
            if value < 0 and self.cells[tensor].data is not None:
                continue  # a constant, handed over where it stands
            self._expect(tensor, 0, self.program.values[value].offset, self._size(tensor))

    def _check_variables(self) -> None:
        """Checks that all operators with a handle of the same variable run in the file's order."""
        ops = self.source.parts[0].ops
        names = {op.outputs[0]: op.options for op in ops if op.kind == "VAR_HANDLE"}
        latest: dict[object, int] = {}
        called = [s.operator for stage in self.program.stages for s in stage.steps if isinstance(s, KernelCall)]
        for number in called:
            for variable in {names[t] for t in ops[number].inputs if t in names}:
                if latest.get(variable, -1) > number:
                    raise self._broken(f"{ops[number].label} runs after {ops[latest[variable]].label}")
                latest[variable] = number

    def _span(self, first: int, count: int) -> slice:
        if first < 0 or count < 0 or first + count > self.program.nbytes:
            raise self._broken(f"bytes {first} to {first + count} are not in the buffer of {self.program.nbytes}")
        return slice(first, first + count)

    def _write(self, tensor: int, first: int, address: int, count: int) -> None:
        span = self._span(address, count)
        self.content.write(span.start, span.stop, self._byte(tensor, first) - address)

    def _expect(self, tensor: int, first: int, address: int, count: int) -> None:
        """Checks that bytes [first, first + count) of a tensor stand at an address."""
        span = self._span(address, count)
        at = self.content.wrong(span.start, span.stop, self._byte(tensor, first) - address)
        if at is not None:
            where, content = f"byte {first + at - address} of {self.cells[tensor].label}", self._described(at)
            raise self._broken(f"{where} is not at {at}, but {content}")

    def _described(self, address: int) -> str:
        """Which byte stands at an address, in words."""
        number = self.content.number(address)
        if number is None:
            return "nothing"
        first, owner = max((first, t) for t, first in self._firsts.items() if first <= number and self._size(t))
        return f"byte {number - first} of {self.cells[owner].label}"

    def _shift(self, step: ValueShift) -> None:
        source, target = self._span(step.address, step.nbytes), self._span(step.to, step.nbytes)
        self.content.move(source.start, target.start, step.nbytes)

    def _arrive(self, step: RowsArrival) -> None:
        tensor = self.source.parts[0].inputs[0]
        row = self._map(tensor).row_bytes
        if self.arrived // row != (self.arrived + step.nbytes - 1) // row:
            raise self._broken("more than a row arrives at a time")
        self._write(tensor, self.arrived, step.address, step.nbytes)
        self.arrived += step.nbytes

    def _call(self, call: KernelCall) -> None:
        op = self.source.parts[0].ops[call.operator]
        self.place = f"{op.label}"
        self.calls += 1
        positions, dynamic, results = self._operands_and_results(op)
        if [r.tensor for r in call.reads] != dynamic or [w.tensor for w in call.writes] != results:
            raise self._broken("other operands or results than in the file")
        self._check_alignment(call)
        if op.number not in self._rules:
            self._rules[op.number] = [self._found_rule(op, position, results) for position in positions]
        rules = self._rules[op.number]
        by_rows, count = any(rules), call.writes[0].rows if call.writes else 1
        if by_rows and any((w.first, w.rows) != (call.writes[0].first, count) for w in call.writes):
            raise self._broken("results of different rows")
        if any(w.rows < 1 for w in call.writes):
            raise self._broken("results without rows")
        if count > 1 and self._calls_parts(op, results):
            self._check_apart(op, call)
        self._use_scratch(call)
        self._check_extents(call, rules)
        for position, rule in zip(positions, rules, strict=True) if op.kind == "DEPTHWISE_CONV_2D" else ():
            if rule and op.inputs[position] in self._convolutions:
                self._check_working_memory(op, call, rule)
        for row in range(count if by_rows else 1):
            self._row(op, call, rules, row)

    def _operands_and_results(self, op: Operation) -> tuple[list[int], list[int], list[int]]:
        """The positions of the operands in the buffer, what is read of each, and the results."""
        if op.number not in self._ends:
            unread = _UNREAD.get(op.kind, ())
            positions = [i for i, t in enumerate(op.inputs) if i not in unread and t >= 0 and self._is_computed(t)]
            dynamic = [self._unfolded(op.inputs[i]) for i in positions]
            self._ends[op.number] = positions, dynamic, [t for t in op.outputs if t >= 0]
        return self._ends[op.number]

    def _calls_parts(self, op: Operation, results: list[int]) -> bool:
        """Whether rows of an operator may be computed part after part."""
        if op.number not in self._parted:
            library = self.program.kernels != "portable" and op.kind not in _IN_PLACE
            several = several_kernels(op, self._operands(op), [self.cells[t] for t in results])
            self._parted[op.number] = library or several
        return self._parted[op.number]

    def _check_alignment(self, call: KernelCall) -> None:
        """Checks that operands and results lie at multiples of the bytes of their elements."""
        ends: tuple[RowsRead | RowsWritten, ...] = (*call.reads, *call.writes)
        for end in ends:
            if end.address % self._width(end.tensor):
                label = self.cells[end.tensor].label
                raise self._broken(f"{label} lies at {end.address}, no multiple of {self._width(end.tensor)}")

    def _width(self, tensor: int) -> int:
        """The bytes of an element; 1 where it has none."""
        if tensor not in self._widths:
            self._widths[tensor] = nbytes(self.cells[tensor].coding.dtype, (1,)) or 1
        return self._widths[tensor]

    @cached_property
    def _pads(self) -> dict[int, Operation]:
        """The paddings that no step computes, by their results."""
        ops = self.source.parts[0].ops
        return {op.outputs[0]: op for op in ops if op.kind in PADS and op.number not in self._called}

    @cached_property
    def _convolutions(self) -> dict[int, Operation]:
        """The convolutions that no step computes, by their results."""
        ops = self.source.parts[0].ops
        return {op.outputs[0]: op for op in ops if op.kind == "CONV_2D" and op.number not in self._called}

    def _unfolded(self, tensor: int) -> int:
        """What an operator reads that does a padding or a convolution by itself."""
        folded = self._pads.get(tensor) or self._convolutions.get(tensor)
        return folded.inputs[0] if folded else tensor

    @cached_property
    def _unpacked(self) -> set[int]:
        """What no step unpacks of constants of 16-bit floats, since its readers take these."""
        ops = [op for op in self.source.parts[0].ops if op.kind == "DEQUANTIZE" and op.number not in self._called]
        sources = {op.outputs[0]: self.cells[op.inputs[0]] for op in ops}
        return {t for t, cell in sources.items() if cell.data is not None and cell.coding.dtype == "float16"}

    def _is_computed(self, tensor: int) -> bool:
        """Whether a tensor is in the buffer: no constant, and none that is kept elsewhere from run to run."""
        cell = self.cells[tensor]
        if tensor in self._unpacked:
            return False
        return cell.data is None and not cell.variable and cell.coding.dtype != "resource"

    def _use_scratch(self, call: KernelCall) -> None:
        """Checks that working memory may lie there, apart from results, and forgets what stood there."""
        if call.operator not in self.program.scratch:
            return
        span = self._span(call.scratch, self.program.scratch[call.operator])
        if span.start % _SCRATCH_ALIGNMENT:
            raise self._broken(f"its working memory lies at {span.start}, no multiple of {_SCRATCH_ALIGNMENT}")
        for write in call.writes:
            end = write.address + self._written_bytes(call, write)
            if write.address < span.stop and span.start < end:
                raise self._broken(f"writes {self.cells[write.tensor].label} over its working memory")
        self.content.write(span.start, span.stop, None)

    def _written_bytes(self, call: KernelCall, write: RowsWritten) -> int:
        """The bytes from a result's address to the end of what a call computes."""
        shape = self._made(call, write.tensor)
        if call.columns:
            return write.rows * (call.columns[1] - call.columns[0]) * shape.column_bytes
        return write.rows * shape.row_bytes

    def _check_apart(self, op: Operation, call: KernelCall) -> None:
        """Checks that no result lies on an operand, for operators that are computed part after part."""
        parts = self._joined_parts(op)
        for write in call.writes:
            end = write.address + write.rows * self._made(call, write.tensor).row_bytes
            for read in call.reads:
                size = read.rows * self._map(read.tensor).row_bytes
                placed = (read.address - write.address, size) in parts
                if not placed and read.address < end and write.address < read.address + size:
                    raise self._broken(f"writes {self.cells[write.tensor].label} over operands that are still read")

    def _operands(self, op: Operation) -> list[Cell | None]:
        return [self.cells[t] if t >= 0 else None for t in op.inputs]

    def _found_rule(self, op: Operation, position: int, results: list[int]) -> RowReads | None:
        rule = row_reads(op, self._operands(op), position, [self.cells[t] for t in results]) if results else None
        if op.inputs[position] in self._convolutions:
            self._check_folded(op, self._convolutions[op.inputs[position]])
            return rule if op.kind != "AVERAGE_POOL_2D" else None
        if op.inputs[position] not in self._pads:
            return rule
        pad = self._pads[op.inputs[position]]
        folded = folded_reads(op, rule, pad, [self.cells[t] for t in (*pad.inputs, pad.outputs[0])])
        if folded is None:
            raise self._broken(f"nothing computes {pad.label}, which is not the operator's own padding")
        return folded

    def _check_folded(self, op: Operation, convolution: Operation) -> None:
        """Checks that an operator may compute a convolution too: of its pixels one by one, into means or windows."""
        kinds = ("MEAN", "SUM", "AVERAGE_POOL_2D", "DEPTHWISE_CONV_2D")
        if op.kind not in kinds or not is_by_pixel(convolution, self.cells):
            raise self._broken(f"nothing computes {convolution.label}")

    def _check_working_memory(self, op: Operation, call: KernelCall, rule: RowReads) -> None:
        """Checks that four channels of what a convolution hands on have room for the windows of some columns."""
        left, right = self._read_columns(call, rule)
        dtype = self.cells[call.writes[0].tensor].coding.dtype
        needed = nbytes(dtype, (4 * max(map(len, rule.rows)) * max(right - left, 1),))
        if self.program.scratch.get(op.number, 0) < needed:
            raise self._broken(f"has less than {needed} bytes of working memory")

    def _read_columns(self, call: KernelCall, rule: RowReads) -> Span:
        """The first column that a call reads by a rule, and the one behind the last."""
        key = id(rule), call.columns
        if key not in self._columns:
            columns = rule.columns[slice(*call.columns) if call.columns else slice(None)] if rule.columns else ()
            taken = {c for window in columns for c in window if c != EDGE}
            self._columns[key] = (min(taken), max(taken) + 1) if taken else (0, 0)
        return self._columns[key]

    def _check_extents(self, call: KernelCall, rules: list[RowReads | None]) -> None:
        """Checks that rows and columns of the call are some of the result's, and all where it is computed whole."""
        for write in call.writes:
            shape = self._made(call, write.tensor)
            if not 0 <= write.first <= write.first + write.rows <= shape.rows:
                raise self._broken(f"rows {write.first} to {write.first + write.rows} of {shape.rows}")
            if write.rows < shape.rows and not any(rules):
                raise self._broken("computes some rows of a result that is computed as a whole")
        if call.columns:
            left, end = call.columns
            by_columns = all(rule and rule.columns for rule in rules)
            if len(call.writes) != 1 or not by_columns:
                raise self._broken("computes columns that are not computed by themselves")
            if not 0 <= left < end <= self._made(call, call.writes[0].tensor).columns:
                raise self._broken(f"columns {left} to {end} are not in the result")
        self._check_tiles(call)

    def _check_tiles(self, call: KernelCall) -> None:
        """Checks that an operator which reads or makes a tile has a kernel for it, and that the tile is in its map."""
        reads = [read for read in call.reads if read.width]
        if not reads and (call.columns is None or call.writes[0].rows == 1):
            return
        op = self.source.parts[0].ops[call.operator]
        if op.kind not in _TILED or call.columns is None or self.program.kernels != "portable":
            raise self._broken("computes a tile, for which there is no kernel")
        for read in reads:
            if read.left < 0 or read.left + read.width > self._map(read.tensor).columns:
                raise self._broken(f"columns {read.left} to {read.left + read.width} of a tile are not in the map")

    def _row(self, op: Operation, call: KernelCall, rules: list[RowReads | None], row: int) -> None:
        """Computes the row behind so many that the call has computed already."""
        self.rows += 1
        read: list[Span] = []
        for operand, rule in zip(call.reads, rules, strict=True):
            wanted: Iterable[tuple[int, int, int]] = [(0, operand.address, self._size(operand.tensor))]
            if rule is not None:
                wanted = self._window(call, operand, rule, row)
            for first, address, count in wanted:
                self._expect(operand.tensor, first, address, count)
                read.append((address, address + count))
        for write in call.writes:
            first, address, count = self._result(call, write, row, whole=not any(rules))
            for a, b in read:
                if (
                    a < address + count
                    and address < b
                    and not self._in_place(op, call, write, (a, b), (address, count))
                    and (a - address, b - a) not in self._joined_parts(op)
                ):
                    raise self._broken(f"writes {self.cells[write.tensor].label} over what the same row still reads")
            self._write(write.tensor, first, address, count)

    def _joined_parts(self, op: Operation) -> list[Span]:
        """(offset, bytes) of operands that are runs of the result, one behind the other."""
        if op.kind not in JOINS:
            return []
        width = nbytes(self.cells[op.outputs[0]].coding.dtype, (1,))
        return [(run.to * width, run.length * width) for run in self._runs(op).values()]

    def _is_unchanged(self, op: Operation) -> bool:
        """Whether the only result of an operator that moves elements is its operand, as it is."""
        result = self.cells[op.outputs[0]] if len(op.outputs) == 1 else None
        same = result is not None and self._runs(op) == {0: Run(0, 0, prod(result.shape))}
        return same and self.cells[op.inputs[0]].coding.dtype == self.cells[op.outputs[0]].coding.dtype

    def _runs(self, op: Operation) -> dict[int, Run]:
        """The runs of result 0 that are all of an operand, by its position."""
        if op.number not in self._whole_runs:
            result = [self.cells[t] for t in op.outputs if t >= 0]
            self._whole_runs[op.number] = whole_runs(op, self._operands(op), result)
        return self._whole_runs[op.number]

    def _in_place(self, op: Operation, call: KernelCall, write: RowsWritten, read: Span, result: Span) -> bool:
        """Whether an element-wise operator may write there: on the element that it reads, or in front of it."""
        size = self._size(write.tensor)
        same = [
            r
            for r in call.reads
            if self._size(r.tensor) == size and r.address <= read[0] <= read[1] <= r.address + size
        ]
        if op.kind == "DYNAMIC_UPDATE_SLICE":  # which moves all of operand 0 before it reads the part
            whole, *others = call.reads
            first = whole.tensor == op.inputs[0] and all(r.address != whole.address for r in others)
            return first and result[0] <= read[0] and (read[0], read[1] - read[0]) == (whole.address, size)
        return op.kind in POINTWISE and len(same) > 0 and result[0] <= read[0] and read[1] - read[0] == result[1]

    def _window(self, call: KernelCall, operand: RowsRead, rule: RowReads, row: int) -> Iterator[tuple[int, int, int]]:
        """(first byte, address, bytes) of what a row of the result reads of an operand, as the kernel looks for it."""
        shape = self._map(operand.tensor)
        left, right = self._read_columns(call, rule) if rule.columns else (0, shape.columns)
        for tap, place in enumerate(rule.rows[call.writes[0].first + row]):
            at = row * rule.stride - operand.above + tap * rule.dilation
            there = 0 <= at < operand.rows
            if there != (place != EDGE):
                what = f"row {place}" if place != EDGE else "a row beside the map"
                raise self._broken(
                    f"tap {tap} of row {call.writes[0].first + row} is {what} of {self.cells[operand.tensor].label},"
                    f" but the kernel is handed {operand.rows} rows with {operand.above} above them"
                )
            if there and right > left:
                first, held = place * shape.row_bytes + left * shape.column_bytes, operand.width or shape.columns
                if left < operand.left or right > operand.left + held:
                    raise self._broken(
                        f"reads columns {left} to {right} of {self.cells[operand.tensor].label} from a tile"
                    )
                address = operand.address + (at * held + left - operand.left) * shape.column_bytes
                yield first, address, (right - left) * shape.column_bytes

    def _result(self, call: KernelCall, write: RowsWritten, row: int, *, whole: bool) -> tuple[int, int, int]:
        """(first byte, address, bytes) of what is written of a result."""
        shape = self._made(call, write.tensor)
        if whole:
            return 0, write.address, self._size(write.tensor)
        first = (write.first + row) * shape.row_bytes
        if call.columns:
            left, end = call.columns
            size = (end - left) * shape.column_bytes
            return first + left * shape.column_bytes, write.address + row * size, size
        return first, write.address + row * shape.row_bytes, shape.row_bytes
