"""The scratch that kernels ask for: one figure worked out by hand for each formula."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import tflm_models
from shares import share

from modelplan import Graph, Options
from modelplan.formats import load_model
from modelplan.formats.tflite.tflite_file import TensorScales
from modelplan.planning.pipeline import configured_runtime
from modelplan.primitives.errors import ModelError, RequestError
from modelplan.runtimes.tflm.declaration import required_arena
from modelplan.runtimes.tflm.file import FileModel, read_tflite
from modelplan.runtimes.tflm.kernels import (
    KERNELS,
    LIBRARIES,
    Call,
    KernelSet,
    Operand,
    Preparation,
    Refusal,
    find_library,
    scratch_sizes,
)
from modelplan.runtimes.tflm.scratch import scratch_requests

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "tflm.md"


def operand(dtype: str, *shape: int, constant: bool = False) -> Operand:
    return Operand(dtype, shape, constant)


def conv(
    dtype: str = "int8",
    weights: str = "int8",
    taps: tuple[int, int] = (3, 3),
    channels: int = 8,
    stride: int = 1,
    kind: str = "CONV_2D",
    out: int = 16,
    padding: str = "SAME",
) -> Call:
    options: dict[str, int | str | bool] = {"stride_w": stride, "stride_h": stride, "padding": padding}
    options["depth_multiplier"] = 1
    extent = -(-10 // stride)
    inputs = operand(dtype, 1, 10, 10, channels), operand(weights, out, *taps, channels, constant=True)
    if kind == "DEPTHWISE_CONV_2D":
        out = channels
    return Call(kind, inputs, (operand(dtype, 1, extent, extent, out),), options)


def depthwise(**more: Any) -> Call:
    return conv(kind="DEPTHWISE_CONV_2D", out=1, **more)


def lstm(dtype: str = "int8") -> Call:
    gates = [operand("int8", 20, 28)] * 4 + [operand("int8", 20, 20)] * 4
    biases = [operand("int32", 20, constant=True)] * 4
    weights = [Operand(o.dtype, o.shape, constant=True) for o in gates]
    states = [operand(dtype, 1, 20), operand("int16", 1, 20)]
    inputs = (operand(dtype, 1, 28, 28), *weights, *[None] * 3, *biases, *[None] * 2, *states, *[None] * 4)
    return Call("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, (operand(dtype, 1, 28, 20),))


TRANSPOSE = Call(
    "TRANSPOSE_CONV",
    (operand("int32", 4), operand("int8", 4, 2, 2, 8), operand("int16", 1, 5, 5, 8), operand("int16", 4)),
    (operand("int16", 1, 10, 10, 4),),
)
TRANSPOSE_INT8 = Call(
    "TRANSPOSE_CONV",
    (operand("int32", 4), operand("int8", 4, 2, 2, 8), operand("int8", 1, 5, 5, 8)),
    (operand("int8", 1, 10, 10, 4),),
    {"stride_w": 2, "stride_h": 2},
)
SVDF = Call(
    "SVDF",
    (operand("int8", 1, 40), operand("int8", 64, 40), operand("int8", 64, 8), operand("int32", 32),
     operand("int8", 1, 512)),
    (operand("int8", 1, 32),),
    {"rank": 2},
)  # fmt: skip
MEAN = Call("MEAN", (operand("int8", 1, 4, 4, 8), operand("int32", 2)), (operand("int8", 1, 8),))
MIRROR = Call("MIRROR_PAD", (operand("int8", 4, 4), operand("int32", 2, 2)), (operand("int8", 6, 6),))
POINTWISE = conv(taps=(1, 1), padding="VALID")


@pytest.mark.parametrize(
    ("call", "kernels", "sizes"),
    [
        (conv(), "reference", ()),
        (conv(weights="int4"), "reference", (1152,)),
        (conv(), "cmsis-dsp", (288,)),
        (conv(), "cmsis-mve", (320,)),
        (conv(taps=(1, 1)), "cmsis-dsp", ()),
        (conv(taps=(1, 1), stride=2), "cmsis-dsp", ()),
        (conv(taps=(1, 1)), "cmsis-mve", ()),
        (conv("int16"), "cmsis-mve", (576,)),
        (conv("float32", "float32"), "cmsis-dsp", ()),
        (depthwise(taps=(5, 5)), "cmsis-dsp", (400,)),
        (depthwise(taps=(5, 5)), "cmsis-c", ()),
        (depthwise(), "cmsis-dsp", ()),
        (depthwise(), "cmsis-mve", (4464,)),
        (POINTWISE, "esp-nn", (8 * 16 + 2 * 64 + 64,)),
        (POINTWISE, "esp-nn@1.1.0", (8 * 16 + 2 * 64 + 32,)),
        (conv(), "esp-nn", (12 * 12 * 8 + 9 * 16 * 16 + 64 + 32 * 3 * 16 + 12 * 12 * 8 + 64,)),
        (conv(), "esp-nn@1.1.0", (12 * 12 * 8 + 9 * 16 * 16 + 64 + 32,)),
        (conv(), "esp-nn-generic", ()),
        (depthwise(channels=16), "esp-nn", (144 + 12 * 12 * 16 + 16,)),
        *((SVDF, kernels, (256, 128)) for kernels in ("reference", "esp-nn", "cmsis-c", "cmsis-dsp", "cmsis-mve")),
        (lstm(), "reference", (40, 40, 40, 40)),
        (lstm(), "cmsis-dsp", (40, 40, 40)),
        (TRANSPOSE, "reference", (3200, 32)),
        (TRANSPOSE, "cmsis-dsp", (3200, 32)),
        (TRANSPOSE_INT8, "reference", (1600,)),
        (TRANSPOSE_INT8, "cmsis-dsp", (4 * (4 * 2 + 2) * 4 * 2, 0)),
        (MEAN, "reference", (32, 16, 8)),
        (Call("ADD_N", (operand("int8", 4),) * 3, (operand("int8", 4),)), "reference", (24,)),
        (MIRROR, "reference", (8, 8)),
        (Call("RESHAPE", (operand("int8", 4),), (operand("int8", 4),)), "cmsis-mve", ()),
        (Call("ONE_HOT", (), ()), "reference", ()),
    ],
)  # fmt: skip
def test_formula(call: Call, kernels: str, sizes: tuple[int, ...]) -> None:
    assert scratch_sizes(call, kernels) == sizes


def test_pointers_are_as_wide_as_on_the_target() -> None:
    added = Call("ADD_N", (operand("int8", 4),) * 3, (operand("int8", 4),))
    assert [scratch_sizes(added, pointer=pointer) for pointer in (4, 8)] == [(12,), (24,)]


@pytest.mark.parametrize("kind", ["CONV_2D", "TRANSPOSE_CONV"])
def test_scales_of_a_filter_are_counted(kind: str) -> None:
    """One or one for each of 4 channels; a transposed convolution reads as many zero points."""

    def outcome(scales: int, zero_points: int, axis: int = 0) -> str:
        known = TensorScales(scales, 0.1, zero_points, axis=axis)
        weights = Operand("int8", (4, 2, 2, 8), constant=True, quantization=known)
        result, source = operand("int8", 1, 10, 10, 4), operand("int8", 1, 10, 10, 8)
        inputs = (operand("int32", 4), weights, source) if kind == "TRANSPOSE_CONV" else (source, weights)
        try:
            LIBRARIES["reference"].operators[kind].prepare(Preparation(Call(kind, inputs, (result,))))
        except Refusal as refusal:
            return str(refusal).partition(";")[0]
        return ""

    assert [outcome(n, n) for n in (1, 4)] == ["", ""]
    assert outcome(3, 3) == "3 scales for a filter of 4 channels"
    assert outcome(4, 4, axis=2).startswith("4 scales along axis 2 for a filter of 4 channels")
    unequal = "4 scales and 1 zero points for the filter" if kind == "TRANSPOSE_CONV" else ""
    assert outcome(4, 1) == unequal


@pytest.mark.parametrize(
    ("kernels", "call", "what"),
    [
        ("reference", Call("SVDF", (*SVDF.inputs[:2], operand("int8", 64, 8, 1), *SVDF.inputs[3:]), SVDF.outputs,
                           {"rank": 2}), "input 2"),
        ("esp-nn", Call("DEPTHWISE_CONV_2D", (operand("int8", 1, 1, 8, 8, 4), operand("int8", 1, 3, 3, 4)),
                        (operand("int8", 1, 8, 8, 4),)), "input 0"),
        ("esp-nn", Call("DEPTHWISE_CONV_2D", (operand("int8", 1, 8, 8, 4), operand("int8", 1, 3, 3, 4, 1)),
                        (operand("int8", 1, 8, 8, 4),)), "input 1"),
    ],
)  # fmt: skip
def test_an_operand_of_more_dimensions_is_refused(kernels: str, call: Call, what: str) -> None:
    with pytest.raises(Refusal, match=rf"{what}.* \d dimensions"):
        LIBRARIES[kernels].operators[call.kind].prepare(Preparation(call))


@pytest.mark.parametrize(
    ("kind", "source", "shape"),
    [("SPACE_TO_DEPTH", (1, 4, 6, 2), (1, 2, 3, 8)), ("DEPTH_TO_SPACE", (1, 2, 3, 8), (1, 4, 6, 2))],
)
def test_blocks_give_the_output_its_shape(kind: str, source: tuple[int, ...], shape: tuple[int, ...]) -> None:
    preparation = Preparation(Call(kind, (operand("int8", *source),), (operand("int8", *shape),), {"block_size": 2}))
    LIBRARIES["reference"].operators[kind].prepare(preparation)
    assert preparation.reshaped == shape


def test_integers_are_known_where_a_constant_has_them_all() -> None:
    assert Operand("int16", (3,), constant=True, content=b"\1\0\2\0\xff\xff").integers() == (1, 2, -1)
    assert Operand("int16", (3,), constant=True, content=b"\1\0\2\0\xff").integers() is None
    assert Operand("int16", (3,)).integers() is None
    assert Operand("float32", (1,), constant=True, content=bytes(4)).integers() is None


def test_an_operator_that_lacks_an_operand_asks_for_nothing() -> None:
    assert scratch_sizes(Call("SVDF", (operand("int8", 1, 4),), (operand("int8", 1, 4),))) == ()


@pytest.mark.parametrize("library", LIBRARIES.values(), ids=LIBRARIES)
def test_every_library_says_what_it_is_and_stands_in_the_guide(library: KernelSet) -> None:
    assert library.operators
    assert library.release
    assert library.note
    assert f"`{library.name}`" in GUIDE.read_text()


def test_unknown_kernels_list_the_known() -> None:
    with pytest.raises(RequestError, match=", ".join(KERNELS)):
        scratch_sizes(conv(), "neon")


@pytest.mark.parametrize(("name", "variant"), [("cmsis-nn", "cmsis-dsp .*M4"), ("esp-nn@9.9", r"esp-nn@1\.1\.0")])
def test_a_library_without_its_variant_explains_them(name: str, variant: str) -> None:
    with pytest.raises(RequestError, match=variant):
        find_library(name)


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[bytes, Graph, FileModel]]:
    """Models of each operator with each of its types that can be read, as bytes, as a graph and as TFLM reads them."""
    path = tmp_path_factory.mktemp("swept") / "model.tflite"
    readable = []
    for name, content in tflm_models.sweep(share(4)):
        path.write_bytes(content)
        with suppress(ModelError):
            readable.append((content, load_model(str(path)), read_tflite(content, name)))
    return readable


@pytest.mark.slow
@pytest.mark.parametrize("kernels", ["reference", "cmsis-mve", "esp-nn"])
def test_a_plan_counts_what_the_kernels_of_the_file_ask_for(
    kernels: str, swept: list[tuple[bytes, Graph, FileModel]]
) -> None:
    """A graph holds less than the file; it must hold all that sizes scratch. Refused operators never run."""
    checked = set()
    for content, graph, model in swept:
        if required_arena(content, model.name, "64", kernels).refusals:
            continue
        runtime = configured_runtime(graph, Options(runtime="tflm", kernels=kernels))
        assert runtime.scratch is not None
        planned = [(n, size) for n, op in enumerate(graph.ops) for size in runtime.scratch(graph, op, kernels)]
        asked = [(op, size) for subgraph, op, size in scratch_requests(model, kernels) if subgraph == 0]
        if kernels == "cmsis-mve":  # a graph does not know scales: with one for each channel nothing is asked for
            planned = [row for row in planned if row in asked or graph.ops[row[0]].kind != "FULLY_CONNECTED"]
        assert planned == asked, model.name
        checked |= {graph.ops[n].kind for n, _ in planned}
    assert {"ADD_N", "CUSTOM:SignalRfft", "CUSTOM:TFLite_Detection_PostProcess"} <= checked
