"""Replay of a rewritten file's memory plan, byte by byte: each operator must find what the symbolic run says it reads.

The arena is an array with one fingerprint for each byte: of the map, the row and the column that stands there. Copies
take along whatever stands at their source, right or not; operators that compute must find their own elements, except
those of which no output is made. Parent, condition and body of a loop share the arena and run in TFLM's order.

What was written as one span counts as that for as long as it stands: bytes are compared only where it does not.
"""

from collections.abc import Callable, Iterator, Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from modelplan.checking.verifier.addresses import AddressLayout
from modelplan.checking.verifier.cmsis_nn import EVERY_PATH, IM2COL_PIXELS
from modelplan.checking.verifier.esp_nn import needed_multiple
from modelplan.checking.verifier.moves import moves_of
from modelplan.checking.verifier.program import Program, Step
from modelplan.checking.verifier.rewrites.contents import Catalogue, Content, Fault, row_words
from modelplan.checking.verifier.rewrites.copy_order import Addresses, OrderedMove, in_order, meet, run_elements
from modelplan.checking.verifier.rewrites.fingerprints import JUNK, U64, Fingerprints
from modelplan.checking.verifier.rewrites.moving import ElementCopy, Places
from modelplan.checking.verifier.rewrites.needs import Mask, Masks, counting_elements
from modelplan.checking.verifier.rewrites.reading import Cell, Operation, Source
from modelplan.checking.verifier.rewrites.running import Event, Trace
from modelplan.checking.verifier.rewrites.written_spans import WrittenSpan, WrittenSpans, index_of
from modelplan.checking.verifier.safe_overlap import may_overlap
from modelplan.checking.verifier.semantics import JOINS, PADS, RESHAPES
from modelplan.checking.verifier.subject import Subject, offline_subject, online_subject
from modelplan.primitives.lazy_records import dataclass
from modelplan.runtimes.tflm import planner

#: Operands that a kernel reads before it writes anything: where and how much to cut.
_READ_FIRST = {"SLICE": {1, 2}}


@dataclass(frozen=True, slots=True)
class Replayed:
    """Bytes of the arena, and what was checked."""

    arena: int
    operators: int
    loops: int
    planned: bool


def replay_memory(source: Source, trace: Trace, catalogue: Catalogue, kernels: str = "reference") -> Replayed:
    """Replays the run `trace` of a file in the memory that its plan, or without one TFLM's planner, gives it.

    Raises:
        Fault: the first operator that finds other bytes than its own, or writes over what it still reads.
        BrokenPlanError: the plan cannot be read.

    Cost: the bytes that all operators read and write.
    """
    planned = planner.read_plan(source.model) is not None
    online = (planner.ONLINE,) * len(source.model.tensors)
    subject = offline_subject(source.model, kernels) if planned else online_subject(source.model, online, kernels)
    loops = _check_loops(source, subject.layout) if planned else 0
    memory = _Memory(source, subject, catalogue)
    memory.write_inputs(trace)
    for number, event in enumerate(trace.events):
        memory.perform(event, lambda number=number: counting_elements(source, trace)[number])  # type: ignore[misc]
    memory.check_outputs(trace)
    return Replayed(len(memory.bytes), len(trace.events), loops, planned)


def _check_loops(source: Source, layout: AddressLayout) -> int:
    """Checks that every value of a loop has one address in its parent, condition and body; returns the loops.

    Else TFLM would copy it, over rows that a plan for one address does not keep free.
    """
    count = 0
    for part in source.parts:
        for op in part.ops:
            if op.kind != "WHILE":
                continue
            count += 1
            condition, body = (source.parts[n] for n in op.calls)
            for position, t in enumerate(op.outputs):
                same = [part.cells[t], part.cells[op.inputs[position]], condition.cells[condition.inputs[position]]]
                same += [body.cells[body.inputs[position]], body.cells[body.outputs[position]]]
                _check_one_address(op, layout, same)
    return count


def _check_one_address(op: Operation, layout: AddressLayout, cells: Sequence[Cell]) -> None:
    placed = [(cell, layout.address[cell.number]) for cell in cells if cell.number in layout.address]
    for cell, at in placed:
        if at != placed[0][1]:
            first = placed[0][0]
            raise Fault(
                op.label, f"has {first.label} at byte {placed[0][1]} and {cell.label} at {at}: one value, two places"
            )


#: Bytes of an element; four where not listed.
_WIDTHS = {"int8": 1, "uint8": 1, "bool": 1, "int16": 2, "uint16": 2, "float16": 2, "int64": 8, "float64": 8,
           "uint64": 8, "complex64": 8, "complex128": 16}  # fmt: skip


