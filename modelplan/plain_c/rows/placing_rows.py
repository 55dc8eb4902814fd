"""Where the values of a plan lie: rows live and die one by one, and values are packed as rigid groups of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from modelplan.model.c_program import (
    CProgram,
    KernelCall,
    PlanChoices,
    RowsArrival,
    RowsRead,
    RowsWritten,
    Stage,
    StageChoice,
    Step,
    StoredValue,
    ValueShift,
)
from modelplan.plain_c.rows.row_graph import RowGraph, Tile, tiles_of
from modelplan.plain_c.rows.scheduling import CALLER, Granule, OperandUse
from modelplan.plain_c.rows.spare_memory import bytes_read, bytes_written
from modelplan.plain_c.rows.stage_plan import StagedGraph, StageGranules, StageProgress
from modelplan.rewriting.stripes.byte_lives import LiveBytes, MemoryAccess, byte_lives
from modelplan.rewriting.stripes.group_packing import AllowedOverlap, GroupPacking, group_problem, pack

#: Kernels keep 32-bit numbers in their scratch.
_SCRATCH_ALIGNMENT = 4


@dataclass
class TickTrace:
    """All steps of a plan with addresses that count from the base of each value, and what each touches in memory.

    A tick is a step that computes at most a row. `groups` are values, then the scratch of operators.
    """

    graph: StagedGraph
    capacity: dict[int, int] = field(default_factory=dict)
    stages: list[list[Step]] = field(default_factory=list)
    accesses: list[MemoryAccess] = field(default_factory=list)
    overlaps: list[AllowedOverlap] = field(default_factory=list)
    scratch: dict[int, int] = field(default_factory=dict)
    ticks: int = 0

    def add(self, stage: StageGranules) -> None:
        """Adds the ticks of a stage."""
        self.stages.append([])
        granules = list(stage.granules)
        self.capacity.update(_capacities(self.graph, stage, granules))
        progress = StageProgress(stage, self.graph.nbytes)
        view = _StageView(stage, self.capacity, self.graph.nbytes)
        for granule in granules:
            for value, _, _, end in progress.written(granule):
                if end - view.front.get(value, 0) > self.capacity[value]:
                    self._shift(progress, value, view)
            self._compute(stage, progress, granule, view)
            for value, _, _, end in progress.written(granule):
                progress.end[value] = end
            progress.finish(granule)

    def _shift(self, progress: StageProgress, value: int, view: _StageView) -> None:
        first, end = progress.kept_from(value), progress.end[value]
        old = view.span(value, first, end)
        view.front[value] = first
        new = view.span(value, first, end)
        if end > first:
            self.stages[-1].append(ValueShift(value, old[0], new[0], end - first))
            self._touch(value, old, writes=False)
            self._touch(value, new, writes=True)
            self.ticks += 1

    def _touch(self, value: int, span: tuple[int, int], *, writes: bool) -> None:
        self.accesses.append(MemoryAccess(value, *span, self.ticks, writes, value))

    def _compute(self, stage: StageGranules, progress: StageProgress, granule: Granule, view: _StageView) -> None:
        if granule.operator in self.graph.rows.chains:
            self._compute_chain(progress, granule, view)
            return
        operator = stage.operators[granule.operator]
        reads = tuple(self._read(use, granule, view) for use in operator.uses)
        writes = []
        for (value, tensor, first, end), (_, _, shape) in zip(progress.written(granule), operator.results, strict=True):
            span = view.span(value, first, end)
            self._touch(value, span, writes=True)
            row, count = view.real(granule.row, granule.rows, shape.rows), granule.rows
            if not operator.by_rows:
                row, count = 0, self.graph.rows.made_shape(granule.operator, tensor).rows
            writes.append(RowsWritten(tensor, value, row, count, span[0]))
        if granule.operator == CALLER:
            self.stages[-1].append(RowsArrival(writes[0].value, span[0], span[1] - span[0]))
        else:
            left = view.real(granule.left, granule.right - granule.left, operator.shape.columns)
            whole = granule.right - granule.left == operator.shape.columns
            columns = None if whole else (left, left + granule.right - granule.left)
            call = KernelCall(granule.operator, reads, tuple(writes), columns, self._work(granule.operator))
            self.stages[-1].append(call)
            self._allow(call, operator.uses, left)
        self.ticks += 1

    def _compute_chain(self, progress: StageProgress, granule: Granule, view: _StageView) -> None:
        """A part of a row by way of tiles: those of the same value all lie in one place."""
        rows = self.graph.rows
        members = rows.chains[granule.operator]
        value, last, first, end = next(progress.written(granule))
        shape = rows.shape(last)
        row, left = (
            view.real(granule.row, 1, shape.rows),
            view.real(granule.left, granule.right - granule.left, shape.columns),
        )
        part = Tile(row, row + 1, left, left + granule.right - granule.left)
        tiles = tiles_of(rows, members, part)
        read = self._read_part(members[0][1].operands[0], tiles[0], view)
        for (number, _), tile in zip(members[:-1], tiles[1:-1], strict=True):
            tensor = rows.graph.ops[number].writes[0]
            group, size = rows.value_of[tensor], tile.pixels * rows.shape(tensor).column_bytes
            self.capacity[group] = max(self.capacity.get(group, 0), size)
            self._touch(group, (0, size), writes=True)
            written = RowsWritten(tensor, group, tile.top, tile.bottom - tile.top, 0)
            self.stages[-1].append(KernelCall(number, (read,), (written,), (tile.left, tile.right)))
            self.ticks += 1
            self._touch(group, (0, size), writes=False)
            read = RowsRead(tensor, group, tile.top, written.rows, tile.above, 0, tile.left, tile.right - tile.left)
        span = view.span(value, first, end)
        self._touch(value, span, writes=True)
        written = RowsWritten(last, value, row, 1, span[0])
        self.stages[-1].append(KernelCall(granule.operator, (read,), (written,), (part.left, part.right)))
        self.ticks += 1

    def _read_part(self, tensor: int, part: Tile, view: _StageView) -> RowsRead:
        """What a chain reads of a map, of which rows are there as a whole."""
        shape, value = self.graph.rows.shape(tensor), self.graph.rows.value_of[tensor]
        width, size = shape.row_bytes, shape.column_bytes
        for row in range(part.top, part.bottom):
            span = view.real_span(value, row * width + part.left * size, row * width + part.right * size)
            self._touch(value, span, writes=False)
        address = view.real_span(value, part.top * width, part.bottom * width)[0]
        return RowsRead(tensor, value, part.top, part.bottom - part.top, part.above, address)

    def _work(self, number: int) -> int:
        """The group of an operator's scratch, which this tick uses; -1 where it has none."""
        size = self.graph.rows.operators[number].scratch
        if not size:
            return -1
        group = self.scratch.setdefault(number, len(self.graph.nbytes) + len(self.scratch))
        self._touch(group, (0, size), writes=True)
        return group

    def _read(self, use: OperandUse, granule: Granule, view: _StageView) -> RowsRead:
        shape, value = use.shape, use.value
        if use.window is None:
            span = view.span(value, 0, shape.nbytes)
            self._touch(value, span, writes=False)
            return RowsRead(use.tensor, value, 0, shape.rows, 0, span[0])
        top, bottom = use.window.rows.read(granule.row, granule.row + granule.rows)
        first = min(max(top, 0), shape.rows)
        end = max(min(bottom, shape.rows), first)
        left, right = 0, shape.columns
        if use.window.columns is not None:
            left, right = use.window.columns.read(granule.left, granule.right)
            left, right = max(left, 0), min(right, shape.columns)
        width, size = shape.row_bytes, shape.column_bytes
        if (left, right) == (0, shape.columns) and end > first:
            self._touch(value, view.span(value, first * width, end * width), writes=False)
        elif right > left:
            for row in range(first, end):
                self._touch(
                    value, view.span(value, row * width + left * size, row * width + right * size), writes=False
                )
        above = max(bottom - shape.rows, 0) if view.backward else max(-top, 0)
        span = view.span(value, first * width, end * width)
        return RowsRead(use.tensor, value, view.real(first, end - first, shape.rows), end - first, above, span[0])

    def _allow(self, call: KernelCall, uses: Sequence[OperandUse], left: int) -> None:
        """Lets an element-wise result lie on its operand, or before it, and operands where a result has them."""
        for position, offset in self.graph.rows.operators[call.operator].parts:
            read, write = call.reads[position], call.writes[0]
            distance = read.address - write.address - offset
            self.overlaps.append(AllowedOverlap(read.value, write.value, self.ticks, distance, exact=True))
        in_place = self.graph.rows.operators[call.operator].in_place
        read_otherwise = {read.value for position, read in enumerate(call.reads) if position not in in_place}
        for position in in_place:
            write = call.writes[0]
            read, shape = call.reads[position], uses[position].shape
            if read.value not in {write.value, *read_otherwise}:
                most = read.address + left * shape.column_bytes - write.address
                self.overlaps.append(AllowedOverlap(read.value, write.value, self.ticks, most, exact=False))


