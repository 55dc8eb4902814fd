"""How large a model may claim to be: far beyond any real one, small enough that no sum overflows and no loop hangs."""

from __future__ import annotations

from modelplan.types import Tensor

#: Operators after inlining, over all bodies.
MOST_OPS = 1_000_000
#: Bytes of one tensor: 16 TiB.
MOST_TENSOR_BYTES = 2**44
#: Bytes of all tensors together: 1 PiB.
MOST_BYTES = 2**50


def check_sizes(tensors: list[Tensor]) -> None:
    """Refuses a model whose tensors are larger than any machine.

    Raises:
        ValueError: names the tensor.
    """
    total = 0
    for i, tensor in enumerate(tensors):
        if tensor.nbytes > MOST_TENSOR_BYTES:
            raise ValueError(
                f"tensor {i} {tensor.name!r} takes {tensor.nbytes} bytes, expected at most {MOST_TENSOR_BYTES}"
            )
        total += tensor.nbytes
    if total > MOST_BYTES:
        raise ValueError(f"the tensors take {total} bytes together, expected at most {MOST_BYTES}")
