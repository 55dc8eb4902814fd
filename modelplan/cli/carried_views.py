"""The plan that a .tflite file carries, by buffers as TFLM places them, also where it keeps parts of tensors only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from modelplan.outputs.drawing import KINDS, Drawing
from modelplan.outputs.page.views import View
from modelplan.rewriting.alternatives import ModelFile, carried_offsets, carries_plan
from modelplan.runtimes.tflm import planner
from modelplan.runtimes.tflm.file import FileModel, read_tflite
from modelplan.types import Buffer, BufferKind, Placement, Problem, Requirement, Runtime

#: What is said of such a plan.
ABOUT = (
    "the plan in the file, whose buffers may keep only parts of tensors: alive counts each byte once, and the steps are"
    " those of TFLM, with the bodies of loops among them"
)


def needs_own_view(file: ModelFile, runtime: Runtime) -> bool:
    """Whether a file carries a plan that is none of whole tensors of its main graph."""
    return carries_plan(file, runtime) and not carried_offsets(file, runtime)


def carried_view(file: ModelFile, requirement: Requirement, runtime: Runtime, capacity: int | None, name: str) -> View:
    """The buffers that TFLM plans for a file, at the addresses where the plan in the file and TFLM put them."""
    model = read_tflite(file.content, file.path)
    rows = planner.requests(model, runtime.kernels)
    places = planner.greedy_offsets(rows, planner.read_plan(model))
    used = [(row, at) for row, at in zip(rows, places, strict=True) if row.first >= 0]
    buffers = [_buffer(model, row) for row, _ in used]
    offsets = np.array([at for _, at in used], dtype=np.int64)
    drawn = Drawing(
        title=file.graph.name,
        problem=Problem.of(buffers, capacity, overlaps=_overlaps(buffers, offsets.tolist())),
        placement=Placement(offsets),
        arena=planner.head_bytes(rows, places),
        kinds=np.array([KINDS.index("scratch" if row.scratch else "activation") for row, _ in used], dtype=np.int64),
        ops=(),
        made_by="",
        kept=requirement.kept,
    )
    facts = tuple(("refused by the runtime", why) for why in requirement.refusals)
    return View(name, ABOUT, drawn, facts=facts, refused=bool(requirement.refusals), parts=True)


def _buffer(model: FileModel, row: planner.Request) -> Buffer:
    if row.scratch:
        subgraph, op = row.op
        kind = model.subgraphs[subgraph].ops[op].kind
        where = f" of subgraph {subgraph}" if subgraph else ""
        return Buffer(f"scratch of op {op} {kind}{where}", row.size, row.first, row.last + 1, kind=BufferKind.SCRATCH)
    return Buffer(model.tensors[row.tensor].name, row.size, row.first, row.last + 1)


def _overlaps(buffers: Sequence[Buffer], offsets: Sequence[int]) -> list[tuple[int, int, int]]:
    """Rows (below, above, bytes) of buffers that share bytes while both are alive."""
    found = []
    ranked = sorted(range(len(buffers)), key=lambda i: offsets[i])
    for place, low in enumerate(ranked):
        end = offsets[low] + buffers[low].size
        for high in ranked[place + 1 :]:
            if offsets[high] >= end:
                break
            if buffers[low].start < buffers[high].end and buffers[high].start < buffers[low].end:
                found.append((low, high, end - offsets[high]))
    return found
