"""The table of `compare`: ours first, ties in one line, whose height is shown; on the problem of `analyze`."""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import replace
from pathlib import Path

import pytest
import small_files

from modelplan import RequestError, height, load, load_bound, plan
from modelplan.answers.drawing import of_plan
from modelplan.answers.placement_answers import AllocatorAnswers, Comparison, Row
from modelplan.cli import compare, model_options
from modelplan.model import Graph
from modelplan.outputs.report import plain
from modelplan.outputs.reports.comparison_report import sections, target_remarks
from modelplan.questions.comparing_allocators import CompareRequest, problem_source
from modelplan.questions.comparing_allocators import compare as compare_allocators
from modelplan.questions.model_request import planning_options

ROWS = (
    Row("naive", "baseline", 30, 1, lower_bound=10),
    Row("best", "portfolio", 12, 9, lower_bound=12),
    Row("modelplan", "exact", 12, 8, lower_bound=11),
    Row("glow", "offsets", 12, 5),
    Row("iree", "offsets", 12, 4),
    Row("tflite-equality", "objects", 12, 3, objects=12),
    Row("onnx2c", "objects", 12, 3, objects=10),
    Row("telamalloc", "search", 14, 7, found_by="first-fit-size"),
    Row("idealloc", "search", 14, 7, found_by="first-fit-size", own_height=15),
    Row("first-fit-size", "offsets", 14, 7),
    Row("cp-sat", "exact", None, 1, why="allocator 'cp-sat' is not at home"),
)
COMPARED = Comparison("a problem", 3, ROWS, ("a remark",))


def asked(source: Path, *words: str) -> CompareRequest:
    parser = ArgumentParser()
    compare.configure(parser)
    arguments = parser.parse_args([str(source), *words])
    return model_options.request_of(CompareRequest, arguments, str(source), model_options.chosen_target(arguments))


def test_the_bound_is_the_greatest_that_was_proved() -> None:
    assert COMPARED.lower_bound == 12


def test_ours_come_first_and_ties_stand_in_one_line() -> None:
    table = sections(COMPARED)[0].table
    assert table is not None
    assert [row[0] for row in table.rows] == [
        "best", "modelplan", "tflite-equality +2", "onnx2c", "first-fit-size", "telamalloc", "idealloc", "naive",
    ]  # fmt: skip
    assert [row[2] for row in table.rows[:4]] == ["", "", "", "10"]
    shown = plain(sections(COMPARED))
    assert "  12  tflite-equality, iree, glow\n" in shown
    assert "a remark" in shown
    assert "not at home" in shown


def test_a_height_that_is_another_allocators_is_marked() -> None:
    shown = plain(sections(COMPARED))
    assert "no solution of its own: first-fit-size's height shown" in shown
    assert "its own best is 15 B: first-fit-size's height shown" in shown
    hollow = [mark for mark in COMPARED.field.marks if mark.found_by]
    assert {mark.name for mark in hollow} == {"telamalloc", "idealloc"}
    assert not set(hollow) & set(COMPARED.field.unbeaten())


def test_the_lowest_heights_and_ours() -> None:
    table = sections(COMPARED, top=1)[0].table
    assert table is not None
    assert [row[0] for row in table.rows] == ["best", "modelplan", "tflite-equality +2"]
    assert "1 of 6 heights shown" in sections(COMPARED, top=1)[0].lines


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("glow=a.svg", ("glow", "a.svg", ".map.svg")),
        ("b.png", ("", "b.png", ".standing.png")),
        ("b.map.png", ("", "b.map.png", ".map.png")),
        ("glow=b.lifetimes.png", ("glow", "b.lifetimes.png", ".lifetimes.png")),
        ("./a=b.map.svg", ("", "./a=b.map.svg", ".map.svg")),
    ],
)
def test_what_a_draw_argument_means(text: str, found: tuple[str, str, str]) -> None:
    assert compare.drawing_of(text) == found


def test_a_draw_argument_that_means_nothing_is_refused() -> None:
    with pytest.raises(RequestError, match="no allocator 'glue'"):
        compare.drawing_of("glue=a.svg")
    with pytest.raises(RequestError, match=r"a\.txt: cannot tell what to draw"):
        compare.drawing_of("glow=a.txt")


@pytest.mark.parametrize("words", [(), ("--alias", "max"), ("--schedule", "file", "--alignment", "64")])
@pytest.mark.parametrize("name", ["ds_cnn_kws.tflite", "resnet8.onnx"])
def test_compare_and_analyze_plan_the_same_problem(models: Path, name: str, words: tuple[str, ...]) -> None:
    request = asked(models / name, *words)
    graph = load(str(models / name))
    assert isinstance(graph, Graph)
    source = problem_source(request)
    kernels = source.plan.requirement.kernels if source.plan and source.plan.requirement else None
    planned = plan(graph, planning_options(replace(request, kernels=kernels or None), graph))
    assert source.problem == planned.problem
    assert load_bound(source.problem) <= source.lower_bound <= height(planned.problem, planned.placement)


@pytest.mark.parametrize("room", [0, -16])
def test_a_capacity_holds_what_the_runtime_keeps_as_analyze_counts_it(models: Path, tmp_path: Path, room: int) -> None:
    model = models / "ds_cnn_kws.tflite"
    source = problem_source(asked(model))
    assert source.plan
    needed = source.plan.requirement
    assert needed
    assert source.kept == needed.arena - needed.head > 0
    target = tmp_path / "app.ld"
    lowest = height(source.problem, source.plan.placement)
    target.write_text(f"MEMORY {{ RAM (rwx) : ORIGIN = 0x20000000, LENGTH = {lowest + source.kept + room} }}")
    chosen = asked(model, "--target", f"from:{target}").target
    rows = (Row("best", "portfolio", lowest, 9), Row("naive", "baseline", 2 * lowest, 1))
    answers = AllocatorAnswers(Comparison(str(model), len(source.problem), rows), source, {}, chosen)
    (line,) = [text for text in target_remarks(answers) if text.startswith("fits")]
    assert line.startswith(f"fits      {1 if room == 0 else 0} of 2 answers, with the ")
    assert "that tflm keeps beside the buffers" in line
    drawn = source.within(chosen)
    assert drawn.plan
    shown = of_plan(drawn.plan)
    assert (shown.kept, shown.excess) == (source.kept, max(-room, 0))


def test_a_model_of_many_buffers_alive_together_is_asked_of_no_search_without_seconds(tmp_path: Path) -> None:
    model = tmp_path / "wide.tflite"
    model.write_bytes(small_files.tflite_outputs(220))
    rows = {row.allocator: row for row in compare_allocators(asked(model)).comparison.rows}
    assert rows["minimalloc"].why.startswith("asked about at most 20,000 pairs of buffers alive together")
    assert rows["minimalloc"].why.endswith("found 24,310")
    assert rows["modelplan"].height == rows["best"].height == rows["somas"].lower_bound
    timed = {row.allocator: row for row in compare_allocators(replace(asked(model), seconds=0.05)).comparison.rows}
    assert timed["minimalloc"].height == rows["best"].height


def test_a_table_is_asked_of_every_allocator(tmp_path: Path) -> None:
    table = tmp_path / "wide.csv"
    table.write_text("id,lower,upper,size\n" + "".join(f"{i},0,9,64\n" for i in range(220)))
    refused = [row.allocator for row in compare_allocators(asked(table)).comparison.rows if "pairs" in row.why]
    assert not refused