#: Which elements of an event's operands count, asked where not all of them stand in memory.
_AskedMasks = Callable[[], Masks]


class _Memory:
    def __init__(self, source: Source, subject: Subject, catalogue: Catalogue) -> None:
        self.source = source
        self.program: Program = subject.program
        self.layout: AddressLayout = subject.layout
        self.cells = {cell.number: cell for part in source.parts for cell in part.cells}
        self.width = {n: _WIDTHS.get(cell.coding.dtype, 4) for n, cell in self.cells.items()}
        self.sizes = {n: prod(cell.shape) * self.width[n] for n, cell in self.cells.items()}
        ends = [at + self.sizes[t] for t, at in self.layout.address.items()]
        top = max([*ends, *(use.end for use in self.layout.scratch)], default=0)
        self.bytes: U64 = np.zeros(top, dtype=np.uint64)
        self.writer = np.zeros(top, dtype=np.int32)
        self.writers = ["nothing"]
        self.spans = WrittenSpans(top, catalogue)
        self.kept_orders: dict[tuple[int, int, tuple[ElementCopy, ...]], bool] = {}
        self.prints = Fingerprints(catalogue)
        self.steps = {(step.subgraph, step.op): step for step in self.program.steps if not step.moves and step.outputs}
        self.scratch: dict[tuple[int, int], set[tuple[int, int]]] = {}
        for use in self.layout.scratch:
            step = self.program.steps[use.step]
            self.scratch.setdefault((step.subgraph, step.op), set()).add((use.start, use.end))

    def _span(self, t: int) -> tuple[int, int] | None:
        at = self.layout.address.get(t)
        return None if at is None or not self.sizes[t] else (at, at + self.sizes[t])

    def _is_there(self, t: int, content: Content, start: int, end: int) -> bool:
        """Whether rows of a tensor with this content stand from `start` to `end`."""
        return self.spans.is_there(self.layout.address[t], self.width[t], content, start, end)

    def _paint(self, span: tuple[int, int] | None) -> None:
        """Makes `bytes` and `writer` hold what stands there."""
        for written, runs in self.spans.unpainted(*span) if span else ():
            prints = (
                None if written.content is None else self.prints.of_bytes(written.content, written.width).reshape(-1)
            )
            for first, end in runs:
                own = None if prints is None else prints[first - written.start : end - written.start]
                self.bytes[first:end] = JUNK if own is None else own
                self.writer[first:end] = written.writer

    def write_inputs(self, trace: Trace) -> None:
        main = self.source.parts[0]
        for t, content in zip(main.inputs, trace.inputs, strict=True):
            self._store(main.cells[t].number, content, self._writer("the caller"))

    def check_outputs(self, trace: Trace) -> None:
        main = self.source.parts[0]
        for t, content in zip(main.outputs, trace.outputs, strict=True):
            self._check(main.cells[t].number, content, "the caller")

    def perform(self, event: Event, masks: _AskedMasks) -> None:
        """One operator: its reads are checked, or its copies made; then its results stand in memory.

        `masks` say of its operands which elements count.
        """
        writer = self._writer(event.where)
        if event.passes:
            self._pass(event, writer)
            return
        for t in event.overwrites:
            span = self._span(t)
            if span is not None:
                self.spans.put(WrittenSpan(*span, 1, None, writer))
        if event.copies:
            self._move(event, masks, writer)
            return
        for i, (t, content) in enumerate(event.reads):
            self._check(t, content, event.where, lambda i=i: masks()[i])  # type: ignore[misc]
        in_place = self._parts_in_place(event)
        self._check_overlaps(event, [i for i in range(len(event.reads)) if i not in in_place])
        self._check_multiples(event)
        self._use_scratch(event, writer)
        if event.op.kind in RESHAPES:
            in_place = {0: 0}
        for operand, start in in_place.items():
            origins = self._prints(*event.reads[operand])
            self.prints.join(self._prints(*event.writes[0])[start : start + len(origins)], origins)
        for t, content in event.writes:
            self._store(t, content, writer)

    def _parts_in_place(self, event: Event) -> dict[int, int]:
        """The operands of a join that lie where it copies them, and where that is in its output.

        The kernel copies such an operand onto itself, in one piece.
        Source: ReferenceConcatenation and PackImpl of tflite-micro, for each operand and index before the axis.
        """
        if event.op.kind not in JOINS or event.op.option("FusedActivationFunction"):
            return {}
        y, start, in_place = self.cells[event.writes[0][0]], 0, dict[int, int]()
        if not y.shape or prod(y.shape[: event.op.option("Axis") % len(y.shape)]) != 1:
            return {}
        for operand, (x, _) in enumerate(event.reads):
            at, there = self.layout.address.get(x), self.layout.address.get(y.number)
            if at is not None and there is not None and at == there + start and self.cells[x].coding == y.coding:
                in_place[operand] = start
            start += self.sizes[x]
        return in_place

    def _writer(self, name: str) -> int:
        self.writers.append(name)
        return len(self.writers) - 1

    def _check(self, t: int, content: Content, where: str, mask: Callable[[], Mask | None] | None = None) -> None:
        """Checks that a tensor holds its content, but for elements that do not count."""
        span = self._span(t)
        if span is None or self._is_there(t, content, *span):
            return
        self._paint(span)
        held_bytes = self.bytes[span[0] : span[1]].reshape(*content.shape, self.width[t])
        expected = self.prints.of_bytes(content, self.width[t])
        wrong = held_bytes != expected
        if not wrong.any():
            self.spans.put(WrittenSpan(*span, self.width[t], content, 0), painted=True)
            return
        if len(self.prints.views):
            wrong = self.prints.first_of(held_bytes) != self.prints.first_of(expected)
        wanted = self.prints.wanted(content)
        if wanted is not None:
            wrong &= wanted[..., None]
        counting = mask() if mask is not None and wrong.any() else None
        if counting is not None:
            wrong &= counting[..., None]
        if wrong.any():
            self._refuse(t, span[0], wrong, where)

    def _refuse(self, t: int, start: int, wrong: npt.NDArray[np.bool_], where: str) -> None:
        at = np.flatnonzero(wrong.reshape(-1))
        culprit = self.writers[int(self.writer[start + int(at[0])])]
        axis = 1 if wrong.ndim > 2 and wrong.shape[1] > 1 else max(wrong.ndim - 3, 0)
        rows = np.flatnonzero(wrong.any(axis=tuple(a for a in range(wrong.ndim) if a != axis)))
        verb = "which nothing wrote" if culprit == "nothing" else f"overwritten by {culprit}"
        raise Fault(
            where,
            f"reads {self.cells[t].label} {row_words(axis, rows.tolist())}, bytes {start + int(at[0])} to"
            f" {start + int(at[-1])} of the arena, {verb}",
        )

    def _prints(self, t: int, content: Content) -> U64:
        return self.prints.of_bytes(content, self.width[t]).reshape(-1)

    def _store(self, t: int, content: Content, writer: int) -> None:
        span = self._span(t)
        if span is not None:
            self.spans.put(WrittenSpan(*span, self.width[t], content, writer))

    def _pass(self, event: Event, writer: int) -> None:
        """Copies of whole tensors between an operator and a subgraph; equal addresses are left alone."""
        for (x, content), (y, _) in zip(event.reads, event.writes, strict=True):
            source, target = self._span(x), self._span(y)
            if target is None or source == target:
                continue
            if source is None or (self._is_there(x, content, *source) and not _meet(source, target)):
                self._store(y, content, writer)
                continue
            if source[0] < target[1] and target[0] < source[1]:
                raise Fault(event.where, f"copies {self.cells[x].label} onto itself, shifted, in {self.cells[y].label}")
            self._paint(source)
            self.bytes[target[0] : target[1]] = self.bytes[source[0] : source[1]]
            self.writer[target[0] : target[1]] = writer
            self.spans.forget(*target)

    def _move(self, event: Event, masks: _AskedMasks, writer: int) -> None:
        """Copies bytes in the shadow memory, wrong ones included."""
        moved = {copy.operand for copy in event.copies}
        steering = [i for i in range(len(event.reads)) if i not in moved]
        for i in steering:
            self._check(*event.reads[i], event.where)
        self._check_overlaps(event, steering)
        spans = self._copied_spans(event, writer)
        moves = [] if spans is not None else self._ordered_moves(event)
        if spans is None and not self._keeps_order(event):
            self._check_moves(event, self._ordered_moves(event, masks()))
        self._use_scratch(event, writer)
        for span in spans or ():
            self.spans.put(span)
        if spans is None:
            self._copy_bytes(event, moves, writer)

    def _copy_bytes(self, event: Event, moves: Sequence[OrderedMove], writer: int) -> None:
        """Copies byte by byte; what then is a whole content counts as one span."""
        for t, _ in (*event.reads, *event.writes):
            self._paint(self._span(t))
        taken = [None if move.source is None else self.bytes[move.source] for move in moves]
        if event.op.kind in PADS:
            self._store(*event.writes[0], writer)
            self._paint(self._span(event.writes[0][0]))
        for move, stood in zip(moves, taken, strict=True):
            if len(move.changed):
                self.spans.forget(int(move.changed.min()), int(move.changed.max()) + 1)
            if move.source is None or stood is None:
                self.bytes[move.target] = self._prints(*event.reads[move.operand])
                self.writer[move.target] = writer
                continue
            self.bytes[move.changed] = stood[move.kept]
            self.writer[move.changed] = writer
        for t, content in event.writes:
            span = self._span(t)
            if span is not None and np.array_equal(self.bytes[span[0] : span[1]], self._prints(t, content)):
                self.spans.put(WrittenSpan(*span, self.width[t], content, 0), painted=True)

    def _copied_spans(self, event: Event, writer: int) -> list[WrittenSpan] | None:
        """What copies of what stands in memory leave there; None where that is not known."""
        sources, targets, moving = list[tuple[int, int]](), list[tuple[int, int]](), list[ElementCopy]()
        for copy in event.copies:
            (x, content), (y, result) = event.reads[copy.operand], event.writes[copy.output]
            if y not in self.layout.address or not all(copy.source):
                continue
            to = self._extent(y, copy.target)
            if x in self.layout.address:
                read = self._extent(x, copy.source)
                count = prod(map(len, copy.source)) * self.width[x]
                if read == to and count == read[1] - read[0] and event.op.kind not in PADS:
                    continue  # each byte stays where it is, right or wrong
                if not self._is_there(x, content, *read):
                    return None
                sources.append(read)
            if content.base != result.base:
                return None
            targets.append(to)
            moving.append(copy)
        if event.op.kind in PADS:
            targets += filter(None, [self._span(event.writes[0][0])])
        if any(_meet(read, to) for read in sources for to in targets) and not self._keeps_order(event):
            return None
        if len(moving) < len(event.copies):
            return self._moved_spans(event, moving, writer)
        spans = ((self._span(y), self.width[y], content) for y, content in event.writes)
        return [WrittenSpan(*span, width, content, writer) for span, width, content in spans if span is not None]

    def _moved_spans(self, event: Event, moving: Sequence[ElementCopy], writer: int) -> list[WrittenSpan] | None:
        """The operands that are copied as a whole, row by row where these do not lie one behind the other."""
        spans = list[WrittenSpan]()
        for copy in moving:
            (x, content), y = event.reads[copy.operand], event.writes[copy.output][0]
            if tuple(map(len, copy.source)) != content.shape or content.filled:
                return None
            spans += self._rows_at(y, content, copy.target, self.width[x], writer)
        return spans

    def _rows_at(
        self, y: int, content: Content, target: tuple[Places, ...], width: int, writer: int, axis: int = 0
    ) -> Iterator[WrittenSpan]:
        """A block as one span, or as several where its bytes do not lie one behind the other in a tensor."""
        start, end = self._extent(y, target)
        if prod(content.shape) * width == end - start:
            yield WrittenSpan(start, end, width, content, writer)
            return
        for i, place in enumerate(target[axis]):
            at = *target[:axis], (place,), *target[axis + 1 :]
            yield from self._rows_at(y, index_of(content, axis, i), at, width, writer, axis + 1)

    def _keeps_order(self, event: Event) -> bool:
        """Whether its copies are right wherever they overlap; asked once for copies between the same places."""
        key = event.op.subgraph, event.op.number, event.copies
        if key not in self.kept_orders:
            try:
                self._check_moves(event, self._ordered_moves(event))
                self.kept_orders[key] = True
            except Fault:
                self.kept_orders[key] = False
        return self.kept_orders[key]

    def _extent(self, t: int, places: tuple[Places, ...]) -> tuple[int, int]:
        """From the lowest to the highest address of a block."""
        first = end = self.layout.address[t]
        stride = self.width[t]
        for extent, at in zip(reversed(self.cells[t].shape), reversed(places), strict=True):
            first, end, stride = first + min(at) * stride, end + max(at) * stride, stride * extent
        return first, end + self.width[t]

    def _ordered_moves(self, event: Event, masks: Masks | None = None) -> list[OrderedMove]:
        """Its copies as addresses; without `masks` all elements count."""
        counting = masks or (None,) * len(event.reads)
        moves = (self._addresses(event, copy, counting[copy.operand]) for copy in event.copies)
        return [move for move in moves if move is not None]

    def _addresses(self, event: Event, copy: ElementCopy, mask: Mask | None) -> OrderedMove | None:
        """Where the bytes of a copy come from and go to; None where the target is not in the arena."""
        x, y = event.reads[copy.operand][0], event.writes[copy.output][0]
        target, source = self._span(y), self._span(x)
        if target is None:
            return None
        run = self.width[x] * run_elements(event.op, copy, len(self.cells[x].shape))
        to = self._places(y, target[0], copy.target)
        counts = None if mask is None else np.repeat(mask[np.ix_(*copy.source)].reshape(-1), self.width[x])
        return OrderedMove(
            copy.operand, None if source is None else self._places(x, source[0], copy.source), to, run, counts
        )

    def _places(self, t: int, start: int, places: tuple[Places, ...]) -> Addresses:
        """The address of every byte of a block, element by element."""
        width, shape = self.width[t], self.cells[t].shape
        total: Addresses = np.full((1,) * len(shape), start, dtype=np.int64)
        stride = width
        for axis in reversed(range(len(shape))):
            at = [1] * len(shape)
            at[axis] = len(places[axis])
            total = total + np.array(places[axis], dtype=np.int64).reshape(at) * stride
            stride *= shape[axis]
        return (total[..., None] + np.arange(width, dtype=np.int64) if width > 1 else total).reshape(-1)

    def _check_moves(self, event: Event, moves: Sequence[OrderedMove]) -> None:
        """Checks that no copy of an operator overwrites what it, or another of its copies, still has to read."""
        span = self._span(event.writes[0][0])
        whole = np.arange(*span) if event.op.kind in PADS and span is not None else None
        for move in moves:
            targets = [other.changed for other in moves] if whole is None else [whole]
            if move.source is None:
                continue
            read = move.source if whole is not None else move.source[move.counting]
            if not any(meet(read, target) for target in targets):
                continue
            if not (self.program.sequential and self._in_order(event, moves, whole)):
                raise Fault(
                    event.where, f"writes over {self.cells[event.reads[move.operand][0]].label} while it copies it"
                )

    def _in_order(self, event: Event, moves: Sequence[OrderedMove], whole: Addresses | None) -> bool:
        """Whether the kernel reads what it copies before it overwrites it; CMSIS-NN pads by rows, TFLM by elements."""
        if event.op.kind in PADS and self.program.library in (EVERY_PATH, *IM2COL_PIXELS):
            return self._permitted(event, moves[0].operand, 0)
        return in_order(event.op, moves, whole)

    def _check_overlaps(self, event: Event, operands: Sequence[int]) -> None:
        for output, (y, _) in enumerate(event.writes):
            for operand in operands:
                x = event.reads[operand][0]
                a, b = self._span(x), self._span(y)
                if a is None or b is None or not (a[0] < b[1] and b[0] < a[1]):
                    continue
                if not self._permitted(event, operand, output):
                    raise Fault(
                        event.where,
                        f"writes {self.cells[y].label} over bytes {max(a[0], b[0])} to {min(a[1], b[1]) - 1} of"
                        f" {self.cells[x].label}, which it still reads",
                    )

    def _check_multiples(self, event: Event) -> None:
        multiple = needed_multiple(self.program.library, event.op.kind)
        for t, _ in (*event.reads, *event.writes):
            at = self.layout.address.get(t, 0)
            if at % multiple:
                raise Fault(
                    event.where,
                    f"has {self.cells[t].label} at byte {at}: {self.program.library} needs a multiple of {multiple}",
                )

    def _permitted(self, event: Event, operand: int, output: int) -> bool:
        """Whether the kernel reads and writes in an order that this overlap permits."""
        step = self.steps.get((event.op.subgraph, event.op.number))
        if step is None:
            return False
        position = [i for i, t in enumerate(step.inputs) if t == event.reads[operand][0]]
        if position and all(i in _READ_FIRST.get(step.kind, ()) for i in position):
            return True
        return any(self._kernel_permits(step, i, output) for i in position)

    def _kernel_permits(self, step: Step, operand: int, output: int) -> bool:
        x, y = step.inputs[operand], step.outputs[output]
        if self.layout.address[x] == self.layout.address[y] and step.kind in RESHAPES:
            return bool(moves_of(self.program, step))
        return may_overlap(self.program, self.layout, step, operand, output)

    def _use_scratch(self, event: Event, writer: int) -> None:
        for start, end in self.scratch.get((event.op.subgraph, event.op.number), ()):
            for t, _ in (*event.reads, *event.writes):
                span = self._span(t)
                if span is not None and start < span[1] and span[0] < end:
                    raise Fault(event.where, f"has scratch at bytes {start} to {end - 1} over {self.cells[t].label}")
            self.spans.put(WrittenSpan(start, end, 1, None, writer))


def _meet(a: tuple[int, int], b: tuple[int, int]) -> bool:
    """Whether two ranges of bytes have one in common."""
    return a[0] < b[1] and b[0] < a[1]
