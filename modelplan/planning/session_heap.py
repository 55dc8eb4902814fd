"""What a session of ONNX Runtime takes from the heap in its first run and in later ones, from the model alone.

A run asks for blocks and gives them back (`session_blocks`); its allocator is the heap itself or an arena (`BfcArena`).
With memory patterns the first run notes offsets for all values, and later runs take one block for them.

Source: onnxruntime, core/framework/bfc_arena.cc, mem_pattern_planner.h, execution_frame.cc.
"""

from bisect import bisect_left, insort
from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from modelplan.model import Graph, Runtime
from modelplan.planning.allocators.systems.bfc import GRANULE, BfcArena, twofold
from modelplan.planning.session_blocks import (
    BlockEvent,
    ThreadBuffers,
    block_events,
    packed_in_arena,
    thread_bytes,
    unknown_kernels,
)
from modelplan.planning.session_nodes import NUMBERS, Extents, session_order
from modelplan.primitives.lazy_records import dataclass

#: Bytes of the session's own in a run: in all, for each value of the model, for each further reader of one, for each
#: input and each output, and for each value that was computed and not given back.
_RUN, _VALUE, _READER, _INPUT, _OUTPUT, _TENSOR = 90, 24, 5, 180, 140, 192
#: Bytes of the caller's own for each output that it still has of the run before.
_KEPT = 120
#: Bytes that a product of matrices takes while it runs: for each of its parts.
_PRODUCT = 100
#: Operators of quantised models, of whose open extents a session knows others than onnx's inference.
_QUANTISED_KINDS = """
QuantizeLinear DequantizeLinear DynamicQuantizeLinear MatMulInteger ConvInteger QLinearConv QLinearMatMul QGemm
QLinearAdd QLinearMul QLinearConcat QLinearSigmoid QLinearSoftmax QLinearLeakyRelu QLinearAveragePool
QLinearGlobalAveragePool QLinearWhere
"""
#: Bytes that later runs take more.
_LATER = 128
#: Bytes of a memory pattern: in all; for each value that it notes, in a list whose room grows twofold, and while it is
#: alive; for each place of its table, which has room for an eighth more; in all while that is made.
_PATTERN, _NOTED, _NOTED_ALIVE, _PLACE, _MADE = 140, 40, 24, 25, 350


class UnpredictableError(Exception):
    """The model has what a prediction does not follow: names it."""


@dataclass(frozen=True, slots=True)
class HeapNeed:
    """The most bytes in a first run and in later ones, in all blocks and in those that hold tensors."""

    first: int
    later: int
    first_tensors: int
    later_tensors: int


class PlainHeap:
    """Each block is one allocation."""

    def __init__(self) -> None:
        self.held = self.own = 0
        self._sizes: dict[int, int] = {}
        self._next = 0

    def take(self, size: int) -> int:
        """A block of so many bytes, as a number to give it back by."""
        self._next += 1
        self._sizes[self._next] = size
        self.held += size
        return self._next

    def give(self, block: int) -> None:
        """Takes a block back."""
        self.held -= self._sizes.pop(block)


