"""What the page says of buffers that share bytes, of places, peaks and shares, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser, opened_browser, require_browser
from striped_files import striped_ladder

from modelplan import Graph, Op, Options, Tensor
from modelplan.outputs.page import html_file
from modelplan.planning import pipeline
from modelplan.questions.pages.plan_views import ladder_page
from modelplan.rewriting.striped_tflite.rungs import Goal


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all tests of this module."""
    require_browser()
    with opened_browser() as opened:
        opened.prefer(prefers_color_scheme="light", prefers_reduced_motion="reduce")
        yield opened


@pytest.fixture(scope="module")
def stripes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a model that was made to fit by a loop over stripes."""
    folder = tmp_path_factory.mktemp("words")
    path = folder / "stripes.html"
    path.write_bytes(html_file.html(ladder_page("three.tflite", striped_ladder(folder), Goal(objective="head"))))
    return path


def test_overlaps_are_those_of_addresses_and_told_by_the_operator_or_the_plan(browser: Browser, stripes: Path) -> None:
    browser.open(stripes)
    rows = browser.run(
        "turnTo(plans.length - 1); const p = plan(); return writtenOver(p).map(([i, j, n]) => [n, p.size[i], p.size[j],"
        "overlapWords(p, i, j, n), p.start[i], p.end[i], p.start[j], p.end[j]])"
    )
    assert rows
    for shared, one, other, words, *life in rows:
        assert 0 < shared <= min(one, other)
        assert "while that reads it" in words or "the plan in the file puts both there" in words
        assert life[0] < life[3]
        assert life[2] < life[1]


def test_why_here_says_what_the_plan_in_the_file_does(browser: Browser, stripes: Path) -> None:
    browser.open(stripes)
    told = browser.run("turnTo(plans.length - 1); const p = plan(); return p.columns.given.map(i => p.why(i))")
    assert told
    assert all(words.startswith("the plan in the file puts it at this address") for words in told)
    assert any("next above lies" in words or "next above " in words for words in told)
    assert not any("no gap" in words for words in told)


def test_share_in_the_panel_is_that_of_the_table(browser: Browser, stripes: Path) -> None:
    browser.open(stripes)
    browser.run("turnTo(plans.length - 1); gotoPeak(0); pick(plan().aliveAt(state.step)[0])")
    share = browser.text("#live tbody tr.on td.share")
    assert f"{share} of the bytes alive at step {browser.run('return state.step')}" in browser.text("#details")


def test_each_tensor_of_a_buffer_has_its_own_steps_and_operators(browser: Browser, stripes: Path) -> None:
    browser.open(stripes)
    browser.run("turnTo(plans.length - 1); pick([...plan().low.keys()].find(i => plan().tensors(i).length > 2))")
    details = browser.text("#details")
    names = browser.run("return plan().tensors(state.picked).map(t => plan().graph.tensors[t])")
    assert all(name in details for name in names)
    assert "last read at step" in details
    assert any(": " in text and text.split(": ")[1] for text in browser.texts("#details .link"))


def even(path: Path, alias: str) -> Path:
    """The page of a model with two peaks of one height, whose last operator is a view."""
    tensors = tuple(Tensor(f"t{i}", (1, size), "int8") for i, size in enumerate((64, 64, 8, 64, 64)))
    ops = tuple(Op(f"op_{i}", "RESHAPE" if i == 3 else "CONV_2D", (i,), (i + 1,)) for i in range(4))
    options = Options(runtime="generic", schedule="file", alias=alias, allocator="first-fit-size")
    path.write_bytes(html_file.render(pipeline.plan(Graph("even", "tflite", tensors, ops, (0,), (4,)), options)))
    return path


def test_a_peak_as_high_as_another_says_so(browser: Browser, tmp_path: Path) -> None:
    browser.open(even(tmp_path / "even.html", "none"))
    assert browser.run("return plan().peaks.map(k => k.bytes)") == [128, 128]
    browser.run("document.querySelector('#next').click()")
    assert browser.text("#where").startswith("peak 2 of 2, as high as peak 1")
    assert "peak 2 of 2 by height, as high as peak 1" in browser.text("#live > p")


def test_a_buffer_that_holds_the_output_is_called_after_it(browser: Browser, tmp_path: Path) -> None:
    browser.open(even(tmp_path / "over.html", "views"))
    held = browser.run("pick(plan().bufferOf.get(4)); return plan().tensors(state.picked)")
    assert held == [3, 4]
    assert browser.text("#details h2") == "t4"
    assert "op 2 CONV_2D (step 2): t3" in browser.texts("#details .writer")


def test_a_click_keeps_what_is_told_and_a_step_at_which_the_buffer_is_alive(browser: Browser, stripes: Path) -> None:
    browser.open(stripes)
    i, step, x, y = browser.run(
        "pick(-1); const p = plan(), f = chart.frame, w = chart.window;"
        "const i = [...p.byArea].find(i => p.end[i] - p.start[i] > 1 && p.at(p.start[i] + 0.5, p.low[i] + 1) === i);"
        "goto(p.end[i] - 1); const at = [p.start[i] + 0.5, p.low[i] + 1];"
        "return [i, state.step, f.left + (f.width * (at[0] - w.x0)) / (w.x1 - w.x0),"
        "f.top + (f.height * (w.y1 - at[1])) / (w.y1 - w.y0)]"
    )
    browser.point(x, y - 3)
    told = browser.text("#tip")
    assert browser.run("return plan().shorts[arguments[0]]", i) in told
    browser.point(x, y - 3, click=True)
    assert browser.run("return [state.picked, state.step]") == [i, step]
    browser.point(5, 5)
    assert browser.text("#tip") == told
