"""An .onnx model as plain C: outputs are those of ONNX Runtime, whole and by rows, in both orders of axes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_c_nodes import CODED, DRAWS, compare, compare_many, drawn, quantised, take_conversions_of_ends_out
from shares import share
from standalone_c import data_to_relocate

from modelplan import FitCRequest, fit_c
from modelplan.checking.verifier.c_execution import execute_network, passes_self_test
from modelplan.checking.verifier.session_outputs import in_floats
from modelplan.checking.verifier.verdicts import Executed
from modelplan.cli import main
from modelplan.plain_c.kernel_records import MissingKernelError
from modelplan.plain_c.kernel_sources import all_sources
from modelplan.plain_c.onnx_networks.network_reading import network_of
from modelplan.plain_c.operator_calls.fixed_point import single_multiplier
from modelplan.plain_c.writing.c_source import CFiles
from modelplan.plain_c.writing.plan_data import stated_request

MODELS = Path(__file__).resolve().parents[2] / "models"
pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")


def _written(model: Path, folder: Path, *options: str) -> Path:
    source = folder / "net.c"
    assert main(["fit", str(model), "--runtime", "c", "-o", str(source), "--force", *options]) == 0
    return source


def _executed(model: Path, files: CFiles, source: Path) -> Executed:
    """What the files of a model compute, written there, beside ONNX Runtime."""
    source.write_text(files.source)
    source.with_suffix(".h").write_text(files.header)
    return execute_network(str(model), stated_request(files.source), source)


@pytest.mark.parametrize("kind", DRAWS)
def test_drawn_nodes_compute_what_onnx_runtime_computes(kind: str, tmp_path: Path) -> None:
    answers = [compare(kind, seed, tmp_path) for seed in range(share(4))]
    answers += [said for _, said in compare_many(kind, range(share(80)), tmp_path)]
    assert answers == ["equal"] * len(answers)


def _with_all_maps(model: Path, target: Path, types: tuple[type, ...]) -> int:
    """Writes a model whose outputs are all values of the given types that its nodes compute; how many they are."""
    import onnxruntime

    file = onnx.load(model)
    names = [y for node in file.graph.node for y in node.output if y and node.op_type != "Constant"]
    del file.graph.output[:]
    file.graph.output.extend(onnx.ValueInfoProto(name=y) for y in names)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(file.SerializeToString(), options)
    fed = session.get_inputs()[0]
    values = zip(names, session.run(names, {fed.name: np.zeros(fed.shape, np.float32)}), strict=True)
    ends = [
        helper.make_tensor_value_info(y, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
        for y, v in values
        if v.dtype in types and v.ndim > 1
    ]
    del file.graph.output[:]
    file.graph.output.extend(ends)
    onnx.save(file, target)
    return len(ends)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "types", "least"),
    [
        ("resnet8.onnx", (np.float32,), 20),
        ("mobilenet_v2_like.onnx", (np.float32,), 60),
        ("quantised/resnet8_int8.onnx", (np.int8, np.uint8), 15),
        ("quantised/ds_cnn_kws_qdq.onnx", (np.int8, np.uint8), 14),
    ],
)
def test_every_map_is_that_of_onnx_runtime(tmp_path: Path, model: str, types: tuple[type, ...], least: int) -> None:
    path = tmp_path / "maps.onnx"
    assert _with_all_maps(MODELS / model, path, types) >= least
    source = _written(path, tmp_path)
    request = stated_request(source.read_text())
    assert re.search("are equal|lie within the bound", execute_network(str(path), request, source).details)


def test_what_is_left_of_a_bounded_sum_may_differ_as_the_sum_does(tmp_path: Path) -> None:
    assert compare("convolution", 47, tmp_path) == "equal"  # sums of 5 in floats, of which a Clip leaves 0.75


def test_a_transposed_convolution_may_make_a_single_row(tmp_path: Path) -> None:
    assert compare("transposed", 479, tmp_path) == "equal"


@pytest.mark.parametrize("kind", CODED)
def test_drawn_codes_are_equal_byte_for_byte(kind: str, tmp_path: Path) -> None:
    answers = [compare(kind, seed, tmp_path, coded=True) for seed in range(share(4))]
    answers += [said for _, said in compare_many(kind, range(share(80)), tmp_path, coded=True)]
    assert answers == ["equal"] * len(answers)


@pytest.mark.parametrize("options", [(), ("--input", "rows", "--layout", "nhwc")], ids=["held", "rows"])
def test_a_network_fits_and_is_verified(
    options: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = _written(MODELS / "resnet8.onnx", tmp_path, *options)
    assert not data_to_relocate(source, "-O2")
    printed = capsys.readouterr().out
    assert "proof          plan in C: ok" in printed
    assert "beside ONNX Runtime" in printed
    assert main(["verify", str(MODELS / "resnet8.onnx"), "--against", str(source)]) == 0
    printed = capsys.readouterr().out
    assert "network beside the file  ok" in printed
    assert "C beside ONNX Runtime  ok" in printed


@pytest.mark.parametrize("zero", [np.uint8(0), np.int8(-1)])
@pytest.mark.parametrize(("channels", "side", "window"), [(8, 24, 2), (400, 6, 6)], ids=["windows", "whole maps"])
def test_means_of_codes_are_rounded_with_their_own_zero_point(
    channels: int, side: int, window: int, zero: np.generic, tmp_path: Path
) -> None:
    """At one scale many means lie between two codes, where the last bit decides: of whole maps sums are integers."""
    model, scale = tmp_path / "mean.onnx", np.float32(0.01006306)
    codes = [numpy_helper.from_array(np.array(scale), "s"), numpy_helper.from_array(np.array(zero), "z")]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("AveragePool", ["d"], ["m"], kernel_shape=[window] * 2, strides=[window] * 2),
        helper.make_node("QuantizeLinear", ["m", "s", "z"], ["n"]),
        helper.make_node("DequantizeLinear", ["n", "s", "z"], ["y"]),
    ]
    ends = [
        helper.make_tensor_value_info(name, 1, [1, channels, n, n]) for name, n in (("x", side), ("y", side // window))
    ]
    graph = helper.make_graph(nodes, "mean", ends[:1], ends[1:], codes)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), model)
    source = _written(model, tmp_path)
    assert execute_network(str(model), stated_request(source.read_text()), source).details.startswith(
        "outputs of 6 runs"
    )


@pytest.mark.parametrize(("kind", "told"), [("MaxPool", ()), ("AveragePool", ("AVERAGE_POOL_2D",))])
def test_floats_that_are_only_chosen_excuse_no_code_that_is_made_of_them(
    kind: str, told: tuple[str, ...], tmp_path: Path
) -> None:
    model = tmp_path / "pool.onnx"
    codes = [numpy_helper.from_array(np.array(v), n) for n, v in (("s", np.float32(0.1)), ("z", np.int8(3)))]
    nodes = [
        helper.make_node(kind, ["x"], ["m"], kernel_shape=[2, 2]),
        helper.make_node("Transpose", ["m"], ["t"], perm=[0, 3, 2, 1]),
        helper.make_node("QuantizeLinear", ["t", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    ends = [helper.make_tensor_value_info("x", 1, [1, 2, 5, 6]), helper.make_tensor_value_info("y", 1, [1, 5, 4, 2])]
    graph = helper.make_graph(nodes, "pool", ends[:1], ends[1:], codes)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), model)
    assert network_of(str(model)).asked["mixed"] == told


@pytest.mark.parametrize(("bias_scale", "told"), [(0.0004, ""), (0.004, "1 Conv")])
def test_a_bias_of_another_scale_than_the_sums_counts_by_its_own(
    bias_scale: float, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A session then computes the convolution in floats, whose codes may be the next ones."""
    draw = np.random.default_rng(2)
    constants = [
        numpy_helper.from_array(np.asarray(value, kind), name)
        for name, value, kind in (
            ("s", 0.02, np.float32), ("z", 3, np.int8), ("w", draw.integers(-99, 99, (4, 3, 3, 3)), np.int8),
            ("zero", 0, np.int8), ("b", draw.integers(-99, 99, 4), np.int32), ("bs", bias_scale, np.float32),
            ("bz", 0, np.int32),
        )
    ]  # fmt: skip
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("DequantizeLinear", ["w", "s", "zero"], ["weights"]),
        helper.make_node("DequantizeLinear", ["b", "bs", "bz"], ["bias"]),
        helper.make_node("Conv", ["d", "weights", "bias"], ["c"]),
        helper.make_node("QuantizeLinear", ["c", "s", "z"], ["n"]),
        helper.make_node("DequantizeLinear", ["n", "s", "z"], ["y"]),
    ]
    ends = [helper.make_tensor_value_info("x", 1, [1, 3, 9, 9]), helper.make_tensor_value_info("y", 1, [1, 4, 7, 7])]
    graph = helper.make_graph(nodes, "conv", ends[:1], ends[1:], constants)
    model = tmp_path / "conv.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), model)
    assert in_floats(str(model)) == told
    source = _written(model, tmp_path)
    assert main(["verify", str(model), "--against", str(source)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "network beside the file ok" in printed
    off = re.search(r"C beside ONNX Runtime skipped .* differ, by (\S+) at most", printed)
    assert float(off[1]) < 0.021 if off else "C beside ONNX Runtime ok" in printed


@pytest.mark.parametrize("seed", [1, 2], ids=["S8 QOperator", "U8 QDQ"])
def test_codes_of_a_residual_network_are_equal(seed: int, tmp_path: Path) -> None:
    model = tmp_path / "coded.onnx"
    quantised(MODELS / "resnet8.onnx", model, seed, "input")
    held = fit_c(FitCRequest(str(model), output=str(tmp_path / "net.c"))).chosen
    assert held is not None
    done = _executed(model, held.files, tmp_path / "net.c")
    assert done.details.startswith("outputs of 6 runs are equal")
    codes = fit_c(FitCRequest(str(model), interface="int8")).chosen
    assert codes is not None
    assert codes.ram <= 10_400 < held.ram  # the map before the mean is never there as a whole


@pytest.mark.parametrize(("kernels", "folder"), [("cmsis-c", "cmsis-nn"), ("esp-nn", "esp-nn")])
def test_a_library_rounds_otherwise_only_where_it_may(
    kernels: str, folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, source = tmp_path / "coded.onnx", tmp_path / "net.c"
    quantised(MODELS / "resnet8.onnx", model, 1, "input")
    command = ["fit", str(model), "--runtime", "c", "-o", str(source), "--kernels", kernels, "--without", "parts"]
    assert main(command) == 2
    assert "--rounding library takes that" in capsys.readouterr().err
    assert main([*command, "--rounding", "library", "--self-test", str(tmp_path / "test.c")]) == 2
    capsys.readouterr()
    assert main([*command, "--rounding", "library", "--force"]) == 0
    said = re.search(r"rounding +(\d+ of 60 numbers of outputs differ .*)", capsys.readouterr().out)
    assert said
    kit = Path(os.environ.get("MODELPLAN_TFLM_KIT", "none")) / "src" / folder
    monkeypatch.setenv("MODELPLAN_ESP_NN" if kernels == "esp-nn" else "MODELPLAN_CMSIS_NN", str(kit))
    assert main(["verify", str(model), "--against", str(source)]) == 0
    verified = " ".join(capsys.readouterr().out.split())
    assert (" ".join(said[1].split()) if kit.is_dir() else "the file calls") in verified
    assert main(["verify", str(model), "--against", str(source), "--quick"]) == 0
    text, changed = re.subn(r'"rounding":(\s+)"library"', r'"rounding":\1"onnx"', source.read_text())
    assert changed == 1
    source.write_text(text)
    assert main(["verify", str(model), "--against", str(source), "--quick"]) != 0


@pytest.mark.parametrize("name", ["resnet8_int8", "ds_cnn_kws_qdq"])
@pytest.mark.parametrize("options", [(), ("--input", "rows", "--layout", "nhwc")], ids=["held", "rows"])
def test_a_quantised_model_compiles_with_codes_at_its_ends(name: str, options: tuple[str, ...], tmp_path: Path) -> None:
    model = MODELS / "quantised" / f"{name}.onnx"
    source = _written(model, tmp_path, "--interface", "int8", *options)
    flags = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-c"]
    subprocess.run(["cc", *flags, source.name], cwd=tmp_path, check=True)
    assert not data_to_relocate(source, "-O2")
    for ends in (("--interface", "int8"), ()):
        source = _written(model, tmp_path, *ends, *options)
        done = execute_network(str(model), stated_request(source.read_text()), source)
        assert done.details.startswith("outputs of 6 runs are equal")


@pytest.mark.parametrize("seed", [0, 6], ids=["QOperator", "QDQ"])
@pytest.mark.parametrize("bare", [False, True], ids=["converted", "codes"])
def test_codes_at_the_ends_may_have_no_sign(seed: int, bare: bool, tmp_path: Path) -> None:
    """Of a model whose codes have none, as it is or made to begin and end with them."""
    path, _ = drawn("convolution", seed, tmp_path, coded=True)
    if bare:
        take_conversions_of_ends_out(path)
    graph = onnx.load(path).graph
    zeros, names = dict[str, list[int]](), [end.name for end in (*graph.input, *graph.output)]
    for options in ((), ("--layout", "nhwc"), ("--input", "rows", "--layout", "nhwc")):
        for interface, dtype in (("as-is", "uint8" if bare else "float32"), ("int8", "int8"), ("uint8", "uint8")):
            test = tmp_path / "test.c"
            source = _written(path, tmp_path, "--interface", interface, "--self-test", str(test), *options)
            header = source.with_suffix(".h").read_text()
            given = re.findall(rf"/\* \d+ (\S+) \[.*\] {dtype} \*/", header)
            assert given == names if bare else len(given) == 2
            zeros[dtype] = [int(z) for z in re.findall(r"_ZERO_POINT \((-?\d+)\)", header)]
            assert len(zeros[dtype]) == 2 * (dtype != "float32")
            done = execute_network(str(path), stated_request(source.read_text()), source)
            assert done.details.startswith("outputs of 6 runs are equal")
            assert passes_self_test(test.read_text(), header, "net.h")
        assert zeros["uint8"] == [zero + 128 for zero in zeros["int8"]]


def _of_codes(nodes: Sequence[onnx.NodeProto], path: Path, results: Sequence[str] = ("y",)) -> Path:
    """A model of one map of uint8 whose other results are floats, for nodes that read some scales and zero points."""
    tables: dict[str, Any] = {
        "s": np.float32(0.02),
        "z": np.uint8(100),
        "u": np.float32(0.05),
        "v": np.uint8(7),
        "w": np.uint8(3),
    }
    tables |= {"p": np.array([0, 0, 1, 1, 0, 0, 1, 1]), "e": np.array([1, 3, 12, 14])}
    ends = [helper.make_tensor_value_info("x", onnx.TensorProto.UINT8, [1, 3, 6, 7])]
    made = [helper.make_tensor_value_info(name, onnx.TensorProto.UNDEFINED, None) for name in results]
    constants = [numpy_helper.from_array(np.asarray(v), n) for n, v in tables.items()]
    graph = helper.make_graph(list(nodes), "codes", ends, made, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(onnx.shape_inference.infer_shapes(model), path)
    return path


@pytest.mark.parametrize(
    "nodes",
    [
        (("Transpose x", "t", {"perm": [0, 2, 3, 1]}), ("DequantizeLinear t s z", "d", {}), ("Tanh d", "r", {}),
         ("QuantizeLinear r u v", "q", {}), ("MaxPool q", "m", {"kernel_shape": [2, 2]}),
         ("Concat m m", "y", {"axis": 1})),
        (("MaxPool x", "y", {"kernel_shape": [2, 2]}),),
        (("Pad x p z", "t", {}), ("DequantizeLinear t s z", "y", {})),
        (("DequantizeLinear x s z", "d", {}), ("Relu d", "r", {}), ("QuantizeLinear r u", "y", {})),
        (("Identity x", "y", {}), ("DequantizeLinear x s z", "other", {})),
    ],
    ids=["moved", "no scale", "padded", "no zero point", "handed on"],
)  # fmt: skip
@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_codes_without_a_sign_are_moved_as_they_are(layout: str, nodes: Any, tmp_path: Path) -> None:
    built = [helper.make_node(words.split()[0], words.split()[1:], [name], **more) for words, name, more in nodes]
    path = _of_codes(built, tmp_path / "codes.onnx", [n for _, n, _ in nodes if n in ("y", "other")])
    source = _written(path, tmp_path, "--layout", layout)
    done = execute_network(str(path), stated_request(source.read_text()), source)
    assert done.details.startswith("outputs of 6 runs are equal")


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        (("DequantizeLinear x s z d", "DequantizeLinear x u v f", "Add d f y"), "by another scale than"),
        (("Max x x y",), "Max: codes of 8 bits as whole numbers"),
        (("Pad x p w t", "DequantizeLinear t s z y"), "padded by another number than 0"),
    ],
)
def test_codes_that_no_kernel_takes_are_refused_by_name(
    nodes: Sequence[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    built = [helper.make_node(kind, ins, [out]) for kind, *ins, out in map(str.split, nodes)]
    path = _of_codes(built, tmp_path / "codes.onnx")
    assert main(["fit", str(path), "--runtime", "c", "-o", str(tmp_path / "net.c")]) == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "shapes", [((1, 16, 64, 64),) * 2, ((1, 16, 64, 64), (16, 1, 1)), ((16, 1, 1), (1, 16, 64, 64))]
)
def test_sums_of_codes_are_rounded_once(shapes: tuple[tuple[int, ...], ...], tmp_path: Path) -> None:
    """Of these scales one of 200 pairs of codes has another sum where each product is rounded by itself."""
    draw, full = np.random.default_rng(1), (1, 16, 64, 64)
    numbers = {"sa": 0.131, "sb": 0.061, "sc": 0.018, "za": -68, "zb": -78, "zc": -52}
    types = {"s": np.float32, "z": np.int8}
    tables = [numpy_helper.from_array(np.array(v, types[name[0]]), name) for name, v in numbers.items()]
    given = []
    for name, shape in zip("ab", shapes, strict=True):
        if shape == full:
            given.append(helper.make_tensor_value_info(name, onnx.TensorProto.INT8, shape))
        else:
            tables.append(numpy_helper.from_array(draw.integers(-128, 128, shape).astype(np.int8), name))
    inputs = ["a", "sa", "za", "b", "sb", "zb", "sc", "zc"]
    node = helper.make_node("QLinearAdd", inputs, ["sum"], domain="com.microsoft")
    result = helper.make_tensor_value_info("sum", onnx.TensorProto.INT8, full)
    graph = helper.make_graph([node], "sum", given, [result], tables)
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=sets, ir_version=8), tmp_path / "sum.onnx")
    source = _written(tmp_path / "sum.onnx", tmp_path)
    done = execute_network(str(tmp_path / "sum.onnx"), stated_request(source.read_text()), source)
    assert done.details.startswith("outputs of 6 runs are equal")


def _inverted_residual(path: Path) -> None:
    """A convolution that widens a map, a depthwise one, one that narrows it, and the mean."""
    draw, (w, h, c) = np.random.default_rng(4), (24, 24, 8)
    shapes = {"a": (6 * c, c, 1, 1), "b": (6 * c, 1, 3, 3), "c": (c, 6 * c, 1, 1)}
    tables = [numpy_helper.from_array(draw.normal(0, 0.4, s).astype(np.float32), n) for n, s in shapes.items()]
    nodes = [
        helper.make_node("Conv", ["x", "a"], ["wide"]),
        helper.make_node("Relu", ["wide"], ["r"]),
        helper.make_node("Conv", ["r", "b"], ["deep"], group=6 * c, pads=[1] * 4),
        helper.make_node("Relu", ["deep"], ["s"]),
        helper.make_node("Conv", ["s", "c"], ["y"]),
        helper.make_node("GlobalAveragePool", ["y"], ["z"]),
    ]
    ends = [helper.make_tensor_value_info(n, 1, s) for n, s in (("x", (1, c, h, w)), ("z", (1, c, 1, 1)))]
    graph = helper.make_graph(nodes, "residual", ends[:1], ends[1:], tables)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


@pytest.mark.parametrize("coded", [False, True], ids=["floats", "codes"])
def test_maps_between_convolutions_go_by_tiles(tmp_path: Path, *, coded: bool) -> None:
    model, source = tmp_path / "wide.onnx", tmp_path / "net.c"
    _inverted_residual(model)
    if coded:
        quantised(model, model, 1)
    request = FitCRequest(str(model), layout="nhwc", pushed=True)
    plain, tiled = (fit_c(replace(request, max_time=most)).chosen for most in (0.0, 3.0))
    assert plain is not None
    assert tiled is not None
    assert tiled.name == "tiles"
    assert tiled.ram < 0.8 * plain.ram
    assert {"expanded_depthwise", "pooled_conv_2d"} <= {k.source for o in tiled.operators.values() for k in o.kernels}
    assert _executed(model, tiled.files, source).details.startswith("outputs of 6")
    assert not data_to_relocate(source, "-O2")


@pytest.mark.slow
def test_a_quantised_model_finds_its_class_on_a_cortex_m4(tmp_path: Path) -> None:
    import onnxruntime as ort

    missing = [name for name in ("make", "arm-none-eabi-gcc", "qemu-system-arm") if not shutil.which(name)]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    model = tmp_path / "net_q.onnx"
    quantised(MODELS / "mobilenet_v2_like.onnx", model, 1, "input")
    shutil.copytree(MODELS.parent / "docs" / "firmware_c", tmp_path, dirs_exist_ok=True)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = ["make", f"MODEL={model}", "OPTIONS=--layout nhwc --interface int8"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=os.environ | {"PATH": path})
    assert done.returncode == 0, done.stderr[-2000:]
    header = (tmp_path / "net.h").read_text()
    scale = float(re.search(r"NET_INPUT_SCALE ([\d.e-]+)f", header)[1])  # type: ignore[index]
    zero = int(re.search(r"NET_INPUT_ZERO_POINT \((-?\d+)\)", header)[1])  # type: ignore[index]
    codes = (7 * np.arange(96).reshape(-1, 1) + 3 * np.arange(96 * 3)) % 256 - 128
    picture = ((codes - zero) * np.float32(scale)).astype(np.float32).reshape(1, 96, 96, 3).transpose(0, 3, 1, 2)
    scores = ort.InferenceSession(str(model), providers=["CPUExecutionProvider"]).run(None, {"input": picture})[0]
    said = re.search(r"^class (\d+)", done.stdout + done.stderr, re.MULTILINE)
    assert said is not None
    assert int(said[1]) == int(np.argmax(scores))


def test_codes_that_are_read_by_another_scale_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "coded.onnx"
    quantised(MODELS / "resnet8.onnx", model, 1, "input")
    changed = onnx.load(model)
    node = [node for node in changed.graph.node if node.op_type == "QLinearConv"][1]
    changed.graph.initializer.append(numpy_helper.from_array(np.array(0.5, np.float32), "other"))
    node.input[1] = "other"
    onnx.save(changed, model)
    assert main(["fit", str(model), "--runtime", "c", "-o", str(tmp_path / "net.c")]) == 1
    assert "another scale than they were made for" in capsys.readouterr().err


def test_a_changed_table_is_told(tmp_path: Path) -> None:
    source = _written(MODELS / "resnet8.onnx", tmp_path, "--without", "parts")
    text = source.read_text()
    start = text.index("static const float")
    place = text.index("-", start)
    source.write_text(text[:place] + " " + text[place + 1 :])
    assert main(["verify", str(MODELS / "resnet8.onnx"), "--against", str(source)]) == 4


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--input", "rows"), "--layout nhwc"),
        (("--kernels", "cmsis-nn"), "is for codes of 8 bits, of which it has none"),
        (("--rounding", "library"), "is for --kernels of a library"),
        (("--interface", "int8", "--self-test", "test.c"), "no conversion of 'input'"),
        (("--interface", "uint8"), "no conversion of 'input'"),
        (("--interface", "int8"), "no conversion of 'input'"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(
    options: tuple[str, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["fit", str(MODELS / "resnet8.onnx"), "--runtime", "c", "-o", str(tmp_path / "net.c"), *options]
    assert main(command) == 2
    assert said in capsys.readouterr().err


def test_nothing_is_written_where_a_self_test_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "--runtime",
        "c",
        "--kernels",
        "cmsis-dsp",
        "--rounding",
        "library",
        "--self-test",
        str(tmp_path / "test.c"),
    ]
    model = MODELS / "quantised" / "resnet8_int8.onnx"
    assert main(["fit", str(model), "-o", str(tmp_path / "net.c"), *words]) == 2
    assert "no self-test, for --rounding library computes other outputs" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("options", [(), ("--input", "rows", "--layout", "nhwc")], ids=["held", "rows"])
def test_a_self_test_passes_and_tells_a_changed_table(options: tuple[str, ...], tmp_path: Path) -> None:
    test, program = tmp_path / "test.c", tmp_path / "test"
    _written(MODELS / "resnet8.onnx", tmp_path, "--self-test", str(test), *options)
    build = ["cc", "-std=c99", "-O1", "-Wall", "-Werror", f"-I{tmp_path}", str(test), "-lm", "-o", str(program)]
    subprocess.run(build, check=True)
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("PASS: 3 runs\n", 0)
    text = test.read_text()
    place = text.index("0.", text.index("_bias_"))
    test.write_text(text[:place] + "9." + text[place + 2 :])
    subprocess.run(build, check=True)
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "FAIL run 0: output[" in done.stdout


@pytest.mark.parametrize("interface", ["as-is", "int8"])
def test_a_self_test_of_codes_passes(interface: str, tmp_path: Path) -> None:
    model, test, program = tmp_path / "coded.onnx", tmp_path / "test.c", tmp_path / "test"
    quantised(MODELS / "resnet8.onnx", model, 1, "input")
    _written(model, tmp_path, "--self-test", str(test), "--without", "parts", "--interface", interface)
    subprocess.run(["cc", "-std=c99", f"-I{tmp_path}", str(test), "-lm", "-o", str(program)], check=True)
    assert subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout == "PASS: 3 runs\n"


def test_forms_that_fit_are_named_with_their_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, out = str(MODELS / "quantised" / "resnet8_int8.onnx"), str(tmp_path / "net.c")
    assert main(["fit", model, "--runtime", "c", "--budget", "9500", "-o", out]) == 1
    said = capsys.readouterr().out
    named = [line.split()[1:] for line in said.splitlines() if line.startswith("    modelplan fit")]
    assert [("--interface" in words, "--layout" in words) for words in named] == [(False, True), (True, True)]
    assert main(named[1]) == 0
    assert re.search(r"^  RAM .*\(9,\d{3} B\)", capsys.readouterr().out, re.MULTILINE)


def test_all_nodes_without_c_are_named_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    extents = [word for name in ("batch=1", "sequence=4", "past_sequence=4") for word in ("--dim", name)]
    model = str(MODELS / "decoder_kv.onnx")
    assert main(["fit", model, "--runtime", "c", "-o", str(tmp_path / "net.c"), *extents]) == 1
    said = capsys.readouterr().err
    assert all(word in said for word in ("Cast: types int64", "And: no plain C", "'/words/Gather'", "help onnx_c"))


def test_nodes_behind_one_without_c_are_named_too(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"]),
        helper.make_node("Det", ["a"], ["b"], name="first"),
        helper.make_node("Relu", ["b"], ["c"]),
        helper.make_node("Elu", ["c"], ["d"]),
        helper.make_node("AveragePool", ["a"], ["e"], kernel_shape=[2, 2], dilations=[2, 2], name="second"),
        helper.make_node("Relu", ["e"], ["f"]),
        helper.make_node("Softmax", ["f"], ["g"], axis=2, name="third"),
    ]
    given = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 2, 8, 8])
    ends = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, None) for n in "dg"]
    weights = numpy_helper.from_array(np.ones((3, 2, 1, 1), np.float32), "w")
    graph = helper.make_graph(nodes, "g", [given], ends, [weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), tmp_path / "m.onnx")
    with pytest.raises(MissingKernelError) as refused:
        network_of(str(tmp_path / "m.onnx"))
    said = str(refused.value)
    assert [said.count(word) for word in ("'first'", "'second'", "'third'", "node")] == [1, 1, 1, 4], said


