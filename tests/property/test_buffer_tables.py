"""Tables of buffers as other tools write them: gaps, hints, fixed offsets, other dividers and steps."""

from __future__ import annotations

import csv
import io
import tempfile
from pathlib import Path

import pytest
from commands import run
from hypothesis import given
from hypothesis import strategies as st

import modelplan
from modelplan.formats import load
from modelplan.formats.problem_csv import read_table, with_offsets
from modelplan.model import Budget, Buffer, Problem, bounds
from modelplan.primitives.errors import BrokenPlanError

#: A row: first step, life, size, and for each gap where it begins, how long it is, and which bytes stay.
ROWS = st.lists(
    st.tuples(
        st.integers(-4, 6),
        st.integers(1, 9),
        st.integers(1, 12),
        st.lists(st.tuples(st.integers(0, 8), st.integers(1, 3), st.integers(0, 12), st.integers(0, 12)), max_size=3),
    ),
    min_size=1,
    max_size=7,
)
Row = tuple[int, int, int, list[tuple[int, int, int, int]]]
Gaps = list[tuple[int, int, int, int]]


def gaps_in(start: int, end: int, size: int, drawn: Gaps) -> Gaps:
    """The drawn gaps as steps and bytes, those left out that overlap another or leave nothing of the buffer."""
    found, free = Gaps(), set(range(start, end))
    for at, length, low, high in drawn:
        steps = range(start + at, min(start + at + length, end))
        if steps and free.issuperset(steps) and len(free) > len(steps):
            free -= set(steps)
            found.append(
                (steps[0], steps[-1] + 1, low, high) if low < high <= size else (steps[0], steps[-1] + 1, 0, 0)
            )
    return found


def table_of(rows: list[Row], divider: str) -> tuple[str, list[dict[int, range]]]:
    """The table, and by hand the bytes of each row that are alive at each step."""
    text, alive = [divider.join(("id", "lower", "upper", "size", "gaps"))], []
    for number, (start, life, size, drawn) in enumerate(rows):
        gaps = gaps_in(start, start + life, size, drawn)
        words = [f"{a}-{b}" + (f"@{low}:{high}" if high else "") for a, b, low, high in gaps]
        text.append(divider.join((f"b{number}", str(start), str(start + life), str(size), " ".join(words))))
        steps = {step: range(size) for step in range(start, start + life)}
        steps |= {step: range(low, high) for a, b, low, high in gaps for step in range(a, b)}
        alive.append(steps)
    return "\n".join(text) + "\n", alive


@given(ROWS, st.sampled_from(",;\t"))
def test_rows_with_gaps_never_share_a_byte_and_are_packed(rows: list[Row], divider: str) -> None:
    text, alive = table_of(rows, divider)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "p.csv"
        path.write_text(text)
        table = read_table(path)
        placement = modelplan.place(table.problem, budget=Budget(steps=300))
        placed = list(csv.DictReader(io.StringIO(with_offsets(table, placement))))
    offsets = [int(row["offset"]) for row in placed]
    assert [row["id"] for row in placed] == [f"b{i}" for i in range(len(rows))]
    taken: dict[tuple[int, int], int] = {}
    for number, steps in enumerate(alive):
        for step, some in steps.items():
            for byte in some:
                assert taken.setdefault((step, offsets[number] + byte), number) == number
    assert bounds.height(table.problem, placement) == 1 + max(byte for _, byte in taken)


@pytest.mark.parametrize("divider", [",", ";", "\t"])
def test_other_headings_dividers_and_steps_mean_the_same(divider: str, tmp_path: Path) -> None:
    plain, other = tmp_path / "plain.csv", tmp_path / "other.csv"
    plain.write_text("id,lower,upper,size\na,0,3,16\nb,2,5,32\n")
    lines = ["name,start,upper,bytes", "a,-7,-4,16", "b,-5,-2,32"]
    other.write_text("\n".join(lines).replace(",", divider) + "\n")
    assert load(other) == load(plain)


