"""The table of runtimes: one record for each says all that modelplan knows of it.

A runtime is one file (or folder) here and one row of `RUNTIMES`; a kernel library is one row of its record
(TFLM's: of `LIBRARIES` in `tflm/kernels/`).
"""

from dataclasses import replace

from modelplan.model import Graph, Kind, Runtime
from modelplan.primitives.errors import RequestError
from modelplan.runtimes.c import C
from modelplan.runtimes.executorch import EXECUTORCH
from modelplan.runtimes.generic import GENERIC
from modelplan.runtimes.litert import LITERT
from modelplan.runtimes.ort import ORT
from modelplan.runtimes.tflm import TFLM

RUNTIMES: dict[str, Runtime] = {r.name: r for r in (TFLM, C, LITERT, ORT, EXECUTORCH, GENERIC)}


def runtime(name: str | None, file_format: str) -> Runtime:
    """The row called `name`, or the usual one for a file format.

    Raises:
        RequestError: there is no such row, or no usual one; the message lists the names.
    """
    if not name:
        usual = {row.default_for: row for row in RUNTIMES.values() if row.default_for}
        if file_format not in usual:
            raise RequestError(f"no runtime for graphs of the format {file_format!r}; there are: {', '.join(usual)}")
        return usual[file_format]
    if name not in RUNTIMES:
        raise RequestError(f"no runtime {name!r}; there are: {', '.join(RUNTIMES)}")
    return RUNTIMES[name]


def with_kernels(row: Runtime, library: str) -> Runtime:
    """The runtime built with the kernels of `library`.

    Raises:
        RequestError: it has no such kernel library; the message lists the names.
    """
    try:
        return replace(row, kernels=library)
    except ValueError as problem:
        raise RequestError(f"runtime {row.name}: {problem}") from None


def as_stored(graph: Graph, row: Runtime) -> Graph:
    """The graph with the data types that its values have in the runtime's memory; constants stay as in the file."""
    wide = {t for t in graph.tensors if t.dtype in row.unpacked and t.kind is not Kind.CONSTANT}
    if not wide:
        return graph
    return replace(graph, tensors=tuple(replace(t, dtype="int8") if t in wide else t for t in graph.tensors))
