"""The record behind every row of the operator tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from modelplan.model import Graph, Op

#: Where in the bytes of the operand output 0 starts, or None where it is no view.
ViewIf = Callable[[Graph, Op], int | None]
Condition = Callable[[Graph, Op], bool]
#: The least bytes by which output 0 must start before an operand that it overlaps; None where it must not overlap.
Lead = Callable[[Graph, Op, int], int | None]
#: The axis along which the parts are joined or split; None where only the run decides it.
Axis = Callable[[Graph, Op], int | None]

Group = Literal[
    "view", "elementwise", "row", "update", "stream", "join", "split", "generator", "shape", "control", "state",
    "opaque", "never",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class OpFacts:
    """What an operator does to memory. The default says nothing, which shares nothing.

    `view` is the operand whose bytes output 0 always is, unchanged. `view_if` tells where
    output 0 starts in the bytes of operand 0 if the attributes and constants of this operator leave them as they are;
    outside of the groups "view" and "join" only mode max uses it, for the kinds in `aliasing.rules.PASSED_ON`.
    `overwrite` lists operands that output 0 may replace byte for byte, where `overwrite_if` agrees: in group
    "elementwise" element i of the result depends on element i of each operand alone, in "row" on its row, in
    "update" on what is not replaced yet. `lead`: how far output 0 must start before an operand that it overlaps, for
    kernels that write front to back; in group "never" only for kernels that are the plain nest of loops. Group
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
