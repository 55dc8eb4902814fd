"""Contiguous lists in problems, tables, plans and on the command line."""

from __future__ import annotations

from pathlib import Path

import commands
import numpy as np
import pytest
from graphs import chain, fork, problem

from modelplan import BrokenPlanError, ModelError, Options, Placement, Plan, RequestError, check, place, plan
from modelplan.answers import saved_plan
from modelplan.formats import problem_csv as reading
from modelplan.formats.stated_tables import parse_lists
from modelplan.outputs.exchange import buffers_csv as problem_csv
from modelplan.outputs.exchange import json_plan

LISTED = problem([(10, 0, 3), (6, 1, 2), (8, 2, 4)], alignment=[4, 4, 4], contiguous=((1, 0),))


@pytest.mark.parametrize(
    ("lists", "alignment", "said"),
    [
        (((0,),), (1, 1, 1), "at least two buffers"),
        (((0, 3),), (1, 1, 1), "outside 0..2"),
        (((0, 1), (1, 2)), (1, 1, 1), "'b1' is in two contiguous lists"),
        (((0, 1),), (4, 8, 1), "alignments 4 and 8"),
    ],
)
def test_lists_that_cannot_be_are_refused(
    lists: tuple[tuple[int, ...], ...], alignment: tuple[int, ...], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        problem([(10, 0, 3), (6, 1, 2), (8, 2, 4)], alignment=alignment, contiguous=lists)


def test_a_buffer_is_in_a_list_or_in_a_group() -> None:
    with pytest.raises(ValueError, match="'b0' is in two contiguous lists, or in one and in a group"):
        problem([(4, 0, 1), (4, 0, 1)], groups=np.array([(0, 0, 0)]), contiguous=((0, 1),))


def test_an_empty_buffer_stands_beside_nothing() -> None:
    with pytest.raises(ValueError, match="'b1' of a contiguous list is empty"):
        problem([(4, 0, 1), (0, 0, 1)], contiguous=((0, 1),))


def test_the_padding_is_that_of_the_alignment() -> None:
    placement = place(LISTED)
    assert placement.offsets[0] - placement.offsets[1] == 8


def test_the_referee_names_who_stands_apart() -> None:
    with pytest.raises(BrokenPlanError, match=r"'b0' at bytes 12\.\.22 does not stand right behind buffer 1 'b1'"):
        check(LISTED, Placement(np.array([12, 0, 24])))


def test_a_table_keeps_the_lists(tmp_path: Path) -> None:
    path = tmp_path / "listed.csv"
    path.write_text(problem_csv.write(LISTED))
    assert "list,position" in path.read_text().splitlines()[0]
    assert reading.read_solution(path)[0] == LISTED


@pytest.mark.parametrize("cells", [("0,0", "0,0"), ("-2,0", "0,0"), (",1", "0,0")])
def test_a_table_with_odd_positions_is_refused(tmp_path: Path, cells: tuple[str, str]) -> None:
    path = tmp_path / "odd.csv"
    path.write_text("id,lower,upper,size,list,position\n" + "".join(f"b{i},0,1,4,{c}\n" for i, c in enumerate(cells)))
    with pytest.raises(ModelError, match="expected a list >= 0 and a position of its own"):
        reading.read_solution(path)


def made() -> Plan:
    return plan(fork(), Options(runtime="generic", alias="none", contiguous=((2, 1),)))


def test_a_plan_puts_tensors_side_by_side_and_its_document_keeps_that() -> None:
    found = made()
    b, a = found.problem.contiguous[0]
    assert found.placement.offsets[a] == found.placement.offsets[b] + found.problem.size[b]
    assert saved_plan.read(json_plan.render(found)) == found


@pytest.mark.parametrize(
    ("tensors", "said"), [((1, 2), "'w' has no buffer here"), ((0, 4, 0), "'x' is in two contiguous lists")]
)
def test_tensors_that_cannot_be_listed_are_named(tensors: tuple[int, ...], said: str) -> None:
    with pytest.raises(RequestError, match=said):
        plan(chain(), Options(runtime="generic", contiguous=(tensors,)))


def test_lists_are_read_with_quoted_names_and_comments() -> None:
    assert parse_lists('# gradients\n\nb, a\n"c,d",e\n', ["a", "b", "c,d", "e"], "x") == ((1, 0), (2, 3))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a\n", "line 1: found one name"),
        ("a,x\n", "line 1: 0 are called 'x'"),
        ("a,b\nb,c\n", "line 2: 'b' also stands in line 1"),
        ("a,a\n", "line 1: 'a' also stands in line 1"),
        ("a,twice\n", "2 are called 'twice'"),
    ],
)
def test_a_line_that_fits_nothing_is_named(text: str, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        parse_lists(text, ["a", "b", "c", "twice", "twice"], "x")


def test_solve_takes_lists_and_says_what_is_wrong(tmp_path: Path) -> None:
    table, lists, out = tmp_path / "p.csv", tmp_path / "lists", tmp_path / "out.csv"
    table.write_text("id,lower,upper,size,alignment\na,0,3,10,4\nb,1,2,6,4\nc,2,4,8,8\n")
    lists.write_text("b,a\n")
    assert commands.run("solve", table, "--contiguous", lists, "-o", out).returncode == 0
    assert reading.read_solution(out)[0].contiguous == ((1, 0),)
    assert commands.run("solve", out, "--allocator", "file").returncode == 0
    lists.write_text("b,c\n")
    refused = commands.run("solve", table, "--contiguous", lists)
    assert refused.returncode == 2
    assert "alignments 4 and 8" in refused.stderr
    assert commands.run("solve", out, "--contiguous", lists).returncode == 2
    assert commands.run("solve", table, "--contiguous", tmp_path / "missing").returncode == 2
