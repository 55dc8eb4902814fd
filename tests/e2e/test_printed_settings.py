"""The settings that `modelplan fit` prints to paste: Python runs, C++ parses beside declarations."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from commands import run
from onnx import helper, numpy_helper

from modelplan.runtimes.ort.measuring import SessionSettings
from modelplan.runtimes.ort.settings_code import cpp_settings, python_settings

pytest.importorskip("onnxruntime")

_SUPPORT = Path(__file__).resolve().parents[1] / "support"
_USED = """
import json
import numpy
import onnxruntime
{lines}
arguments = {{"run_options": run}} if "run" in dir() else {{}}
(y,) = session.run(None, {{"x": numpy.ones((1, 2, 8, 8), numpy.float32)}}, **arguments)
print(json.dumps([
    str(options.graph_optimization_level).split(".")[-1], options.intra_op_num_threads, options.enable_cpu_mem_arena,
    options.enable_mem_pattern, str(options.execution_order).split(".")[-1], float(y[0, 0, 4, 4]),
]))
"""


def convolution(path: Path) -> Path:
    """A convolution that sums up 3 x 3 x 2 ones."""
    weights = numpy_helper.from_array(np.ones((1, 2, 3, 3), np.float32), "w")
    node = helper.make_node("Conv", ["x", "w"], ["y"], "conv", pads=[1, 1, 1, 1])
    x, y = (helper.make_tensor_value_info(n, 1, [1, c, 8, 8]) for n, c in (("x", 2), ("y", 1)))
    graph = helper.make_graph([node], "g", [x], [y], [weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def used(lines: str) -> Any:
    """What a session that these lines make was told, and what it computes."""
    done = subprocess.run(
        [sys.executable, "-c", _USED.format(lines=lines)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    import json

    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (SessionSettings(), ["ORT_ENABLE_ALL", 1, True, True, "DEFAULT"]),
        (
            SessionSettings("extended", 2, arena="off", pattern=False, order="priority"),
            ["ORT_ENABLE_EXTENDED", 2, False, False, "PRIORITY_BASED"],
        ),
        (SessionSettings("basic", arena="exact", shrink=True), ["ORT_ENABLE_BASIC", 1, True, True, "DEFAULT"]),
        (SessionSettings("disable", pattern=False, shrink=True), ["ORT_DISABLE_ALL", 1, True, False, "DEFAULT"]),
    ],
)
def test_python_lines_make_the_session(tmp_path: Path, settings: SessionSettings, expected: list[Any]) -> None:
    model = convolution(tmp_path / "m.onnx")
    assert used("\n".join(python_settings(settings, str(model)))) == [*expected, 18.0]


@pytest.mark.slow
def test_lines_as_printed_run(tmp_path: Path) -> None:
    model = convolution(tmp_path / "m.onnx")
    done = run("fit", model, "--least", "--ort-level", "basic", "--without", "order,split", "-o", tmp_path / "out.onnx")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    start = next(k for k, line in enumerate(lines) if line.strip() == "Python")
    end = next(k for k, line in enumerate(lines) if line.strip() == "C++")
    printed = [line.strip() for line in lines[start + 1 : end] if line.strip()]
    found = used("\n".join(printed))
    assert found[0] == "ORT_ENABLE_BASIC"
    assert found[-1] == 18.0


def test_cpp_lines_name_keys_that_the_library_knows() -> None:
    import onnxruntime

    library = b"".join(path.read_bytes() for path in (Path(onnxruntime.__file__).parent / "capi").glob("*.so*"))
    settings = SessionSettings("basic", arena="exact", pattern=False, order="priority", shrink=True)
    lines = cpp_settings(settings, "m.onnx")
    keys = [line.split('"')[1] for line in lines if "AddConfigEntry" in line]
    assert keys == ["session.use_env_allocators", "memory.enable_memory_arena_shrinkage"]
    assert all(key.encode() in library for key in keys)
    assert b"session.execution_order" not in library  # the order has no such key
    assert any("Python only" in line for line in lines)


@pytest.mark.parametrize("arena", ["default", "exact", "off"])
@pytest.mark.parametrize("level", ["disable", "basic", "extended", "all"])
def test_cpp_lines_compile(tmp_path: Path, level: str, arena: Any) -> None:
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    settings = SessionSettings(level, 2, arena, pattern=False, order="priority", shrink=arena != "off")
    lines = "\n".join(cpp_settings(settings, 'a "model" of \\.onnx'))
    source = tmp_path / "settings.cpp"
    source.write_text(f'#include "ort_declarations.hpp"\nvoid f() {{\n{lines}\n}}\n')
    strict = ["-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror"]
    found = subprocess.run(
        [compiler, *strict, f"-I{_SUPPORT}", str(source)], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr


def test_declarations_refuse_what_is_not_there(tmp_path: Path) -> None:
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    source = tmp_path / "settings.cpp"
    source.write_text('#include "ort_declarations.hpp"\nvoid f() { Ort::SessionOptions o; o.DisableArena(); }\n')
    done = subprocess.run([compiler, "-fsyntax-only", f"-I{_SUPPORT}", str(source)], capture_output=True, check=False)
    assert done.returncode
