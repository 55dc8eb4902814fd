"""Copies as addresses, and whether a kernel that copies front to back reads each byte before it overwrites it."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from modelplan.checking.verifier.rewrites.moving import ElementCopy
from modelplan.checking.verifier.rewrites.reading import Operation
from modelplan.checking.verifier.semantics import CONCATENATIONS, PADS, SLICES
from modelplan.primitives.lazy_records import dataclass

Addresses = npt.NDArray[np.int64]
#: Operators whose kernels copy in the order of their output.
_FRONT_TO_BACK = SLICES | CONCATENATIONS | PADS | {"GATHER"}


@dataclass(frozen=True)
class OrderedMove:
    """A copy as addresses, byte by byte; no source where it is a constant. `run` bytes are copied at once.

    `counts` says which bytes must come through right, None where all must.
    """

    operand: int
    source: Addresses | None
    target: Addresses
    run: int
    counts: npt.NDArray[np.bool_] | None = None

    @property
    def kept(self) -> npt.NDArray[np.bool_]:
        """For each byte whether the copy changes its address."""
        return np.ones(len(self.target), dtype=np.bool_) if self.source is None else self.source != self.target

    @property
    def counting(self) -> npt.NDArray[np.bool_]:
        """For each byte whether the copy moves it and an output of the model depends on it."""
        return self.kept if self.counts is None else self.kept & self.counts

    @property
    def changed(self) -> Addresses:
        """The addresses whose bytes the copy replaces by those of another address."""
        return self.target[self.kept]


def run_elements(op: Operation, copy: ElementCopy, rank: int) -> int:
    """How many elements the kernel of a copying operator moves at once, in the order of its output."""
    first = rank - 1
    if op.kind in CONCATENATIONS or op.kind == "GATHER":
        first = op.option("Axis") % rank + (op.kind == "GATHER")
    return 1 if op.kind in PADS else int(np.prod([len(at) for at in copy.source[first:]], dtype=np.int64))


def in_order(op: Operation, moves: Sequence[OrderedMove], whole: Addresses | None) -> bool:
    """Whether a kernel that copies run by run, front to back, has read every byte before it overwrites it.

    Source: slice.h, strided_slice.h, concatenation.h, gather.h and pad.h of tflite-micro's reference kernels.
    """
    if op.kind not in _FRONT_TO_BACK:
        return False
    if whole is not None:  # each element of the output in turn, padding or copied; read before it is written
        width, move = moves[0].run, moves[0]
        assert move.source is not None
        return _read_before(move.source, (move.target - whole[0]) // width, whole, (whole - whole[0]) // width + 1)
    many = len(moves)
    times = [np.arange(len(move.target)) // move.run * many + i for i, move in enumerate(moves)]
    written = np.concatenate([move.changed for move in moves])
    at = np.concatenate([t[move.kept] for t, move in zip(times, moves, strict=True)])
    return all(
        _read_before(move.source[move.counting], t[move.counting], written, at)
        for t, move in zip(times, moves, strict=True)
        if move.source is not None
    )


def _read_before(source: Addresses, read: Addresses, target: Addresses, write: Addresses) -> bool:
    """Whether each address that is read and written is read at an earlier time."""
    order = np.argsort(target, kind="stable")
    places = np.searchsorted(target[order], source)
    nearest = np.minimum(places, len(target) - 1)
    both = target[order][nearest] == source
    return bool(np.all(read[both] < write[order][nearest][both]))


def meet(source: Addresses, target: Addresses) -> bool:
    """Whether two lists of addresses have one in common."""
    if not source.size or not target.size or source.max() < target.min() or target.max() < source.min():
        return False
    return bool(np.isin(target, source, assume_unique=False).any())
