"""Level *value replay*: real values go through a poisoned arena at the plan's addresses, bit for bit.

Golden values come from another runtime that keeps every tensor apart: LiteRT for .tflite, ONNX Runtime or onnx's
reference evaluator for .onnx. Each operand must be found in the arena as it was computed; then the results are
written, scratch is filled with junk, and dead tensors are overwritten. It catches wrong sizes, packing and views,
which the levels before do not check.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from modelplan.checking.verifier.litert import INSTALL, LiteRTError, litert_installed, litert_tensors
from modelplan.checking.verifier.program import Program, Step
from modelplan.checking.verifier.random_inputs import random_array
from modelplan.checking.verifier.static import value_spans
from modelplan.checking.verifier.subject import Subject
from modelplan.checking.verifier.verdicts import Skipped
from modelplan.formats.whole_files import read_model
from modelplan.primitives.errors import BrokenPlanError

if TYPE_CHECKING:
    from onnx import ModelProto

Bytes = npt.NDArray[np.uint8]
Golden = Mapping[int, Bytes]

_POISON, _JUNK = 0xA5, 0x5A


def replay_values(subject: Subject, model: Path | None, seed: int = 0) -> str:
    """Replays the program with golden values of the file `model`.

    Raises:
        BrokenPlanError: an operand in the arena is not as it was computed.
        Skipped: no model, or no runtime that can compute it.
    """
    if model is None:
        raise Skipped("needs the model: --model FILE")
    source, golden = golden_values(subject.program, model, seed)
    replay_golden(subject, golden)
    count = sum(1 for t in golden if t in subject.layout.address)
    return f"{count} tensors bit-exact against {source}"


def replay_golden(subject: Subject, golden: Golden) -> None:
    """Replays the program with the values `golden` of its tensors.

    Raises:
        BrokenPlanError: an operand in the arena is not as it was computed.

    Cost: the bytes of all operands.
    """
    _Arena(subject, golden).run()


class _Arena:
    def __init__(self, subject: Subject, golden: Golden) -> None:
        self.program, self.layout, self.golden = subject.program, subject.layout, golden
        ends = [at + self.program.values[t].nbytes for t, at in self.layout.address.items()]
        top = max([*ends, *(use.end for use in self.layout.scratch)], default=0)
        self.memory: Bytes = np.full(top, _POISON, dtype=np.uint8)
        self.spans = value_spans(self.program)

    def run(self) -> None:
        for t in self.program.inputs:
            self._write(t)
        for index, step in enumerate(self.program.steps):
            for t in step.reads:
                self._check(t, step.label)
            for use in self.layout.scratch:
                if use.step == index:
                    self.memory[use.start : use.end] = _JUNK
            for t in step.writes:
                self._write(t)
            self._poison(index, step)
        for t in self.program.outputs:
            self._check(t, "the caller")

    def _known(self, t: int) -> bool:
        value = self.program.values[t]
        return t in self.golden and t in self.layout.address and value.role == "activation" and value.nbytes > 0

    def _write(self, t: int) -> None:
        if not self._known(t):
            return
        value, at = self.golden[t], self.layout.address[t]
        if len(value) != self.program.values[t].nbytes:
            raise BrokenPlanError(
                f"{self.program.tensor(t)} is planned with {self.program.values[t].nbytes} bytes, it has {len(value)}"
            )
        self.memory[at : at + len(value)] = value

    def _check(self, t: int, reader: str) -> None:
        if not self._known(t):
            return
        value, at = self.golden[t], self.layout.address[t]
        wrong = np.flatnonzero(self.memory[at : at + len(value)] != value)
        if len(wrong):
            first, last = at + int(wrong[0]), at + int(wrong[-1])
            raise BrokenPlanError(
                f"{reader} reads {self.program.tensor(t)} bytes {first}-{last}, which hold other values"
            )

    def _poison(self, index: int, step: Step) -> None:
        """Overwrites the bytes of tensors that were used for the last time, except where others are alive."""
        for t in (*step.reads, *step.writes):
            ends = any(last == index for _, last in self.spans.get(t, ())) and t not in self.program.outputs
            if ends and t in self.layout.address:
                at = self.layout.address[t]
                for start, end in self._free(at, at + self.program.values[t].nbytes, index):
                    self.memory[start:end] = _POISON

    def _free(self, start: int, end: int, index: int) -> Iterator[tuple[int, int]]:
        """[start, end) without the bytes of tensors that live beyond step `index`."""
        taken = sorted(
            (at, at + self.program.values[t].nbytes)
            for t, at in self.layout.address.items()
            if any(first <= index < last for first, last in self.spans.get(t, ())) or t in self.program.outputs
        )
        for low, high in taken:
            if start < low < end:
                yield start, min(low, end)
            start = max(start, high) if low < end else start
        if start < end:
            yield start, end


def golden_values(program: Program, model: Path, seed: int = 0) -> tuple[str, Golden]:
    """The runtime that computed them, and the bytes of every planned tensor for random inputs.

    Raises:
        Skipped: no runtime here can compute the model.
    """
    if program.format == "tflite":
        return "LiteRT", _litert(program, model, seed)
    if program.format == "onnx":
        return _onnx(program, model, seed)
    raise Skipped(f"nothing here computes models of the format {program.format!r}")


def _litert(program: Program, model: Path, seed: int) -> Golden:
    """Every tensor from LiteRT's reference kernels, each in memory of its own."""
    if not litert_installed():
        raise Skipped(f"ai-edge-litert is not installed; {INSTALL}")
    if any(step.subgraph for step in program.steps):
        raise Skipped("LiteRT does not show the tensors of called subgraphs")
    try:
        tensors = litert_tensors(read_model(model), _wanted(program), seed)
    except LiteRTError as problem:
        raise Skipped(f"LiteRT cannot run the model: {problem}") from None
    return {t: _raw(array) for t, array in tensors.items()}


