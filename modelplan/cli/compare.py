"""Runs every allocator on a model or a CSV problem: height, height over bound, gap, time, optimal or not."""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

from modelplan import bounds, pipeline
from modelplan.allocators import ALLOCATORS, place
from modelplan.cli import files, model_options, terminal
from modelplan.errors import RequestError
from modelplan.outputs import canvas, field_chart
from modelplan.outputs.field_chart import Field, Mark
from modelplan.outputs.report import Section, Table, printable
from modelplan.outputs.summary import RuntimePlan, runtime_plan
from modelplan.outputs.units import counted, human
from modelplan.types import Budget, Problem


@dataclass(frozen=True, slots=True)
class Row:
    """One allocator's answer; `height` is None where it refused, `why` says so.

    `objects` is what a planner of shared objects reports itself: their bytes, without padding between them.
    """

    allocator: str
    kind: str
    height: int | None
    microseconds: int
    objects: int | None = None
    why: str = ""


def configure(parser: ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("source", metavar="MODEL|CSV", help="a .tflite or .onnx model, or a problem as .csv")
    model_options.add_planning(parser)
    parser.add_argument(
        "--seconds", type=float, metavar="S", help="how long each search may take (default: steps of its own)"
    )
    parser.add_argument("--chart", metavar="FILE", help="height over bound against time as .svg or .png")
    parser.add_argument("--json", metavar="FILE", help="the table as JSON; - for standard output")


def run(arguments: Namespace) -> int:
    """Runs the command."""
    if arguments.chart and not arguments.chart.endswith((".svg", ".png")):
        raise RequestError(f"{arguments.chart}: a chart's name must end in .svg or .png")
    if arguments.seconds is not None and not arguments.seconds > 0:
        raise RequestError(f"--seconds is {arguments.seconds:g}, expected more than 0")
    problem, own = problem_of(arguments)
    bound = bounds.load_bound(problem)
    rows = list(answers(problem, Budget(seconds=arguments.seconds)))
    if arguments.json:
        document = {"source": arguments.source, "lower_bound": bound, "rows": [asdict(row) for row in rows]}
        document |= {"today": asdict(own)} if own else {}
        files.write(arguments.json, json.dumps(document, indent=1) + "\n")
    if arguments.chart:
        files.write(arguments.chart, chart(arguments.chart, field(arguments.source, problem, bound, rows)))
    if arguments.json != "-":
        terminal.show([section(arguments.source, problem, bound, rows, own)])
    return 0


def problem_of(arguments: Namespace) -> tuple[Problem, RuntimePlan | None]:
    """The problem in the file; for a model that of its plan with the given options, and the plan of its runtime."""
    from modelplan.loaders import load

    loaded = load(arguments.source, arguments.dim)
    if isinstance(loaded, Problem):
        return loaded, None
    options = model_options.options_of(arguments, loaded)
    plan = pipeline.plan(loaded, replace(options, allocator="tflm-greedy"))
    return plan.problem, runtime_plan(plan)


def answers(problem: Problem, budget: Budget) -> Iterator[Row]:
    """Every allocator of the table in turn, timed by the wall clock; `budget` holds for each search alone.

    Each places nothing first, untimed, so that the time does not hold the loading of its code.
    """
    nothing = Problem.of(())
    for row in ALLOCATORS.values():
        begin = time.perf_counter()
        try:
            place(nothing, row.name)
            begin = time.perf_counter()
            placement = place(problem, row.name, budget)
            if placement.ended == "cancelled":  # a search that keeps its best on Ctrl-C; the command ends all the same
                raise KeyboardInterrupt
            height, why = bounds.height(problem, placement), ""
        except RequestError as refusal:
            height, why = None, str(refusal)
        taken = round((time.perf_counter() - begin) * 1e6)
        objects = row.share(problem, budget).total if row.share and height is not None else None
        yield Row(row.name, row.kind, height, taken, objects, why)


def field(source: str, problem: Problem, bound: int, rows: list[Row]) -> Field:
    """What the chart shows: the answers lowest first, and who refused."""
    from modelplan import __version__

    marks = (Mark(r.allocator, r.kind, r.height, r.microseconds) for r in rows if r.height is not None)
    ranked = tuple(sorted(marks, key=lambda mark: (mark.height, mark.microseconds)))
    refused = tuple(row.allocator for row in rows if row.height is None)
    return Field(source, len(problem), bound, ranked, refused, f"modelplan {__version__}")


def chart(path: str, shown: Field) -> bytes:
    """The chart as the name of its file asks."""
    return (canvas.svg if path.endswith(".svg") else canvas.png)(field_chart.draw, shown)


def section(source: str, problem: Problem, bound: int, rows: list[Row], own: RuntimePlan | None = None) -> Section:
    """The table, lowest first; refusals last with their reason."""
    ranked = sorted(rows, key=lambda row: (row.height is None, row.height or 0, row.microseconds))
    cells = tuple(_cells(row, bound) for row in ranked)
    headings = ("allocator", ">height", ">objects", ">height/bound", ">gap", ">time us", "optimal")
    lines = [f"{counted(len(problem), 'buffer')}, lower bound {human(bound)}"]
    if own:
        lines.append(f"{own.runtime} by itself, with its own order and sharing ({own.allocator}): {human(own.height)}")
    return Section(printable(source), tuple(lines), Table(headings, cells))


def _cells(row: Row, bound: int) -> tuple[str, ...]:
    if row.height is None:
        return (row.allocator, "-", "-", "-", "-", f"{row.microseconds:,}", row.why)
    ratio = row.height / bound if bound else 1.0
    optimal = "yes" if row.height == bound else ""
    return (
        row.allocator,
        f"{row.height:,}",
        "" if row.objects is None else f"{row.objects:,}",
        f"{ratio:.4f}",
        f"{row.height - bound:,}",
        f"{row.microseconds:,}",
        optimal,
    )
