"""TFLM's whole arena as a table under TFLM's own row names, with the number to put into the firmware."""

from __future__ import annotations

from modelplan.outputs.report import Section, Table
from modelplan.outputs.units import human
from modelplan.runtimes.tflm.arena import VERSION, Arena
from modelplan.runtimes.tflm.planner import ALIGNMENT

_MODELLED = f"modelled for tflite-micro {VERSION}"


def arena_section(model: str, parts: Arena) -> Section:
    """Head and tail by part, the margin as a row of its own, and a line to paste."""
    exact = "exact" if parts.kernels == "reference" else f"modelled: scratch of {parts.kernels} kernels"
    size = parts.size()
    rows = [
        ("head", f"{parts.head:,}", "", exact),
        ("  of it scratch", f"{parts.scratch:,}", "", exact),
        *((f"tail: {row.name}", f"{row.used:,}", str(row.count), row.trust) for row in parts.rows),
        ("total", f"{parts.total:,}", "", ""),
        ("while TFLM plans", f"{parts.planning:,}", "", _MODELLED),
        ("margin", f"{size - max(parts.total, parts.planning):,}", "", f"for an array not aligned to {ALIGNMENT}"),
    ]
    lines = [
        f"tensor_arena   {human(size)}, {parts.abi}-bit addresses, {parts.kernels} kernels",
        f"#define TENSOR_ARENA_SIZE {size}",
    ]
    if any(row.trust.startswith("estimated") for row in parts.rows):
        lines.append("one row is estimated, on the ample side; print_allocations() on the device tells more")
    return Section(
        f"{model}: TFLM's arena as the file stands",
        tuple(lines),
        Table(("part", ">bytes", ">count", "trust"), tuple(rows)),
    )