class PatternPlanner:
    """The offsets that a first run notes for its values: each goes to the tightest gap, else behind the last.

    The room up to the height that was reached before is a gap too.
    """

    def __init__(self) -> None:
        self.height = self.count = 0
        self._moved = 0  # bytes of the list from which the last value was moved to a larger one
        self._blocks: list[tuple[int, int, int]] = []  # offset, size, value
        self._of: dict[int, list[tuple[int, int, int]]] = {}  # the blocks of a value
        self._held = 0  # bytes of all blocks

    @property
    def own(self) -> int:
        """The bytes of its own bookkeeping."""
        return _PATTERN + self._moved + twofold(self.count) * _NOTED + len(self._blocks) * _NOTED_ALIVE

    @property
    def places(self) -> int:
        """The places of the table that is made of it."""
        return twofold(self.count * 8 // 7 + 1) if self.count else 0

    def note(self, value: int, size: int) -> None:
        """Notes that a value is asked for or, with no size, given back."""
        room = twofold(self.count)
        if size:
            self.take(value, size)
        else:
            self.give(value)
        self._moved = room * _NOTED if twofold(self.count) > room else 0

    def take(self, value: int, size: int) -> int:
        """Notes a value of so many bytes and returns its offset."""
        size = -(-size // GRANULE) * GRANULE
        self.count += 1
        last = self._blocks[-1][0] + self._blocks[-1][1] if self._blocks else 0
        offset = last if self._held == last else self._tightest(size, last)  # equal: no gap before the last block's end
        self.height = max(self.height, offset + size)
        block = offset, size, value
        insort(self._blocks, block)
        self._of.setdefault(value, []).append(block)
        self._held += size
        return offset

    def _tightest(self, size: int, last: int) -> int:
        """Where the tightest gap of so many bytes begins, the room behind the last block among them; else `last`."""
        best, waste, end = last, -1, 0
        for offset, held, _ in (*self._blocks, (self.height, 0, 0)):
            gap = offset - end
            if gap >= size and (waste < 0 or gap - size < waste):
                best, waste = end, gap - size
            end = max(end, offset + held)
        return best

    def give(self, value: int) -> None:
        """Notes that a value is given back."""
        for block in self._of.pop(value, ()):
            del self._blocks[bisect_left(self._blocks, block)]
            self._held -= block[1]


def predicted_heap(
    graph: Graph,
    runtime: Runtime,
    *,
    arena: bool = True,
    pattern: bool = True,
    threads: int = 1,
    extents: Extents = NUMBERS,
    keep_outputs: bool = True,
) -> HeapNeed:
    """What a session takes that runs the nodes as they are in the file, at optimization level off.

    `extents` are those that the session does not know as numbers. `keep_outputs`: the outputs of a run are there while
    the next one goes.
    """
    kinds = unknown_kernels(graph)
    if kinds:
        raise UnpredictableError(f"not known what the kernels of {', '.join(kinds)} ask for")
    _check_followed(graph, extents)
    heap: BfcArena | PlainHeap = BfcArena() if arena else PlainHeap()
    kept = packed_in_arena(graph) if arena else []
    for size in kept:
        heap.take(size)
    asked = "steps of a run", runtime, threads, tuple(extents.items())
    steps = graph.memoised(asked, lambda: _steps(graph, runtime, threads, extents))
    runs = _Runs(heap, graph, steps, pattern=pattern, keep_outputs=keep_outputs)
    first, *later = (runs.peak() for _ in range(3 if arena else 2))  # without an arena later runs are alike
    held = sum(kept)
    peaks = first[0], max(run_peaks[0] for run_peaks in later), first[1], max(run_peaks[1] for run_peaks in later)
    return HeapNeed(*(peak - held for peak in peaks))


def _check_followed(graph: Graph, extents: Extents) -> None:
    """Refuses a graph in which a session knows other extents than are followed.

    Raises:
        UnpredictableError: names the operators.
    """
    quantised = _QUANTISED_KINDS.split()
    for op in graph.ops:
        name = op.name or op.kind
        if op.kind.removeprefix("com.microsoft.") in quantised and any(extents.get(t) == () for t in op.writes):
            raise UnpredictableError(f"not known which extents a session knows behind {op.kind} {name!r}")


class _RunStep(NamedTuple):
    """What an operator does in a run: values it computes, bytes of its kernel, of its threads' buffers, its blocks."""

    writes: int
    working: int
    buffers: int
    events: Sequence[BlockEvent]


def _steps(graph: Graph, runtime: Runtime, threads: int, extents: Extents) -> list[_RunStep]:
    """The operators in the session's order."""
    by_op: dict[int, list[BlockEvent]] = {}
    for event in block_events(graph, runtime, threads, extents):
        by_op.setdefault(event.op, []).append(event)
    steps = []
    for index in session_order(graph):
        op = graph.ops[index]
        working = _PRODUCT * prod(graph.tensors[op.outputs[0]].shape[:-2]) if op.kind == "MatMul" else 0
        steps.append(_RunStep(len(op.writes), working, thread_bytes(graph, op, threads), by_op.get(index, ())))
    return steps


class _Runs:
    """The runs of one session, one after the other on the same heap."""

    def __init__(
        self,
        heap: PlainHeap | BfcArena,
        graph: Graph,
        steps: Sequence[_RunStep],
        *,
        pattern: bool,
        keep_outputs: bool,
    ) -> None:
        self.heap, self.steps = heap, steps
        self.keep_outputs = keep_outputs
        self.outputs: list[int] = []  # blocks of the run before, which the caller still has
        readers = sum(max(len(tensor_readers) - 1, 0) for tensor_readers in graph.readers)
        self.frame = _RUN + _VALUE * len(graph.tensors) + _READER * readers
        self.frame += _INPUT * len(graph.inputs) + _OUTPUT * len(graph.outputs)
        self.planner = PatternPlanner() if pattern else None
        self.noted: PatternPlanner | None = None
        self.runs = 0
        self.given_out = {event.block for step in steps for event in step.events if event.is_output}
        self.buffers = ThreadBuffers()

    def peak(self) -> tuple[int, int]:
        """The most bytes of the next run, in all blocks and in those of tensors."""
        heap, buffers, noted, planner = self.heap, self.buffers, self.noted, None if self.noted else self.planner
        whole = heap.take(noted.height) if noted and noted.height else None
        blocks: dict[int, int] = {}
        most = tensors = heap.held + buffers.held
        values, steady = len(self.outputs), self._steady_bytes()

        def total() -> int:
            """All bytes now: `values` were computed and not given back."""
            own = heap.held + buffers.held + heap.own + steady + _TENSOR * values
            return own + planner.own if planner else own

        for step in self.steps:
            values += step.writes
            most = max(most, total() + step.working)
            own = buffers.need(step.buffers)
            for event in step.events:
                if not (noted and event.value):
                    self._carry_out(event, blocks)
                if planner and event.value:
                    planner.note(event.block, event.size)
                values -= event.value and not event.size
                tensors = max(tensors, heap.held + own)
                most = max(most, total() + step.working + own - buffers.held)
        if planner:
            most = max(most, total() + _MADE + planner.places * _PLACE)
        kept = [block for name, block in blocks.items() if name in self.given_out]
        ended = [block for name, block in blocks.items() if name not in self.given_out]
        for block in (*ended, *([] if whole is None else [whole]), *self.outputs, *([] if self.keep_outputs else kept)):
            heap.give(block)
        self.outputs = kept if self.keep_outputs else []
        self.noted = noted or planner
        self.runs += 1
        return most, tensors

    def _carry_out(self, event: BlockEvent, blocks: dict[int, int]) -> None:
        if event.size:
            blocks[event.block] = self.heap.take(event.size)
        else:
            self.heap.give(blocks.pop(event.block))

    def _steady_bytes(self) -> int:
        """The session's own bytes in the next run, which stay the same while it goes."""
        pattern = _PATTERN + self.noted.places * _PLACE if self.noted else 0
        return self.frame + pattern + (_LATER if self.runs else 0) + _KEPT * len(self.outputs)
