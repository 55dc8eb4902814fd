"""TFLM's whole arena as a table under TFLM's own row names, with the number to put into the firmware."""

from __future__ import annotations

from collections.abc import Iterator

from modelplan.outputs.report import Section, Table
from modelplan.outputs.units import human
from modelplan.runtimes.tflm.arena import RELEASE, Arena
from modelplan.runtimes.tflm.planner import ALIGNMENT


def arena_section(model: str, parts: Arena) -> Section:
    """The number to paste, why TFLM would refuse the model, and head and tail by part."""
    return Section(
        f"{model}: TFLM's arena as the file stands",
        tuple(_lines(parts)),
        Table(("part", ">bytes", ">count", "trust"), tuple(_parts(parts))),
    )


def _lines(parts: Arena) -> Iterator[str]:
    target = f"ABI {parts.abi}, {parts.kernels} kernels, {RELEASE}"
    if parts.refusals:
        yield f"TFLM would not run this model ({target}):"
        yield from (f"{one.operator}: {one.reason}" for one in parts.refusals)
        return
    yield f"tensor_arena   {human(parts.size())}, aligned to {ALIGNMENT}; {target}"
    yield f"#define TENSOR_ARENA_SIZE {parts.size()}"
    if not parts.exact:
        yield "one row is estimated, on the ample side; print_allocations() on the device tells more"


def _parts(parts: Arena) -> Iterator[tuple[str, ...]]:
    yield ("head", f"{parts.head:,}", "", "exact")
    yield ("  of it scratch", f"{parts.scratch:,}", "", "exact")
    for row in parts.rows:
        yield (f"tail: {row.name}", f"{row.used:,}", str(row.count), row.trust)
    yield ("total", f"{parts.total:,}", "", "")
    yield ("until the plan stands", f"{parts.planning:,}", "", "")
    yield ("least arena", f"{parts.least:,}", "", f"the larger, as a multiple of {ALIGNMENT}")
