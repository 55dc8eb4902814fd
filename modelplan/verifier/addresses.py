"""Where a plan puts each tensor and the scratch of each step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Scratch:
    """Bytes [start, end) that the kernel of step `step` uses as working memory."""

    step: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Layout:
    """The address of each planned tensor, and the bytes that its plan reserves there where the plan says so.

    `arena` is the memory there is, None when the plan does not say. `inside` is how far a tensor lies behind the
    start of its buffer, which is what the alignment holds for. `declared` holds by (subgraph, operator, output,
    operand) how many bytes the output must start before the operand, as the caller declared.
    """

    address: Mapping[int, int]
    alignment: int = 1
    arena: int | None = None
    reserved: Mapping[int, int] = field(default_factory=dict)
    inside: Mapping[int, int] = field(default_factory=dict)
    scratch: tuple[Scratch, ...] = ()
    declared: Mapping[tuple[int, int, int, int], int] = field(default_factory=dict)
