"""Every answer as text, JSON and tables, and in a notebook's HTML."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import modelplan
from modelplan import (
    AnalyzeRequest,
    CompareRequest,
    ExplainRequest,
    ModelRequest,
    Problem,
    RecomputeRequest,
    RequestError,
    ShareRequest,
    Solution,
    SolveRequest,
    to_dataframe,
    to_dict,
    to_json,
)
from modelplan.formats import load_model
from modelplan.outputs import OUTPUTS, notebook, outputs_of
from modelplan.outputs.notebook import html_of

MODEL = "ds_cnn_kws.tflite"


@pytest.fixture(scope="module")
def answers(models: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """An answer to each question that one small model and one small table can be asked."""
    path, table = str(models / MODEL), tmp_path_factory.mktemp("records") / "a.csv"
    table.write_text("id,lower,upper,size\na,0,4,64\nb,2,6,32\n<c>,2,9,64\n")
    asked = ModelRequest(path)
    return {
        "Plan": modelplan.plan(load_model(path)),
        "Solution": modelplan.solve(SolveRequest(str(table))),
        "Analysis": modelplan.analyze(AnalyzeRequest(path)),
        "Explanation": modelplan.explain(ExplainRequest(path)),
        "AllocatorAnswers": modelplan.compare(CompareRequest(str(table))),
        "Difference": modelplan.diff(asked, asked),
        "Curve": modelplan.recompute(RecomputeRequest(path, seconds=0.0)),
        "SharedPlan": modelplan.share_memory(ShareRequest({"a": path, "b": path})),
    }


@pytest.mark.slow
def test_every_answer_has_words_and_json(answers: dict[str, Any]) -> None:
    for kind, answer in answers.items():
        assert type(answer).__name__ == kind
        assert len(str(modelplan.render(answer, ".txt")).splitlines()) > 1
        assert to_dict(answer) == json.loads(to_json(answer))


def test_notebooks_show_what_has_words() -> None:
    worded = {row.of for row in OUTPUTS if ".txt" in outputs_of(row.of)}
    assert worded == {"Plan", *(name for _, name in notebook._SHOWN)}


@pytest.mark.slow
def test_notebooks_show_every_answer_and_escape_its_names(answers: dict[str, Any]) -> None:
    for answer in answers.values():
        assert html_of(answer).startswith("<div>")
    assert "&lt;c&gt;" in html_of(answers["Solution"])
    assert html_of(answers["Solution"]).count("<img") == 1
    with pytest.raises(RequestError, match=r"x\.order\.gif: cannot tell what to draw"):
        html_of(answers["Plan"], "x.order.gif")


def test_buffers_are_a_table_for_dataframes() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    problem = Problem(("a", "b"), np.array([64, 32]), np.array([0, 1]), np.array([2, 3]))
    table = to_dataframe(Solution(problem, modelplan.place(problem)))
    assert isinstance(table, pyarrow.Table)
    assert table.column_names == ["id", "lower", "upper", "size", "offset"]
    assert table["size"].to_pylist() == [64, 32]
    with pytest.raises(RequestError, match=r"no output '\.csv' of a Proof"):
        to_dataframe(modelplan.Proof("x", ()))