def _wanted(program: Program) -> list[int]:
    """The planned tensors that the program really uses."""
    used = {t for step in program.steps for t in (*step.reads, *step.writes)} | {*program.inputs, *program.outputs}
    return sorted(t for t in used if program.values[t].role == "activation" and program.values[t].nbytes)


def _raw(array: npt.NDArray[Any]) -> Bytes:
    return np.frombuffer(np.ascontiguousarray(array).tobytes(), dtype=np.uint8)


def _onnx(program: Program, model: Path, seed: int) -> tuple[str, Golden]:
    """Every value by name, from ONNX Runtime where it is installed, else from onnx's reference evaluator."""
    import onnx

    proto = onnx.load(str(model))
    feeds = _feeds(program, proto, np.random.default_rng(seed))
    if find_spec("onnxruntime") is None:
        named, source = _reference(proto, feeds), "onnx's reference evaluator"
    else:
        named, source = _runtime(proto, feeds), "ONNX Runtime"
    named |= feeds
    numbers = {t: program.names[t] for t in _wanted(program)}
    missing = [name for name in numbers.values() if name not in named]
    if missing:
        raise Skipped(f"{source} does not show {len(missing)} of {len(numbers)} values, such as {missing[0]!r}")
    return source, {t: _raw(named[name]) for t, name in numbers.items()}


def _feeds(program: Program, proto: ModelProto, rng: np.random.Generator) -> dict[str, npt.NDArray[Any]]:
    from onnx.helper import tensor_dtype_to_np_dtype

    shapes = {name: value.shape for name, value in zip(program.names, program.values, strict=True)}
    given = {x.name for x in proto.graph.initializer}
    return {
        x.name: random_array(tensor_dtype_to_np_dtype(x.type.tensor_type.elem_type), shapes[x.name], rng)
        for x in proto.graph.input
        if x.name not in given and x.name in shapes
    }


def _reference(proto: ModelProto, feeds: dict[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    from onnx.reference import ReferenceEvaluator

    try:
        return dict(ReferenceEvaluator(proto).run(None, feeds, intermediate=True))
    except (NotImplementedError, RuntimeError, ValueError, TypeError) as problem:
        raise Skipped(f"onnx's reference evaluator cannot run the model: {problem}; {INSTALL}") from None


def _runtime(proto: ModelProto, feeds: dict[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    import onnx
    import onnxruntime

    names = [name for node in proto.graph.node for name in node.output if name]
    exposed = onnx.ModelProto()
    exposed.CopyFrom(proto)
    del exposed.graph.output[:]
    exposed.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(exposed.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return dict(zip(names, session.run(names, feeds), strict=True))
    except Exception as problem:  # noqa: BLE001
        raise Skipped(f"ONNX Runtime cannot run the model: {str(problem).splitlines()[0]}") from None
