"""Every overlap that mode `safe` allows for TFLM, executed: a kernel writes over what it has read with equal bits.

One case for each operator, data type and shape; a plan in the file puts the output exactly the derived lead before the
operand. For the tight ones the control starts one element later and must go wrong.
"""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import tflite
import tflite_models
from tflite_models import BYTES, TYPES, Writer

from modelplan import Graph, load
from modelplan.formats.tflite.flatbuffer import set_metadata
from modelplan.planning.aliasing.overlapping import kernel_overlaps
from modelplan.runtimes import RUNTIMES
from modelplan.runtimes.tflm.kernels.elementwise import REQUANTISED

pytest.importorskip("tflite_micro")

Shape = tuple[int, ...]
APART = 8192


@dataclass(frozen=True)
class Case:
    """One operator over inputs of `shapes`.

    `options` are the schema's, `weights` is the shape of its constant operand or says which numbers it takes instead,
    `order` that of all its operands. `made` is the data type of the output where it is not the operand's, which is then
    one of `dtypes`; `rescaled` gives the output another quantisation.
    """

    kind: str
    shapes: tuple[Shape, ...]
    out: Shape
    weights: Shape | str = ()
    options: dict[str, int] = field(default_factory=dict)
    tight: bool = False
    order: tuple[int, ...] = ()
    made: str = ""
    dtypes: tuple[str, ...] = ()
    rescaled: bool = False


