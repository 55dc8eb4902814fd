"""The C++ headers compile, say what they should, and cannot be broken by names out of the file."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from resolvers import resolver

from modelplan.formats import load_model
from modelplan.outputs.firmware.tflm_sources import arena_header, shim_header
from modelplan.rewriting.packing import answer, question_of
from modelplan.runtimes.tflm.arena import arena
from modelplan.runtimes.tflm.file import FileModel, FileOp, FileSubgraph, FileTensor, read_tflite
from modelplan.runtimes.tflm.planner import Request

#: As much of TFLM's headers as ours use.
RESOLVER = resolver(("Conv2D", "DepthwiseConv2D", "AveragePool2D", "Reshape", "Softmax"))
PLAN = """
#pragma once
#include <stdint.h>
namespace tflite {
struct BufferDescriptor { int32_t offset; };
struct BufferPlan { int32_t buffer_count; BufferDescriptor buffer_plan_entries[1]; };
}
"""


def compiles(folder: Path, header: str) -> None:
    micro = folder / "tensorflow" / "lite" / "micro"
    (micro / "memory_planner").mkdir(parents=True)
    (micro / "micro_mutable_op_resolver.h").write_text(RESOLVER)
    (micro / "memory_planner" / "memory_plan_struct.h").write_text(PLAN)
    (folder / "planned.h").write_text(header)
    (folder / "main.cc").write_text('#include "planned.h"\nint main() { return 0; }\n')
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++")
    words = [compiler, "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", str(folder)]
    done = subprocess.run([*words, str(folder / "main.cc")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def person(corpus: Path) -> FileModel:
    return read_tflite((corpus / "tflite" / "person_detect.tflite").read_bytes(), "person_detect")


def test_the_arena_header_compiles(corpus: Path, tmp_path: Path) -> None:
    text = arena_header(person(corpus), arena(person(corpus)), "reference")
    assert "kTensorArenaBytes = 85264;" in text
    assert "MicroMutableOpResolver<5>" in text
    assert "resolver.AddDepthwiseConv2D()" in text
    compiles(tmp_path, text)


def test_the_shim_header_compiles(corpus: Path, tmp_path: Path) -> None:
    plan = answer(question_of(person(corpus), load_model(corpus / "tflite" / "person_detect.tflite"), "none"))
    text = shim_header(person(corpus), plan.rows, plan.pinned, plan.pinned_head)
    assert f"    {len(plan.rows)},\n" in text
    compiles(tmp_path, text)


def test_names_cannot_leave_their_comments(tmp_path: Path) -> None:
    hostile = "x\n#error out\\"
    tensor = FileTensor(hostile, 9, (4,), 4, constant=False, variable=False)
    op = FileOp(hostile, (0,), (1,), custom=True)
    model = FileModel("m", b"model", (FileSubgraph((tensor, tensor), (op,), (0,), (1,)),))
    plan_rows = offline_plan_rows(model)
    compiles(tmp_path / "shim", shim_header(model, *plan_rows, 16))
    assert "add these custom ones yourself: x/n#error out/" in arena_header_of(model)
    compiles(tmp_path / "arena", arena_header_of(model))


def offline_plan_rows(model: FileModel) -> tuple[tuple[Request, ...], list[int]]:
    from modelplan.runtimes.tflm.planner import greedy_offsets, requests

    rows = requests(model)
    return rows, greedy_offsets(rows)


def arena_header_of(model: FileModel) -> str:
    from modelplan.runtimes.tflm.arena import Arena

    return arena_header(model, Arena(16, 0, 0, 0, (), (), "x86-64", "reference"), "reference")


@pytest.mark.parametrize(
    ("kernels", "refused"),
    [("all", []), ("reference", ["CMSIS_NN", "ESP_NN"]), ("cmsis-dsp", ["ESP_NN"]), ("esp-nn@1.1.0", ["CMSIS_NN"])],
)
def test_a_build_with_the_kernels_of_another_library_is_refused(corpus: Path, kernels: str, refused: list[str]) -> None:
    model = person(corpus)
    text = arena_header(model, arena(model, "32", kernels), kernels)
    assert re.findall(r"#ifdef (\w+)\n#error", text) == refused
    assert ("enough for all kernel libraries" in text) is (kernels == "all")
