"""Executes many single operators that write over what they read, and prints where the result differs.

    python tests/sweeps/overlap_sweep.py [--count 2000] [--seed 1] [--kernels cmsis,cmsis-c,cmsis-mve] [--kit FOLDER]

Each operator runs three times: its output apart from its operand, exactly the lead before it that the tables allow for
these kernels, and one element closer. The first two must be equal bit for bit; of the last some must differ, or the
leads would be larger than they need to be. One file holds many operators; a plan in the file keeps them apart. The
programs are those of `tests/sweeps/tflm_sweep.py`.
"""

from __future__ import annotations

import argparse
import json
import struct
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, islice, pairwise
from math import prod, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import tflite
from tflm_sweep import KIT, kit_folder, start

from modelplan.formats.tflite.flatbuffer import set_metadata
from modelplan.model import Graph, Kind, Op, Tensor
from modelplan.planning.aliasing.overlapping import kernel_overlaps
from modelplan.runtimes import with_kernels
from modelplan.runtimes.tflm import TFLM

sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))
from tflite_models import BYTES, TYPES, OpRow, Sub, TensorRow, Writer, model

Shape = tuple[int, ...]
_FOR_ONE_FILE = 40
_GUARD = 64
_ARENA = 1 << 20


@dataclass(frozen=True)
class Case:
    """One operator over operands of `shapes`: the first `inputs` are computed values, the others constants.

    `options` are those of the schema by their names there; `numbers` are the values of a constant of whole numbers.
    """

    kind: str
    dtype: str
    shapes: tuple[Shape, ...]
    out: Shape
    options: dict[str, int] = field(default_factory=dict)
    numbers: tuple[int, ...] = ()
    zero: int = 0

    @property
    def weighted(self) -> bool:
        """Whether it has weights and a bias."""
        return self.kind in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")


_OPTIONS = {
    "CONV_2D": "Conv2D", "DEPTHWISE_CONV_2D": "DepthwiseConv2D", "FULLY_CONNECTED": "FullyConnected",
    "MAX_POOL_2D": "Pool2D", "AVERAGE_POOL_2D": "Pool2D", "PAD": "Pad", "PADV2": "PadV2",
}  # fmt: skip
#: Attributes as the loader names them.
_ATTRIBUTES = {
    "StrideH": "stride_h", "StrideW": "stride_w", "DilationHFactor": "dilation_h_factor",
    "DilationWFactor": "dilation_w_factor", "FilterHeight": "filter_height", "FilterWidth": "filter_width",
    "DepthMultiplier": "depth_multiplier",
}  # fmt: skip