@dataclass
class _StageView:
    """Where bytes of values are that a stage counts from the front of the value, or backward from its end.

    `front` is the first byte, so counted, that there is room for.
    """

    stage: StageGranules
    capacity: dict[int, int]
    nbytes: Sequence[int]
    front: dict[int, int] = field(default_factory=dict)

    @property
    def backward(self) -> bool:
        """Whether the last rows come first."""
        return self.stage.choice.backward

    def span(self, value: int, lo: int, hi: int) -> tuple[int, int]:
        """Bytes [lo, hi) above the base of a value."""
        at = self.front.get(value, 0)
        room = self.capacity.get(value, self.nbytes[value])
        return (room - hi + at, room - lo + at) if self.backward else (lo - at, hi - at)

    def real_span(self, value: int, lo: int, hi: int) -> tuple[int, int]:
        """The same for bytes that are counted from the front of the value."""
        size = self.nbytes[value]
        return self.span(value, size - hi, size - lo) if self.backward else self.span(value, lo, hi)

    def real(self, first: int, count: int, extent: int) -> int:
        """The first of so many rows or columns, from the front of the map."""
        return extent - first - count if self.backward else first


def _capacities(graph: StagedGraph, stage: StageGranules, granules: Iterable[Granule]) -> dict[int, int]:
    """The bytes that each value of a stage needs at a time."""
    progress, room = StageProgress(stage, graph.nbytes), dict.fromkeys(stage.inner, 0)
    for granule in granules:
        for value, _, _, end in progress.written(granule):
            if value in room:
                room[value] = max(room[value], end - progress.kept_from(value))
            progress.end[value] = end
        progress.finish(granule)
    return {value: graph.nbytes[value] for value in stage.held} | room


