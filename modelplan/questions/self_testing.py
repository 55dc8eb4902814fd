"""A self-test for firmware: runs of a model with the outputs that its own kernels have to give."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt

from modelplan.answers.proof_outcomes import ExpectedOutput, SelfTest, WrittenTensor
from modelplan.checking.verifier.proof import keeps_whole_tensors
from modelplan.checking.verifier.rewrites.interface import HostSide, host_side
from modelplan.checking.verifier.rewrites.reading import read_source
from modelplan.checking.verifier.sources import kernels_of_plan
from modelplan.checking.verifier.subject import offline_subject
from modelplan.formats.tflite.tflite_schema import DTYPES
from modelplan.model.model_file import USUAL_ABI
from modelplan.ops.op_facts import TFLITE_RESHAPES
from modelplan.primitives.errors import ModelError, RefusedModelError, RequestError
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.settled_requests import SettledRequest, answers_paths
from modelplan.runtimes.tflm import planner
from modelplan.runtimes.tflm.arena import arena
from modelplan.runtimes.tflm.file import FileModel, FileOp, FileSubgraph, load_tflite
from modelplan.runtimes.tflm.generated_inputs import generated_inputs
from modelplan.runtimes.tflm.kernels import ALL
from modelplan.runtimes.tflm.kernels.own_kernels import library_of, with_library
from modelplan.runtimes.tflm.metadata import abi_made_for
from modelplan.runtimes.tflm.preparing import prepared_model
from modelplan.runtimes.tflm.refused_operators import refusal_lines, remedy_lines
from modelplan.runtimes.tflm.runner import RefusalError, tflm_values, tflm_version

_RUNS = 4
#: Means that are kept of one output at most; of a larger one each stands for several elements.
_MOST_MEANS = 256
#: How far float outputs may be off, as a share of the largest value: fused multiply-adds and other libraries of
#: mathematics change the last bits of each operator, of which a network adds up some.
_FLOAT_TOLERANCE = 1e-4
#: Operators with float results that are equal on every processor: one multiplication, or a copy.
_EXACT = TFLITE_RESHAPES | {
    "DEQUANTIZE",
    "CONCATENATION",
    "SLICE",
    "STRIDED_SLICE",
    "PAD",
    "TRANSPOSE",
    "SPLIT",
    "PACK",
    "UNPACK",
    "GATHER",
}
#: Kernels, by the beginning of their library's name, that compute something else than TFLM's own.
_OTHERWISE = {"cmsis": {"UNIDIRECTIONAL_SEQUENCE_LSTM"}}
_ROUNDED = {"float32", "int8", "uint8", "int16"}


@dataclass(frozen=True, slots=True)
class SelfTestRequest(SettledRequest):
    """Asks for a self-test of a .tflite file.

    Args:
        path: the file that the firmware runs, with its plan.
        original: the file whose outputs it has to give; None: `path` without its plan.
        kernels: the kernel library of the firmware; None: that of the plan in the file, else all.
        abi: of the firmware; None: that of the plan in the file, else 32.
        seed: of the generated inputs.
    """

    path: str
    original: str | None = None
    kernels: str | None = None
    abi: str | None = None
    seed: int = 0


@answers_paths(SelfTestRequest)
def self_test(request: SelfTestRequest) -> SelfTest:
    """The runs that firmware repeats with its own kernels, with the outputs that TFLM's reference kernels give here.

    Args:
        request: the file, and the firmware that it is for.

    Returns:
        The answer that `render(answer, "self-test")` writes as a C++ file.

    Raises:
        ModelError: a file cannot be read, or TFLM does not run it.
        RequestError: tflite-micro is not installed, or the original has other inputs and outputs.
    """
    model = load_tflite(request.path)
    original = load_tflite(request.original) if request.original else model
    kernels = with_library(request.kernels, kernels_of_plan(model))
    return expected_runs(original, model, kernels, request.abi, request.seed)


def expected_runs(original: FileModel, model: FileModel, kernels: str, abi: str | None, seed: int = 0) -> SelfTest:
    """The same for files that have been read; without an ABI that of the plan in `model` counts, else 32.

    Raises:
        ModelError: TFLM does not run one of the files.
        RequestError: tflite-micro is not installed, or the files have other inputs and outputs.
    """
    host = host_side(*map(read_source, (original, model))) if original is not model else HostSide((), ())
    if _interface(original, host) != _interface(model, host):
        raise RequestError(f"{model.name} has other inputs or outputs than {original.name}")
    needed = arena(model, abi or abi_made_for(model.data, model.name) or USUAL_ABI, kernels)
    if needed.refusals:
        what = f"{model.name}: no self-test, for TFLM would not run it"
        raise RefusedModelError(what, refusal_lines(needed.refusals), remedy_lines(needed.refusals))
    _check_comparable(model, kernels)
    feeds = [generated_inputs(model, seed, run) for run in range(_RUNS)]
    unconverted = [
        [x if e is None else e.passed_before(x) for x, e in zip_longest(feed, host.inputs)] for feed in feeds
    ]
    exact = all(map(_is_exact, (original, model)))
    try:
        outputs = [run for run, _ in tflm_values(planner.without_plan(original.data), unconverted)]
        outputs = [[y if e is None else e.quantised(y) for y, e in zip_longest(run, host.outputs)] for run in outputs]
        # Plans of stripes let some operators have the parts of no use of what others find and leave.
        seen = exact and (planner.read_plan(model) is None or keeps_whole_tensors(offline_subject(model, kernels)))
        written = _written(model, feeds, outputs, seen=seen)
    except RefusalError as problem:
        raise ModelError(f"{original.name}: no outputs to expect: {problem}") from None
    largest = [max(float(np.abs(run[i]).max(initial=0)) for run in outputs) for i in range(len(outputs[0]))]
    runs = (
        tuple(_expected(array, most, exact=exact) for array, most in zip(run, largest, strict=True)) for run in outputs
    )
    variables = len(prepared_model(model, "reference", later=False).variables.names)
    executed_by = f"tflite-micro {tflm_version()}, TFLM's reference kernels, x86-64"
    return SelfTest(model, original.name, needed, kernels, variables, seed, tuple(runs), written, executed_by)


def _check_comparable(model: FileModel, kernels: str) -> None:
    """Refuses a model of which the kernels compute something else than those that the outputs come from."""
    library = library_of(kernels)
    families = _OTHERWISE if library == ALL else [library.partition("-")[0]]
    others = set[str]().union(*(_OTHERWISE.get(family, set()) for family in families))
    for subgraph in model.subgraphs:
        for number, op in enumerate(subgraph.ops):
            if op.kind in others and not _writes_floats(subgraph, op):
                raise RequestError(
                    f"{model.name}: no self-test for {library} kernels: their integer {op.kind} (op {number}) computes"
                    " something else than TFLM's own, so that there are no outputs to expect"
                )


def _written(
    model: FileModel, feeds: Sequence[Sequence[bytes]], outputs: Sequence[Sequence[npt.NDArray[Any]]], *, seen: bool
) -> tuple[WrittenTensor, ...]:
    """What each operator of the main subgraph writes in each run, where operators are to be `seen`."""
    main = model.subgraphs[0]
    places = [
        (number, t)
        for number, op in enumerate(main.ops)
        for t in op.writes
        if seen and main.tensors[t].nbytes and t not in model.handles
    ]
    values = tflm_values(planner.without_plan(model.data), feeds, [t for _, t in places])
    for (ours, _), theirs in zip(values, outputs, strict=True):
        if any(a.tobytes() != b.tobytes() for a, b in zip(ours, theirs, strict=True)):
            raise ModelError(f"{model.name} does not compute what the original does")
    crcs = zip(*(run_crcs for _, run_crcs in values), strict=True)
    return tuple(WrittenTensor(op, t, main.tensors[t].nbytes, each) for (op, t), each in zip(places, crcs, strict=True))


def _interface(model: FileModel, host: HostSide) -> list[list[tuple[int, int]]]:
    """Type and bytes of each input, and of each output, but for those that the program converts."""
    main = model.subgraphs[0]
    sides = ((main.inputs, host.inputs), (main.outputs, host.outputs))
    return [
        [(main.tensors[t].type, main.tensors[t].nbytes) if e is None else (0, 0) for t, e in zip_longest(ends, side)]
        for ends, side in sides
    ]


def _is_exact(model: FileModel) -> bool:
    """Whether every float is a number that was stored, or the product of two: equal on all processors."""
    ops = ((subgraph, op) for subgraph in model.subgraphs for op in subgraph.ops)
    return all(op.calls or op.kind in _EXACT or not _writes_floats(subgraph, op) for subgraph, op in ops)


def _writes_floats(subgraph: FileSubgraph, op: FileOp) -> bool:
    return any(DTYPES.get(subgraph.tensors[t].type) == "float32" for t in op.writes)


def _expected(array: npt.NDArray[np.generic], largest: float, *, exact: bool) -> ExpectedOutput:
    """What one output has to be, where the largest value of this output in any run is `largest`."""
    crc = zlib.crc32(array.tobytes())
    if exact or array.dtype.name not in _ROUNDED or not array.size:
        return ExpectedOutput(crc)
    if not np.isfinite(largest):
        raise ModelError("no self-test: on generated inputs the model gives infinite values or none at all")
    block = -(-array.size // _MOST_MEANS)
    firsts = np.arange(0, array.size, block)
    sums = np.add.reduceat(array.astype(np.float64).ravel(), firsts)
    means = sums / np.diff([*firsts, array.size])
    unit = 1.0 if array.dtype.kind in "iu" else 0.0
    return ExpectedOutput(crc, tuple(means.tolist()), block, max(_FLOAT_TOLERANCE * largest, unit, 1e-6))
