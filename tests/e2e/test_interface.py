"""`fit --interface`: inputs and outputs of another type, which the program converts, equal behind these conversions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from commands import run
from random_cnns import Network, random_cnn

from modelplan import FitRequest, RequestError, fit
from modelplan.checking.verifier.rewrites.comparing import compare_rows
from modelplan.checking.verifier.rewrites.executing import ExecutionEffort, converted_runs
from modelplan.checking.verifier.rewrites.interface import HostConversion, host_side
from modelplan.checking.verifier.rewrites.proving import prove_rewrite
from modelplan.checking.verifier.rewrites.reading import Source, read_source
from modelplan.formats import load_model
from modelplan.rewriting.striped_tflite.interface import with_interface
from modelplan.runtimes.tflm.file import read_tflite
from modelplan.runtimes.tflm.metadata import INTERFACE, read_interface
from modelplan.runtimes.tflm.runner import INSTALL, installed, run_tflm, tflm_values

runtime = pytest.mark.skipif(not installed(), reason=f"tflite-micro is not installed: {INSTALL}")

_FLOAT, _UINT8, _INT8, _INT32 = 0, 3, 9, 2
_INNER = (0.04, -5)
_TYPES = {"float32": (_FLOAT, None), "uint8": (_UINT8, (0.04, 123)), "int8": (_INT8, _INNER)}


def network(entry: str, exit_type: str, seed: int = 1, *, unused: bool = False) -> bytes:
    """A convolution and a pool between conversions from and to these types; int8 stands for none."""
    net = Network(np.random.default_rng(seed))
    shape = (1, int(net.rng.integers(9, 20)), int(net.rng.integers(9, 20)), int(net.rng.integers(1, 4)))
    if unused:
        net.tensor((1, 40, 40, 40))
    x = first = net.tensor(shape, *_TYPES[entry])
    if entry != "int8":
        x = net.operator("QUANTIZE", [x], net.tensor(shape, scale=_INNER))
    for _ in range(int(net.rng.integers(1, 3))):
        x = net.window(x, "CONV_2D")
    if exit_type == "float32":
        x = net.operator("DEQUANTIZE", [x], net.tensor(net.shapes[x], _FLOAT, None))
    elif exit_type == "uint8":
        x = net.operator("QUANTIZE", [x], net.tensor(net.shapes[x], _UINT8, (0.05, 125)))
    return net.file(first, x)


def changed(data: bytes, folder: Path, dtype: str) -> bytes:
    """The file with another interface."""
    path = folder / "model.tflite"
    path.write_bytes(data)
    return with_interface(data, load_model(path), dtype).content


def types(data: bytes) -> list[str]:
    """The types of input and output."""
    source = read_source(read_tflite(data, "file"))
    part = source.parts[0]
    return [part.cells[t].coding.dtype for t in (*part.inputs, *part.outputs)]


@runtime
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("exit_type", ["float32", "uint8", "int8"])
@pytest.mark.parametrize("entry", ["float32", "uint8", "int8"])
def test_every_pair_of_types_is_equal_behind_the_conversions(
    tmp_path: Path, entry: str, exit_type: str, dtype: str
) -> None:
    data = network(entry, exit_type, seed=len(entry + exit_type))
    after = changed(data, tmp_path, dtype)
    assert types(after) == [dtype, dtype]
    rows = read_interface(after)
    assert len(rows) == (entry != dtype) + (exit_type != dtype)
    if after == data:
        return
    original, rewritten = (read_source(read_tflite(content, "file")) for content in (data, after))
    host = compare_rows(original, rewritten).host

    def given(content: bytes, feeds: Sequence[Sequence[np.ndarray]]) -> list[list[np.ndarray]]:
        return [ys for ys, _ in tflm_values(content, [[x.tobytes() for x in feed] for feed in feeds])]

    before_run, after_run = converted_runs(original, rewritten, host, ExecutionEffort(3), given)
    assert before_run(data) == after_run(after)
    assert len(set(before_run(data))) > 1


@pytest.mark.slow
@runtime
def test_stripes_behind_another_interface_are_proved(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(network("float32", "float32", 4, unused=True))
    ladder = fit(FitRequest(path, interface="int8", kernels="reference", max_time=9, max_macs=1))
    assert [rung.name for rung in ladder.rungs][:2] == ["as is", "interface"]
    assert ladder.chosen
    assert ladder.chosen.name != "as is"
    assert types(ladder.chosen.model) == ["int8", "int8"]
    assert {verdict.level: verdict.outcome for verdict in ladder.proof} == {
        "rows": "ok", "memory": "ok", "TFLM": "ok", "LiteRT": "ok",
    }  # fmt: skip
    assert "output 0 int8 with scale" in ladder.proof[0].details


def test_unasked_the_interface_stays_and_is_named(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(network("float32", "float32"))
    done = run("fit", path, "--least", "-o", tmp_path / "out.tflite", "--without", "split")
    assert done.returncode == 0, done.stderr
    assert "--interface int8 is never taken unasked" in " ".join(done.stdout.split())
    assert types((tmp_path / "out.tflite").read_bytes()) == ["float32", "float32"]
    for command in (("explain", path, "--capacity", "2KiB"), ("check", path, "--budget", "2KiB")):
        assert "int8 inputs and outputs" in run(*command).stdout, command


def test_the_header_has_scale_and_zero_point(tmp_path: Path) -> None:
    path, header = tmp_path / "model.tflite", tmp_path / "arena.h"
    path.write_bytes(network("float32", "float32"))
    words = ("--least", "-o", tmp_path / "out.tflite", "--without", "split", "--interface", "int8", "--header", header)
    assert run("fit", path, *words).returncode == 0
    text = header.read_text()
    assert "inline constexpr float kInput0Scale = 0.0399999991f;\ninline constexpr int kInput0ZeroPoint = -5;" in text
    assert "kOutput0ZeroPoint = -3;" in text


@runtime
def test_the_self_test_expects_what_the_model_gives(tmp_path: Path) -> None:
    path, test = tmp_path / "model.tflite", tmp_path / "test.cc"
    path.write_bytes(network("float32", "float32"))
    words = ("--least", "-o", tmp_path / "out.tflite", "--without", "split", "--interface", "int8")
    done = run("fit", path, *words, "--self-test", test)
    assert done.returncode == 0, done.stderr
    assert "PASS" in test.read_text()


def test_an_interface_that_is_there_already_is_said(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(random_cnn(0))
    ladder = fit(FitRequest(path, interface="int8", without=frozenset({"split"})))
    assert ladder.remarks[0] == "its inputs and outputs are int8 already"
    assert ladder.rungs[0].name == "as is"


def test_what_cannot_change_is_refused(tmp_path: Path) -> None:
    net = Network(np.random.default_rng(2))
    first = net.tensor((1, 9, 9, 2), _FLOAT, None)
    (tmp_path / "floats.tflite").write_bytes(net.file(first, net.add(first, first)))
    done = run("fit", tmp_path / "floats.tflite", "--least", "-o", tmp_path / "out.tflite", "--interface", "int8")
    assert done.returncode == 2
    assert "--interface int8 changes nothing: input 't0' is read by ADD as it is" in done.stderr
    with pytest.raises(RequestError, match="no interface 'int4'"):
        fit(FitRequest(tmp_path / "floats.tflite", interface="int4"))


def test_the_operator_that_computes_on_moved_floats_is_named(tmp_path: Path) -> None:
    net = Network(np.random.default_rng(2))
    first = net.tensor((1, 9, 9, 2), _FLOAT, None)
    numbers = [net.tensor((4,), _INT32, None, np.array(n, "<i4").tobytes()) for n in ((0, 1, 0, 0), (1, 4, 9, 2))]
    half = net.operator("SLICE", [first, *numbers], net.tensor((1, 4, 9, 2), _FLOAT, None))
    (tmp_path / "floats.tflite").write_bytes(net.file(first, net.add(half, half)))
    done = run("fit", tmp_path / "floats.tflite", "--least", "-o", tmp_path / "out.tflite", "--interface", "int8")
    assert done.returncode == 2
    assert "read by SLICE as it is: op 1 ADD behind that computes in float32, so the file has no scale" in done.stderr


def test_tensors_that_nothing_uses_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(network("int8", "int8", unused=True))
    ladder = fit(FitRequest(path, without=frozenset({"split"})))
    heads = {rung.name: rung.head for rung in ladder.rungs}
    assert heads["as is"] >= 64_000 > heads["views"]
    assert ladder.chosen
    counts = [len(read_tflite(data, "file").tensors) for data in (path.read_bytes(), ladder.chosen.model)]
    assert counts[1] == counts[0] - 1


def other_coding(source: Source, end: str, **values: object) -> Source:
    """The file with another coding at its input or output."""
    part = source.parts[0]
    (t,) = getattr(part, end)
    cell = part.cells[t]
    cells = (*part.cells[:t], replace(cell, coding=replace(cell.coding, **values)), *part.cells[t + 1 :])
    return replace(source, parts=(replace(part, cells=cells),))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("end", ["inputs", "outputs"])
@pytest.mark.parametrize("values", [{"scales": (0.5,)}, {"zero_points": (7,)}])
def test_another_scale_or_zero_point_is_a_fault(
    tmp_path: Path, dtype: str, end: str, values: dict[str, object]
) -> None:
    data = network("float32", "float32")
    after = changed(data, tmp_path, dtype)
    sources = [read_source(read_tflite(content, "file")) for content in (data, after)]
    compare_rows(sources[0], sources[1])
    with pytest.raises(Exception, match=r"differs|the model has no such|gives|cannot be proved"):
        compare_rows(sources[0], other_coding(sources[1], end, **values))


def test_a_file_that_does_not_say_so_is_no_rewrite(tmp_path: Path) -> None:
    data = network("float32", "float32")
    after = changed(data, tmp_path, "int8")
    hidden = after.replace(INTERFACE.encode(), b"x" * len(INTERFACE))
    with pytest.raises(RequestError, match="input 0 has coding"):
        prove_rewrite(data, hidden)


def test_a_wrong_conversion_is_seen_by_execution(tmp_path: Path) -> None:
    """The program's formula counts, too: one zero point off changes the outputs."""
    data = network("float32", "float32")
    original, rewritten = (read_source(read_tflite(c, "f")) for c in (data, changed(data, tmp_path, "int8")))
    host = host_side(original, rewritten)
    (end,) = host.inputs
    assert end is not None
    wrong = HostConversion(end.outer, replace(end.inner, coding=replace(end.inner.coding, zero_points=(-4,))))
    values = np.linspace(-9, 9, 40, dtype=np.float32)
    assert (end.quantised(values) != wrong.quantised(values)).sum() > 20
    assert np.array_equal(end.quantised(end.restored(np.arange(-128, 128))), np.arange(-128, 128, dtype=np.int8))
    assert np.array_equal(end.quantised(np.array([0.02, -0.02, 0.1, 1e9], np.float32)), [-4, -6, -2, 127])


@pytest.mark.slow
@runtime
@pytest.mark.parametrize("name", ["blazeface_front_128", "yolo_lc_192"])
def test_networks_of_cameras(corpus: Path, tmp_path: Path, name: str) -> None:
    data = (corpus / "camera" / f"{name}.tflite").read_bytes()
    for dtype in ("int8", "uint8"):
        assert [v.outcome for v in prove_rewrite(data, changed(data, tmp_path, dtype))] == ["ok", "ok"]
    assert run_tflm(changed(data, tmp_path, "int8")).head