def _lives(trace: TickTrace) -> list[LiveBytes]:
    """The lives of all bytes: inputs from before the first tick, results to the end, state all the time."""
    graph, last = trace.graph, trace.ticks
    touched = list(trace.accesses)
    state = []
    for v, value in enumerate(graph.rows.values):
        if value.producer == -2:
            state.append(LiveBytes(v, 0, value.nbytes, -1, last + 1))
        elif value.producer == -1 and v not in trace.capacity:
            touched.insert(0, MemoryAccess(v, 0, value.nbytes, -1, writes=True, value=v))
        if v in graph.rows.kept and value.producer != -2:
            touched.append(MemoryAccess(v, 0, value.nbytes, last, writes=False, value=v))
    variables = {s.group for s in state}
    return byte_lives([a for a in touched if a.group not in variables]) + state


def packed_stage(graph: StagedGraph, choice: StageChoice, tries: int, seed: int = 0, enough: int | None = None) -> int:
    """What a stage needs by itself: its values packed, and the bytes of those that pass through it.

    `enough` are bytes that end the search.
    """
    stage, trace = graph.stage(choice), TickTrace(graph)
    trace.add(stage)
    before = [MemoryAccess(v, 0, graph.nbytes[v], -1, writes=True, value=v) for v in stage.dying]
    after = [MemoryAccess(v, 0, graph.nbytes[v], trace.ticks, writes=False, value=v) for v in stage.held]
    lives = byte_lives([*before, *trace.accesses, *after])
    height = _packing(trace, lives, tries, seed, enough and enough - stage.passing).height
    return height + stage.passing


def _packing(
    trace: TickTrace, lives: list[LiveBytes], tries: int, seed: int, enough: int | None = None
) -> GroupPacking:
    rows, scratch = trace.graph.rows, len(trace.scratch)
    alignment = [value.alignment for value in rows.values] + [_SCRATCH_ALIGNMENT] * scratch
    return pack(group_problem(lives, len(alignment), alignment, trace.overlaps), tries, seed, enough)


@dataclass(frozen=True, slots=True)
class PlacedStages:
    """Stages with a placement of their values: `nbytes` of buffer, and the `bound` of all placements."""

    choices: tuple[StageChoice, ...]
    trace: TickTrace
    packing: GroupPacking

    @property
    def nbytes(self) -> int:
        """The bytes of the buffer."""
        return self.packing.height

    @property
    def bound(self) -> int:
        """The most bytes that are alive at a time."""
        return self.packing.load

    def program(self) -> CProgram:
        """The steps of the stages at their addresses."""
        return _program(self.trace, self.choices, self.packing)


def placed_stages(graph: StagedGraph, choices: Sequence[StageChoice], tries: int, seed: int = 0) -> PlacedStages:
    """These stages with the lowest placement found in so many tries."""
    trace = TickTrace(graph)
    for choice in choices:
        trace.add(graph.stage(choice))
    return PlacedStages(tuple(choices), trace, _packing(trace, _lives(trace), tries, seed))


def placed_program(graph: StagedGraph, choices: Sequence[StageChoice], tries: int, seed: int = 0) -> CProgram:
    """The program of these stages with the lowest placement found in so many tries."""
    return placed_stages(graph, choices, tries, seed).program()


