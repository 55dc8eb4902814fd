"""The map in the form of TFLM's log: exactly what TFLM prints for a file, and the same form for any plan."""

from __future__ import annotations

import re
from pathlib import Path

import graphs
import pytest
from commands import run
from tflm_logs import line_of

from modelplan import Graph, Options, height, load, plan, render, runtimes
from modelplan.outputs.exchange.ascii_map import MapRow, memory_plan, planner_log, rows_of
from modelplan.planning import pipeline
from modelplan.runtimes.tflm import planner
from modelplan.runtimes.tflm.arena import planned
from modelplan.runtimes.tflm.file import read_tflite

GOLDEN = Path(__file__).parents[2] / "golden" / "tflm_logs.txt"


def test_each_line_is_as_tflm_prints_it() -> None:
    rows = [MapRow(1600, 0, 0, 1), MapRow(1600, 1600, 1, 2), MapRow(16, 0, 2, 2)]
    assert list(memory_plan(rows)) == [
        "0 (id=0): size=1600, offset=0, first_used=0 last_used=1",
        "1 (id=1): size=1600, offset=1600, first_used=1 last_used=2",
        "* (id=2): size=16, offset=0, first_used=2 last_used=2",
        f"   0: {'0' * 40}{'.' * 40} (2k)",
        f"   1: {'0' * 40}{'1' * 40} (4k)",
        f"   2: {'.' * 40}{'1' * 40} (2k)",
    ]


def test_shared_columns_small_arenas_and_long_lists() -> None:
    over = list(memory_plan([MapRow(48, 0, 0, 1), MapRow(48, 32, 0, 1)]))
    assert over[2:] == [f"   {t}: {'0' * 32}{'!' * 16}{'1' * 32} (1k)" for t in (0, 1)]
    small = list(memory_plan([MapRow(16, 0, 0, 1)]))
    assert small[1] == f"   0: {'0' * 16}{'.' * 64} (1k)", "an arena below 80 bytes takes a column for each byte"
    marks = [line[0] for line in memory_plan([MapRow(16, 16 * i, 0, 1) for i in range(64)]) if "id=" in line]
    assert "".join(marks) == "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ01"


def test_no_buffers() -> None:
    assert list(memory_plan([])) == [f"   0: {'.' * 80} (0k)"]


def test_the_logs_are_those_of_the_interpreter(corpus: Path, models: Path) -> None:
    """The golden digests were made by TFLM itself, see tests/sweeps/tflm_logs.py."""
    paths = {path.name: path for folder in (models, corpus) for path in folder.rglob("*.tflite")}
    golden = GOLDEN.read_text().splitlines()
    assert len(golden) >= 40
    found = []
    for line in golden:
        name = line.partition(":")[0]
        if line.endswith("no plan"):
            found.append(line)
            continue
        rows, offsets = planned(read_tflite(paths[name].read_bytes(), name), "x86-64")
        cut = re.match(r".*: first (\d+) lines", line)
        found.append(line_of(name, planner_log(rows, offsets), first=int(cut[1]) if cut else 0))
    assert found == golden


@pytest.mark.parametrize("name", ["ds_cnn_kws", "inception_like", "transformer_encoder", "unet_small"])
def test_the_runtimes_own_plan_has_the_rows_of_its_log(models: Path, name: str) -> None:
    path = models / f"{name}.tflite"
    graph = load(path)
    assert isinstance(graph, Graph)
    own = pipeline.runtime_plan(graph, runtimes.runtime("tflm", "tflite"))
    rows = planner.requests(read_tflite(path.read_bytes(), name))
    offsets = planner.greedy_offsets(rows)
    assert rows_of(own) == [MapRow(r.size, at, r.first, r.last) for r, at in zip(rows, offsets, strict=True)]
    assert render(own, ".ascii") == planner_log(rows, offsets)


def test_tensors_of_one_buffer_have_a_row_each() -> None:
    answer = plan(graphs.chain(), Options(alias="views"))
    x, a, b, y = rows_of(answer)
    assert (a.offset, a.first, a.last) == (b.offset, 1, 2)
    assert (b.first, b.last, y.first, y.last, x.first, x.last) == (2, 3, 3, 3, 0, 1)
    assert max(row.offset + row.size for row in (x, a, b, y)) == height(answer.problem, answer.placement)
    assert "!" in str(render(answer, ".ascii"))


def test_analyze_writes_both_and_says_what_it_cannot_draw(models: Path, tmp_path: Path) -> None:
    model, onnx = models / "resnet8.tflite", models / "resnet8.onnx"
    assert run("analyze", model, "--draw", tmp_path / "a.ascii", "--draw", tmp_path / "a.log.ascii").returncode == 0
    mine, own = (tmp_path / "a.ascii").read_text(), (tmp_path / "a.log.ascii").read_text()
    assert own == planner_log(*planned(read_tflite(model.read_bytes(), model.name), "32", "all"))
    assert mine.count("\n") == own.count("\n")
    done = run("analyze", onnx, "--draw", tmp_path / "b.log.ascii")
    assert (done.returncode, done.stdout) == (2, "")
    assert "is planned for ort" in done.stderr
    done = run("analyze", model, "--draw", tmp_path / "b.log")
    assert done.returncode == 2
    assert ".log.ascii, .ascii, .pftrace" in done.stderr