def test_a_source_of_another_model_is_told_from_wrong_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = onnx.load(MODELS / "resnet8.onnx")
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    onnx.save(model, tmp_path / "open.onnx")
    source = _written(tmp_path / "open.onnx", tmp_path, "--dim", "batch=1", "--without", "overlaps,rows,again,parts")
    assert main(["verify", str(MODELS / "unet_small.onnx"), "--against", str(source)]) == 2
    assert "the C source was written of another model than" in capsys.readouterr().err


def test_the_order_of_axes_stands_in_the_header(tmp_path: Path) -> None:
    model, quick = MODELS / "resnet8.onnx", ("--without", "parts")
    first = _written(model, tmp_path, *quick).with_suffix(".h").read_text()
    assert "The channels come first" in first
    assert "input [1, 3, 32, 32] float32" in first
    last = _written(model, tmp_path, *quick, "--layout", "nhwc").with_suffix(".h").read_text()
    assert "The channels come last" in last
    assert "input [1, 32, 32, 3] float32" in last


@pytest.mark.parametrize("more", [(), ("-DNET_INTEGER",), ("-O3", "-ffast-math", "-march=native")])
def test_a_product_with_a_float_rounds_as_float32_does(more: tuple[str, ...], tmp_path: Path) -> None:
    draw = np.random.default_rng(7)
    sums = np.concatenate([draw.integers(-(2**31), 2**31, 4000), draw.integers(-5000, 5000, 4000)]).astype(np.int32)
    scales = (10 ** draw.uniform(-9, 0, 8000)).astype(np.float32)
    scales[::5] = np.float32(2.0) ** draw.integers(-20, 0, 1600)  # where halves are met
    scales[::50] = 0
    product = np.rint(sums.astype(np.float32) * scales)
    pairs = [(int(s), *single_multiplier(float(f))) for s, f in zip(sums, scales, strict=True)]
    rows = ",\n".join(f"{{{s if s != -(2**31) else '-2147483647 - 1'}, {m}, {e}}}" for s, m, e in pairs)
    text = "\n".join(all_sources([("conv_2d", "int8_even")]))
    program = tmp_path / "even.c"
    program.write_text(
        "#include <float.h>\n#include <math.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <string.h>\n"
        f"{text}\nstatic const int32_t rows[][3] = {{{rows}}};\n"
        "int main(void)\n{\n    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {\n"
        "        const int32_t *of = rows[i];\n"
        "        const int32_t code = scaled_int8_even((int32_t)((uint32_t)of[0] - 9u), 9, of[1], of[2], 3);\n"
        '        printf("%ld %ld\\n", (long)rescale_even(of[0], of[1], of[2]), (long)clamp(code, -128, 127));\n'
        "    }\n    return 0;\n}\n"
    )
    flags = ("-std=c99", "-O1", "-w", *more, "-fsanitize=undefined", "-fno-sanitize-recover=all")
    subprocess.run(["cc", *flags, str(program), "-lm", "-o", str(tmp_path / "even")], check=True)
    printed = subprocess.run([str(tmp_path / "even")], capture_output=True, text=True, check=True).stdout
    inside = np.abs(product) < 2**30
    found = np.array([line.split() for line in printed.splitlines()], np.int64)
    assert found[inside, 0].tolist() == product[inside].astype(np.int64).tolist()
    assert found[:, 1].tolist() == np.clip(product + 3, -128, 127).astype(np.int64).tolist()