def test_solve_honours_gaps_fixed_offsets_and_hints(tmp_path: Path) -> None:
    table, placed = tmp_path / "t.csv", tmp_path / "placed.csv"
    table.write_text("id,lower,upper,size,gaps\na,-3,5,100,-1-0 2-3@20:40\nb,-1,0,80,\nc,2,3,20,\n")
    done = run("solve", table, "-o", placed)
    assert "height      100 B" in done.stdout  # b and c lie where a is not
    assert placed.read_text().splitlines()[0] == "id,lower,upper,size,gaps,offset"
    assert run("solve", placed, "--allocator", "file").returncode == 0
    assert "the column 'offset' is not used; --fixed keeps its offsets" in run("solve", placed).stdout

    table.write_text("id,lower,upper,size,offset\na,0,2,16,64\nb,1,3,16,\n")
    assert "height      80 B" in run("solve", table, "--fixed", "-o", placed).stdout
    assert placed.read_text().splitlines()[1:] == ["a,0,2,16,64", "b,1,3,16,0"]
    table.write_text("id,lower,upper,size,alignment,offset\na,0,2,16,16,8\n")
    done = run("solve", table, "--fixed")
    assert (done.returncode, "--fixed: " in done.stderr) == (2, True)
    done = run("solve", tmp_path / "t.csv", "--allocator", "file")
    assert (done.returncode, "bytes 8..24" in done.stderr) == (4, True)

    table.write_text("id,lower,upper,size,hint\na,0,3,16,32\nb,2,5,32,0\nc,4,8,16,32\nd,0,9,4,\n")
    done = run("solve", table, "-o", placed)
    assert "3 of 3 hints kept" in done.stdout
    assert [line.rpartition(",")[2] for line in placed.read_text().splitlines()[1:]] == ["32", "0", "32", "48"]


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(1, 6), st.integers(1, 40)), min_size=1, max_size=12))
def test_kept_offsets_cost_no_height_and_a_plan_that_is_as_low_stays(rows: list[tuple[int, int, int]]) -> None:
    problem = Problem.of([Buffer(f"b{i}", size, start, start + life) for i, (start, life, size) in enumerate(rows)])
    before = modelplan.place(problem, "first-fit-start")
    after = modelplan.place(problem)
    kept = modelplan.keep_offsets(problem, before.offsets, after)
    modelplan.check(problem, kept)
    assert modelplan.height(problem, kept) <= modelplan.height(problem, after)
    if modelplan.height(problem, before) == modelplan.height(problem, after):
        assert (kept.offsets == before.offsets).all()
    dear = modelplan.keep_offsets(problem, before.offsets, after, price=1000)
    assert (dear.offsets == before.offsets).sum() >= (kept.offsets == before.offsets).sum()
    assert (dear.offsets == before.offsets).all()


def test_a_changed_buffer_moves_alone() -> None:
    rows = [Buffer("a", 64, 0, 4), Buffer("b", 32, 1, 3), Buffer("c", 32, 2, 6), Buffer("d", 16, 5, 8)]
    before = modelplan.place(Problem.of(rows))
    grown = Problem.of([*rows[:3], Buffer("d", 48, 5, 8)])
    after = modelplan.keep_offsets(grown, before.offsets, modelplan.place(grown))
    assert (after.offsets[:3] == before.offsets[:3]).all()
    with pytest.raises(BrokenPlanError):
        modelplan.check(grown, modelplan.Placement(after.offsets - 1))


def test_rows_with_gaps_and_steps_below_0_are_written_as_they_were(tmp_path: Path) -> None:
    table, placed = tmp_path / "t.csv", tmp_path / "placed.csv"
    table.write_text("id,lower,upper,size,gaps\na,-3,5,16,-3-2\n")
    assert run("solve", table, "-o", placed).returncode == 0
    assert placed.read_text().splitlines() == ["id,lower,upper,size,gaps,offset", "a,-3,5,16,-3-2,0"]

    table.write_text("id,lower,upper,size,gaps\na,-3,5,16,-5-2\n")
    assert "the gap -5-2 does not lie in steps -3 to 5" in run("solve", table).stderr
