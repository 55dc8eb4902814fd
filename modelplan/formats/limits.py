"""How large a model may be: far beyond any real one, small enough that no sum overflows and no loop takes for ever.

A file of ten megabytes can hold half a million operators or a hundred thousand bodies, real ones have
some hundreds. Within these limits whatever such a file holds is read in less than ten seconds and a gigabyte; a larger
file may hold more. Functions and calls that stand in place let a kilobyte grow to a million operators, so a small file
may have fewer: each command is to end soon.
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from modelplan.model import Tensor
from modelplan.primitives.lazy_records import dataclass

#: Axes of a tensor: numpy's limit.
MOST_AXES = 64
#: Bytes of one tensor: 16 TiB.
MOST_TENSOR_BYTES = 2**44
#: Bytes of all tensors together: 1 PiB.
MOST_BYTES = 2**50

#: Bytes that an operator takes in a real file, with the tensors that it writes.
_OPERATOR_BYTES = 100
#: The same in the densest file, and operators that any file may have.
_LEAST_OPERATOR_BYTES, _FEW_OPERATORS = 10, 8_000
#: Bytes for which a small file may have a body, and bodies that any file may have.
_BODY_BYTES, _FEW_BODIES = 200, 512

Part = Literal["operators", "tensors", "bodies"]


@dataclass(frozen=True, slots=True)
class FileLimits:
    """What a model may hold, over all its bodies, once functions and calls are put in place."""

    operators: int
    tensors: int
    bodies: int

    @classmethod
    def of(cls, size: int) -> FileLimits:
        """The limits for a file of `size` bytes: 100,000 operators, more from ten megabytes on, at most a million.

        Of files below a megabyte one for ten bytes, at least 8,000; and 3,000 bodies, one for each 200 bytes of a
        smaller file, at least 512.
        """
        few = min(max(_FEW_OPERATORS, size // _LEAST_OPERATOR_BYTES), 100_000)
        operators = min(max(few, size // _OPERATOR_BYTES), 1_000_000)
        return cls(operators, operators * 3 // 2, min(max(_FEW_BODIES, size // _BODY_BYTES), 3_000))


@dataclass(slots=True)
class Tally:
    """How much of a model was read so far. `times`: how often each part may be read."""

    limits: FileLimits
    times: int = 1
    counts: dict[Part, int] = field(default_factory=lambda: {"operators": 0, "tensors": 0, "bodies": 0})

    def add(self, what: Part, count: int = 1) -> None:
        """Counts `count` more of `what`.

        Raises:
            ValueError: that is more than a model may hold.
        """
        self.counts[what] += count
        most = self.times * int(getattr(self.limits, what))
        if self.counts[what] > most:
            raise ValueError(f"found more than {most:,} {what}")


def check_sizes(tensors: list[Tensor]) -> None:
    """Refuses a model whose tensors are larger than any machine."""
    total = 0
    for i, tensor in enumerate(tensors):
        size = tensor.nbytes
        if size > MOST_TENSOR_BYTES:
            raise ValueError(f"tensor {i} {tensor.name!r} takes {size} bytes, expected at most {MOST_TENSOR_BYTES}")
        total += size
    if total > MOST_BYTES:
        raise ValueError(f"the tensors take {total} bytes together, expected at most {MOST_BYTES}")
