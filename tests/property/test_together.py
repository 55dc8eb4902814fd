"""Random models in one memory: random runs find no byte overwritten, and no more is needed than the relation costs."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_simulation import Simulation
from shares import examples
from strategies import problems

from modelplan import Graph, Kind, Member, Problem, RequestError, Tensor, height, load_bound, place
from modelplan.answers.shared_plan import ModelPart, SharedPlan
from modelplan.planning.together.joint_placing import planned_together
from modelplan.planning.together.relating import related
from modelplan.runtimes.generic import GENERIC

NAMES = "ABCD"
_HANDED = 24


def part(name: str, problem: Problem, state: int = 0) -> ModelPart:
    """A model with one tensor for each buffer; the first `state` of them stay from run to run.

    Of the others what begins first is its input and what ends last its output.
    """
    rows = [replace(b, name=f"{name}{i}", members=(Member(i),)) for i, b in enumerate(problem)]
    steps = max((b.end for b in rows), default=1)
    rows = [replace(b, start=0, end=steps) if i < state else b for i, b in enumerate(rows)]
    free = list(range(state, len(rows)))
    if len(free) > 1:  # something to begin with and something to hand on
        rows[free[0]], rows[free[-1]] = replace(rows[free[0]], start=0), replace(rows[free[-1]], end=steps)
    inputs = tuple(i for i in free if rows[i].start == 0)
    outputs = tuple(i for i in free if rows[i].end == steps and i not in inputs)
    ends = {*inputs, *outputs}  # of one size, so that each output can be handed to each input
    rows = [replace(b, size=_HANDED) if i in ends else b for i, b in enumerate(rows)]
    kinds = [Kind.STATE if i < state else Kind.ACTIVATION for i in range(len(rows))]
    tensors = tuple(Tensor(b.name, (b.size,), "int8", k) for b, k in zip(rows, kinds, strict=True))
    graph = Graph(name, "tflite", tensors, (), inputs, outputs)
    own = Problem.of(rows)
    return ModelPart(name, name, graph, GENERIC, "none", own, height(own, place(own)))


@st.composite
def several(draw: st.DrawFn) -> tuple[ModelPart, ...]:
    """Two to four models of a few buffers, some of which are state."""
    count = draw(st.integers(2, 4))
    return tuple(part(NAMES[i], draw(problems(5)), draw(st.integers(0, 1))) for i in range(count))


@st.composite
def planned(draw: st.DrawFn) -> SharedPlan:
    """Models whose runs relate somehow."""
    parts = draw(several())
    graphs = {one.name: one.graph for one in parts}
    names = st.lists(st.sampled_from(sorted(graphs)), min_size=2, max_size=4, unique=True)
    groups = draw(st.one_of(st.just([["all"]]), st.lists(names, max_size=2)))
    ends = [(a, b) for a in parts for b in parts if a.name < b.name and a.graph.outputs and b.graph.inputs]
    wanted = draw(st.lists(st.sampled_from(ends), max_size=3, unique=True)) if ends else []
    sides = [(a.name, len(a.graph.outputs), b.name, len(b.graph.inputs)) for a, b in wanted]
    pipes = [f"{a}:{draw(st.integers(0, m - 1))}={b}:{draw(st.integers(0, n - 1))}" for a, m, b, n in sides]
    keep = draw(
        st.lists(st.sampled_from([f"{n}:{side}" for n in graphs for side in ("inputs", "outputs")]), max_size=2)
    )
    try:
        return planned_together(parts, related(graphs, groups, pipes, keep))
    except RequestError:  # a pipeline whose models relate to others in different ways, or an input that is fed twice
        return planned_together(parts, related(graphs, [["all"]], (), keep))


@pytest.mark.slow
@given(planned(), st.integers(0, 2**32))
@examples(150)
def test_no_run_overwrites_what_another_needs(made: SharedPlan, seed: int) -> None:
    assert Simulation(made, random.Random(seed)).run(250) == []


@given(planned())
@examples(60)
def test_a_byte_less_room_for_a_buffer_is_seen(made: SharedPlan) -> None:
    """The simulation itself finds a buffer that is moved onto another that lives with it."""
    alive = [i for i in range(len(made.problem)) if made.problem.size[i]]
    pairs = [(i, j) for i in alive for j in alive if i < j and _meet(made, i, j)]
    for i, j in pairs[:1]:
        moved = made.placement.offsets.copy()
        moved[j] = moved[i]
        broken = replace(made, placement=replace(made.placement, offsets=moved))
        assert Simulation(broken, random.Random(1)).run(600)


def _meet(made: SharedPlan, i: int, j: int) -> bool:
    """Whether two buffers of one model are alive at one step, neither of them handed on."""
    a, b = made.owners[i], made.owners[j]
    if len(a) > 1 or len(b) > 1 or a[0].model != b[0].model:
        return False
    own = made.parts[a[0].model].problem
    x, y = a[0].buffer, b[0].buffer
    return bool(own.start[x] < own.end[y] and own.start[y] < own.end[x])


@given(several())
@examples(80)
def test_in_turn_is_the_largest_model_and_all_state(parts: tuple[ModelPart, ...]) -> None:
    made = planned_together(parts, related({p.name: p.graph for p in parts}, [["all"]]))
    assert made.height >= max(p.alone for p in parts)
    kept = [int(p.problem.size[i]) for p in parts for i, t in enumerate(p.graph.tensors) if t.kind is Kind.STATE]
    assert made.placement.lower_bound >= sum(kept)
    if not kept:
        assert made.height == max(p.alone for p in parts)


@given(several())
@examples(80)
def test_at_once_is_the_sum(parts: tuple[ModelPart, ...]) -> None:
    made = planned_together(parts, related({p.name: p.graph for p in parts}))
    assert made.height == made.separate == sum(p.alone for p in parts)
    assert made.placement.lower_bound == sum(place(p.problem).lower_bound for p in parts)


@given(planned())
@examples(60)
def test_more_promises_need_no_more(made: SharedPlan) -> None:
    assert made.in_turn <= made.height
    assert made.placement.lower_bound <= made.height
    assert made.height >= max(p.alone for p in made.parts)
    assert load_bound(made.problem) <= made.height
