"""Fields of a newer schema: they stay where they are, and nothing is split that has them."""

from __future__ import annotations

from pathlib import Path

import pytest
from newer_schema import newer_fields, with_newer_fields
from striped_files import Striped, graph_of, striped, three_convolutions

from modelplan.checking.verifier.rewrites.proving import prove_rewrite
from modelplan.primitives.errors import ModelError
from modelplan.rewriting.striped_tflite.building import striped_program
from modelplan.rewriting.striped_tflite.writing import newer_operators, write_striped
from modelplan.rewriting.stripes.stretches import KeptHalo


@pytest.fixture
def made(tmp_path: Path) -> Striped:
    return striped(with_newer_fields(three_convolutions()), tmp_path, strategy=KeptHalo)


def test_the_fields_of_the_model_and_its_graph_stay(made: Striped) -> None:
    rewritten = made.file()
    assert newer_fields(rewritten)["model"] == newer_fields(rewritten)["subgraph"] == [True]
    assert [verdict.outcome for verdict in prove_rewrite(made.data, rewritten)] == ["ok", "ok"]


def test_operators_and_tensors_that_stay_whole_keep_theirs(tmp_path: Path) -> None:
    data = with_newer_fields(three_convolutions(), operators=(1,), tensors=(0,))
    graph = graph_of(data, tmp_path)
    rewritten, _ = write_striped(data, striped_program(graph, range(len(graph.ops)), ()))
    found = newer_fields(rewritten)
    assert found["operators"] == [False, True, False]
    assert found["tensors"][0]


def test_no_stripes_are_made_of_operators_with_unknown_fields(tmp_path: Path) -> None:
    data = with_newer_fields(three_convolutions(), operators=(1,))
    assert list(newer_operators(data)) == [1]
    with pytest.raises(ModelError, match="fields that modelplan does not know"):
        striped(data, tmp_path, strategy=KeptHalo).file()


def test_fields_too_far_behind_are_refused(made: Striped) -> None:
    far = made.program.add(made.program.added[0].__class__("x" * 70_000, -1, (1,), numbers=(0,)))
    step = made.program.steps[0]
    made.program.steps.insert(0, step.__class__("SLICE", (step.inputs[0], far, far), step.outputs))
    with pytest.raises(ModelError, match="too far behind"):
        made.file()
