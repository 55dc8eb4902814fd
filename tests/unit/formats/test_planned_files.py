"""Programs of ExecuTorch and dumps of XLA as problems: lifetimes, views, state, loops, and the tools' own plans."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from commands import run

from modelplan import ModelError, Problem, RequestError, SolveRequest, load, load_bound, render, solve
from modelplan.formats import load_table

FOLDER = Path(__file__).parents[2] / "data" / "planned"
DUMP = "loops-buffer-assignment.txt"


def lifetimes(problem: Problem) -> dict[str, list[tuple[int, int]]]:
    """The half-open lifetimes of each name."""
    found: dict[str, list[tuple[int, int]]] = {}
    for buffer in problem:
        found.setdefault(buffer.name, []).append((buffer.start, buffer.end))
    return found


@pytest.mark.parametrize(
    ("file", "buffers", "least", "planned"),
    [
        ("small.pte", 8, 3072, 3072), ("branch.pte", 14, 272, 544), ("loop.pte", 10, 288, 352),
        ("cache.pte", 17, 2768, 2768), ("views.pte", 6, 1040, 1040), ("delegate.pte", 4, 2048, 2048),
        (DUMP, 13, 33156, 33184),
    ],
)  # fmt: skip
def test_the_tool_s_own_plan_stands_beside_ours(file: str, buffers: int, least: int, planned: int) -> None:
    solution = solve(SolveRequest(str(FOLDER / file)))
    assert (len(solution.problem), solution.height, solution.planned_height) == (buffers, least, planned)
    assert solution.placement.lower_bound == least
    assert not solution.flaw
    assert load_bound(solution.problem) <= least


def test_operands_live_until_the_last_instruction_that_reads_them() -> None:
    spans = lifetimes(load(FOLDER / "small.pte"))  # type: ignore[arg-type]
    assert spans["input 0 (4)"] == [(0, 1)]
    assert spans["aten::relu 1 (20)"] == [(1, 5)]  # read again by the addition
    assert [span for name, span in spans.items() if name.startswith("aten::max_pool2d")] == [[(5, 7)], [(5, 6)]]


def test_state_is_alive_all_the_time_and_views_are_no_buffers() -> None:
    table = load_table(FOLDER / "cache.pte")
    spans = lifetimes(table.problem)
    assert spans["state (2)"] == [(0, 15)]
    offsets = table.offsets("offset")
    assert offsets is not None
    places = list(zip(offsets.tolist(), table.problem.size.tolist(), table.problem.start.tolist(), strict=True))
    assert len(set(places)) == len(places)


def test_a_view_of_an_open_shape_keeps_what_it_is_of_alive() -> None:
    spans = lifetimes(load(FOLDER / "views.pte"))  # type: ignore[arg-type]
    assert spans["aten::mul 2 (8)"] == [(2, 6)]  # read as a view in step 5
    assert not [name for name in spans if "et_view" in name]


def test_the_last_argument_of_a_delegate_is_its_result() -> None:
    """It lies where an operand of its size was before."""
    spans = lifetimes(load(FOLDER / "delegate.pte"))  # type: ignore[arg-type]
    assert spans["delegate 0 (1)"] == [(0, 2)]
    assert spans["delegate 2 (5)"] == [(2, 4)]


def test_what_a_loop_fills_part_by_part_is_alive_through_it() -> None:
    spans = lifetimes(load(FOLDER / "loop.pte"))  # type: ignore[arg-type]
    assert spans["executorch_prim::et_copy_index 5 (3)"] == [(1, 13)]
    assert spans["aten::select_copy 1 (8)"] == [(1, 3)]


def test_branches_do_not_meet() -> None:
    """What the first branch moves out is dead while the second one runs, and both results are one buffer."""
    spans = lifetimes(load(FOLDER / "branch.pte"))  # type: ignore[arg-type]
    assert spans["aten::add 6 (17)"] == [(6, 9), (12, 15)]


def test_values_that_a_loop_passes_on_are_one_buffer() -> None:
    table = load_table(FOLDER / DUMP)
    buffers, groups, deltas = table.problem.groups.T
    assert len(set(groups.tolist())) < len(buffers)
    assert not deltas.any()


def test_commands_name_the_plan_draw_it_and_compare_it(tmp_path: Path) -> None:
    shown = run("solve", FOLDER / "branch.pte", "--draw", tmp_path / "x.html", "--draw", tmp_path / "x.svg")
    assert "ExecuTorch's own plan: 544 B, 272 B (100.00%) above the bound" in shown.stdout
    assert "peak        step 4: input 0 (0) 128 B (steps 0 to 4)" in shown.stdout
    assert "the offsets that the file states" in (tmp_path / "x.html").read_text()
    own = run("solve", FOLDER / "branch.pte", "--allocator", "file", "-o", "-")
    assert own.stdout.splitlines()[0] == "id,lower,upper,size,alignment,group,delta,offset"
    compared = run(
        "compare", FOLDER / DUMP, "--draw", f"file={tmp_path / 'own.map.svg'}", "--json", tmp_path / "x.json"
    )
    assert "XLA's own plan: 32.41 KiB (33,184 B), 28 B (0.08%) above the bound" in compared.stdout
    assert ": file" in (tmp_path / "own.map.svg").read_text()
    assert run("analyze", FOLDER / "small.pte").stderr.endswith("use `modelplan solve` or `modelplan compare`\n")


def test_parts_are_chosen_by_name(tmp_path: Path) -> None:
    assert len(load_table(FOLDER / "small.pte", "forward/1").problem) == 8
    with pytest.raises(RequestError, match=r"--part forward/2: .* has forward/1; did you mean 'forward/1'"):
        load_table(FOLDER / "small.pte", "forward/2")
    (tmp_path / "a.csv").write_text("id,lower,upper,size\na,0,1,4\n")
    with pytest.raises(RequestError, match=r"--part 1: .* is one table of buffers"):
        solve(SolveRequest(str(tmp_path / "a.csv"), part="1"))


def test_files_that_do_not_belong_together_are_refused_by_name(tmp_path: Path) -> None:
    for file in FOLDER.glob("loops*"):
        shutil.copy(file, tmp_path)
    ranges = tmp_path / "loops-live-range.txt"
    text = ranges.read_text()
    ranges.write_text(text.replace("copy.6{}", "copy.7{}"))
    with pytest.raises(ModelError, match=r"loops-live-range.txt: found no live range of the value 'copy.6'"):
        load_table(tmp_path / DUMP)
    ranges.unlink()
    with pytest.raises(ModelError, match=r"loops-live-range.txt: No such file"):
        load_table(tmp_path / DUMP)
    ranges.write_text(text)
    (tmp_path / "loops.txt").write_text((tmp_path / "loops.txt").read_text().replace("ENTRY ", "").replace(" {", " ("))
    with pytest.raises(ModelError, match="found no computation"):
        load_table(tmp_path / DUMP)
    (tmp_path / "other.txt").write_text("BufferAssignment:\n")
    with pytest.raises(ModelError, match=r"expected one that ends with -buffer-assignment\.txt"):
        load_table(tmp_path / "other.txt")
    (tmp_path / "a-buffer-assignment.txt").write_text("BufferAssignment:\nallocation 0: size 4, constant:\n")
    with pytest.raises(RequestError, match="found no allocations of temporary memory"):
        load_table(tmp_path / "a-buffer-assignment.txt")


@pytest.mark.parametrize("name", [*(file.name for file in sorted(FOLDER.glob("*.pte"))), DUMP])
def test_damaged_files_are_refused_or_read(name: str, tmp_path: Path) -> None:
    for file in FOLDER.glob("loops*"):
        shutil.copy(file, tmp_path)
    content, draw, refusals = (FOLDER / name).read_bytes(), random.Random(1), list[str]()
    for _ in range(150):
        damaged = bytearray(content)
        for _ in range(draw.randint(1, 4)):
            damaged[draw.randrange(8, len(damaged))] = draw.randrange(256)
        (tmp_path / name).write_bytes(bytes(damaged[: draw.choice([len(damaged), draw.randrange(64, len(damaged))])]))
        try:
            load(tmp_path / name)
        except (ModelError, RequestError) as refusal:
            refusals.append(str(refusal))
    assert len(refusals) > 20
    assert not [words for words in refusals if "\n" in words or str(tmp_path) not in words]


def test_a_solved_problem_is_rendered_and_a_request_is_checked() -> None:
    solution = solve(SolveRequest(str(FOLDER / "small.pte"), capacity=3071))
    assert not solution.fits
    assert "infeasible, proved by the bound" in str(render(solution, ".txt"))
    assert '"planner": "ExecuTorch"' in str(render(solution, ".json"))
    assert str(render(solution, ".lifetimes.svg")).count("input 0 (4)")
