"""Rigid groups: what a problem of them refuses, who places it, and what slides into what."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import graphs
import numpy as np
import pytest

from modelplan import (  # fmt: skip
    BrokenPlanError,
    Budget,
    ModelError,
    Options,
    Placement,
    Problem,
    RequestError,
    check,
    height,
    load,
    place,
    plan,
    read,
    render,
)
from modelplan.outputs.exchange import buffers_csv as problem_csv
from modelplan.planning.allocators import ALLOCATORS


def grouped(rows: Sequence[tuple[int, int, int]], groups: Sequence[tuple[int, int, int]]) -> Problem:
    """Buffers as (size, start, end), groups as (buffer, group, delta)."""
    return replace(graphs.problem(rows), groups=np.array(groups, dtype=np.int64).reshape(-1, 3))


def met(problem: Problem, *meetings: tuple[int, int, int, int]) -> Problem:
    return replace(problem, meetings=np.array(meetings, dtype=np.int64))


def rows_of_maps() -> Problem:
    """Four rows that die one after the other, four that are born one after the other."""
    dying = [(4, 0, i + 1) for i in range(4)]
    born = [(4, i + 1, 9) for i in range(4)]
    return grouped(dying + born, [(i, i // 4, 4 * (i % 4)) for i in range(8)])


def test_rows_of_one_map_slide_into_the_place_of_another() -> None:
    placement = place(rows_of_maps())
    assert height(rows_of_maps(), placement) == placement.lower_bound == 16
    assert placement.ended == "optimal"


def test_an_output_ahead_of_its_operand_needs_its_lead_only() -> None:
    pair = graphs.problem([(16, 0, 3), (16, 2, 5)])
    assert height(pair, place(pair)) == 32
    ahead, inside = met(pair, (1, 0, -16, -4)), met(pair, (1, 0, 0, 0))
    assert [height(p, place(p)) for p in (ahead, inside)] == [20, 16]
    assert place(inside).lower_bound == 16


def test_a_single_buffer_fills_the_hole_of_a_group() -> None:
    ring = grouped([(4, 0, 5), (4, 0, 5), (8, 0, 5)], [(0, 7, 0), (1, 7, 12)])
    placement = place(ring, "best")
    assert height(ring, placement) == 16
    assert placement.offsets.tolist() == [0, 12, 4]


def test_alignments_inside_of_a_group_are_kept() -> None:
    rows = [(4, 0, 2), (4, 0, 2), (3, 0, 2)]
    problem = replace(grouped(rows, [(0, 0, 0), (1, 0, 5)]), alignment=np.array([4, 3, 1]))
    offsets = place(problem).offsets.tolist()
    assert (offsets[0] % 4, offsets[1] % 3, offsets[1] - offsets[0]) == (0, 0, 5)
    with pytest.raises(RequestError, match="exclude every placement"):
        place(replace(problem, alignment=np.array([4, 4, 1])))


def test_pins_fix_the_whole_group() -> None:
    pinned = replace(grouped([(4, 0, 2), (4, 0, 2)], [(0, 0, 0), (1, 0, 8)]), pin=np.array([-1, 20]))
    assert place(pinned).offsets.tolist() == [12, 20]
    for pins in ([20, 20], [-1, 4]):
        with pytest.raises(RequestError, match="exclude every placement"):
            place(replace(pinned, pin=np.array(pins)))


def test_a_group_that_overlaps_itself_is_named() -> None:
    with pytest.raises(RequestError, match=r"'b0' and 'b1' of one group"):
        place(grouped([(8, 0, 2), (8, 1, 3)], [(0, 0, 0), (1, 0, 4)]))


@pytest.mark.parametrize(("steps", "ended"), [(100, "optimal"), (4, "budget")])
def test_groups_that_meet_two_by_two_are_stacked_and_that_is_proved_by_search(steps: int, ended: str) -> None:
    """At no step all three are alive, so that neither the load nor any two of them need more than 8 bytes."""
    rows = [(4, step, step + 1) for step in (0, 2, 0, 1, 1, 2)]
    ring = grouped(rows, [(b, b // 2, 0) for b in range(6)])
    answer = place(ring, budget=Budget(steps=steps))
    assert (height(ring, answer), answer.ended) == (12, ended)
    assert answer.lower_bound == (12 if ended == "optimal" else 8)


def test_conflicts_are_kept_between_groups() -> None:
    apart = replace(grouped([(8, 0, 1), (8, 1, 2)], [(0, 0, 0), (1, 1, 0)]), conflicts=np.array([(0, 1)]))
    assert height(apart, place(apart)) == 16


@pytest.mark.parametrize("name", [name for name, row in ALLOCATORS.items() if "groups" not in row.honours])
def test_an_allocator_that_cannot_refuses_by_name(name: str) -> None:
    with pytest.raises(RequestError, match=f"'{name}' does not honour .*groups"):
        place(rows_of_maps(), name, Budget(steps=10))


def test_the_referee_measures_the_distances() -> None:
    problem = rows_of_maps()
    offsets = place(problem).offsets.copy()
    offsets[4:] += 40
    check(problem, Placement(offsets))
    offsets[5:] += 8
    with pytest.raises(BrokenPlanError, match=r"is \+8 bytes off its distance to .* in group 1"):
        check(problem, Placement(offsets))


@pytest.mark.parametrize("distance", [-4, -3, 1])
def test_the_referee_measures_meetings(distance: int) -> None:
    problem = met(graphs.problem([(16, 0, 3), (16, 2, 5)]), (1, 0, -16, -4))
    answer = Placement(np.array([20, 20 + distance]))
    if distance <= -4:
        check(problem, answer)
        return
    with pytest.raises(BrokenPlanError, match="share bytes at step 2"):
        check(problem, answer)


@pytest.mark.parametrize(
    ("groups", "message"),
    [([(0, 0, 0), (0, 1, 0)], "in two groups"), ([(5, 0, 0)], "outside"), ([(0, -1, 0)], "at least 0")],
)
def test_bad_groups_are_refused(groups: list[tuple[int, int, int]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        grouped([(8, 0, 1), (8, 0, 1)], groups)


@pytest.mark.parametrize("row", [(0, 0, 1, 2), (0, 1, 3, 2), (0, 9, 1, 2)])
def test_bad_meetings_are_refused(row: tuple[int, int, int, int]) -> None:
    with pytest.raises(ValueError, match="meeting"):
        met(graphs.problem([(8, 0, 1), (8, 0, 1)]), row)


def test_a_table_keeps_its_groups(tmp_path: Path) -> None:
    problem = grouped([(4, 0, 2), (4, 1, 3), (8, 0, 3)], [(0, 2, 0), (1, 2, 8)])
    path = tmp_path / "groups.csv"
    path.write_text(problem_csv.write(problem))
    first, *rows = path.read_text().splitlines()
    assert first == "id,lower,upper,size,group,delta"
    assert [row.split(",")[4:] for row in rows] == [["2", "0"], ["2", "8"], ["", ""]]
    assert load(path) == problem


def test_a_table_keeps_its_meetings_and_conflicts(tmp_path: Path) -> None:
    problem = met(grouped([(4, 0, 2), (4, 1, 3), (8, 0, 3)], [(0, 2, 0), (1, 2, 8)]), (2, 0, -8, 0), (2, 1, 4, 4))
    problem = replace(problem, conflicts=np.array([(0, 1)]))
    path = tmp_path / "met.csv"
    path.write_text(problem_csv.write(problem))
    first, *rows = path.read_text().splitlines()
    assert first == "id,lower,upper,size,group,delta,meets,apart"
    assert [row.split(",")[6:] for row in rows] == [["", "2"], ["", ""], ["1@-8:0 2@4:4", ""]]
    assert load(path) == problem


def test_a_saved_plan_keeps_its_groups() -> None:
    made = plan(graphs.chain(), Options(runtime="generic"))
    first, last = 0, len(made.problem) - 1
    meetings = np.array([(first, last, -4, 4)])
    changed = replace(made, problem=replace(made.problem, groups=np.array([(first, 3, 8)]), meetings=meetings))
    assert read(str(render(changed, ".json"))) == changed
    document = json.loads(str(render(made, ".json")))
    for name in ("groups", "meetings"):
        assert document["plan"]["problem"].pop(name) == []
    assert read(json.dumps(document)) == made


@pytest.mark.parametrize("cells", ["-2,0", ",4", "x,0"])
def test_a_table_with_a_bad_group_is_refused(tmp_path: Path, cells: str) -> None:
    path = tmp_path / "groups.csv"
    path.write_text(f"id,lower,upper,size,group,delta\na,0,1,4,{cells}\n")
    with pytest.raises(ModelError, match="row 1"):
        load(path)
