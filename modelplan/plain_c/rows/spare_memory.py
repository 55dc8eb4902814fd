"""Working memory for faster kernels, where a plan leaves bytes of the buffer free while an operator runs."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from modelplan.model.c_program import CProgram, KernelCall, Stage, Step, ValueShift
from modelplan.plain_c.kernel_records import COperator
from modelplan.plain_c.rows.row_graph import RowGraph

_ALIGNMENT = 4
Bytes = npt.NDArray[np.bool_]


def with_spare_scratch(
    program: CProgram, rows: RowGraph, faster: Mapping[int, COperator], room: int = 0
) -> tuple[CProgram, dict[int, COperator]]:
    """The same plan with scratch for those of the faster operators that find it, and these operators.

    Those that find none in the buffer share what is behind it, which may grow by `room` bytes.
    """
    if not faster:
        return program, {}
    places, end = dict[int, int](), -(-program.nbytes // _ALIGNMENT) * _ALIGNMENT
    for index, busy in _busy(program, rows, set(faster)).items():
        at = _hole(busy, faster[index].scratch)
        if at is None and end + faster[index].scratch <= program.nbytes + room:
            at = end
        if at is not None:
            places[index] = at
    used = max([program.nbytes, *(at + faster[index].scratch for index, at in places.items())])
    placed = with_scratch_at(replace(program, nbytes=used), faster, places)
    return placed, {index: faster[index] for index in places}


def with_scratch_at(program: CProgram, faster: Mapping[int, COperator], places: Mapping[int, int]) -> CProgram:
    """The same plan with scratch of faster operators at these addresses."""
    stages = tuple(Stage(s.operators, tuple(_placed(step, places) for step in s.steps)) for s in program.stages)
    scratch = {**program.scratch, **{index: faster[index].scratch for index in places}}
    choices = program.choices and replace(program.choices, spare=tuple(places.items()))
    return replace(program, stages=stages, scratch=scratch, choices=choices)


def _placed(step: Step, places: Mapping[int, int]) -> Step:
    if isinstance(step, KernelCall) and step.operator in places:
        return replace(step, scratch=places[step.operator])
    return step


def _hole(busy: Bytes, nbytes: int) -> int | None:
    """The first place with so many free bytes."""
    used, free = busy.tobytes(), bytes(nbytes)
    at = used.find(free)
    while at > 0 and at % _ALIGNMENT:
        at = used.find(free, at + -at % _ALIGNMENT)
    return None if at < 0 else at


def _busy(program: CProgram, rows: RowGraph, wanted: set[int]) -> dict[int, Bytes]:
    """For each of these operators the bytes that are read later, or used, while it runs; from the last step back."""
    live = np.zeros(program.nbytes, dtype=np.bool_)
    for v in program.kept:
        live[program.values[v].offset : program.values[v].offset + program.values[v].nbytes] = True
    busy: dict[int, Bytes] = {}
    for step in reversed([step for stage in program.stages for step in stage.steps]):
        writes = [span for _, span in bytes_written(step, rows)]
        reads = [span for _, span in bytes_read(step, rows)]
        if isinstance(step, KernelCall) and step.operator in wanted:
            during = busy.setdefault(step.operator, np.zeros(program.nbytes, dtype=np.bool_))
            during |= live
            for span in (*reads, *writes):
                during[span] = True
        for span in writes:
            live[span] = False
        for span in reads:
            live[span] = True
    return busy


def bytes_written(step: Step, rows: RowGraph) -> Iterator[tuple[int, slice]]:
    """The values that a step writes, each with its bytes of the buffer."""
    if isinstance(step, KernelCall):
        for write in step.writes:
            shape = rows.made_shape(step.operator, write.tensor)
            size = write.rows * shape.row_bytes
            if step.columns:
                size = write.rows * (step.columns[1] - step.columns[0]) * shape.column_bytes
            yield write.value, slice(write.address, write.address + size)
    else:
        at = step.to if isinstance(step, ValueShift) else step.address
        yield step.value, slice(at, at + step.nbytes)


def bytes_read(step: Step, rows: RowGraph) -> Iterator[tuple[int, slice]]:
    """The values that a step reads, each with its bytes of the buffer."""
    if isinstance(step, KernelCall):
        windows = rows.operators[step.operator].windows
        for read, window in zip(step.reads, windows, strict=True):
            shape = rows.shape(read.tensor)
            if read.width:
                yield read.value, slice(read.address, read.address + read.rows * read.width * shape.column_bytes)
                continue
            if not step.columns or window is None or window.columns is None:
                yield read.value, slice(read.address, read.address + read.rows * shape.row_bytes)
                continue
            left, right = window.columns.read(*step.columns)
            left, right = max(left, 0), min(right, shape.columns)
            for first in range(read.address, read.address + read.rows * shape.row_bytes, shape.row_bytes):
                yield read.value, slice(first + left * shape.column_bytes, first + right * shape.column_bytes)
    elif isinstance(step, ValueShift):
        yield step.value, slice(step.address, step.address + step.nbytes)