_CODED_MAIN = """
#include <stdio.h>
#include "floats.h"
#include "codes.h"
int main(void) {
  for (unsigned run = 0; run < 4; run++) {
    for (unsigned i = 0, z = run; i < CODES_INPUT_BYTES; i++) {
      z = z * 1664525u + 1013904223u;
      codes_input()[i] = (int8_t)(z >> 24);
      floats_input()[i] = (float)(codes_input()[i] - CODES_INPUT_ZERO_POINT) * CODES_INPUT_SCALE;
    }
    floats_invoke();
    codes_invoke();
    for (unsigned i = 0; i < CODES_OUTPUT_BYTES; i++) {
      const float wanted = (float)(codes_output()[i] - CODES_OUTPUT_ZERO_POINT) * CODES_OUTPUT_SCALE;
      if (floats_output()[i] != wanted) { printf("run %u, output %u\\n", run, i); return 1; }
    }
  }
  return 0;
}
"""


@pytest.mark.parametrize("name", ["resnet8_int8", "ds_cnn_kws_qdq", "drawn QOperator", "drawn QDQ U8"])
def test_codes_at_the_ends_stand_for_the_floats(name: str, tmp_path: Path) -> None:
    model = MODELS / "quantised" / f"{name}.onnx"
    if name.startswith("drawn"):
        model = tmp_path / "wide.onnx"
        _inverted_residual(model)
        quantised(model, model, 1 + name.endswith("U8"))
    for ends, interface in (("floats", "as-is"), ("codes", "int8")):
        options = ("--layout", "nhwc", "--interface", interface, "--name", ends)
        _written(model, tmp_path, *options).rename(tmp_path / f"{ends}.c")
        (tmp_path / "net.h").rename(tmp_path / f"{ends}.h")
        text = (tmp_path / f"{ends}.c").read_text()
        (tmp_path / f"{ends}.c").write_text(text.replace('"net.h"', f'"{ends}.h"'))
    (tmp_path / "main.c").write_text(_CODED_MAIN)
    sources = ["main.c", "floats.c", "codes.c"]
    command = ["cc", "-std=c99", "-O2", *sources, "-lm", "-o", "both"]  # as users compile it: sanitizers hide faults
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run(["./both"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[:2000]
