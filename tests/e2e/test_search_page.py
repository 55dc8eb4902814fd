"""The code of docs/search.md runs, and `measure` says what `plan` says."""

from __future__ import annotations

import pytest

pytest.importorskip("optuna")

from search import drawn, example

from modelplan import Graph, Options, height, measure, plan


def test_the_loop_finds_networks_within_its_budget() -> None:
    names = example()
    study = names["search"](12)
    assert study.best_trial.user_attrs["height"] <= names["BUDGET"]
    assert study.best_value > 0


@pytest.mark.parametrize("alias", ["views", "safe"])
def test_measure_gives_the_height_of_the_plan(alias: str) -> None:
    options = Options(alias=alias)
    for graph in drawn(example(), 3, 7):
        made, found = plan(graph, options), measure(graph, options)
        assert found.height == height(made.problem, made.placement)
        assert found.bound == made.placement.lower_bound
        assert found.macs == sum(macs_by_hand(graph))


def macs_by_hand(graph: Graph) -> list[int]:
    found = []
    for op in graph.ops:
        if op.kind.endswith("CONV_2D"):
            _, rows, columns, channels = graph.tensors[op.outputs[0]].shape
            weights = graph.tensors[op.inputs[1]].shape
            each = weights[1] * weights[2] * (weights[3] if op.kind == "CONV_2D" else 1)
            found.append(rows * columns * channels * each)
    return found