def convolution(x: Shape, channels: int, k: int, stride: int, padding: int = 0) -> Case:
    extents = [-(-n // stride) if padding == 0 else (n - k) // stride + 1 for n in x[1:3]]
    steps = {"StrideH": stride, "StrideW": stride, "DilationHFactor": 1, "DilationWFactor": 1, "Padding": padding}
    return Case("CONV_2D", (x,), (x[0], *extents, channels), (channels, k, k, x[3]), steps, tight=True)


def by_channel(x: Shape, each: int, k: int, stride: int) -> Case:
    extents = [-(-n // stride) for n in x[1:3]]
    steps = {"StrideH": stride, "StrideW": stride, "DilationHFactor": 1, "DilationWFactor": 1, "Padding": 0}
    out = (x[0], *extents, x[3] * each)
    return Case("DEPTHWISE_CONV_2D", (x,), out, (1, k, k, x[3] * each), {**steps, "DepthMultiplier": each}, tight=True)


def pool(kind: str, x: Shape, k: int, stride: int, padding: int) -> Case:
    extents = [-(-n // stride) if padding == 0 else (n - k) // stride + 1 for n in x[1:3]]
    size = {"FilterHeight": k, "FilterWidth": k, "StrideH": stride, "StrideW": stride, "Padding": padding}
    return Case(kind, (x,), (x[0], *extents, x[3]), (), size)


X = (1, 6, 5, 4)
CASES = [
    *(convolution(X, channels, k, stride) for channels in (2, 9) for k, stride in [(1, 1), (3, 1), (3, 2)]),
    convolution((2, 6, 5, 4), 4, 3, 1, padding=1),
    *(by_channel(X, each, k, stride) for each in (1, 2) for k, stride in [(3, 1), (3, 2), (1, 1)]),
    *(pool(f"{kind}_POOL_2D", X, k, stride, p) for kind in ("MAX", "AVERAGE") for k, stride, p in
      [(2, 2, 1), (3, 1, 0), (3, 1, 1)]),
    *(Case("FULLY_CONNECTED", ((r, 8),), (r, n), (n, 8), {}, tight=True) for r, n in [(1, 5), (6, 5), (6, 11)]),
    Case("CONCATENATION", ((1, 6, 3), (1, 6, 5)), (1, 6, 8), (), {"Axis": 2}),
    Case("CONCATENATION", ((1, 6, 64), (1, 6, 40)), (1, 6, 104), (), {"Axis": 2}),
    Case("PAD", ((1, 4, 5, 3),), (1, 7, 6, 3), "pads"),
    Case("PADV2", ((1, 4, 5, 3),), (1, 7, 6, 3), "pads"),
    Case("SLICE", ((1, 9, 40),), (1, 5, 33), "begin"),
    *(Case("QUANTIZE", ((1, 300),), (1, 300), made=made, dtypes=dtypes, rescaled=rescaled, tight=made == "int32")
      for rescaled in (False, True) for made, dtypes in
      [("int8", ("float32", "int32", "int16", "int8", "uint8")), ("uint8", ("int8",)),
       ("int16", ("float32", "int32", "int16", "int8")), ("int32", ("int16", "int8"))]),
    *(Case("TRANSPOSE_CONV", ((1, 3, 4, c),), (1, 6, 8, 3), (3, 3, 3, c),
           {"StrideH": 2, "StrideW": 2, "Padding": 0}, order=(1, 2, 0)) for c in (2, 9)),
    Case("DEQUANTIZE", ((1, 40),), (1, 40), tight=True, made="float32"),
]  # fmt: skip
NAMES = {
    "CONV_2D": "Conv2D", "DEPTHWISE_CONV_2D": "DepthwiseConv2D", "FULLY_CONNECTED": "FullyConnected",
    "MAX_POOL_2D": "Pool2D", "AVERAGE_POOL_2D": "Pool2D", "CONCATENATION": "Concatenation", "PAD": "Pad",
    "PADV2": "PadV2", "SLICE": "Slice", "QUANTIZE": "Quantize", "DEQUANTIZE": "Dequantize",
    "TRANSPOSE_CONV": "TransposeConv",
}  # fmt: skip
ROWS = [
    (number, dtype)
    for number, case in enumerate(CASES)
    for dtype in sorted(RUNTIMES["tflm"].sharing.front_to_back.get(case.kind, ()))
    if not case.dtypes or dtype in case.dtypes
]


class Loops(Writer):
    """Writes the options that a case names."""

    def __init__(self, case: Case) -> None:
        super().__init__()
        self.case = case

    def options(self, kind: str, calls: Sequence[int]) -> tuple[int, int]:
        name = f"{NAMES[kind]}Options"
        getattr(tflite, f"{name}Start")(self.b)
        for option, value in self.case.options.items():
            getattr(tflite, f"{name}Add{option}")(self.b, value)
        return getattr(tflite.BuiltinOptions, name), getattr(tflite, f"{name}End")(self.b)


def constants(case: Case, dtype: str) -> list[tflite_models.TensorRow]:
    """The constant operands: weights and bias, or the numbers of paddings and slices."""

    def integers(name: str, shape: Shape, values: Sequence[int]) -> tflite_models.TensorRow:
        return name, 2, shape, struct.pack(f"<{len(values)}i", *values)

    if case.weights == "pads":
        value: list[tflite_models.TensorRow] = [("value", TYPES[dtype], (1,), (scale(dtype), bytes(BYTES[dtype])))]
        return [integers("pads", (4, 2), [0, 0, 1, 2, 0, 1, 0, 0]), *(value if case.kind == "PADV2" else [])]
    if case.weights == "begin":
        return [integers("begin", (3,), [0, 2, 3]), integers("size", (3,), case.out)]
    if not case.weights or isinstance(case.weights, str):
        return []
    if case.kind == "TRANSPOSE_CONV":
        values = np.random.default_rng(1).integers(-127, 128, int(np.prod(case.weights))).astype("<i1")
        return [
            integers("shape", (4,), case.out),
            ("weights", TYPES["int8"], case.weights, ((0.01, 0), values.tobytes())),
        ]
    rng, count, outputs = np.random.default_rng(1), int(np.prod(case.weights)), case.out[-1]
    if dtype == "float32":
        data, bias = rng.standard_normal(count).astype("<f4"), rng.standard_normal(outputs).astype("<f4")
        return [("weights", 0, case.weights, (None, data.tobytes())), ("bias", 0, (outputs,), (None, bias.tobytes()))]
    wide = {"int8": "<i4", "int16": "<i8"}[dtype]
    kind = {"int8": tflite.TensorType.INT32, "int16": tflite.TensorType.INT64}[dtype]
    data, bias = rng.integers(-127, 128, count).astype("<i1"), rng.integers(-99, 99, outputs).astype(wide)
    return [
        ("weights", TYPES["int8"], case.weights, ((0.01, 0), data.tobytes())),
        ("bias", kind, (outputs,), ((0.0005, 0), bias.tobytes())),
    ]


def scale(dtype: str) -> tuple[float, int] | None:
    return {"int8": (0.05, 0), "int16": (0.05, 0), "int32": (0.05, 0), "uint8": (0.05, 128)}.get(dtype)


def written(case: Case, dtype: str) -> tuple[bytes, int]:
    """The file, inputs first, then constants, then the output; and how many tensors it has."""
    out = case.made or dtype
    tensors: list[tflite_models.TensorRow] = [
        (f"x{i}", TYPES[dtype], shape, (scale(dtype), None)) for i, shape in enumerate(case.shapes)
    ]
    tensors += constants(case, dtype)
    own = (0.03, 7 if out in ("int8", "uint8") else 0) if case.rescaled else scale(out)
    tensors.append(("y", TYPES[out], case.out, (own, None)))
    last = len(tensors) - 1
    inputs = tuple(range(len(case.shapes)))
    sub = tflite_models.Sub(tensors, [(case.kind, case.order or tuple(range(last)), (last,), ())], inputs, (last,))
    return tflite_models.model(sub, writer=Loops(case)), len(tensors)


def planned(content: bytes, tensors: int, operand: int, lead: int) -> bytes:
    """The file with a plan that starts the output `lead` bytes before one operand and keeps all else apart."""
    offsets = [APART * (t + 2) for t in range(tensors)]
    offsets[-1], offsets[operand] = 0, lead
    words = struct.pack(f"<{3 + tensors}i", 1, 1, tensors, *offsets)
    return set_metadata(content, "OfflineMemoryAllocation", words)


@pytest.fixture(scope="module")
def digests(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("cases")
    for number, dtype in ROWS:
        case = CASES[number]
        content, tensors = written(case, dtype)
        stem = f"{len(case.shapes)}-{number}-{dtype}"
        (folder / f"{stem}-apart.tflite").write_bytes(planned(content, tensors, 0, APART))
        graph = load(folder / f"{stem}-apart.tflite")
        assert isinstance(graph, Graph)
        for _, overlap in kernel_overlaps(graph, 0, "safe", RUNTIMES["tflm"]):
            operand, lead = overlap.over, overlap.lead
            (folder / f"{stem}-over{operand}.tflite").write_bytes(planned(content, tensors, operand, lead))
            if case.tight and lead:
                step = BYTES[graph.tensors[-1].dtype]
                (folder / f"{stem}-late.tflite").write_bytes(planned(content, tensors, operand, lead - step))
    script = Path(__file__).parents[1] / "oracles" / "in_place_process.py"
    done = subprocess.run([sys.executable, "-P", script, folder], capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize(("number", "dtype"), ROWS)
def test_running_into_an_operand_gives_the_same_bits(digests: dict[str, str], number: int, dtype: str) -> None:
    stem = f"{len(CASES[number].shapes)}-{number}-{dtype}"
    apart = digests[f"{stem}-apart"]
    assert not apart.startswith("refused"), apart
    over = [name for name in digests if name.startswith(f"{stem}-over")]
    assert over, "no overlap was offered"
    assert [digests[name] for name in over] == [apart] * len(over)


def test_one_element_later_goes_wrong(digests: dict[str, str]) -> None:
    """The derived leads are the least ones, and the harness notices when a kernel clobbers what it still reads."""
    late = [name for name in digests if name.endswith("-late")]
    assert len(late) > 20
    assert not [name for name in late if digests[name] == digests[name.replace("-late", "-apart")]]


def test_every_row_of_the_table_is_executed() -> None:
    table = {(kind, dtype) for kind, dtypes in RUNTIMES["tflm"].sharing.front_to_back.items() for dtype in dtypes}
    assert {(CASES[number].kind, dtype) for number, dtype in ROWS} == table
    quantised = [CASES[number] for number, _ in ROWS if CASES[number].kind == "QUANTIZE"]
    assert {(dtype, case.made) for case in quantised for dtype in case.dtypes} == {
        (dtype, made) for dtype, kinds in REQUANTISED.items() for made in kinds
    }
