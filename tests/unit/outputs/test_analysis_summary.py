"""The short report of `analyze`: at most 25 lines of 80 columns, and the tables of several models."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from commands import run
from onnx import TensorProto, helper

from modelplan.outputs.report import terminal_width

#: Lines and columns of the report; lines with commands to paste may be longer.
_LINES, _COLUMNS = 25, 80


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe of 80 columns."""
    monkeypatch.setenv("COLUMNS", str(_COLUMNS))


def check_short(model: Path, *options: str) -> None:
    """The report of `model` is short, and commands to paste stand in one line each."""
    done = run("analyze", model, *options)
    lines = done.stdout.splitlines()
    assert done.returncode in (0, 1), done.stderr
    assert len(lines) <= _LINES, done.stdout
    for line in lines:
        if "modelplan " not in line:
            assert terminal_width(line) <= _COLUMNS, line
    if done.returncode == 0:
        assert lines[-1].startswith(f"  modelplan explain {model} ")
        assert "  # all changes, ranked" in lines[-1]


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--kernels", "esp-nn"), ("--capacity", "64KiB")])
def test_the_projects_models_are_answered_in_25_lines(models: Path, options: tuple[str, ...]) -> None:
    for model in sorted(models.glob("*.tflite")):
        check_short(model, *options)


@pytest.mark.parametrize("name", ["stage/block/layer_" * 60, "很长的名字层" * 60])
def test_long_and_wide_names_are_answered_in_25_lines(tmp_path: Path, name: str) -> None:
    nodes = [helper.make_node("Relu", [f"{name}{i}"], [f"{name}{i + 1}"], name=f"{name}{i}") for i in range(6)]
    ends = [helper.make_tensor_value_info(f"{name}{i}", TensorProto.FLOAT, [1, 8, 16, 16]) for i in (0, 6)]
    graph = helper.make_graph(nodes, "chain", ends[:1], ends[1:])
    path = tmp_path / "chain.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())
    check_short(path, "--measure", "0")
    check_short(path, "--runtime", "generic")


@pytest.mark.slow
def test_real_models_are_answered_in_25_lines(corpus: Path, models: Path) -> None:
    files = [*(corpus / "tflite").rglob("*.tflite"), *(corpus / "camera").glob("*.tflite")]
    assert len(files) > 30
    for model in files:
        check_short(model)
    for name in ("inception_like", "mobilenet_v2_like", "resnet8", "transformer_encoder", "unet_small"):
        check_short(models / f"{name}.onnx", "--measure", "0")


def test_the_number_the_peak_and_remedies_stand_there(models: Path) -> None:
    said = run("analyze", models / "resnet8.tflite").stdout
    model = models / "resnet8.tflite"
    assert f"\n  15 operators; int8 1x32x32x3 -> int8 1x10; flash {model.stat().st_size:,} bytes\n" in said
    assert "  #define TENSOR_ARENA_SIZE 110144  // any kernels below; less with --kernels\n" in said
    assert "Peak at step 9: op 9 CONV_2D, 103,232 bytes alive\n  86,848  84%  scratch of op 9 CONV_2D\n" in said
    named = f"  55,792 bytes less: your kernels named: reference (others: the table above)\n    modelplan {model}"
    assert f"\nWhat would lower it\n{named} --kernels reference\n" in said
    assert f"\n    modelplan fit {model} --runtime c --least -o resnet8.c\n" in said
    tensor = "resnet8_1/conv2d_7_1/convolution1"
    assert f"\nWhy {tensor} shares or not\n" in run("analyze", model, "--why-not", tensor).stdout
    narrow = run("analyze", model, "--kernels", "esp-nn", "--capacity", "64KiB").stdout
    fit = f"modelplan fit {model} --kernels esp-nn --budget 65536 -o resnet8_fitted.tflite"
    assert f"\n  perhaps less: a rewritten file, a search of up to about 25 s\n    {fit}\n" in narrow
    wide = run("analyze", model, "--kernels", "esp-nn", "--capacity", "640KiB").stdout
    assert f"\n    modelplan fit {model} --kernels esp-nn --least -o resnet8_fitted.tflite\n" in wide


def test_plain_c_is_answered_with_its_own_command(models: Path) -> None:
    said = run("analyze", models / "ds_cnn_kws.tflite", "--runtime", "c").stdout
    assert "  #define NET_RAM_BYTES 8640\n" in said
    assert "Peak of whole maps, of which the plan keeps parts, at step 1" in " ".join(said.split())
    assert "--runtime c --least -o ds_cnn_kws.c\n" in said
    assert "  perhaps less: rows in parts, a search of up to about 5 s\n" in said


@pytest.mark.slow
def test_commands_can_be_pasted_whatever_the_file_is_called(models: Path, tmp_path: Path) -> None:
    (tmp_path / "my net.tflite").write_bytes((models / "resnet8.tflite").read_bytes())
    said = run("analyze", tmp_path / "my net.tflite", "--kernels", "reference").stdout
    commands = [line.partition("  #")[0] for line in said.splitlines() if line.lstrip().startswith("modelplan ")]
    assert len(commands) == 4
    for command in commands[1:]:
        assert run(*shlex.split(command)[1:], cwd=tmp_path).returncode == 0


def test_kernel_libraries_that_need_the_same_share_a_row(models: Path) -> None:
    said = run("analyze", models / "ds_cnn_kws.tflite").stdout
    assert "  cmsis-c, cmsis-dsp  " in said
    assert said.count("cmsis-dsp") == 1


def test_several_files_and_folders_give_a_table(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("resnet8", "ds_cnn_kws"):
        (tmp_path / f"{name}.tflite").write_bytes((models / f"{name}.tflite").read_bytes())
    (tmp_path / "broken.tflite").write_bytes(b"\0\0\0\0TFL3")
    monkeypatch.chdir(tmp_path)
    done = run(".", "--kernels", "reference", "--capacity", "40KiB")
    assert done.returncode == 3
    assert "broken.tflite" in done.stderr
    assert done.stdout.splitlines() == [
        "2 models in .",
        "  model              memory  planned    file  for              fits",
        "  -----------------  ------  -------  ------  ---------------  ----",
        "  ds_cnn_kws.tflite  22,768   16,000  42,680  tflm, reference  yes",
        "  resnet8.tflite     54,352   49,152  92,176  tflm, reference  no",
    ]
    one = run(tmp_path / "resnet8.tflite", "--kernels", "reference").stdout
    assert f"#define TENSOR_ARENA_SIZE {54352}\n" in one
