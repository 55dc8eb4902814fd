"""A plan for C as figures show it: the rows of each map as they live and die, step by step."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from modelplan.answers.drawing import KINDS, Drawing
from modelplan.model import Kind, Placement, Problem
from modelplan.model.c_program import CProgram, KernelCall, RowsArrival, RowsRead, Step
from modelplan.plain_c.rows.row_graph import RowGraph
from modelplan.plain_c.rows.spare_memory import bytes_read, bytes_written
from modelplan.rewriting.stripes.group_packing import MemoryAccess, byte_lives


def drawing_of(program: CProgram, rows: RowGraph, title: str) -> Drawing:
    """The drawing of a plan: a rectangle for each run of bytes of a value that lives as long."""
    steps = [row for stage in program.stages for step in stage.steps for row in _by_row(step, rows)]
    count = len(program.values)
    group, lo, hi, start, end = byte_lives(_accesses(program, rows, steps)).T
    base = [value.offset for value in program.values]
    names = [rows.graph.tensors[value.tensors[0]].name for value in program.values]
    kinds = [KINDS.index(_kind(rows, v)) for v in range(count)]
    scratch = {step.operator: step.scratch for step in steps if isinstance(step, KernelCall) and step.scratch >= 0}
    for index, address in scratch.items():
        base.append(address)
        names.append(f"scratch of op {index}")
        kinds.append(KINDS.index("scratch"))
    problem = Problem(tuple(names[g] for g in group.tolist()), hi - lo, start + 1, end + 1)
    return Drawing(
        title=title,
        problem=problem,
        placement=Placement(np.array(base, dtype=np.int64)[group] + lo, program.bound),
        planned=program.nbytes,
        kinds=np.array(kinds, dtype=np.int64)[group],
        ops=("the caller", *(_name(step, rows) for step in steps)),
        made_by="modelplan fit --runtime c",
    )


def _kind(rows: RowGraph, value: int) -> str:
    tensors = rows.values[value].tensors
    if rows.graph.tensors[tensors[0]].kind is Kind.STATE:
        return "state"
    ends = (("input", rows.graph.inputs), ("output", rows.graph.outputs))
    return next((name for name, side in ends if set(side) & set(tensors)), "activation")


def _name(step: Step, rows: RowGraph) -> str:
    if isinstance(step, KernelCall):
        return rows.graph.ops[step.operator].kind
    return "a row arrives" if isinstance(step, RowsArrival) else "rows move"


def _by_row(step: Step, rows: RowGraph) -> Iterator[Step]:
    """A call for each row of a call that computes several by windows."""
    windows = rows.operators[step.operator].windows if isinstance(step, KernelCall) else ()
    if not isinstance(step, KernelCall) or not step.writes or step.columns or not any(windows):
        yield step
        return
    for i in range(step.writes[0].rows):
        reads = []
        for read, window in zip(step.reads, windows, strict=True):
            size, first, end = rows.shape(read.tensor).row_bytes, 0, read.rows
            if window:
                first = min(max(i * window.rows.stride - read.above, 0), read.rows)
                end = max(min(i * window.rows.stride - read.above + window.rows.reach, read.rows), first)
            reads.append(
                RowsRead(read.tensor, read.value, read.first + first, end - first, 0, read.address + first * size)
            )
        writes = (
            replace(
                w, first=w.first + i, rows=1, address=w.address + i * rows.made_shape(step.operator, w.tensor).row_bytes
            )
            for w in step.writes
        )
        yield replace(step, reads=tuple(reads), writes=tuple(writes))


def _accesses(program: CProgram, rows: RowGraph, steps: list[Step]) -> Iterator[MemoryAccess]:
    """What the caller and each step touch; addresses count from the base of each value. What is written over an
    operand is there a step later.
    """
    values, count = program.values, len(program.values)
    fed = () if program.pushed else program.inputs
    for v in (*fed, *(v for v, value in enumerate(values) if value.variable)):
        yield MemoryAccess(v, 0, values[v].nbytes, -1, writes=True, value=v)
    works = dict.fromkeys(step.operator for step in steps if isinstance(step, KernelCall) and step.scratch >= 0)
    number = {operator: count + i for i, operator in enumerate(works)}
    for tick, step in enumerate(steps):
        reads = list(bytes_read(step, rows))
        for v, span in reads:
            yield MemoryAccess(
                v, span.start - values[v].offset, span.stop - values[v].offset, tick, writes=False, value=v
            )
        for v, span in bytes_written(step, rows):
            over = any(read.start < span.stop and span.start < read.stop for _, read in reads)
            lo, hi = span.start - values[v].offset, span.stop - values[v].offset
            yield MemoryAccess(v, lo, hi, tick + over, writes=True, value=v)
        if isinstance(step, KernelCall) and step.operator in number:
            v = number[step.operator]
            yield MemoryAccess(v, 0, program.scratch[step.operator], tick, writes=True, value=v)
    for v in program.kept:
        yield MemoryAccess(v, 0, values[v].nbytes, len(steps), writes=False, value=v)
