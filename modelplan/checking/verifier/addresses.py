"""Where a plan puts each tensor and the scratch of each step."""

from collections.abc import Mapping
from dataclasses import field

import numpy as np

from modelplan.checking.verifier.program import Program
from modelplan.model import BoolArray, IntArray
from modelplan.primitives.errors import BrokenPlanError
from modelplan.primitives.lazy_records import dataclass

#: No memory has as many bytes. Sums of addresses and sizes below stay within 63 bits.
_MOST_BYTES = 2**58


@dataclass(frozen=True, slots=True)
class Scratch:
    """Bytes [start, end) that the kernel of step `step` uses as working memory."""

    step: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class AddressLayout:
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


@dataclass(frozen=True, slots=True)
class Places:
    """The planned bytes [start, end) of each tensor, where it has an address and at least one byte (`planned`)."""

    planned: BoolArray
    start: IntArray
    end: IntArray

    def share(self, a: IntArray, b: IntArray) -> BoolArray:
        """For each pair of tensors whether they have bytes in common."""
        shared: BoolArray = self.planned[a] & self.planned[b]
        shared &= (self.start[a] < self.end[b]) & (self.start[b] < self.end[a])
        return shared


def places_of(program: Program, layout: AddressLayout) -> Places:
    """The planned bytes of all tensors of a program.

    Raises:
        BrokenPlanError: an address that no memory has.
    """
    nbytes = program.columns.nbytes
    known = list(layout.address)
    most = max(map(abs, layout.address.values()), default=0)
    most = max(most, *(max(abs(use.start), use.end) for use in layout.scratch), int(nbytes[known].max(initial=0)))
    if most > _MOST_BYTES:
        raise BrokenPlanError(f"a tensor or scratch has {most} bytes or stands there: no memory has so many")
    start, planned = np.zeros_like(nbytes), np.zeros(len(nbytes), np.bool_)
    start[known] = list(layout.address.values())
    planned[known] = nbytes[known] > 0
    return Places(planned, start, start + nbytes)
