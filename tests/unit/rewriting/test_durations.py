"""What programs are expected to take on TFLM: what operators do is counted, and loops repeat it."""

from __future__ import annotations

from pathlib import Path

import pytest
from striped_files import graph_of, striped, three_convolutions

from modelplan.ops.run_costs import op_macs
from modelplan.rewriting.striped_tflite import durations
from modelplan.rewriting.striped_tflite.building import striped_program
from modelplan.rewriting.stripes.stretches import KeptHalo, LoopedStripes, RecomputedHalo


def test_positions_outside_of_the_map_are_not_counted(tmp_path: Path) -> None:
    graph = graph_of(three_convolutions(), tmp_path)
    plain = striped_program(graph, range(3), ())
    first, by_channel, last = (durations.amounts_of(plain, step) for step in plain.steps)
    inside = sum(0 <= y + i < 24 and 0 <= x + j < 10 for y in range(24) for x in range(10)
                 for i in (-1, 0, 1) for j in (-1, 0, 1))  # fmt: skip
    assert first == (24 * 10 * 6, inside * 6, inside * 6 * 3, 0)
    # Even heights and widths with stride 2 are padded at their end only.
    inside = sum(2 * y + i < 24 and 2 * x + j < 10 for y in range(12) for x in range(5)
                 for i in range(3) for j in range(3))  # fmt: skip
    assert by_channel == (12 * 5 * 6, inside * 6, inside * 6, 0)
    assert last == (12 * 5 * 5, 12 * 5 * 5, op_macs(graph, graph.ops[2]), 0)


def test_a_program_takes_what_its_steps_do(tmp_path: Path) -> None:
    graph = graph_of(three_convolutions(), tmp_path)
    plain = striped_program(graph, range(3), ())
    steps = [durations.step_time(plain, step) for step in plain.steps]
    assert durations.program_time(plain) == pytest.approx(sum(steps))
    assert steps == [pytest.approx(durations.op_time(graph, op)) for op in range(3)]


def test_a_loop_takes_its_body_as_often_as_it_runs(tmp_path: Path) -> None:
    program = striped(three_convolutions(), tmp_path, strategy=LoopedStripes, cuts=(0, 4, 8, 12)).program
    (loop,) = (step.loop for step in program.steps if step.loop is not None)
    once = sum(durations.step_time(program, step) for step in (loop.condition, *loop.body))
    assert durations.program_time(program) == pytest.approx(loop.iterations * (once + durations.ITERATION))


def test_stripes_take_longer_than_the_model(tmp_path: Path) -> None:
    data = three_convolutions()
    plain = durations.program_time(striped_program(graph_of(data, tmp_path), range(3), ()))
    times = [
        durations.program_time(striped(data, tmp_path, strategy=way).program) for way in (KeptHalo, RecomputedHalo)
    ]
    assert plain < times[0] < times[1]
