"""What each runtime does with memory, one row of facts for each."""

from __future__ import annotations

from modelplan.errors import RequestError
from modelplan.types import Runtime

RUNTIMES: dict[str, Runtime] = {
    r.name: r
    for r in (
        Runtime(
            "generic",
            alignment=16,
            pad="tensor",
            state="arena",
            allocator="tflite-greedy-by-size",
            source="no runtime in particular: 16-byte alignment, every tensor padded",
        ),
        Runtime(
            "tflm",
            alignment=16,
            pad="tensor",
            state="separate",
            allocator="tflm-greedy",
            source="tflite-micro, micro_allocator.cc (MicroArenaBufferAlignment) and micro_allocation_info.cc",
        ),
    )
}

_BY_FORMAT = {"tflite": "tflm", "onnx": "generic"}


def runtime(name: str | None, file_format: str) -> Runtime:
    """The row called `name`, or the usual one for a file format.

    Raises:
        RequestError: there is no such row; the message lists the names.
    """
    name = name or _BY_FORMAT[file_format]
    if name not in RUNTIMES:
        raise RequestError(f"no runtime {name!r}; there are: {', '.join(RUNTIMES)}")
    return RUNTIMES[name]
