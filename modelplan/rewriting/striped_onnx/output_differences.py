"""How far outputs of a rewritten model are from those of the model, and where its values first differ.

For the second both files run once more with values among their outputs that a session has anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from modelplan.primitives.lazy_records import dataclass
from modelplan.rewriting.striped_onnx.layers import Reading
from modelplan.rewriting.striped_onnx.unrolled_nodes import OnnxProgram
from modelplan.rewriting.striped_onnx.writing import with_nodes

if TYPE_CHECKING:
    from onnx import ModelProto

#: The outputs of several runs; None where the model does not run with the inputs.
Outputs = Sequence[Sequence[npt.NDArray[Any]] | None]


@dataclass(frozen=True, slots=True)
class OutputDifference:
    """The largest difference between outputs: as it is, and in units of the last place of the output's largest value.

    Integers count in ones. Outputs with other shapes, types, infinities or NaN differ without bound.
    """

    ulps: float = 0.0
    absolute: float = 0.0
    inputs: int = 0

    def described(self) -> str:
        """The difference in words."""
        if not self.ulps:
            return f"outputs equal bit by bit on {self.inputs} inputs"
        return (
            f"outputs differ by up to {self.ulps:.3g} units of the last place of their largest value"
            f" ({self.absolute:.3g}) on {self.inputs} inputs"
        )


def compare_outputs(expected: Outputs, actual: Outputs) -> OutputDifference:
    """The largest difference between the outputs of two models on the same inputs: those with which the first runs."""
    worst, absolute = 0.0, 0.0
    pairs = [(run, again) for run, again in zip(expected, actual, strict=True) if run is not None]
    for run, again in pairs:
        if again is None:
            return OutputDifference(float("inf"), float("inf"), len(pairs))
        for x, y in zip(run, again, strict=True):
            ulps, distance = _distance(x, y)
            worst, absolute = max(worst, ulps), max(absolute, distance)
    return OutputDifference(worst, absolute, len(pairs))


def _distance(x: npt.NDArray[Any], y: npt.NDArray[Any]) -> tuple[float, float]:
    if x.shape != y.shape or x.dtype != y.dtype:
        return float("inf"), float("inf")
    if x.tobytes() == y.tobytes() or not x.size:
        return 0.0, 0.0
    if x.dtype.kind != "f":
        apart = float(np.max(np.abs(x.astype(np.float64) - y.astype(np.float64))))
        return apart, apart
    finite = np.isfinite(x)
    if not np.array_equal(finite, np.isfinite(y)) or not np.array_equal(x[~finite], y[~finite], equal_nan=True):
        return float("inf"), float("inf")
    if not finite.any():
        return 0.0, 0.0
    apart = float(np.max(np.abs(x[finite].astype(np.float64) - y[finite].astype(np.float64))))
    unit = float(np.spacing(np.max(np.abs(x[finite])).astype(x.dtype)))
    return apart / unit, apart


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


def first_difference(reading: Reading, program: OnnxProgram, files: tuple[ModelProto, ModelProto], run: Run) -> str:
    """The first node whose values differ, and which of its rows, in words.

    `files` are the model and the new file as protobufs, `run` runs one. Nothing may differ where other kernels run only
    because values inside of them are no outputs.
    """
    graph = reading.graph
    for parts in _groups(program, list(_parts(reading, program))):
        values = dict.fromkeys(graph.tensors[part.t].name for part in parts)
        before = dict(zip(values, run(_telling(files[0], values)), strict=True))
        after = run(_telling(files[1], [part.name for part in parts]))
        for part, actual in zip(parts, after, strict=True):
            expected = before[graph.tensors[part.t].name]
            if part.axis >= 0:
                expected = expected.take(range(*part.rows), part.axis)
            if not np.array_equal(expected, actual, equal_nan=actual.dtype.kind == "f"):
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
        if sum(program.graph.tensors[t].nbytes for t in {member.t for member in group}) >= _MOST_BYTES:
            yield group
            group = []
    if group:
        yield group


def _telling(proto: ModelProto, names: Sequence[str] | Mapping[str, None]) -> bytes:
    """The file with these values as its outputs."""
    model = with_nodes(proto, proto.graph.node)
    del model.graph.output[:]
    model.graph.output.extend(type(proto.graph.output[0])(name=name) for name in names)
    data: bytes = model.SerializeToString()
    return data
