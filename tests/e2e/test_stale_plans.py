"""Plans that do not belong to the model that they are verified against, or lack what it needs, are refused."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tflite_models
from commands import run

from modelplan import Graph, load
from modelplan.model import Buffer, Problem
from modelplan.outputs.exchange.buffers_csv import write


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "model.tflite").write_bytes(tflite_models.branching())
    return tmp_path / "model.tflite"


def planned(model: Path, *options: str) -> Path:
    target = model.with_suffix(".json")
    assert run("analyze", model, "--json", target, *options).returncode == 0
    return target


def test_a_plan_belongs_to_its_own_model_file(model: Path, tmp_path: Path) -> None:
    plan = planned(model)
    assert run("verify", plan, "--quick", "--model", model).returncode == 0
    other = tmp_path / "other.tflite"
    other.write_bytes(tflite_models.branching() + b"\0")
    refused = run("verify", plan, "--quick", "--model", other)
    assert refused.returncode == 4
    assert "was made for 'model' with SHA-256" in refused.stderr


def test_a_plan_without_a_fingerprint_is_for_no_file(model: Path) -> None:
    plan = planned(model)
    document = json.loads(plan.read_text())
    del document["plan"]["graph"]["fingerprint"]
    plan.write_text(json.dumps(document))
    assert run("verify", plan, "--quick").returncode == 0
    assert "does not say which file" in run("verify", plan, "--quick", "--model", model).stderr


def test_a_plan_above_its_capacity_is_refused(model: Path) -> None:
    plan = planned(model)
    document = json.loads(plan.read_text())
    document["plan"]["problem"]["capacity"] = 16
    plan.write_text(json.dumps(document))
    refused = run("verify", plan, "--quick")
    assert refused.returncode == 4
    assert "its capacity is 16" in refused.stderr


@pytest.mark.parametrize(("change", "words"), [
    (lambda plan: plan["placement"]["offsets"].pop(), "plan.placement.offsets has"),
    (lambda plan: plan["schedule"]["order"].reverse() or plan["schedule"]["order"].pop(), "is no order of"),
    (lambda plan: plan["problem"]["members"][0][0].update(tensor=99), "plan.problem.members names a tensor outside"),
    (lambda plan: plan["graph"]["ops"][1].update(subgraphs=[7, 0]), "expected a body"),
])  # fmt: skip
def test_numbers_that_lead_nowhere_are_refused(model: Path, change: Callable[[Any], object], words: str) -> None:
    plan = planned(model)
    document = json.loads(plan.read_text())
    change(document["plan"])
    plan.write_text(json.dumps(document))
    refused = run("verify", plan, "--quick")
    assert refused.returncode == 3
    assert words in refused.stderr


@pytest.mark.slow
def test_bodies_are_written_once(model: Path) -> None:
    model.write_bytes(tflite_models.nested(12))
    plan = planned(model)
    document = json.loads(plan.read_text())
    assert len(document["bodies"]) == 12
    assert plan.stat().st_size < 200_000
    assert run("verify", plan, "--quick").returncode == 0


def test_a_table_without_its_scratch_rows_is_refused(model: Path, tmp_path: Path) -> None:
    table = tmp_path / "plan.csv"
    assert run("analyze", model, "--csv", table).returncode == 0
    assert run("verify", table, "--quick", "--model", model).returncode == 0
    rows = [line for line in table.read_text().splitlines() if not line.startswith("scratch")]
    table.write_text("\n".join(rows) + "\n")
    refused = run("verify", table, "--quick", "--model", model)
    assert refused.returncode == 4
    assert "needs working memory of [48] bytes at step 1" in refused.stderr


def test_a_packed_offset_near_2_to_the_31_is_refused(model: Path, tmp_path: Path) -> None:
    from modelplan.runtimes.tflm.file import read_tflite
    from modelplan.runtimes.tflm.metadata import write_plan

    simple = tflite_models.model(tflite_models.Sub(
        [(name, tflite_models.FLOAT32, (64,), None) for name in "xy"], [("ADD", (0, 0), (1,), ())], (0,), (1,)
    ))  # fmt: skip
    packed = tmp_path / "packed.tflite"
    packed.write_bytes(write_plan(read_tflite(simple, "simple"), [0, 2**31 - 16]))
    refused = run("verify", packed, "--quick")
    assert refused.returncode == 4
    assert "ends behind the arena" in refused.stderr


def test_tensors_of_the_same_name_have_rows_of_their_own(tmp_path: Path) -> None:
    names = ["x", "same", "same", "=1+1", "'@x"]
    subgraph = tflite_models.Sub(
        [(name, tflite_models.FLOAT32, (64,), None) for name in names],
        [("ADD", (i, i), (i + 1,), ()) for i in range(4)], (0,), (4,),
    )  # fmt: skip
    model, table = tmp_path / "m.tflite", tmp_path / "p.csv"
    model.write_bytes(tflite_models.model(subgraph))
    assert run("analyze", model, "--csv", table).returncode == 0
    assert run("verify", table, "--quick", "--model", model).returncode == 0
    cells = [row[0] for row in csv.reader(table.read_text().splitlines())]
    assert cells == ["id", "x", "same (tensor 1)", "same (tensor 2)", "'=1+1", "''@x"]


@pytest.mark.parametrize("name", ["=1", "'=1", "+", "-2", "@a", "\t", "'", "''x", "plain", "a, b", 'q"'])
def test_ids_read_back_as_they_were(tmp_path: Path, name: str) -> None:
    problem = Problem.of([Buffer(name, 4, 0, 1)])
    (tmp_path / "p.csv").write_text(write(problem))
    assert load(tmp_path / "p.csv") == problem


def test_a_file_name_cannot_drive_the_terminal(model: Path) -> None:
    hostile = model.with_name("\x1b[31mred.tflite")
    hostile.write_bytes(model.read_bytes())
    done = run("check", hostile, "--budget", "1MiB", "--bad\x1b[0m")
    assert "\x1b" not in done.stdout + done.stderr
    done = run("check", hostile, "--budget", "1MiB")
    assert "\x1b" not in done.stdout
    assert r"\x1b[31mred.tflite" in done.stdout


def test_a_pair_that_may_overlap_and_conflicts_is_no_problem() -> None:
    rows = [Buffer("a", 8, 0, 2), Buffer("b", 8, 1, 3)]
    with pytest.raises(ValueError, match="may overlap and must not share"):
        Problem.of(rows, overlaps=[(0, 1, 4)], conflicts=[(1, 0)])
    assert len(Problem.of(rows, overlaps=[(0, 1, 0)], conflicts=[(1, 0)])) == 2


def test_a_plan_keeps_the_fingerprint_of_its_file(model: Path, models: Path) -> None:
    from hashlib import sha256

    for path in (model, models / "resnet8.onnx"):
        graph = load(path)
        assert isinstance(graph, Graph)
        assert graph.fingerprint == sha256(path.read_bytes()).hexdigest()