def chosen_program(graph: StagedGraph, choices: PlanChoices, nbytes: int) -> CProgram:
    """The program of these choices, all of them already made, in a buffer of `nbytes`.

    Raises:
        ValueError: the stages do not hold every operator once, or the choices have other bases than it has values.
    """
    ends = [0, *(choice.end for choice in choices.stages)]
    if [choice.first for choice in choices.stages] != ends[:-1] or ends[-1] != len(graph.rows.order):
        raise ValueError("the stages do not hold every operator once")
    trace = TickTrace(graph)
    for choice in choices.stages:
        trace.add(graph.stage(choice))
    if len(choices.bases) != len(graph.nbytes) + len(trace.scratch):
        raise ValueError(f"{len(choices.bases)} places, but {len(graph.nbytes) + len(trace.scratch)} values")
    return _program(trace, choices.stages, GroupPacking(choices.bases, nbytes, nbytes))


def _program(trace: TickTrace, choices: Sequence[StageChoice], packing: GroupPacking) -> CProgram:
    graph, bases = trace.graph, packing.bases
    rows = graph.rows
    values = tuple(
        StoredValue(value.tensors, value.nbytes, trace.capacity.get(v, value.nbytes), bases[v], value.producer == -2)
        for v, value in enumerate(rows.values)
    )
    stages = tuple(
        Stage(_run(graph, choice), tuple(joined(_based(steps, bases), graph)))
        for choice, steps in zip(choices, trace.stages, strict=True)
    )
    inputs = tuple(rows.value_of[t] for t in rows.graph.inputs)
    outputs = tuple(rows.value_of.get(t, -1) for t in rows.graph.outputs)
    scratch = {index: rows.operators[index].scratch for index in trace.scratch}
    made_of = PlanChoices(tuple(choices), rows.all_chains, tuple(bases))
    ends = inputs, outputs
    return CProgram(values, stages, packing.height, packing.load, *ends, graph.pushed, scratch, choices=made_of)


def _run(graph: StagedGraph, choice: StageChoice) -> tuple[int, ...]:
    """The operators of a stage, with all of those that run tile by tile."""
    numbers = graph.rows.order[choice.first : choice.end]
    return tuple(member for number in numbers for member in graph.rows.members(number))


def _based(steps: Sequence[Step], bases: Sequence[int]) -> Iterator[Step]:
    """The steps with addresses in the buffer."""
    for step in steps:
        if isinstance(step, KernelCall):
            reads = tuple(replace(read, address=bases[read.value] + read.address) for read in step.reads)
            writes = tuple(replace(write, address=bases[write.value] + write.address) for write in step.writes)
            scratch = bases[step.scratch] if step.scratch >= 0 else -1
            yield replace(step, reads=reads, writes=writes, scratch=scratch)
        elif isinstance(step, ValueShift):
            yield replace(step, address=bases[step.value] + step.address, to=bases[step.value] + step.to)
        else:
            yield replace(step, address=bases[step.value] + step.address)


def joined(steps: Iterator[Step], graph: StagedGraph) -> Iterator[Step]:
    """The same steps, where ticks of an operator that follow each other are a single call of its kernel."""
    last: Step | None = None
    for step in steps:
        both = _both(last, step, graph) if last else None
        if last and both is None:
            yield last
        last = both or step
    if last:
        yield last


def _both(a: Step, b: Step, graph: StagedGraph) -> KernelCall | None:
    """Two ticks as one call, where the second computes the rows behind those of the first, from one run of rows."""
    if not isinstance(a, KernelCall) or not isinstance(b, KernelCall):
        return None
    if a.operator != b.operator or a.columns or b.columns or not graph.rows.operators[a.operator].one_kernel:
        return None
    reads = []
    for first, then in zip(a.reads, b.reads, strict=True):
        row_bytes = graph.rows.shape(first.tensor).row_bytes
        if then.address - first.address != (then.first - first.first) * row_bytes:
            return None
        rows = max(first.first + first.rows, then.first + then.rows) - first.first
        reads.append(replace(first, rows=rows))
    writes = []
    for written, more in zip(a.writes, b.writes, strict=True):
        if more.address - written.address != written.rows * graph.rows.made_shape(a.operator, written.tensor).row_bytes:
            return None
        writes.append(replace(written, rows=written.rows + more.rows))
    both = replace(a, reads=tuple(reads), writes=tuple(writes))
    return both if graph.rows.operators[a.operator].in_order or _apart(both, graph.rows) else None


def _apart(call: KernelCall, rows: RowGraph) -> bool:
    """Whether no result of a call that computes whole rows shares a byte with an operand."""
    read, written = ([span for _, span in touched(call, rows)] for touched in (bytes_read, bytes_written))
    return all(a.start >= b.stop or b.start >= a.stop for a in read for b in written)
