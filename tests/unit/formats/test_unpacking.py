"""Models inside of gzip files, C source and standard input, and files of other tools."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from commands import run

from modelplan.formats import load_model
from modelplan.formats.whole_files import read_model
from modelplan.primitives.errors import ModelError

_PROGRAM = (sys.executable, "-P", "-m", "modelplan")


def as_c(content: bytes, name: str = "g_model") -> str:
    """The bytes as people keep them in firmware."""
    numbers = ",\n  ".join(f"0x{byte:02x}" for byte in content)
    return f"#include <stdint.h>\n// {{a comment}}\nalignas(16) const unsigned char {name}[] = {{\n  {numbers}\n}};\n"


@pytest.fixture
def content(models: Path) -> bytes:
    return (models / "ds_cnn_kws.tflite").read_bytes()


def test_wrapped_models_are_the_models_themselves(models: Path, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.cc").write_text(as_c(content) + "const unsigned int g_model_len = 12;\n")
    (tmp_path / "model.h").write_text("#pragma once\n/* none = {1} */ const int sizes[2] = {1, 700};\n" + as_c(content))
    (tmp_path / "model.tflite.gz").write_bytes(gzip.compress(content))
    plain = load_model(models / "ds_cnn_kws.tflite")
    for file in tmp_path.iterdir():
        assert read_model(file) == content
        assert load_model(file).ops == plain.ops
    onnx = (models / "resnet8.onnx").read_bytes()
    (tmp_path / "net.onnx.gz").write_bytes(gzip.compress(onnx))
    assert len(load_model(tmp_path / "net.onnx.gz").ops) == len(load_model(models / "resnet8.onnx").ops)


@pytest.mark.slow
def test_commands_take_them(models: Path, tmp_path: Path, content: bytes) -> None:
    array = tmp_path / "model.cc"
    array.write_text(as_c(content))
    named = run("analyze", models / "ds_cnn_kws.tflite").stdout.splitlines()
    end = named.index("What would lower it")  # where commands name the file
    assert run(array).stdout.splitlines()[1:end] == named[1:end]
    assert run("check", array, "--budget", "64KiB").returncode == 0
    fitted = tmp_path / "fitted.tflite"
    assert run("fit", array, "--kernels", "reference", "--without", "split", "--least", "-o", fitted).returncode == 0
    ordered = tmp_path / "ordered.tflite"
    assert run("fit", "--only", "order", array, "-o", ordered).returncode == 0
    assert load_model(ordered).tensors == load_model(array).tensors
    done = run("fit", "--only", "order", array, "-o", tmp_path / "ordered.cc")
    assert (done.returncode, "expected a name that ends in .tflite" in done.stderr) == (2, True)
    assert run("diff", array, fitted, "--kernels", "reference").returncode == 0
    for model in ("ds_cnn_kws.tflite", "resnet8.onnx"):
        piped = subprocess.run([*_PROGRAM, "-"], input=(models / model).read_bytes(), capture_output=True, check=True)
        assert b"operators" in piped.stdout.splitlines()[1]


@pytest.mark.slow
def test_what_is_no_model_is_refused(tmp_path: Path, content: bytes) -> None:
    for name, data, reason in [
        ("two.cc", (as_c(content, "a") + as_c(content, "b")).encode(), r"several models \(a, b\), expected one"),
        ("none.cc", b"int x[] = {1, 2};", "no array of a TFLite model in it"),
        ("cut.tflite.gz", gzip.compress(content)[:100], "no gzip file, or damaged"),
        ("text.tflite.gz", b"hello", "no gzip file, or damaged"),
        ("table.csv.gz", gzip.compress(b"id,lower,upper,size\n"), "expected one of .tflite, .onnx"),
        ("empty.cc", b"", "no array of a TFLite model in it"),
        ("other.tflite.gz", gzip.compress(b"hello world"), "found text, expected a TFLite flatbuffer"),
    ]:
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ModelError, match=reason):
            load_model(tmp_path / name)
    for data in (b"", b"hello world, no model"):
        piped = subprocess.run([*_PROGRAM, "analyze", "-"], input=data, capture_output=True, check=False)
        assert (piped.returncode, piped.stderr.startswith(b"modelplan: standard input: ")) == (3, True)


@pytest.mark.parametrize("part", ["/*", "a", "a[", "a[]", "a[] ", " ", "a[]={", "[0]="])
def test_long_c_source_without_a_model_is_read_through_in_a_few_passes(tmp_path: Path, part: str) -> None:
    (tmp_path / "long.h").write_text(part * 500_000)
    with pytest.raises(ModelError, match="no array of a TFLite model in it"):
        load_model(tmp_path / "long.h")


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("net.h5", "from_keras_model"), ("net.keras", "from_keras_model"), ("net.pb", "tf2onnx"),
        ("net.pt", "torch.onnx.export"), ("net.pth", "torch.onnx.export"), ("net.task", "unzip"),
        ("net.safetensors", "weights without a graph"),
        ("https://example.org/net.tflite", "^https://example.org/net.tflite: a URL; download it first"),
    ],
)  # fmt: skip
def test_files_of_other_tools_get_the_way_out(name: str, way: str) -> None:
    with pytest.raises(ModelError, match=way):
        load_model(name)


def test_a_name_that_is_too_long_is_refused_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "table.toml").write_text(f'models = "{"a" * 5000}.tflite"\n')
    for words in (("a" * 5000 + ".tflite",), ("sweep", tmp_path / "table.toml", "-o", tmp_path / "rows.parquet")):
        done = run(*words)
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
        assert done.stderr.endswith("File name too long\n")


def _training_models() -> dict[str, onnx.ModelProto]:
    """A model with a training algorithm beside its graph, and some whose nodes compute gradients or change weights."""
    ends = [onnx.helper.make_tensor_value_info(name, 1, [2]) for name in ("x", "w", "y")]
    models = {}
    for kind, domain in (("Gradient", "ai.onnx.preview.training"), ("ReluGrad", "com.microsoft"), ("Relu", "")):
        node = onnx.helper.make_node(kind, ["x", "w"][: 1 + bool(domain)], ["y"], domain=domain)
        graph = onnx.helper.make_graph([node], "g", ends[:2], ends[2:])
        models[kind] = onnx.helper.make_model(graph)
    models["Relu"].training_info.add().algorithm.name = "g"
    return models


def test_models_that_train_get_the_way_to_inference(tmp_path: Path) -> None:
    for name, model in _training_models().items():
        (tmp_path / "net.onnx").write_bytes(model.SerializeToString())
        what = "training_info" if name == "Relu" else f"node {name}"
        with pytest.raises(ModelError, match=rf"net.onnx: a model that trains \({what}\); .*torch.onnx.export"):
            load_model(tmp_path / "net.onnx")


def test_a_wrapped_model_says_which_weights_are_missing(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    weight = onnx.numpy_helper.from_array(np.zeros((4, 4), np.float32), "w")
    ends = [onnx.helper.make_tensor_value_info(name, 1, [1, 4]) for name in ("x", "y")]
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("MatMul", ["x", "w"], ["y"])], "g", ends[:1], ends[1:], [weight]
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    path, wrapped = tmp_path / "net.onnx", tmp_path / "net.onnx.gz"
    onnx.save_model(model, str(path), save_as_external_data=True, location="net.data", size_threshold=0)
    wrapped.write_bytes(gzip.compress(path.read_bytes()))
    assert "measured: onnxruntime" in run(path).stdout
    missing = "not measured: its weights lie in net.data, which is not there"
    assert f"{missing}; a file that is unpacked or piped has none beside it" in " ".join(run(wrapped).stdout.split())
    assert (
        "fit takes an .onnx file that lies beside" in run("fit", wrapped, "--least", "-o", tmp_path / "a.onnx").stderr
    )
    (tmp_path / "net.data").unlink()
    assert missing in run(path).stdout


def test_folders_and_misspelt_files_are_called_what_they_are(tmp_path: Path, models: Path) -> None:
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "saved_model.pb").touch()
    with pytest.raises(ModelError, match=r"a TensorFlow SavedModel; .*from_saved_model"):
        load_model(tmp_path / "saved")
    with pytest.raises(ModelError, match=r"No such file or directory; did you mean 'resnet8.tflite'"):
        load_model(models / "reznet8.tflite")
    assert "a folder without .tflite or .onnx files" in run(tmp_path).stderr
