"""Networks as plain C: every map is what TFLM computes, compiled with all warnings and sanitizers."""

from __future__ import annotations

import random
import shutil
import subprocess
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflm_models
from c_operators import DRAWS, Drawn, Single, batch, differing, drawn_single, result_of_sums, sweep
from c_plans import random_stages
from documented import ROOT
from mobilenet_v2 import mobilenet_v2
from shares import sample, share
from standalone_c import SANITIZERS, WARNINGS, CNetwork, apart, c_operators, data_to_relocate
from tflm_models import Op, S, T, build, ints, single

from modelplan import FitCRequest, fit_c
from modelplan.checking.verifier.c_execution import execute_c
from modelplan.cli import main
from modelplan.formats import load_model
from modelplan.model.c_program import KernelCall
from modelplan.plain_c.c_model import CModel
from modelplan.plain_c.kernel_records import ConstTable, MissingKernelError
from modelplan.plain_c.operator_calls.fixed_point import quantized_multiplier
from modelplan.plain_c.operator_calls.operator_table import C_KINDS, c_operator
from modelplan.plain_c.stated_plan import stated_verdict
from modelplan.plain_c.writing.c_self_test import c_self_test, expected_c_runs
from modelplan.plain_c.writing.c_source import CFiles, CNames, c_files
from modelplan.primitives.errors import ModelError
from modelplan.runtimes.tflm.file import load_tflite, read_tflite
from modelplan.runtimes.tflm.generated_inputs import generated_inputs
from modelplan.runtimes.tflm.runner import installed, tflm_values

MODELS = Path(__file__).resolve().parents[2] / "models"
#: Generated operators of each kind; `.ci/long` generates 1,000.
CASES = share(200)
NETWORKS = [
    "tflite/hello_world_int8", "tflite/ad01_int8", "tflite/kws_ref_model", "tflite/pretrainedResnet_quant",
    "tflite/person_detect", "tflite/micro_speech_quantized", "tflite/str_ww_ref_model", "tflite/vww_96_int8",
    "tflite/mcu/mcunet_vww0", "tflite/mcu/micronet_vww2", "tflite/mcu/kws_cnn_l", "tflite/mcu/ad_micronet_large",
    "camera/fomo_face_detection", "camera/blazeface_front_128", "camera/yolo_lc_192",
    "tflite/wakeword/okay_nabu", "tflite/wakeword/alexa", "tflite/wakeword/vad", "tflite/keyword_scrambled",
    "tflite/keyword_scrambled_8bit", "tflite/trained_lstm_int8", "tflite/hello_world_float", "tflite/pretrainedResnet",
    "tflite/ops/seanet_conv6", "tflite/ops/seanet_leaky_relu5",
]  # fmt: skip

pytestmark = [
    pytest.mark.skipif(not installed(), reason="needs tflite-micro"),
    pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler"),
]


def test_operators_compute_what_tflm_computes(tmp_path: Path) -> None:
    drawn = Drawn(1)
    singles = [drawn_single(drawn, kind) for kind in DRAWS for _ in range(8)]
    assert not differing(singles, 1, tmp_path)


def test_the_product_of_two_scales_is_that_of_doubles(tmp_path: Path) -> None:
    drawn = Drawn(7)
    weights = drawn.constant(T("int8", (10, 3), scales=(0.001023288071155548,), zero=0))
    source, result = (
        T("int16", (3, n), scales=(s,)) for n, s in ((3, 0.12198357284069061), (10, 0.012695536017417908))
    )
    assert not differing(
        [Single("FULLY_CONNECTED", (source, weights, None), (result,), "FullyConnectedOptions")], 0, tmp_path
    )


def test_gates_are_scaled_by_products_of_doubles() -> None:
    """Which tells in the last place of multipliers, and so in sums of 16 bits."""
    drawn = [drawn_single(Drawn(seed), "UNIDIRECTIONAL_SEQUENCE_LSTM") for seed in range(20)]
    found = next(single for single in drawn if single.sources[0] and single.sources[0].dtype == "int16")
    (kernel,) = c_operator(read_tflite(batch([found]), "net.tflite"), 0).kernels
    table, scales = kernel.parameters["multipliers"], [t.quantisation[0][0] if t else 0.0 for t in found.sources]
    assert isinstance(table, ConstTable)
    factors = [scales[0] * scales[i] for i in (2, 1, 3, 4)] + [scales[18] * scales[i] for i in (6, 5, 7, 8)]
    assert table.numbers.tolist() == [quantized_multiplier(factor * 2.0**12)[0] for factor in factors]
    assert table.numbers.tolist() != [quantized_multiplier(float(np.float32(f)) * 2.0**12)[0] for f in factors]


