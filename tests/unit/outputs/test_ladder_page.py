"""The page of a fitted model: each rung is drawn by the plan that its file carries."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from commands import run
from striped_files import striped_ladder, three_convolutions

from modelplan.answers.page_views import Page
from modelplan.model import bounds
from modelplan.questions.pages.plan_views import ladder_page
from modelplan.rewriting.striped_tflite.ladder import Ladder
from modelplan.rewriting.striped_tflite.rungs import Goal


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ladder, Page]:
    """A ladder whose last rung computes everything in a loop over stripes, and its page."""
    folder = tmp_path_factory.mktemp("ladder")
    ladder = striped_ladder(folder)
    return ladder, ladder_page(str(folder / "three.tflite"), ladder, Goal(objective="head"))


def test_each_rung_is_drawn_with_the_arena_of_its_file(made: tuple[Ladder, Page]) -> None:
    ladder, page = made
    views = {view.name.removeprefix("after: "): view for view in page.views}
    for rung in ladder.rungs:
        view = views["before" if rung.name == "as is" else rung.name]
        drawn = view.drawing
        assert (drawn.planned, drawn.planned + drawn.kept) == (rung.head, rung.arena)
        assert bounds.height(drawn.problem, drawn.placement) <= rung.head


def test_buffers_of_parts_share_bytes_only_where_the_page_says_so(made: tuple[Ladder, Page]) -> None:
    view = made[1].views[-1]
    problem, low = view.drawing.problem, view.drawing.placement.offsets
    assert view.parts
    assert "rows of a tensor" in view.about
    high, told = low + problem.size, {(a, b) for a, b, _ in problem.overlaps.tolist()}
    for a in range(len(problem)):
        for b in range(a):
            both = problem.start[a] < problem.end[b] and problem.start[b] < problem.end[a]
            assert ((a, b) in told or (b, a) in told) == bool(both and low[a] < high[b] and low[b] < high[a])


def test_steps_of_a_loop_have_names_and_what_it_hands_on_is_one_buffer(made: tuple[Ladder, Page]) -> None:
    view = made[1].views[-1]
    graph, problem = view.graph, view.drawing.problem
    assert graph
    # The scope in which the inputs are written is no step: operator 0 of the file is step 0, as in other views.
    assert len(view.order) + 1 == len(view.op_labels) == len(view.op_callers) == view.drawing.steps + 1
    labels = [view.op_labels[op] for op in view.order]
    assert labels[:3] == [
        "op 0 WHILE",
        "condition of op 0 WHILE begins",
        "op 0 SLICE in the condition of op 0 WHILE",
    ]
    loop = labels.index("op 0 WHILE")
    inside = [step for step, label in enumerate(labels) if " in the body of op 0 WHILE" in label]
    assert inside
    assert {view.op_callers[view.order[step]] for step in inside} == {view.order[loop]}
    names = [[graph.tensors[m.tensor].name for m in row.members] for row in problem]
    (first,) = [i for i, row in enumerate(names) if graph.tensors[graph.inputs[0]].name in row]
    assert len(names[first]) > 2  # the input of the model, of the loop, of its body
    assert (problem.start[first], problem.end[first]) == (0, inside[-1] + 1)
    assert len({tensor for row in problem for tensor in row.members}) == len(graph.tensors)


def test_what_writes_and_reads_a_buffer_runs_while_it_is_alive(made: tuple[Ladder, Page]) -> None:
    view = made[1].views[-1]
    graph, step_of = view.graph, {op: step for step, op in enumerate(view.order)}
    assert graph
    writers = {t: step_of[op] for op, row in enumerate(graph.ops) for t in row.writes}
    readers = [(t, step_of[op]) for op, row in enumerate(graph.ops) for t in row.reads]
    lives = {m.tensor: (row.start, row.end) for row in view.drawing.problem for m in row.members}
    assert all(lives[t][0] <= step < lives[t][1] for t, step in [*writers.items(), *readers])
    for row in view.drawing.problem:
        written = any(member.tensor in writers for member in row.members)
        assert written or not row.members or {m.tensor for m in row.members} & set(graph.inputs)
    assert {merge.rule for merge in view.merges} >= {
        "the called subgraph gets its operands in place",
        "the loop keeps one address for each of its values",
    }


def test_a_difference_draws_the_plan_of_a_file_in_stripes(made: tuple[Ladder, Page], tmp_path: Path) -> None:
    rung = made[0].chosen
    assert rung
    old, new = tmp_path / "old.tflite", tmp_path / "new.tflite"
    old.write_bytes(three_convolutions())
    new.write_bytes(rung.model)
    page = tmp_path / "page.html"
    done = run("diff", old, new, "--abi", "32", "--draw", page)
    assert done.returncode == 0, done.stderr
    found = re.search(r'id="data">(.*?)</script>', page.read_text(encoding="utf-8"), re.DOTALL)
    assert found
    view = json.loads(found[1])["views"][-1]
    assert (view["planned"], view["planned"] + view["tail"]) == (rung.head, rung.arena)


def test_analyze_draws_the_plan_in_a_file_in_stripes(made: tuple[Ladder, Page], tmp_path: Path) -> None:
    rung = made[0].chosen
    assert rung
    model, page = tmp_path / "striped.tflite", tmp_path / "page.html"
    model.write_bytes(rung.model)
    done = run("analyze", model, "--abi", "32", "--draw", page)
    assert done.returncode == 0, done.stderr
    found = re.search(r'id="data">(.*?)</script>', page.read_text(encoding="utf-8"), re.DOTALL)
    assert found
    view = json.loads(found[1])["views"][1]
    assert (view["name"], view["planned"] + view["tail"]) == ("plan in the file", rung.arena)


def test_what_nothing_writes_before_a_loop_is_alive_from_the_loop_on(made: tuple[Ladder, Page]) -> None:
    """TFLM plans such operands from the start; no byte of theirs is in use before, so that no peak may count them."""
    view = made[1].views[-1]
    graph, problem, low = view.graph, view.drawing.problem, view.drawing.placement.offsets
    assert graph
    merges = [merge for merge in view.merges if "nothing writes before it" in merge.rule]
    assert merges
    starts = {member.tensor: row.start for row in problem for member in row.members}
    for merge in merges:
        assert graph.ops[merge.op].kind == "WHILE"
        assert starts[merge.tensor] >= view.order.index(merge.op)
    alive = [i for i in range(len(problem)) if problem.start[i] == 0]
    assert {m.tensor for i in alive for m in problem.members[i]} >= set(graph.inputs)
    others = [i for i in alive if not {m.tensor for m in problem.members[i]} & set(graph.inputs)]
    names = [[graph.tensors[m.tensor].name for m in problem.members[i]] for i in others]
    assert all(any("/loop/" in name for name in row) for row in names)  # the file begins with the loop
    for step in range(view.drawing.steps):
        ends = [low[i] + problem.size[i] for i in range(len(problem)) if problem.start[i] <= step < problem.end[i]]
        assert max(ends, default=0) <= view.drawing.planned
    assert view.given
    assert all(problem.members[i] for i in view.given)
    assert "of the model as it was: one loop" in view.about
    assert "(op 0 WHILE here)" in view.about
