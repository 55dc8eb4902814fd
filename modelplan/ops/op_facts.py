"""The record behind every row of the operator tables."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OpFacts:
    """What an operator does to memory. The default says nothing, which shares nothing.

    `view` is the operand whose bytes output 0 is, unchanged, or None. `operands` are those whose constant values
    decide what the operator does to memory.
    """

    view: int | None = None
    operands: tuple[int, ...] = ()
    same_quantisation: bool = False