def test_scales_of_hard_swish_are_divided_in_double(tmp_path: Path) -> None:
    source, result = (
        T("int8", (1, 16, 16, 4), scales=(s,), zero=0) for s in (0.012852921150624752, 0.024337032809853554)
    )
    assert not differing([Single("HARD_SWISH", (source,), (result,))], 0, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", DRAWS)
def test_many_operators_compute_what_tflm_computes(kind: str, tmp_path: Path) -> None:
    assert not sweep([kind], CASES, 2, tmp_path)


def test_every_kind_of_operator_is_generated_or_followed_in_a_network() -> None:
    assert set(DRAWS) <= C_KINDS
    views, variables = {"RESHAPE", "SQUEEZE", "EXPAND_DIMS"}, {"VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE"}
    assert views | variables | {"CALL_ONCE"} == set(C_KINDS) - set(DRAWS)


def test_the_page_names_the_operators_that_c_has_and_no_others() -> None:
    page = (ROOT / "docs" / "standalone.md").read_text()
    table = page[page.index("## Operators") : page.index("## What it does not do")]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("|")]
    assert {word for cell in cells[2:] for word in cell.split()} == set(C_KINDS)
    assert f"{len(C_KINDS)} kinds" in table


def in_floats(tensors: Sequence[T], ops: Sequence[Op]) -> tuple[T, ...]:
    """The same tensors as floats, with other weights and biases."""
    tables = {t for op in ops if "CONV" in op.kind for t in op.inputs[1:]}
    draw = np.random.default_rng(len(ops))
    values = {t: draw.normal(0, 0.5, tensors[t].shape).astype(np.float32).tobytes() for t in tables}
    return tuple(
        T("float32", x.shape, values.get(t)) if x.values is None or t in tables else x for t, x in enumerate(tensors)
    )


def pooled_convolutions(d: Drawn, count: int, *, floats: bool = False) -> bytes:
    """Convolutions of single pixels side by side, each before the mean of each channel; some widen their map."""
    tensors: list[T] = []
    ops: list[Op] = []
    for _ in range(count):
        height, width, channels, out = (d.randint(1, most) for most in (6, 6, 9, 30))
        x = d.tensor((1, height, width, channels))
        scales = tuple(d.scale() / 10 for _ in range(out))
        weights = d.constant(T("int8", (out, 1, 1, channels), scales=scales, zero=0))
        y = result_of_sums(d, x, scales, channels, (1, height, width, out))
        at = len(tensors)
        tensors += [x, weights, d.bias(out, 3000), y]
        steps = {"Padding": d.randint(0, 1), "StrideH": 1, "StrideW": 1, "FusedActivationFunction": d.randint(0, 3)}
        ops.append(Op("CONV_2D", (at, at + 1, at + 2), (at + 3,), steps, "Conv2DOptions"))
        if d.random() < 0.5:
            tensors += [T("int32", (2,), [1, 2]), d.tensor((1, out))]
            ops.append(Op("MEAN", (at + 3, at + 4), (at + 5,), {}, "ReducerOptions"))
        else:
            tensors.append(d.tensor((1, 1, 1, out), y))
            sizes = {"FilterHeight": height, "FilterWidth": width, "Padding": 1}
            ops.append(Op("AVERAGE_POOL_2D", (at + 3,), (at + 4,), steps | sizes, "Pool2DOptions"))
    ends = tuple(op.inputs[0] for op in ops[::2]), tuple(op.outputs[0] for op in ops[1::2])
    return build(S(in_floats(tensors, ops) if floats else tuple(tensors), tuple(ops), *ends))


@pytest.mark.parametrize("floats", [False, True], ids=["codes", "floats"])
@pytest.mark.parametrize("seed", range(3))
def test_convolutions_of_which_only_means_are_read_are_not_held(seed: int, tmp_path: Path, *, floats: bool) -> None:
    path = tmp_path / "pools.tflite"
    path.write_bytes(pooled_convolutions(Drawn(seed), 30, floats=floats))
    rung = fit_c(FitCRequest(str(path), without=frozenset({"overlaps", "rows", "parts"}))).chosen
    assert rung is not None
    called = {s.operator for stage in rung.program.stages for s in stage.steps if isinstance(s, KernelCall)}
    assert 30 < len(called) < 50, "all are held, or none"
    (tmp_path / "net.c").write_text(rung.files.source)
    (tmp_path / "net.h").write_text(rung.files.header)
    assert "are equal" in execute_c(load_tflite(path), tmp_path / "net.c", seed).details
    verdict = stated_verdict(CModel(load_model(str(path)), load_tflite(path)), rung.files.source, rung.files.header)
    assert verdict.outcome == "ok"


