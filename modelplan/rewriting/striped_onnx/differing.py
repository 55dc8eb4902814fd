"""Where the values of a rewritten model first differ from those of the model: the node, and its rows.

Both files run once more with values among their outputs that a session has anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from modelplan.rewriting.striped_onnx.layers import Reading
from modelplan.rewriting.striped_onnx.unrolled_nodes import OnnxProgram
from modelplan.rewriting.striped_onnx.writing import with_nodes

#: Runs a file and returns its outputs.
Run = Callable[[bytes], Sequence[npt.NDArray[Any]]]
#: Bytes of values that are compared at once.
_MOST_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class _Part:
    """A value of the new file that holds rows of one of the model, all of them where `axis` is below 0."""

    name: str
    t: int
    op: int
    axis: int = -1
    rows: tuple[int, int] = (0, 0)


def first_difference(reading: Reading, program: OnnxProgram, files: tuple[Any, Any], run: Run) -> str:
    """The first node whose values differ, and which of its rows, in words.

    `files` are the model and the new file as protobufs, `run` runs one. Nothing may differ where other kernels run only
    because values inside of them are no outputs.
    """
    graph = reading.graph
    for parts in _groups(program, list(_parts(reading, program))):
        values = dict.fromkeys(graph.tensors[part.t].name for part in parts)
        before = dict(zip(values, run(_telling(files[0], values)), strict=True))
        after = run(_telling(files[1], [part.name for part in parts]))
        for part, found in zip(parts, after, strict=True):
            expected = before[graph.tensors[part.t].name]
            if part.axis >= 0:
                expected = expected.take(range(*part.rows), part.axis)
            if not np.array_equal(expected, found, equal_nan=found.dtype.kind == "f"):
                where = f" in rows {part.rows[0]} to {part.rows[1]}" if part.axis >= 0 else ""
                return f"{graph.label(part.op)}{where} is the first to differ"
    return "no value that a session keeps differs, so kernels that fuse several nodes do"


def _parts(reading: Reading, program: OnnxProgram) -> Iterator[_Part]:
    """What can be compared, in the order of the program: values that the session of the model has."""
    graph, inside = reading.graph, reading.gone | frozenset[int]().union(*reading.blocks.values())
    for step in program.steps:
        if step.source < 0:
            continue
        t = graph.ops[step.source].outputs[0]
        if t < 0 or t in inside - reading.blocks.keys() or step.source in reading.apart:
            continue
        if step.padding is None:
            yield _Part(program.name(t), t, step.source)
        elif step.rows[0] >= 0 and step.rows[1] <= graph.tensors[t].shape[step.axis]:  # not rows too many
            yield _Part(program.name(step.outputs[0]), t, step.source, step.axis, step.rows)


def _groups(program: OnnxProgram, parts: Sequence[_Part]) -> Iterator[list[_Part]]:
    group: list[_Part] = []
    for part in parts:
        group.append(part)
        if sum(program.graph.tensors[t].nbytes for t in {one.t for one in group}) >= _MOST_BYTES:
            yield group
            group = []
    if group:
        yield group


def _telling(proto: Any, names: Sequence[str] | Mapping[str, None]) -> bytes:
    """The file with these values as its outputs."""
    model = with_nodes(proto, proto.graph.node)
    del model.graph.output[:]
    model.graph.output.extend(type(proto.graph.output[0])(name=name) for name in names)
    data: bytes = model.SerializeToString()
    return data
