"""Plans in parts against their whole programs: the same packing problem, the same costs; what lies apart in it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from random_cnns import branched_cnn, deep_cnn, headed_cnn, moving_cnn, random_cnn, renamed_cnn
from random_stripes import random_blocks, random_stretch, with_other_moves
from shares import few_first, share

from modelplan.model import Graph
from modelplan.primitives import _core
from modelplan.rewriting.striped_tflite import costs, placing
from modelplan.rewriting.striped_tflite.building import striped_program
from modelplan.rewriting.striped_tflite.folded_convolutions import Folded
from modelplan.rewriting.striped_tflite.parted_plans import PlanParts
from modelplan.rewriting.striped_tflite.rungs import Goal, ModelOnTarget
from modelplan.rewriting.striped_tflite.steps import count_executed
from modelplan.rewriting.stripes.group_packing import LiveBytes, as_problem, group_problem
from modelplan.rewriting.stripes.row_windows import IllegalStripeError
from modelplan.rewriting.stripes.stretches import StripedStretch


def drawn_stretches(graph: Graph, rng: random.Random) -> list[StripedStretch]:
    """Up to three stretches that lie apart."""
    found: list[StripedStretch] = []
    most = rng.randrange(1, 4)
    for _ in range(12):
        stretch = rng.choice((random_stretch, random_blocks))(graph, rng)
        if stretch and len(found) < most and all(stretch.last < s.first or s.last < stretch.first for s in found):
            found.append(stretch)
    return sorted(found, key=lambda stretch: stretch.first)


@pytest.mark.parametrize("kernels", ["cmsis-dsp", "esp-nn"])
@pytest.mark.parametrize("network", [random_cnn, moving_cnn, headed_cnn, branched_cnn, deep_cnn, renamed_cnn])
@pytest.mark.parametrize("seed", few_first(range(share(24))))
def test_a_plan_in_parts_is_that_of_its_whole_program(
    tmp_path: Path, seed: int, network: Callable[[int], bytes], kernels: str
) -> None:
    data, graph = with_other_moves(network(seed), tmp_path / "drawn.tflite")
    order, rng = range(len(graph.ops)), random.Random(seed)
    model = ModelOnTarget(data, graph, "drawn", Goal(kernels=kernels))
    parts, legal = PlanParts(Folded(graph, tuple(order)), order, model), 0
    for _ in range(60):  # parts of earlier plans are used again
        if legal == 12:
            break
        stretches = drawn_stretches(graph, rng)
        try:
            program = striped_program(graph, order, stretches)
        except IllegalStripeError:
            with pytest.raises(IllegalStripeError):
                parts.plan(stretches)
            continue
        legal += 1
        plan, wanted = parts.plan(stretches), model.problem_of(program, model.overlaps)
        found = as_problem(plan.program.problem(wanted.alignment.max().item()))
        for column in fields(wanted):
            np.testing.assert_array_equal(getattr(found, column.name), getattr(wanted, column.name), column.name)
        assert plan.kept(32) == costs.kept_bytes(program, 32)
        assert (plan.macs, plan.steps) == (costs.program_macs(program), len(program.steps))
        assert (plan.program.ticks, plan.values) == (count_executed(program), len(program.group_offsets))
        assert plan.slower == pytest.approx(model.slower(program))
        runs = model.runs(program) and placing.is_aligned(program, model.runtime)
        assert plan.legal == (runs and placing.moves_front_to_back(program, model.overlaps))
    assert legal


@pytest.mark.parametrize("seed", range(share(200)))
def test_working_buffers_lie_apart_from_dead_bytes_of_values_that_are_alive_as_a_whole(seed: int) -> None:
    rng = random.Random(seed)

    def drawn() -> LiveBytes:
        lo, start = rng.randrange(40), rng.randrange(-1, 9)
        return LiveBytes(rng.randrange(3), lo, lo + rng.randrange(1, 30), start, start + rng.randrange(1, 6))

    lives, values = ([drawn() for _ in range(rng.randrange(8))] for _ in range(2))
    steps = [rng.randrange(9) for _ in range(rng.randrange(5))]
    problem = as_problem(group_problem(lives, 3, 1, tuple, [(step, 8) for step in steps], lambda: values))
    first, behind = 3 + len(steps), 3 + len(steps) + len(lives)  # behind a buffer at the base of each group
    assert problem.conflicts.tolist() == [
        [behind + own, first + at]
        for own, step in enumerate(steps)
        for at, run in enumerate(lives)
        if not run.start <= step < run.end
        and any(
            value.group == run.group and value.start <= step < value.end and run.lo < value.hi and value.lo < run.hi
            for value in values
        )
    ]


@pytest.mark.parametrize("seed", range(share(200)))
def test_the_load_without_relations_is_what_lasts_from_a_step_to_the_next(seed: int) -> None:
    rng = random.Random(seed)
    starts = [rng.randrange(9) for _ in range(5)]
    lives = [LiveBytes(0, 0, rng.randrange(40), start, start + rng.randrange(1, 6)) for start in starts]
    scratch = [(rng.randrange(9), 1000)] * rng.randrange(2)
    problem = group_problem(lives, 1, 16, tuple, scratch, worth=lambda _: False)
    lasting = (sum(run.hi for run in lives if run.start <= step < run.end - 1) for step in range(15))
    assert (problem.load, len(problem), problem.groups) == (max(lasting), 6 + 2 * len(scratch), 1 + len(scratch))


@pytest.mark.parametrize("seed", range(share(100)))
def test_rows_of_parts_stand_by_the_groups_and_ticks_of_the_program(seed: int) -> None:
    rng, twin = random.Random(seed), []
    parts = []
    for _ in range(rng.randrange(4)):
        rows = np.array([[rng.randrange(3) for _ in range(4)] for _ in range(rng.randrange(3))], dtype=np.int64)
        names, tick = np.array(rng.sample(range(20), 3), dtype=np.int64), rng.randrange(50)
        parts.append((rows.reshape(-1, 4), names, tick))
        twin += [[names[group], number, at + tick, last] for group, number, at, last in rows.tolist()]
    assert _core.joined_rows(parts, 1, 2, 3).reshape(-1, 4).tolist() == twin