def expanded_convolutions(d: Drawn, count: int, *, floats: bool = False) -> bytes:
    """Pairs side by side: a convolution of single pixels, and a depthwise one that reads its result."""
    tensors: list[T] = []
    ops: list[Op] = []
    for _ in range(count):
        height, width, channels, wide, down, across = (d.randint(1, most) for most in (7, 9, 9, 11, 3, 4))
        same, stride = d.random() < 0.7, d.randint(1, 2)
        down, across = min(down, height), min(across, width)
        x = d.tensor((1, height, width, channels))
        scales = tuple(d.scale() / 10 for _ in range(wide))
        y = result_of_sums(d, x, scales, channels, (1, height, width, wide))
        spans = (-(-n // stride) if same else (n - r) // stride + 1 for n, r in ((height, down), (width, across)))
        z = result_of_sums(d, y, scales, down * across, (1, *spans, wide))
        weights = [
            d.constant(T("int8", shape, scales=scales, zero=0, axis=axis))
            for shape, axis in (((wide, 1, 1, channels), 0), ((1, down, across, wide), 3))
        ]
        at = len(tensors)
        tensors += [x, weights[0], d.bias(wide, 3000), y, weights[1], d.bias(wide, 3000), z]
        active = {"FusedActivationFunction": d.randint(0, 3)}
        single = {"Padding": d.randint(0, 1), "StrideH": 1, "StrideW": 1, **active}
        window = {"Padding": int(not same), "StrideH": stride, "StrideW": stride, "DepthMultiplier": 1, **active}
        ops.append(Op("CONV_2D", (at, at + 1, at + 2), (at + 3,), single, "Conv2DOptions"))
        ops.append(Op("DEPTHWISE_CONV_2D", (at + 3, at + 4, at + 5), (at + 6,), window, "DepthwiseConv2DOptions"))
    ends = tuple(op.inputs[0] for op in ops[::2]), tuple(op.outputs[0] for op in ops[1::2])
    return build(S(in_floats(tensors, ops) if floats else tuple(tensors), tuple(ops), *ends))


@pytest.mark.parametrize("floats", [False, True], ids=["codes", "floats"])
@pytest.mark.parametrize("seed", range(3))
def test_a_depthwise_convolution_computes_the_one_before(seed: int, tmp_path: Path, *, floats: bool) -> None:
    path, draw = tmp_path / "pairs.tflite", random.Random(seed)
    path.write_bytes(expanded_convolutions(Drawn(seed), 24, floats=floats))
    model = CModel(load_model(str(path)), load_tflite(path))
    graph = model.graph
    results = [graph.tensors[op.outputs[0]].shape for op in graph.ops if op.kind == "DEPTHWISE_CONV_2D"]
    low = [shape for shape in results if shape[1] == 1 < shape[2]]  # rows of these are columns, unlike the operand's
    assert 12 < 24 - len(low) <= len(model.expanded)
    program, operators = random_stages(model, draw, pushed=False)
    while "expanded_depthwise" not in {o.kernels[0].source for o in operators.values()}:
        program, operators = random_stages(model, draw, pushed=False)
    files = c_files(model.file, operators, program, CNames("net", "net.h"))
    verdict = stated_verdict(model, files.source, files.header)
    assert verdict.outcome == "ok", verdict.details
    (tmp_path / "net.c").write_text(files.source)
    (tmp_path / "net.h").write_text(files.header)
    assert "are equal" in execute_c(model.file, tmp_path / "net.c", seed).details


def maps_that_differ(content: bytes, folder: Path, rng: random.Random | None) -> list[str]:
    """The names of all computed tensors that are not TFLM's in one of several runs."""
    net = CNetwork(folder, content, rng=rng)
    main = net.model.subgraphs[0]
    runs = [generated_inputs(net.model, 0, run) for run in range(3)]
    made = [t for op in main.ops for t in op.writes if op.kind != "VAR_HANDLE"]
    wanted = tflm_values(content, runs, made)
    return [
        f"run {run}: {main.tensors[t].name}"
        for run, (values, (_, crcs)) in enumerate(zip(net.run(runs), wanted, strict=True))
        for t, crc in zip(made, crcs, strict=True)
        if zlib.crc32(values[t]) != crc
    ]


def test_every_map_of_a_network_is_that_of_tflm(tmp_path: Path) -> None:
    content = (MODELS / "ds_cnn_kws.tflite").read_bytes()
    assert not maps_that_differ(content, tmp_path, None)
    assert not maps_that_differ(content, tmp_path, random.Random(3))


@pytest.mark.slow
@pytest.mark.parametrize("name", sample(NETWORKS))
def test_every_map_of_the_corpus_is_that_of_tflm(name: str, corpus: Path, tmp_path: Path) -> None:
    content = (corpus / f"{name}.tflite").read_bytes()
    assert not maps_that_differ(content, tmp_path, None)
    assert not maps_that_differ(content, tmp_path, random.Random(3))


COMPILERS = [
    ["gcc", *WARNINGS, "-O2"],
    ["clang", *WARNINGS, "-fsyntax-only"],  # clang warns of what it reads, not of what it optimises
    ["arm-none-eabi-gcc", *WARNINGS, "-Os", "-mcpu=cortex-m4", "-mthumb"],
    ["g++", "-x", "c++", "-std=c++11", *WARNINGS[1:], "-fsyntax-only"],
    ["clang++", "-x", "c++", "-std=c++11", *WARNINGS[1:], "-fsyntax-only"],
]
#: Ways to fit a network: what `fit` is asked for beside its file.
MODES: dict[str, dict[str, Any]] = {
    "maps": {"without": frozenset({"overlaps", "rows", "parts"})},
    "parts": {"without": frozenset({"maps", "overlaps", "rows"}), "section": ".fast"},
    "pushed": {"without": frozenset({"maps", "overlaps", "parts"}), "pushed": True},
    "tiles": {"without": frozenset({"maps", "overlaps", "rows", "parts"}), "pushed": True, "max_time": 0.2},
}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, CFiles]:
    """All kernels in one file, and networks in each way to fit them."""
    wide = tmp_path_factory.mktemp("wide") / "net.tflite"
    wide.write_bytes(mobilenet_v2(0.35, 32))
    drawn = Drawn(5)
    model = read_tflite(batch([drawn_single(drawn, kind) for kind in DRAWS for _ in range(4)]), "net.tflite")
    operators = c_operators(model)
    files = {"all kernels": c_files(model, operators, apart(model, operators), CNames("net", "net.h"))}
    for mode, asked in MODES.items():
        rung = fit_c(FitCRequest(str(wide if mode == "tiles" else MODELS / "ds_cnn_kws.tflite"), **asked)).chosen
        assert rung is not None
        assert rung.name == ("rows" if mode == "pushed" else mode)
        files[mode] = rung.files
    return files


@pytest.mark.slow
@pytest.mark.parametrize("command", COMPILERS, ids=lambda command: command[0])
def test_what_is_written_compiles_without_a_warning(
    command: list[str], written: dict[str, CFiles], tmp_path: Path
) -> None:
    if not shutil.which(command[0]):
        pytest.skip(f"needs {command[0]}")
    for name, files in written.items():
        (tmp_path / "net.c").write_text(files.source)
        (tmp_path / "net.h").write_text(files.header)
        done = subprocess.run([*command, "-c", "net.c", "-o", "net.o"], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, f"{name}: {done.stderr[:2000]}"
        assert not done.stderr, name


@pytest.mark.slow
@pytest.mark.parametrize("level", sample(["-O2", "-O0", "-Os", "-O3"]))
def test_constants_hold_no_addresses(level: str, written: dict[str, CFiles], tmp_path: Path) -> None:
    source = tmp_path / "net.c"
    for name, files in written.items():
        source.write_text(files.source)
        source.with_suffix(".h").write_text(files.header)
        assert not data_to_relocate(source, level), name
    source.write_text("static int a;\nint *const b = &a;\n")
    assert data_to_relocate(source, level)


def test_an_operator_without_a_kernel_is_refused_by_name() -> None:
    model = read_tflite(single("UNIQUE", [T("float32", (4,))], [T("float32", (4,))]), "waves.tflite")
    with pytest.raises(MissingKernelError, match=r"waves\.tflite: no plain C: UNIQUE: no kernel .*: op 0 \('t1'\)"):
        c_operator(model, 0)


@pytest.mark.parametrize("kind", ["ROUND", "FLOOR", "CEIL", "ABS", "NEG"])
def test_halves_zeros_and_what_is_no_number_come_out_as_tflm_s(kind: str, tmp_path: Path) -> None:
    numbers = [-2.5, -1.5, -0.5, -0.0, 0.0, 0.5, 1.5, 2.5, 8388609.0, 3e9, np.inf, -np.inf, np.nan, 1e-40, 0.4999999701]
    fed = np.array(numbers, np.float32).tobytes()
    content = single(kind, [T("float32", (len(numbers),))], [T("float32", (len(numbers),))])
    (arrays, _), *_ = tflm_values(content, [[fed]])
    (values,) = CNetwork(tmp_path, content).run([[fed]])
    assert values[1] == arrays[0].tobytes()


def _as_tflm(folder: Path, content: bytes, *fed: Any) -> None:
    """Checks that plain C computes the first output of a model of one input, the last tensor, as TFLM does."""
    runs = [[np.asarray(numbers).tobytes()] for numbers in fed]
    wanted, found = tflm_values(content, runs), CNetwork(folder, content).run(runs)
    for (arrays, _), values in zip(wanted, found, strict=True):
        assert values[max(values)] == arrays[0].tobytes()


@pytest.mark.parametrize("kind", ["ADD", "MAXIMUM", "MINIMUM", "PRELU"])
def test_infinite_numbers_are_handed_on_and_may_be_constants(kind: str, tmp_path: Path) -> None:
    slopes, shape = [1.0, 0.5, -2.0, 0.0] if kind == "PRELU" else [-np.inf, np.inf, 1.0, -np.inf], (1, 1, 3, 4)
    constant, result = T("float32", (4,), slopes), T("float32", shape)
    options: dict[str, Any] = {"FusedActivationFunction": 0} if kind == "ADD" else {}
    content = single(kind, [result, constant], [result], "AddOptions" if options else "", **options)
    _as_tflm(tmp_path, content, np.array([*[np.inf] * 4, *[-np.inf] * 3, 1.0, *[-2.5] * 4], np.float32))


@pytest.mark.parametrize("places", [((2, 0), (1, 1)), ((1,), (2,))])
def test_constant_places_may_be_others_in_each_batch(places: tuple[tuple[int, ...], ...], tmp_path: Path) -> None:
    names = ints(*(place for line in places for place in line))
    names = replace(names, shape=(2, len(places[0])))
    source, result = T("int8", (2, 3, 5)), T("int8", (2, len(places[0]), 5))
    content = single("GATHER", [source, names], [result], "GatherOptions", Axis=1, BatchDims=1)
    _as_tflm(tmp_path, content, np.arange(30, dtype=np.int8))


#: Operators on a map of one row of 8 places and 8 channels, by kind.
ON_MAPS: dict[str, tuple[tuple[T, ...], tuple[int, ...], str, dict[str, Any]]] = {
    "ABS": ((), (2, 4, 4, 8), "", {}),
    "RESHAPE": ((ints(2, 128),), (2, 128), "ReshapeOptions", {}),
    "CUMSUM": ((T("int32", (), [1]),), (2, 4, 4, 8), "CumsumOptions", {"Exclusive": False, "Reverse": False}),
    "REDUCE_MAX": ((ints(1, 2),), (2, 8), "ReducerOptions", {"KeepDims": False}),
    "RESIZE_NEAREST_NEIGHBOR": ((ints(3, 5),), (2, 3, 5, 8), "ResizeNearestNeighborOptions", {}),
    "AVERAGE_POOL_2D": (
        (), (2, 2, 2, 8), "Pool2DOptions",
        {"Padding": 0, "StrideH": 2, "StrideW": 2, "FilterHeight": 3, "FilterWidth": 3, "FusedActivationFunction": 0},
    ),
    "DEPTH_TO_SPACE": ((), (2, 8, 8, 2), "DepthToSpaceOptions", {"BlockSize": 2}),
    "PAD": ((T("int32", (4, 2), [0, 0, 1, 0, 0, 1, 0, 0]),), (2, 5, 5, 8), "PadOptions", {}),
}  # fmt: skip


@pytest.mark.parametrize("batches", [1, 2])
@pytest.mark.parametrize("kind", ON_MAPS)
def test_an_operator_may_read_constants_alone(kind: str, batches: int, tmp_path: Path) -> None:
    pytest.importorskip("tflite_micro")
    more, shape, table, options = ON_MAPS[kind]
    if batches == 1:
        more = tuple(replace(t, values=[1, 128]) if kind == "RESHAPE" else t for t in more)
    source, fed = (
        T("int8", (batches, 4, 4, 8), np.arange(-batches * 64, batches * 64).astype("i1").tobytes()),
        T("int8", (4,)),
    )
    result = T("int8", (batches, *shape[1:]))
    tensors, read = (fed, fed, source, *more, result), range(2, 3 + len(more))
    ops = Op("RELU", (0,), (1,)), Op(kind, tuple(read), (read[-1] + 1,), options, table)
    (tmp_path / "net.tflite").write_bytes(build(S(tensors, ops, (0,), (1, read[-1] + 1))))
    for rung in ("rows,parts,overlaps", "maps,overlaps,parts"):
        asked = ["--runtime", "c", "--without", rung, "-o", str(tmp_path / "net.c")]
        assert main(["fit", str(tmp_path / "net.tflite"), *asked]) == 0
        assert main(["verify", str(tmp_path / "net.tflite"), "--against", str(tmp_path / "net.c")]) == 0


@pytest.mark.parametrize("itself", [False, True])
def test_a_slice_is_updated_in_place_or_a_little_before(itself: bool, tmp_path: Path) -> None:
    """The part is a pooled map that is read again, or all of the map."""
    pytest.importorskip("tflite_micro")
    x, pooled, y = T("int16", (1, 6, 4, 8)), T("int16", (1, 3, 2, 8)), T("int16", (1, 6, 4, 4))
    weights = T("int8", (4, 2, 2, 8), bytes(range(128)), scales=(0.01,), zero=0)
    bias = T("int64", (4,), [1, 2, 3, 4])
    floats = T("float32", pooled.shape)
    tensors = x, T("int32", (4,)), pooled, floats, x, x, weights, bias, y
    pool = {"Padding": 0, "StrideH": 2, "StrideW": 2, "FilterHeight": 2, "FilterWidth": 2, "FusedActivationFunction": 0}
    conv = {"Padding": 0, "StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1}
    ops = (
        Op("AVERAGE_POOL_2D", (0,), (2,), pool, "Pool2DOptions"),
        Op("DEQUANTIZE", (2,), (3,), {}, "DequantizeOptions"),
        Op("MUL", (0, 0), (4,), {"FusedActivationFunction": 0}, "MulOptions"),
        Op("DYNAMIC_UPDATE_SLICE", (0, 0 if itself else 2, 1), (5,)),
        Op("CONV_2D", (5, 6, 7), (8,), {**conv, "FusedActivationFunction": 0}, "Conv2DOptions"),
    )
    (tmp_path / "net.tflite").write_bytes(build(S(tensors, ops, (0, 1), (3, 4, 8))))
    asked = ["fit", str(tmp_path / "net.tflite"), "--runtime", "c", "-o", str(tmp_path / "net.c")]
    assert main([*asked, "--kernels", "cmsis-nn"]) == 0
    assert main(asked) == 0
    assert main(["verify", str(tmp_path / "net.tflite"), "--against", str(tmp_path / "net.c")]) == 0


def test_a_network_without_inputs_is_verified(tmp_path: Path) -> None:
    pytest.importorskip("tflite_micro")
    tensors = T("float32", (2,), [1.5, float("inf")]), T("float32", (2,))
    (tmp_path / "net.tflite").write_bytes(build(S(tensors, (Op("NEG", (0,), (1,)),), (), (1,))))
    test = tmp_path / "test.c"
    asked = ["--runtime", "c", "-o", str(tmp_path / "net.c"), "--self-test", str(test)]
    assert main(["fit", str(tmp_path / "net.tflite"), *asked]) == 0
    subprocess.run(["cc", *WARNINGS, test, "-o", tmp_path / "test", "-lm"], check=True)
    assert "PASS" in subprocess.run([tmp_path / "test"], capture_output=True, text=True, check=True).stdout
    assert main(["verify", str(tmp_path / "net.tflite"), "--against", str(tmp_path / "net.c")]) == 0


def test_the_shape_of_a_padded_map_may_be_asked_for(tmp_path: Path) -> None:
    padded, pads = T("int8", (1, 6, 4, 2)), T("int32", (4, 2), [0, 0, 1, 1, 0, 0, 0, 0])
    tensors = T("int8", (1, 4, 4, 2)), pads, padded, T("int32", (4,)), padded
    ops = Op("PAD", (0, 1), (2,), {}, "PadOptions"), Op("SHAPE", (2,), (3,), {"OutType": 2}, "ShapeOptions")
    content = build(S(tensors, (*ops, Op("RELU", (2,), (4,))), (0,), (3, 4)))
    (tmp_path / "net.tflite").write_bytes(content)
    assert main(["fit", str(tmp_path / "net.tflite"), "--runtime", "c", "-o", str(tmp_path / "net.c")]) == 0


def test_sums_of_maps_of_several_scales_are_refused() -> None:
    maps = [T("int8", (4,), scales=(scale,), zero=0) for scale in (0.5, 0.5, 0.25)]
    with pytest.raises(MissingKernelError, match="ADD_N: scales and zero points that TFLM's kernel does not take"):
        c_operator(read_tflite(single("ADD_N", maps, maps[:1]), "sum.tflite"), 0)


def test_paddings_that_tflm_leaves_to_chance_are_refused() -> None:
    source, result = (T("int8", shape, scales=(0.5,), zero=3) for shape in ((1, 3, 4, 1), (4, 2, 2, 1)))
    sources = [source, ints(2, 2), T("int32", (2, 2), [1, 0, 0, 0])]
    with pytest.raises(MissingKernelError, match="SPACE_TO_BATCH_ND: paddings of numbers whose zero point is not 0"):
        c_operator(read_tflite(single("SPACE_TO_BATCH_ND", sources, [result], "SpaceToBatchNDOptions"), "x.tflite"), 0)


@pytest.mark.parametrize("kind", ["MEAN", "REDUCE_MAX"])
def test_more_than_two_blocks_of_axes_are_refused(kind: str) -> None:
    source, result = (T("float32", shape, scales=()) for shape in ((2, 3, 2, 3, 2), (3, 3)))
    content = single(kind, [source, ints(0, 2, 4)], [result], "ReducerOptions", KeepDims=False)
    with pytest.raises(MissingKernelError, match="more than two blocks"):
        c_operator(read_tflite(content, "x.tflite"), 0)


def test_an_operator_that_has_a_kernel_for_floats_alone_says_so() -> None:
    model = read_tflite(single("NEG", [T("int8", (4,))], [T("int8", (4,))]), "waves.tflite")
    with pytest.raises(MissingKernelError, match=r"NEG: type int8; there is a kernel for float32: op 0"):
        c_operator(model, 0)


@pytest.mark.parametrize("damaged", [False, True])
def test_a_self_test_passes_unless_the_network_computes_something_else(damaged: bool, tmp_path: Path) -> None:
    model = load_tflite(MODELS / "ds_cnn_kws.tflite")
    operators = c_operators(model)
    program, names = apart(model, operators, random.Random(4)), CNames("net", "net.h")
    text = c_self_test(model, operators, program, names, expected_c_runs(model, operators, program))
    if damaged:
        text = text.replace(", /* out_zero */", " + 1, /* out_zero */", 1)
    (tmp_path / "net_test.c").write_text(text)
    (tmp_path / "net.h").write_text(c_files(model, operators, program, names).header)
    subprocess.run(["cc", *WARNINGS, "-O1", "-o", "net_test", "net_test.c", "-lm"], cwd=tmp_path, check=True)
    done = subprocess.run(["./net_test"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout.splitlines()[-1]) == ((1, "FAIL") if damaged else (0, "PASS: 3 runs"))


def test_every_operator_of_tflm_is_taken_or_refused_by_name() -> None:
    taken, problems = 0, []
    for _, content in tflm_models.sweep(1, 3):
        try:
            model = read_tflite(content, "net.tflite")
        except ModelError:
            continue
        for index in range(len(model.subgraphs[0].ops)):
            try:
                taken += bool(c_operator(model, index).kernels)
            except MissingKernelError as problem:
                problems.append(f"op {index} " in str(problem))
    assert taken > 100
    assert len(problems) > 100
    assert all(problems)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("arm-linux-gnueabihf-gcc"), reason="needs a compiler for ARM")
@pytest.mark.skipif(not shutil.which("qemu-arm-static"), reason="needs qemu-arm-static")
def test_every_kernel_computes_the_same_on_arm(tmp_path: Path) -> None:
    other = {"GATHER", "GATHER_ND", "EMBEDDING_LOOKUP"}  # whose places are fed
    other |= {
        "EXP",
        "LOG",
        "SIN",
        "COS",
        "ELU",
        "SQRT",
        "RSQRT",
        "LOG_SOFTMAX",
    }  # of other libraries, signs of no number
    drawn = Drawn(6)
    singles = [drawn_single(drawn, kind) for kind in DRAWS if kind not in other for _ in range(3)]
    model = read_tflite(batch(singles), "net.tflite")
    operators = c_operators(model)
    program, names = apart(model, operators), CNames("net", "net.h")
    text = c_self_test(model, operators, program, names, expected_c_runs(model, operators, program))
    (tmp_path / "net_test.c").write_text(text)
    (tmp_path / "net.h").write_text(c_files(model, operators, program, names).header)
    command = ["arm-linux-gnueabihf-gcc", *WARNINGS, "-O2", "-static", "-o", "net", "net_test.c", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run(["qemu-arm-static", "./net"], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "PASS: 3 runs\n"


#: A program whose network has its buffer in memory of the program.
SHARED = """
#include <stdio.h>
#include "net.h"
signed char shared[NET_RAM_BYTES];
int main(void)
{
    net_invoke();
    return (void *)net_input() >= (void *)shared && (void *)net_input() < (void *)(shared + sizeof shared) ? 0 : 1;
}
"""


def test_the_caller_names_the_memory_or_its_section(tmp_path: Path) -> None:
    model = load_tflite(MODELS / "ds_cnn_kws.tflite")
    operators = c_operators(model)
    names = CNames("net", "net.h", ".fast")
    files = c_files(model, operators, apart(model, operators), names)
    (tmp_path / "net.c").write_text(files.source)
    (tmp_path / "net.h").write_text(files.header)
    (tmp_path / "main.c").write_text(SHARED)
    subprocess.run(["cc", *WARNINGS, "-c", "net.c"], cwd=tmp_path, check=True)
    done = subprocess.run(["size", "-A", "net.o"], cwd=tmp_path, check=True, capture_output=True, text=True)
    sizes = {line.split()[0]: int(line.split()[1]) for line in done.stdout.splitlines()[2:-2]}
    assert sizes[".fast"] == apart(model, operators).nbytes
    assert not sizes[".bss"]
    (tmp_path / "memory.h").write_text("extern signed char shared[];\n")
    named = ["-include", "memory.h", "-DNET_RAM=shared"]
    subprocess.run(["cc", *WARNINGS, *named, "main.c", "net.c", "-o", "net", "-lm"], cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "net"]).returncode == 0


#: A program whose networks run in turn in the same memory.
TWO = """
#include "memory.h"
#include "kws.h"
#include "image.h"
signed char shared[KWS_RAM_BYTES > IMAGE_RAM_BYTES ? KWS_RAM_BYTES : IMAGE_RAM_BYTES];
int main(void)
{
    kws_invoke();
    image_invoke();
    return (const void *)kws_output() < (const void *)image_output() + sizeof shared ? 0 : 1;
}
"""


#: A program that prints what two networks compute.
BOTH = """
#include <stdio.h>
#include "kws.h"
#include "image.h"
int main(void)
{
    for (int i = 0; i < KWS_INPUT_BYTES; i++) { kws_input()[i] = (signed char)(i * i); }
    kws_invoke();
    image_start();
    for (int y = 0; y < IMAGE_ROWS; y++) {
        static signed char row[IMAGE_ROW_BYTES];
        for (int i = 0; i < IMAGE_ROW_BYTES; i++) { row[i] = (signed char)(i * y); }
        image_push_row(row);
    }
    fwrite(kws_output(), 1, KWS_OUTPUT_BYTES, stdout);
    fwrite(image_output(), 1, IMAGE_OUTPUT_BYTES, stdout);
    return 0;
}
"""


def test_two_networks_share_memory_by_a_macro_and_together_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = {"kws": "ds_cnn_kws", "image": "resnet8"}
    for prefix, name in names.items():
        output = str(tmp_path / f"{prefix}.c")
        arguments = ["--runtime", "c", "--without", "rows,parts", "-o", output]
        assert main(["fit", str(MODELS / f"{name}.tflite"), *arguments]) == 0
    (tmp_path / "memory.h").write_text("extern signed char shared[];\n")
    (tmp_path / "main.c").write_text(TWO)
    shared = ["-include", "memory.h", "-DKWS_RAM=shared", "-DIMAGE_RAM=shared"]
    command = ["cc", "-std=gnu99", "-Wall", "-Werror", *SANITIZERS, *shared, "main.c", "kws.c", "image.c", "-o", "two"]
    subprocess.run([*command, "-lm"], cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "two"]).returncode == 0
    models = [str(MODELS / f"{name}.tflite") for name in names.values()]
    capsys.readouterr()
    assert main(["together", *models, "--runtime", "c"]) == 2
    assert "-DPREFIX_RAM=shared" in capsys.readouterr().err


def test_two_networks_compile_as_one_file(tmp_path: Path) -> None:
    """Their kernels stand once in it, and both compute what they compute apart."""
    for prefix, name, more in (("kws", "ds_cnn_kws", ()), ("image", "resnet8", ("--input", "rows"))):
        asked = ["--runtime", "c", *more, "-o", str(tmp_path / f"{prefix}.c")]
        assert main(["fit", str(MODELS / f"{name}.tflite"), *asked]) == 0
    (tmp_path / "both.c").write_text('#include "kws.c"\n#include "image.c"\n')
    (tmp_path / "main.c").write_text(BOTH)
    printed = []
    for sources in (["both.c"], ["kws.c", "image.c"]):
        subprocess.run(["cc", *WARNINGS, "main.c", *sources, "-o", "both"], cwd=tmp_path, check=True)
        printed.append(subprocess.run([tmp_path / "both"], capture_output=True, check=True).stdout)
    assert len(set(printed[0])) > 3
    assert printed[0] == printed[1]


def test_networks_of_other_kernels_do_not_compile_as_one_file(tmp_path: Path) -> None:
    output = tmp_path / "kws.c"
    assert main(["fit", str(MODELS / "ds_cnn_kws.tflite"), "--runtime", "c", "-o", str(output)]) == 0
    (tmp_path / "both.c").write_text('#define MODELPLAN_KERNELS 1u\n#include "kws.c"\n')
    done = subprocess.run(["cc", "-c", "both.c"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode
    assert "another release of modelplan wrote the network above" in done.stderr


def test_explain_says_that_its_peak_is_of_whole_maps(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(MODELS / "ds_cnn_kws.tflite"), "--runtime", "c"]) == 0
    assert "The peak below is that of whole maps" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("rows", [False, True])
def test_the_self_test_of_a_fitted_network_passes(rows: bool, tmp_path: Path) -> None:
    output, test = str(tmp_path / "kws.c"), str(tmp_path / "kws_test.c")
    options = ["--input", "rows"] if rows else []
    model = str(MODELS / "ds_cnn_kws.tflite")
    assert main(["fit", model, "--runtime", "c", *options, "-o", output, "--self-test", test]) == 0
    subprocess.run(["cc", *WARNINGS, *SANITIZERS, "-o", "kws", "kws_test.c", "-lm"], cwd=tmp_path, check=True)
    done = subprocess.run(["./kws"], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "PASS: 3 runs\n"