def cases(seed: int) -> Iterator[Case]:
    """Operators without end, of every kind in turn."""
    rng = np.random.default_rng(seed)
    makers: list[Callable[[np.random.Generator, str], Case | None]] = [
        convolution, by_channel, convolution, by_channel, pool, connected, padded,
    ]  # fmt: skip
    for number in count():
        dtype = ("int8", "int8", "int8", "int16", "float32")[number // len(makers) % 5]
        made = makers[number % len(makers)](rng, dtype)
        if made is not None:
            yield made


def _any(rng: np.random.Generator, *values: int) -> int:
    return int(rng.choice(values))


def _zero(rng: np.random.Generator, dtype: str) -> int:
    return int(rng.integers(-20, 20)) if dtype == "int8" else 0


def _window(rng: np.random.Generator, dilated: bool) -> tuple[Shape, Shape, dict[str, int], Shape] | None:
    """Image extents, kernel, options and the output's extents; None where nothing is left of the image."""
    row = rng.random() < 0.15  # one row, as in audio
    size = (1 if row else int(rng.integers(1, 10)), int(rng.integers(1, 12)))
    form = rng.random()
    kernel = (1, 1) if form < 0.2 else (3, 3) if form < 0.5 else (_any(rng, 1, 2, 3, 4), _any(rng, 1, 2, 3, 5))
    kernel = (1, kernel[1]) if row else kernel
    strides = (1, 1) if rng.random() < 0.5 else (_any(rng, 1, 2, 3), _any(rng, 1, 2, 3))
    dilations = (_any(rng, 1, 2), _any(rng, 1, 2, 3)) if dilated and rng.random() < 0.15 else (1, 1)
    valid = _any(rng, 0, 1)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    out = tuple((n - r) // s + 1 if valid else -(-n // s) for n, r, s in zip(size, reach, strides, strict=True))
    options = {"StrideH": strides[0], "StrideW": strides[1], "Padding": valid}
    if dilated:
        options |= {"DilationHFactor": dilations[0], "DilationWFactor": dilations[1]}
    return (size, kernel, options, out) if min(out) > 0 else None


def convolution(rng: np.random.Generator, dtype: str) -> Case | None:
    """A convolution."""
    window = _window(rng, dilated=True)
    channels, outputs, batch = (
        _any(rng, 1, 2, 3, 4, 5, 8, 16, 17),
        _any(rng, 1, 2, 3, 4, 5, 8, 9),
        _any(rng, 1, 1, 2, 3),
    )
    if window is None:
        return None
    size, kernel, options, out = window
    x, weights = (batch, *size, channels), (outputs, *kernel, channels)
    return Case("CONV_2D", dtype, (x, weights, (outputs,)), (batch, *out, outputs), options, zero=_zero(rng, dtype))


def by_channel(rng: np.random.Generator, dtype: str) -> Case | None:
    """A depthwise convolution."""
    window = _window(rng, dilated=True)
    channels, each, batch = (
        _any(rng, 1, 2, 3, 4, 5, 8, 16, 124, 125),
        _any(rng, 1, 1, 1, 2, 3, 4, 8),
        _any(rng, 1, 1, 2),
    )
    if window is None or channels * each > 500:
        return None
    size, kernel, options, out = window
    x, weights, outputs = (batch, *size, channels), (1, *kernel, channels * each), channels * each
    options = {**options, "DepthMultiplier": each}
    shapes = (x, weights, (outputs,))
    return Case("DEPTHWISE_CONV_2D", dtype, shapes, (batch, *out, outputs), options, zero=_zero(rng, dtype))


def pool(rng: np.random.Generator, dtype: str) -> Case | None:
    """An average or the largest of windows."""
    window = _window(rng, dilated=False)
    if window is None:
        return None
    size, kernel, options, out = window
    batch, channels = _any(rng, 1, 1, 2), _any(rng, 1, 2, 3, 4, 5, 16, 17, 33)
    options = {**options, "FilterHeight": kernel[0], "FilterWidth": kernel[1]}
    kind = ("MAX_POOL_2D", "AVERAGE_POOL_2D")[_any(rng, 0, 1)]
    return Case(kind, dtype, ((batch, *size, channels),), (batch, *out, channels), options, zero=_zero(rng, dtype))


def connected(rng: np.random.Generator, dtype: str) -> Case:
    """Rows of a matrix, in two to four dimensions."""
    rank, inputs, outputs = _any(rng, 2, 3, 4), _any(rng, 1, 3, 4, 5, 8, 12, 19, 32), _any(rng, 1, 2, 3, 4, 5, 7, 16)
    outputs = max(outputs, 2) if rank > 2 else outputs  # with a scale for each, see _weights
    lead = tuple(int(n) for n in rng.integers(1, 5, rank - 1))
    options = {"KeepNumDims": 1} if rank > 2 else {}
    shapes = ((*lead, inputs), (outputs, inputs), (outputs,))
    return Case("FULLY_CONNECTED", dtype, shapes, (*lead, outputs), options, zero=_zero(rng, dtype))


def padded(rng: np.random.Generator, dtype: str) -> Case:
    """A tensor with padding on all sides, of channels too at times."""
    rank = _any(rng, 2, 3, 4, 4)
    shape = tuple(int(n) for n in rng.integers(1, 7, rank))
    pads = rng.integers(0, 3, (rank, 2))
    pads[-1] *= _any(rng, 0, 0, 1)
    out = tuple(int(n + a + b) for n, (a, b) in zip(shape, pads, strict=True))
    numbers = tuple(int(n) for n in pads.reshape(-1))
    return Case("PAD", dtype, (shape, (rank, 2)), out, numbers=numbers, zero=_zero(rng, dtype))


def tensors_of(case: Case, rng: np.random.Generator) -> list[TensorRow]:
    """Operands and output as the writer wants them."""
    floats, kind = case.dtype == "float32", TYPES[case.dtype]
    scale = None if floats else (0.05, case.zero)
    rows: list[TensorRow] = [("x", kind, case.shapes[0], (scale, None))]
    if case.numbers:
        rows.append(("numbers", 2, case.shapes[1], (None, struct.pack(f"<{len(case.numbers)}i", *case.numbers))))
    if case.weighted:
        rows += _weights(case, rng)
    taps = prod(case.shapes[1]) / case.out[-1] if case.weighted else 0
    spread = 0.06 * sqrt(taps) if case.kind == "CONV_2D" or taps > 1 else 0.06
    rows.append(("y", kind, case.out, ((spread, case.zero) if case.weighted and not floats else scale, None)))
    return rows


def _weights(case: Case, rng: np.random.Generator) -> list[TensorRow]:
    shape, outputs = case.shapes[1], case.shapes[2]
    if case.dtype == "float32":
        data, bias = rng.standard_normal(prod(shape)).astype("<f4"), rng.standard_normal(prod(outputs)).astype("<f4")
        return [("w", 0, shape, (None, data.tobytes())), ("b", 0, outputs, (None, bias.tobytes()))]
    data = rng.integers(-127, 128, prod(shape)).astype("<i1")
    wide, kind = ("<i4", tflite.TensorType.INT32) if case.dtype == "int8" else ("<i8", tflite.TensorType.INT64)
    bias = rng.integers(-999, 999, prod(outputs)).astype(wide)
    # CMSIS-NN asserts that matrices of one scale are not among the first in a file to ask for scratch.
    each = case.kind == "FULLY_CONNECTED" and case.dtype == "int8" and len(case.out) > 2
    scale: Any = [0.01 + 0.0001 * n for n in range(outputs[0])] if each else 0.01
    return [
        ("w", TYPES["int8"], shape, ((scale, 0), data.tobytes())),
        ("b", kind, outputs, ((0.0005, 0), bias.tobytes())),
    ]


def graph_of(case: Case) -> Graph:
    """The operator as the loader reads it."""
    names = {2: "int32", tflite.TensorType.INT64: "int64", **{number: name for name, number in TYPES.items()}}
    rows = tensors_of(case, np.random.default_rng(0))
    tensors = tuple(
        Tensor(name, shape, names[kind], Kind.CONSTANT if values[1] is not None else Kind.ACTIVATION)
        for name, kind, shape, values in rows
    )
    options: dict[str, Any] = {_ATTRIBUTES[name]: value for name, value in case.options.items() if name in _ATTRIBUTES}
    if "Padding" in case.options:
        options["padding"] = ("SAME", "VALID")[case.options["Padding"]]
    last = len(tensors) - 1
    op = Op("", case.kind, tuple(range(last)), (last,), tuple(options.items()))
    return Graph(case.kind, "tflite", tensors, (op,), (0,), (last,))


class Many(Writer):
    """Writes operators with the options of their cases, in order."""

    def __init__(self, of: Sequence[Case]) -> None:
        super().__init__()
        self.rest = list(of)

    def options(self, kind: str, calls: Sequence[int]) -> tuple[int, int]:
        name, case = f"{_OPTIONS[kind]}Options", self.rest.pop(0)
        getattr(tflite, f"{name}Start")(self.b)
        for option, value in case.options.items():
            getattr(tflite, f"{name}Add{option}")(self.b, value)
        return getattr(tflite.BuiltinOptions, name), getattr(tflite, f"{name}End")(self.b)


class NotRunError(Exception):
    """TFLM does not run a file."""


@dataclass(frozen=True)
class Placed:
    """A case with the bytes by which its output must start before its operand."""

    case: Case
    lead: int

    @property
    def sizes(self) -> tuple[int, int]:
        """Bytes of operand and output."""
        wide = BYTES[self.case.dtype]
        return prod(self.case.shapes[0]) * wide, prod(self.case.out) * wide


def offered(made: Iterator[Case], kernels: str) -> Iterator[Placed]:
    """The cases in which the output may run into its operand under these kernels."""
    runtime = with_kernels(TFLM, kernels)
    for case in made:
        for _, overlap in kernel_overlaps(graph_of(case), 0, "safe", runtime):
            yield Placed(case, overlap.lead)


def file_of(placed: Sequence[Placed]) -> tuple[bytes, list[int]]:
    """A file with all the operators, and the tensors that are operands and outputs in turn."""
    tensors: list[TensorRow] = []
    ops: list[OpRow] = []
    ends: list[int] = []
    for number, one in enumerate(placed):
        rows, begin = tensors_of(one.case, np.random.default_rng(number)), len(tensors)
        tensors += [(f"{name}{number}", *rest) for name, *rest in rows]
        last = len(tensors) - 1
        ops.append((one.case.kind, tuple(range(begin, last)), (last,), ()))
        ends += [begin, last]
    sub = Sub(tensors, ops, tuple(ends[::2]), tuple(ends[1::2]))
    return model(sub, writer=Many([one.case for one in placed])), ends


def planned(content: bytes, ends: Sequence[int], tensors: int, placed: Sequence[Placed], leads: Sequence[int]) -> bytes:
    """The file with a plan in which each output starts so many bytes before its operand."""
    offsets, at = [-1] * tensors, 0
    for one, x, y, lead in zip(placed, ends[::2], ends[1::2], leads, strict=True):
        offsets[y], offsets[x] = at, at + lead
        at = -(-(at + max(lead + one.sizes[0], one.sizes[1]) + _GUARD) // 16) * 16
    words = struct.pack(f"<{3 + tensors}i", 1, 1, tensors, *offsets)
    return set_metadata(content, "OfflineMemoryAllocation", words)


def compared(program: Path, placed: Sequence[Placed]) -> Iterator[tuple[bool, bool]]:
    """For each case whether it gives the same at its lead, and whether one element closer."""
    content, ends = file_of(placed)
    tensors = ends[-1] + 1
    apart = [one.sizes[1] + _GUARD for one in placed]
    near = [max(one.lead - BYTES[one.case.dtype], 0) for one in placed]
    rng = np.random.default_rng(5)
    inputs = b"".join(_values(rng, one.case) for _ in range(2) for one in placed)
    answers = [
        _digests(program, planned(content, ends, tensors, placed, leads), inputs)
        for leads in (apart, [one.lead for one in placed], near)
    ]
    for expected, at, closer in zip(*answers, strict=True):
        yield expected == at, expected == closer


def _values(rng: np.random.Generator, case: Case) -> bytes:
    if case.dtype == "float32":
        return rng.standard_normal(prod(case.shapes[0])).astype("<f4").tobytes()
    return rng.bytes(prod(case.shapes[0]) * BYTES[case.dtype])


def _digests(program: Path, data: bytes, inputs: bytes) -> list[tuple[str, ...]]:
    """The digests of each output, run after run."""
    with tempfile.TemporaryDirectory() as box:
        Path(box, "model").write_bytes(data)
        Path(box, "in").write_bytes(inputs)
        done = start(program, box, "--arena", str(_ARENA), "--runs", "2")
    if done.returncode:
        raise NotRunError(f"{program.name}: {done.stdout[-500:]} {done.stderr[-500:]}")
    return list(zip(*json.loads(done.stdout)["output_sha256"], strict=True))


def swept(program: Path, kernels: str, number: int, seed: int) -> Iterator[tuple[Placed, bool, bool]]:
    """So many placements, executed: each with whether it is right at its lead, and one element closer."""
    found = list(islice(offered(cases(seed), kernels), number))
    for a, b in pairwise([*range(0, number, _FOR_ONE_FILE), number]):
        yield from _executed(program, found[a:b])


def _executed(program: Path, placed: Sequence[Placed]) -> Iterator[tuple[Placed, bool, bool]]:
    """The placements with their outcomes; without operators that these kernels do not run wherever their output is."""
    try:
        for one, (same, closer) in zip(placed, list(compared(program, placed)), strict=True):
            yield one, same, closer
    except NotRunError:
        if len(placed) > 1:
            for part in (placed[: len(placed) // 2], placed[len(placed) // 2 :]):
                yield from _executed(program, part)
        elif _runs_apart(program, placed[0]):
            yield placed[0], False, False


def _runs_apart(program: Path, one: Placed) -> bool:
    content, ends = file_of([one])
    data = planned(content, ends, ends[-1] + 1, [one], [one.sizes[1] + _GUARD])
    try:
        return bool(_digests(program, data, _values(np.random.default_rng(5), one.case)))
    except NotRunError:
        return False


def _measure(name: str, folder: Path, number: int, seed: int) -> int:
    program, _, kernels = KIT[name]
    run, wrong, tight = Counter[str](), Counter[str](), Counter[str]()
    for one, same, closer in swept(folder / program, kernels, number, seed):
        what = f"{one.case.kind} {one.case.dtype}"
        run[what] += 1
        wrong[what] += not same
        tight[what] += not closer
        if not same:
            print(f"{name}: lead {one.lead}: {one.case}", flush=True)
    for what in sorted(run):
        print(f"{name}: {what}: {run[what]} run, {wrong[what]} wrong, {tight[what]} wrong one element closer")
    print(f"{name}: {run.total()} run, {wrong.total()} wrong, {tight.total()} wrong one element closer")
    return wrong.total()


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000, help="placements for each set of kernels")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kernels", default="cmsis,cmsis-c,cmsis-mve", help=f"of {', '.join(KIT)}")
    parser.add_argument("--kit", help="folder of the measuring programs (default: $MODELPLAN_TFLM_KIT)")
    arguments = parser.parse_args()
    folder, names = kit_folder(arguments.kit), arguments.kernels.split(",")
    unknown = [n for n in names if n not in KIT or folder is None or not (folder / KIT[n][0]).exists()]
    if unknown or folder is None:
        parser.error(f"no program for {', '.join(unknown)}; give --kit or MODELPLAN_TFLM_KIT")
    return int(sum(_measure(name, folder, arguments.count, arguments.seed) for name in names) > 0)


if __name__ == "__main__":
    sys.exit(main())
