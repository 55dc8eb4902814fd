"""The record behind every row of the operator tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from modelplan.types import Graph, Op

#: Where in the bytes of the operand output 0 starts, or None where it is no view.
ViewIf = Callable[[Graph, Op], int | None]
Condition = Callable[[Graph, Op], bool]
#: By how many bytes output 0 must start before an operand to be written while that is read; None where it must not.
Lead = Callable[[Graph, Op, int], int | None]
#: Which axis the parts lie along; None where only the run knows.
Axis = Callable[[Graph, Op], int | None]

Group = Literal[
    "view", "elementwise", "row", "update", "stream", "join", "split", "generator", "shape", "control", "state",
    "opaque", "never",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class OpFacts:
    """What an operator does to memory. The default says nothing, which shares nothing.

    `view` is the operand whose bytes output 0 always is, unchanged; with `view_if` only where that says so.
    `overwrite` lists operands that output 0 may replace byte for byte, where `overwrite_if` agrees: in group
    "elementwise" element i of the result depends on element i of each operand alone, in "row" on its row, in
    "update" on what is not replaced yet. `lead`: how far output 0 must start before an operand that it runs into, where
    the kernel goes front to back; of group "never" it holds for kernels with the plain nest of loops only. Group
    "opaque" orders its own reads and writes: its compiler decided what may overlap.
    `parts` is the axis of a join's inputs or a split's outputs, `whole` the split operand. `operands` are those
    whose constant values these conditions ask for; `same_quantisation` that they ask for equal scales.
    """

    group: Group = "never"
    view: int | None = None
    view_if: ViewIf | None = None
    overwrite: tuple[int, ...] = ()
    overwrite_if: Condition | None = None
    lead: Lead | None = None
    parts: Axis | None = None
    whole: int = 0
    operands: tuple[int, ...] = ()
    same_quantisation: bool = False
