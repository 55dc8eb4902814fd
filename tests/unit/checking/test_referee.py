"""One broken placement per rule of the referee, and what it says of each."""

from __future__ import annotations

import core_oracles
import graphs
import numpy as np
import pytest

from modelplan import BrokenPlanError, Placement, check


def refuse(match: str, rows: list[tuple[int, int, int]], offsets: list[int], **facts: object) -> None:
    with pytest.raises(BrokenPlanError, match=match):
        check(graphs.problem(rows, **facts), Placement(np.array(offsets)))


def accept(rows: list[tuple[int, int, int]], offsets: list[int], **facts: object) -> None:
    problem = graphs.problem(rows, **facts)
    check(problem, Placement(np.array(offsets)))
    assert core_oracles.valid(problem, offsets)


def test_overlap_names_both_buffers_the_bytes_and_the_step() -> None:
    refuse(
        r"buffer 0 'b0' at bytes 0\.\.8, alive in steps 0 to 2, and buffer 1 'b1' at bytes 4\.\.8,"
        r" alive in steps 2 to 3, share bytes at step 2",
        [(8, 0, 3), (4, 2, 4)],
        [0, 4],
    )


def test_touching_in_time_or_space_is_fine() -> None:
    rows = [(8, 0, 2), (8, 2, 4), (8, 0, 4)]
    accept(rows, [0, 0, 8])
    refuse("share bytes", rows, [0, 0, 7])


def test_a_short_answer_is_incomplete() -> None:
    refuse("1 offsets for 2 buffers", [(8, 0, 2), (8, 2, 4)], [0])


def test_signs_alignment_pins_and_capacity() -> None:
    refuse("non-negative", [(8, 0, 2)], [-8])
    refuse("multiple of its alignment", [(8, 0, 2)], [8], alignment=[16])
    refuse("its pin", [(8, 0, 2)], [8], pin=[16])
    refuse("capacity of 10 bytes", [(8, 0, 2)], [4], capacity=10)


def test_extra_conflicts_hold_although_lifetimes_are_apart() -> None:
    refuse("share bytes", [(8, 0, 2), (8, 2, 4)], [0, 4], conflicts=[(0, 1)])


def test_allowed_overlap_is_directed_and_limited() -> None:
    rows = [(8, 0, 3), (8, 2, 4)]
    accept(rows, [4, 0], overlaps=[(1, 0, 4)])
    refuse("share bytes", rows, [5, 2], overlaps=[(1, 0, 4)])
    refuse("share bytes", rows, [0, 4], overlaps=[(1, 0, 4)])


def test_empty_buffers_are_in_nobodys_way() -> None:
    accept([(0, 0, 3), (8, 0, 3)], [4, 0])
    refuse("share bytes", [(1, 0, 3), (8, 0, 3)], [4, 0])
