"""Runs every allocator on a model or a CSV problem: height, height over bound, gap, time, and whose answer it is."""

from __future__ import annotations

import re
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from typing import TYPE_CHECKING

from modelplan.cli import files, model_options, terminal
from modelplan.cli.output_options import write_figures
from modelplan.cli.solve import add_part
from modelplan.outputs import FIGURE_KINDS, PAGE, figure_suffixes, render, suffix_of
from modelplan.outputs.reports.comparison_report import as_json, sections, target_remarks
from modelplan.planning.allocators import allocator
from modelplan.primitives.errors import RequestError
from modelplan.questions.comparing_allocators import CompareRequest, compare, comparison_page
from modelplan.questions.option_files import FROM_FILE

if TYPE_CHECKING:
    from modelplan.answers.placement_answers import AllocatorAnswers
    from modelplan.outputs.figures.standing_chart import Standing


def configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "source", metavar="FILE", help="a .tflite or .onnx model, or buffers: .csv, .pte, a dump of XLA"
    )
    add_part(parser)
    model_options.add_planning(parser)
    model_options.add_target(parser)
    parser.add_argument(
        "--seconds",
        type=float,
        metavar="S",
        help="how long each search may take (default: steps of its own, and no search of a model with many buffers)",
    )
    parser.add_argument("--top", type=int, metavar="N", help="the N lowest heights, and ours, in the table")
    parser.add_argument("--chart", metavar="FILE", help="height over bound against time as .svg, .png or .pdf")
    model_options.add_repeated(
        parser,
        "--draw",
        "[ALLOCATOR=]FILE",
        "every height and two maps as .svg, .png or .pdf; with ALLOCATOR= the memory map of its answer, with"
        " file= of the plan that the file states; FILE.html: all answers in a page to zoom and click; may be repeated",
    )
    parser.add_argument("--json", metavar="FILE", help="all rows as JSON; - for standard output")


def run(arguments: Namespace) -> int:
    charts = [(arguments.chart, suffix_of(arguments.chart, "Field"))] if arguments.chart else []
    for option in ("seconds", "top"):
        value = getattr(arguments, option)
        if value is not None and not value > 0:
            raise RequestError(f"--{option} is {value:g}, expected more than 0")
    drawn = [drawing_of(text) for text in arguments.draw]
    outputs = [arguments.chart, arguments.json, *(path for _, path, _ in drawn)]
    files.check_outputs(outputs, [arguments.source])
    chosen = model_options.chosen_target(arguments)
    asked = {"seconds": arguments.seconds, "part": arguments.part}
    answers = compare(model_options.request_of(CompareRequest, arguments, arguments.source, chosen, **asked))
    if arguments.json:
        files.write(arguments.json, as_json(answers))
    comparison = answers.comparison
    write_figures(charts, comparison.field)
    for name, path, suffix in drawn:
        if suffix == PAGE:
            files.write(path, render(comparison_page(answers), PAGE))
        elif not name and suffix in figure_suffixes("Standing"):
            files.write(path, render(standing(answers), suffix))
        else:
            files.write(path, render(answers.drawing_of(name or comparison.ranked[0].allocator), suffix))
    if arguments.json != "-":
        remarks = (*comparison.remarks, *target_remarks(answers))
        terminal.show(sections(replace(comparison, remarks=remarks), arguments.top))
    return 0


def drawing_of(text: str) -> tuple[str, str, str]:
    """Allocator (empty: none), file and kind of figure that --draw names; with an allocator .svg means its map."""
    name, given, path = text.partition("=")
    if not given or not re.fullmatch(r"[a-z0-9-]+", name):
        name, path = "", text
    if name and name != FROM_FILE:
        allocator(name)
    if name and path.endswith(".html"):
        raise RequestError(f"--draw {text}: the page holds the answers of all allocators, so it takes no name")
    kind = "Drawing" if name or is_drawing(path) else "Standing"
    return name, path, suffix_of(path, kind, page=True)


def is_drawing(path: str) -> bool:
    """Whether the file's name says that it shows one answer: x.map.svg, or no figure of all answers."""
    return path.endswith(tuple(figure_suffixes("Drawing"))) or not path.endswith((*FIGURE_KINDS, PAGE))


def standing(answers: AllocatorAnswers) -> Standing:
    """Every height, and the maps of our answer and of the file's own plan, or of the allocator that the runtime has."""
    from modelplan.outputs.figures.standing_chart import Standing

    plan = answers.source.runtime_plan
    other = plan.allocator if plan else "tflite-greedy-by-size"
    names = dict.fromkeys(("modelplan", FROM_FILE if answers.source.planned is not None else other))
    maps = tuple((name, answers.drawing_of(name)) for name in names if name in answers.placements)
    return Standing(answers.comparison.field, maps)
