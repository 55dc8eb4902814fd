"""Allocators and schedulers that are not modelplan's: functions given to `place`, and those of installed packages."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest
from commands import run

import modelplan
from modelplan.model import Budget, Buffer, Placement, Problem
from modelplan.planning import entry_points, schedulers
from modelplan.planning.allocators import ALLOCATORS
from modelplan.primitives.errors import BrokenPlanError, RequestError

ROOT = Path(__file__).resolve().parents[2]


def stacked(problem: Problem, budget: Budget) -> list[int]:
    """All buffers end to end."""
    return [0, *problem.size.cumsum()[:-1].tolist()]


def broken(problem: Problem, budget: Budget) -> list[int]:
    """All buffers at 0."""
    return [0] * len(problem)


def failing(problem: Problem, budget: Budget) -> list[int]:
    """No answer."""
    raise KeyError("no shelf")


def backwards(graph: modelplan.Graph) -> list[int]:
    """The file's order, last first."""
    return list(range(len(graph.ops)))[::-1]


def twice(graph: modelplan.Graph) -> list[int]:
    """The first operator alone, again and again."""
    return [0] * len(graph.ops)


BUFFERS = Problem.of([Buffer("a", 8, 0, 2), Buffer("b", 24, 1, 3), Buffer("c", 8, 2, 4)])


def test_a_function_places_a_problem() -> None:
    answer = modelplan.place(BUFFERS, stacked)
    assert (answer.offsets.tolist(), answer.lower_bound) == ([0, 8, 32], 32)


def test_what_a_function_claims_is_not_believed() -> None:
    def boasting(problem: Problem, budget: Budget) -> Placement:
        return Placement(np.array([0, 8, 32]), lower_bound=40, ended="optimal")

    answer = modelplan.place(BUFFERS, boasting)
    assert (answer.lower_bound, answer.ended) == (32, "complete")


@pytest.mark.parametrize("answer", [[0, 0, 0], [0, 8], [0.5, 8.0, 32.0], "abc", [[0, 8, 32]], [-8, 8, 32]])
def test_a_wrong_answer_is_refused(answer: object) -> None:
    with pytest.raises(BrokenPlanError):
        modelplan.place(BUFFERS, lambda problem, budget: answer)  # type: ignore[arg-type, return-value]


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(RequestError, match="no function of a problem and a budget, but int"):
        modelplan.place(BUFFERS, 7)  # type: ignore[arg-type]


def test_a_function_is_not_asked_what_it_does_not_know() -> None:
    def plain(problem: Problem, budget: Budget) -> list[int]:
        raise AssertionError("not asked")

    plain.honours = ("alignment",)  # type: ignore[attr-defined]
    pinned = Problem.of([Buffer("a", 8, 0, 2, pin=16)])
    with pytest.raises(RequestError, match="'plain' does not honour pins"):
        modelplan.place(pinned, plain)


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packages as if they were installed: three allocators, one that cannot be imported, two schedulers."""
    rows = {
        entry_points.ALLOCATORS: ("stacked", "broken", "failing", "missing"),
        entry_points.SCHEDULERS: ("backwards", "twice"),
    }

    def installed(group: str) -> Mapping[str, EntryPoint]:
        return {name: EntryPoint(name, f"{__name__}:{name}", group) for name in rows[group]}

    monkeypatch.setattr(entry_points, "installed", installed)
    monkeypatch.setattr(ALLOCATORS, "_rows", dict(ALLOCATORS._rows))  # type: ignore[attr-defined]


@pytest.mark.usefixtures("packages")
def test_compare_has_the_rows_of_packages(tmp_path: Path) -> None:
    path = tmp_path / "buffers.csv"
    path.write_text("id,lower,upper,size\na,0,2,8\nb,1,3,24\nc,2,4,8\n")
    rows = {row.allocator: row for row in modelplan.compare(modelplan.CompareRequest(str(path))).comparison.rows}
    assert rows["stacked"].height == 40
    assert rows["best"].height == 32
    assert "share bytes" in rows["broken"].why
    assert "'failing'" in rows["failing"].why
    assert "KeyError" in rows["failing"].why
    assert "'missing'" in rows["missing"].why
    assert "cannot be loaded: AttributeError" in rows["missing"].why


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("backwards", r"op \d+ .* runs before op"),
        ("twice", "not each of the 12 once"),
        ("none", "there are: file, .*twice"),
    ],
)
def test_a_wrong_order_is_refused(name: str, message: str, models: Path) -> None:
    graph = modelplan.load(str(models / "ds_cnn_kws.tflite"))
    assert isinstance(graph, modelplan.Graph)
    with pytest.raises((BrokenPlanError, RequestError), match=message):
        modelplan.plan(graph, modelplan.Options(schedule=name))
    assert schedulers.names()[-2:] == ("backwards", "twice")


@pytest.mark.slow
def test_the_example_package_is_installed_and_used(models: Path, tmp_path: Path) -> None:
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(tmp_path / "site")]
    subprocess.run([*install, str(ROOT / "docs" / "own_allocator")], check=True, capture_output=True)
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "site")}
    program = [sys.executable, "-P", "-m", "modelplan"]
    model = str(models / "inception_like.onnx")
    words = ["analyze", model, "--runtime", "generic", "--allocator", "shelves", "--schedule", "smallest-first"]
    done = subprocess.run(
        [*program, *words, "--json", "-"], env=environment, capture_output=True, text=True, check=True
    )
    plan = json.loads(done.stdout)["plan"]
    assert (plan["allocator"], plan["schedule"]["method"]) == ("shelves", "smallest-first")
    done = subprocess.run(
        [*program, "compare", model, "--runtime", "generic"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert re.search(r"\bshelves\b", done.stdout)
    done = subprocess.run([*program, "allocators"], env=environment, capture_output=True, text=True, check=True)
    assert "own-allocator 1.0" in done.stdout
    assert "shelves" not in run("allocators").stdout


def test_the_functions_of_the_page_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").symlink_to(ROOT / "models")
    for block in re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "own.md").read_text(), re.DOTALL):
        exec(block, {})
    kept, small, medium, large, *solved, height = capsys.readouterr().out.splitlines()
    for bucket in (small, medium, large):
        one, own, bound = map(int, bucket.split())
        assert one >= own == bound
    assert solved[0] == "unet_small"
    assert "'offset': " in solved[-1]
    assert (tmp_path / "unet.map.svg").is_file()
    assert kept.endswith("stay")
    assert height.split()[1] == "16000"
