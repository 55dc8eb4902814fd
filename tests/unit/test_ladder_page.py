"""The page of a fitted model: each rung is drawn by the plan that its file carries."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from commands import run
from striped_files import three_convolutions

from modelplan import bounds
from modelplan.cli.plan_views import ladder_page
from modelplan.outputs.page.views import Page
from modelplan.rewriting.ladder import Ladder, climb
from modelplan.rewriting.rungs import Goal


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ladder, Page]:
    """A ladder whose last rung is in stripes, and its page."""
    path = tmp_path_factory.mktemp("ladder") / "three.tflite"
    path.write_bytes(three_convolutions())
    goal = Goal(objective="head", max_macs=9, max_time=9, without=frozenset(("order", "gather")))
    ladder = climb(path, goal, processes=1)
    return ladder, ladder_page(str(path), ladder, goal)


def test_each_rung_is_drawn_with_the_arena_of_its_file(made: tuple[Ladder, Page]) -> None:
    ladder, page = made
    assert ladder.chosen
    assert ladder.chosen.name == "split"
    views = {view.name.removeprefix("after: "): view for view in page.views}
    for rung in ladder.rungs:
        view = views["before" if rung.name == "as is" else rung.name]
        drawn = view.drawing
        assert (drawn.arena, drawn.arena + drawn.kept) == (rung.head, rung.arena)
        assert bounds.height(drawn.problem, drawn.placement) <= rung.head


def test_buffers_of_parts_share_bytes_only_where_the_page_says_so(made: tuple[Ladder, Page]) -> None:
    view = made[1].views[-1]
    problem, low = view.drawing.problem, view.drawing.placement.offsets
    assert view.parts
    assert "parts of tensors" in view.about
    high, told = low + problem.size, {(a, b) for a, b, _ in problem.overlaps.tolist()}
    for a in range(len(problem)):
        for b in range(a):
            both = problem.start[a] < problem.end[b] and problem.start[b] < problem.end[a]
            assert ((a, b) in told or (b, a) in told) == bool(both and low[a] < high[b] and low[b] < high[a])


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
    assert (view["arena"], view["arena"] + view["tail"]) == (rung.head, rung.arena)
