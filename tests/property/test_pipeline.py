"""Over random DAGs and every row of every table: refereed, repeatable, readable back."""

from __future__ import annotations

import pytest
import strategies
from hypothesis import given
from shares import examples

from modelplan import Graph, Options, plan, read, render
from modelplan.planning.schedulers import SCHEDULERS


@pytest.mark.slow
@examples(40)
@given(strategies.dags())
def test_a_plan_reads_back_and_repeats(graph: Graph) -> None:
    for schedule in SCHEDULERS:
        answer = plan(graph, Options(schedule=schedule))
        text = str(render(answer, ".json"))
        assert read(text) == answer
        assert render(plan(graph, Options(schedule=schedule)), ".json") == text
        assert answer.schedule.lower_bound <= answer.schedule.peak


@examples(40)
@given(strategies.dags())
def test_every_order_is_topological_and_none_beats_best(graph: Graph) -> None:
    peaks = []
    for schedule in SCHEDULERS:
        found = plan(graph, Options(schedule=schedule)).schedule
        step = {op: i for i, op in enumerate(found.order)}
        assert sorted(found.order) == list(range(len(graph.ops)))
        assert all(step[a] < step[b] for a, b in graph.dag.edges)
        peaks.append(found.peak)
    assert plan(graph).schedule.peak == min(peaks)
