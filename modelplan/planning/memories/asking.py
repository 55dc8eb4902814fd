"""From plans to the question of several memories: every buffer, weights too, and what operators read and write."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from modelplan.answers.drawing import kind_of
from modelplan.answers.region_layout import Access, RegionProblem
from modelplan.model import Buffer, BufferKind, Graph, IntArray, Kind, Member, Plan, Problem
from modelplan.ops import facts
from modelplan.ops.run_costs import op_macs, traffic_of
from modelplan.primitives.errors import RequestError
from modelplan.targets.device import Region

#: Kinds of regions that an operator does not write.
READ_ONLY = ("nvm",)


def region_problem(
    plans: Sequence[Plan], regions: Sequence[Region], *, reader: str = "", macs_per_second: float | None = None
) -> RegionProblem:
    """The problem of placing the buffers and weights of `plans` in `regions`.

    Models run one after the other: the steps of each follow those of the one before. Weights and state are alive all
    the time. Weights have their home in the first region of kind nvm, if there is one, and may lie in any other
    as well, to which they are copied once, before the first run; everything else lies in regions that are written.

    Args:
        plans: one for each model; their placements are not used.
        regions: the memories, in the order of preference where costs are equal.
        reader: what runs the operators; regions that name others as `readable_by` are left out. Empty: reaches all.
        macs_per_second: how fast it computes; None: operators take no time beside their memory accesses.

    Raises:
        RequestError: no region may hold a buffer, or a plan has rigid groups or contiguous lists; names it.
    """
    offset, steps = 0, sum(plan.steps for plan in plans)
    buffers, homes = list[Buffer](), list[int]()
    overlaps, conflicts = list[IntArray](), list[IntArray]()
    accesses, seconds = list[Access](), list[float]()
    flash = next((i for i, region in enumerate(regions) if region.kind in READ_ONLY and _reaches(region, reader)), -1)
    for plan in plans:
        if len(plan.problem.groups) or len(plan.problem.meetings):
            raise RequestError(f"{plan.graph.name}: buffers at fixed distances cannot be spread over several memories")
        if plan.problem.contiguous:
            raise RequestError(f"{plan.graph.name}: contiguous lists cannot be spread over several memories")
        first, model_buffers = len(buffers), _Buffers(plan, steps, offset, prefix=len(plans) > 1)
        overlaps.append(_shift_numbers(plan.problem.overlaps, first))
        conflicts.append(_shift_numbers(plan.problem.conflicts, first))
        buffers += model_buffers.rows
        homes += [flash if constant else -1 for constant in model_buffers.constant]
        accesses += list(_accesses(plan, model_buffers, first, offset))
        seconds += _seconds(plan, macs_per_second)
        offset += plan.steps
    joined: dict[str, Any] = {"overlaps": np.concatenate(overlaps), "conflicts": np.concatenate(conflicts)}
    allowed = [_allowed(row, home, regions, reader) for row, home in zip(buffers, homes, strict=True)]
    return RegionProblem(
        Problem.of(buffers, **joined), tuple(regions), tuple(accesses), tuple(allowed), tuple(homes), tuple(seconds),
        reader=reader, macs_per_second=macs_per_second,
    )  # fmt: skip


def owners_of(plans: Sequence[Plan]) -> tuple[tuple[int, str], ...]:
    """For each buffer of `region_problem` the number of its plan, and what the buffer is for."""
    owners = []
    for number, plan in enumerate(plans):
        buffers = _Buffers(plan, 1, 0, prefix=False)
        for row, constant in zip(buffers.rows, buffers.constant, strict=True):
            kind = "weights" if constant else str(kind_of(plan.graph, row))
            owners.append((number, "activation" if kind == "shared" else kind))
    return tuple(owners)


def _reaches(region: Region, reader: str) -> bool:
    return not reader or not region.readable_by or reader in region.readable_by


class _Buffers:
    """The buffers of one plan in the joint steps: its own, then state that lives apart, then weights."""

    def __init__(self, plan: Plan, steps: int, offset: int, *, prefix: bool) -> None:
        self._graph, name = plan.graph, f"{plan.graph.name}: " if prefix else ""
        self.of_tensor: dict[int, int] = {}
        self.rows: list[Buffer] = []
        self.constant: list[bool] = []
        for buffer in plan.problem:
            stays = any(plan.graph.tensors[m.tensor].kind is Kind.STATE for m in buffer.members)
            start, end = (0, steps) if stays else (buffer.start + offset, buffer.end + offset)
            self._add(replace(buffer, name=name + buffer.name, start=start, end=end, pin=None), constant=False)
        for index in self._apart():
            tensor, align = plan.graph.tensors[index], plan.runtime.alignment
            size = tensor.file_bytes
            if size:
                row = Buffer(name + tensor.name, size, 0, steps, align, None, (Member(index),))
                self._add(row, constant=tensor.kind is Kind.CONSTANT)
        for graph in plan.graph.bodies:
            for tensor in graph.tensors:
                if tensor.kind is Kind.CONSTANT and tensor.nbytes:
                    label = f"{name}{graph.name}/{tensor.name}"
                    self._add(Buffer(label, tensor.nbytes, 0, steps, plan.runtime.alignment), constant=True)

    def _add(self, row: Buffer, *, constant: bool) -> None:
        self.of_tensor |= {m.tensor: len(self.rows) for m in row.members}
        self.rows.append(row)
        self.constant.append(constant)

    def _apart(self) -> Iterator[int]:
        """Tensors that operators read and no plan places: weights, and state that a runtime keeps apart."""
        read = {t for op in self._graph.ops for t in op.reads}
        for index, tensor in enumerate(self._graph.tensors):
            kept = tensor.kind is Kind.STATE or (tensor.kind is Kind.CONSTANT and index in read)
            if kept and index not in self.of_tensor:
                yield index


def _accesses(plan: Plan, buffers: _Buffers, first: int, offset: int) -> Iterator[Access]:
    """What each step does with each buffer; a view that stays where its operand is does nothing."""
    scratch = [i for i, row in enumerate(buffers.rows) if row.kind is BufferKind.SCRATCH]
    waiting = iter(scratch)
    for step, index in enumerate(plan.schedule.order):
        op = plan.graph.ops[index]
        traffic = traffic_of(plan.graph, op)
        amounts: dict[int, list[int]] = defaultdict(lambda: [0, 0])
        pairs = [*zip(op.inputs, traffic.inputs, strict=True), *zip(op.outputs, traffic.outputs, strict=True)]
        still = set() if _computes(plan.graph, index, buffers) else set(op.outputs) | set(op.inputs[:1])
        for tensor, amount in pairs:
            if tensor >= 0 and tensor not in still and tensor in buffers.of_tensor:
                amounts[buffers.of_tensor[tensor]][0] += amount.read
                amounts[buffers.of_tensor[tensor]][1] += amount.written
        for amount in traffic.scratch:
            amounts[next(waiting)] = [amount.read, amount.written]
        for buffer in sorted(amounts):
            read, written = amounts[buffer]
            if read or written:
                yield Access(step + offset, first + buffer, read, written)


def _computes(graph: Graph, index: int, buffers: _Buffers) -> bool:
    """Whether an operator does more than to name the bytes of operand 0 anew."""
    op = graph.ops[index]
    if facts(graph.format, op.kind).group != "view" or not op.reads or not op.writes:
        return True
    return buffers.of_tensor.get(op.inputs[0], -1) != buffers.of_tensor.get(op.outputs[0], -2)


def _seconds(plan: Plan, macs_per_second: float | None) -> list[float]:
    """How long each step computes: one unit for a multiply-accumulate, and for each element that is written."""
    seconds = [0.0] * plan.steps
    if macs_per_second:
        for step, index in enumerate(plan.schedule.order):
            op = plan.graph.ops[index]
            elements = sum(int(np.prod(plan.graph.tensors[t].shape)) for t in op.writes)
            seconds[step] = max(op_macs(plan.graph, op), elements) / macs_per_second
    return seconds


def _allowed(row: Buffer, home: int, regions: Sequence[Region], reader: str) -> tuple[int, ...]:
    """The regions that are large enough, that the reader reaches, and that are written where that is needed."""
    allowed = tuple(
        i
        for i, r in enumerate(regions)
        if _reaches(r, reader) and (i == home or r.kind not in READ_ONLY) and row.size <= r.size - r.reserved
    )
    if allowed:
        return allowed
    sizes = ", ".join(f"{region.name} {region.size - region.reserved:,} ({region.kind})" for region in regions)
    raise RequestError(f"buffer {row.name!r} of {row.size:,} bytes fits in no region that may hold it: {sizes}")


def _shift_numbers(table: IntArray, by: int) -> IntArray:
    """The rows with both buffer numbers raised by `by`."""
    shifted = table.copy()
    shifted[:, :2] += by
    return shifted
