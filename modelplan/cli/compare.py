"""Runs every allocator on a model or a CSV problem: height, height over bound, gap, time, and whose answer it is."""

from __future__ import annotations

import json
import re
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from modelplan.answers.allocator_field import Field, Mark
from modelplan.answers.comparison import Comparison, Row
from modelplan.answers.summary import RuntimePlan, runtime_plan
from modelplan.cli import files, model_options, terminal
from modelplan.cli.drawn_outputs import write_figures
from modelplan.formats.files import read_bytes
from modelplan.model import Budget, Placement, Plan, Problem, bounds
from modelplan.outputs import PAGE, render, suffix_of
from modelplan.outputs.reports.comparison_report import SCHEMA, sections
from modelplan.planning import pipeline
from modelplan.planning.allocators import ALLOCATORS, allocator, place
from modelplan.planning.allocators.systems.idealloc import hardness
from modelplan.primitives.errors import RequestError
from modelplan.primitives.units import human, stand_in

if TYPE_CHECKING:
    from modelplan.answers.drawing import Drawing
    from modelplan.answers.page_views import Page
    from modelplan.targets.choosing import Chosen


@dataclass(frozen=True, eq=False)
class ProblemSource:
    """The problem that all allocators get; of a model the plan that `analyze` makes of it."""

    problem: Problem
    plan: Plan | None = None
    banks: tuple[tuple[str, int], ...] = ()

    @property
    def runtime_plan(self) -> RuntimePlan | None:
        """What the model's runtime does by itself."""
        return None if self.plan is None else runtime_plan(self.plan)

    def within(self, chosen: Chosen | None) -> ProblemSource:
        """The same with the block of the target as capacity, for a figure; the answers are heights without one."""
        if chosen is None:
            return self
        problem = replace(self.problem, capacity=chosen.budget)
        plan = None if self.plan is None else replace(self.plan, problem=problem, banks=chosen.banks)
        return ProblemSource(problem, plan, chosen.banks)

    @property
    def kept(self) -> int:
        """Bytes that the model's runtime takes of the same memory beside the buffers."""
        return self.plan.requirement.kept if self.plan and self.plan.requirement else 0

    @property
    def refusals(self) -> tuple[str, ...]:
        """Why the model's runtime would not run it."""
        return self.plan.requirement.refusals if self.plan and self.plan.requirement else ()

    @property
    def lower_bound(self) -> int:
        """What is proved before any allocator has run: the load, of a model what its plan proved."""
        proved = 0 if self.plan is None else self.plan.placement.lower_bound
        return max(proved, bounds.load_bound(self.problem))


def configure(parser: ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("source", metavar="MODEL|CSV", help="a .tflite or .onnx model, or a problem as .csv")
    model_options.add_planning(parser)
    model_options.add_target(parser)
    parser.add_argument(
        "--seconds", type=float, metavar="S", help="how long each search may take (default: steps of its own)"
    )
    parser.add_argument("--top", type=int, metavar="N", help="the N lowest heights, and ours, in the table")
    parser.add_argument("--chart", metavar="FILE", help="height over bound against time as .svg, .png or .pdf")
    parser.add_argument(
        "--draw",
        metavar="[ALLOCATOR=]FILE",
        action="append",
        default=[],
        help="the memory map of one answer as .svg or .png (default: of the lowest), or FILE.html: all answers in a"
        " page to zoom and click; may be repeated",
    )
    parser.add_argument("--json", metavar="FILE", help="all rows as JSON; - for standard output")


def run(arguments: Namespace) -> int:
    """Runs the command."""
    charts = [(arguments.chart, suffix_of(arguments.chart, "Field"))] if arguments.chart else []
    for option in ("seconds", "top"):
        value = getattr(arguments, option)
        if value is not None and not value > 0:
            raise RequestError(f"--{option} is {value:g}, expected more than 0")
    drawn = [drawing_of(text) for text in arguments.draw]
    outputs = [arguments.chart, arguments.json, *(path for _, path, _ in drawn)]
    files.check_outputs(outputs, [arguments.source])
    chosen = model_options.chosen_target(arguments)
    source = read_problem(arguments, chosen)
    placements: dict[str, Placement] = {}
    rows = tuple(allocator_answers(source.problem, Budget(seconds=arguments.seconds), placements))
    rows = tuple(replace(row, lower_bound=max(row.lower_bound, source.lower_bound)) for row in rows)
    compared = Comparison(
        arguments.source, len(source.problem), rows, (*remarks(source), *fitting(source, rows, chosen))
    )
    if arguments.json:
        files.write(arguments.json, json.dumps(document(compared, source, chosen), indent=1) + "\n")
    write_figures(charts, field(compared))
    for name, path, suffix in drawn:
        if suffix == PAGE:
            files.write(path, render(all_answers(compared, source.within(chosen), placements), PAGE))
            continue
        name = name or compared.ranked[0].allocator
        files.write(path, render(answer_drawing(arguments.source, source.within(chosen), placements, name), suffix))
    if arguments.json != "-":
        terminal.show(sections(compared, arguments.top))
    return 0


def read_problem(arguments: Namespace, chosen: Chosen | None = None) -> ProblemSource:
    """The problem in the file, or that of the plan which `analyze` makes of the model with the same options."""
    from modelplan.formats import load
    from modelplan.questions.alternatives import ModelFile, as_it_stands

    loaded = load(arguments.source, arguments.dim, arguments.shape)
    if isinstance(loaded, Problem):
        return ProblemSource(loaded)
    words = model_options.on_target(Namespace(**vars(arguments) | {"abi": None}), chosen, loaded)
    plan = pipeline.plan(loaded, model_options.options_of(words, loaded))
    file = ModelFile(arguments.source, read_bytes(arguments.source), loaded)
    needed = as_it_stands(file, model_options.target_of(words, loaded))
    return ProblemSource(plan.problem, replace(plan, requirement=needed))


def allocator_answers(problem: Problem, budget: Budget, placements: dict[str, Placement]) -> Iterator[Row]:
    """Every allocator of the table in turn, timed by the wall clock; `budget` holds for each search alone.

    Each places nothing first, untimed, so that the time does not hold the loading of its code. What it places is put
    into `placements` under its name.
    """
    nothing = Problem.of(())
    for row in ALLOCATORS.values():
        begin = time.perf_counter()
        try:
            place(nothing, row.name)
            begin = time.perf_counter()
            placement = place(problem, row.name, budget)
        except RequestError as refusal:
            yield Row(row.name, row.kind, None, round((time.perf_counter() - begin) * 1e6), why=str(refusal))
            continue
        taken = round((time.perf_counter() - begin) * 1e6)
        if placement.ended == "cancelled":  # a search that keeps its best on Ctrl-C; the command ends all the same
            raise KeyboardInterrupt
        placements[row.name] = placement
        yield Row(
            row.name,
            row.kind,
            bounds.height(problem, placement),
            taken,
            objects=row.share(problem, budget).total if row.share else None,
            lower_bound=placement.lower_bound,
            found_by=placement.found_by,
            own_height=placement.own_height,
        )


def remarks(source: ProblemSource) -> tuple[str, ...]:
    """What the runtime does by itself, and how hard idealloc's figures call the problem."""
    own, hard = source.runtime_plan, hardness(source.problem)
    spreads = f"sizes {hard.sizes:.0%}, conflicts {hard.conflicts:.0%}, ends {hard.ends:.0%}"
    lines = [f"hardness by idealloc's figures {hard.compound:.2f}: {spreads}"]
    if own:
        lines.append(f"{own.runtime} by itself, with its own order and sharing ({own.allocator}): {human(own.height)}")
    return tuple(lines)


def fitting(source: ProblemSource, rows: Sequence[Row], chosen: Chosen | None) -> list[str]:
    """Which target is meant, and whose answers fit its block with what the runtime keeps; nothing without a target."""
    if chosen is None:
        return []
    heights = [row.height for row in rows if row.height is not None]
    fits = [] if source.refusals else [height for height in heights if height + source.kept <= chosen.budget]
    if source.refusals:
        words = f"; the runtime would not run the model: {source.refusals[0]}"
    elif source.kept and source.plan:
        words = f", with the {human(source.kept)} that {source.plan.runtime.name} keeps beside the buffers"
    else:
        words = ", for the buffers alone"
    return [*model_options.target_lines(chosen), f"fits      {len(fits)} of {len(heights)} answers{words}"]


def document(compared: Comparison, source: ProblemSource, chosen: Chosen | None = None) -> dict[str, object]:
    """The comparison as JSON has it: every row, none folded."""
    rows = [asdict(row) for row in compared.rows]
    own = source.runtime_plan
    found: dict[str, object] = {
        "schema": SCHEMA,
        "source": compared.title,
        "lower_bound": compared.lower_bound,
        "rows": rows,
    }
    found |= {"kept": source.kept} if source.plan else {}
    return found | ({"today": asdict(own)} if own else {}) | model_options.target_facts(chosen)


def drawing_of(text: str) -> tuple[str, str, str]:
    """Allocator (empty: the lowest), file and kind of figure in an argument of --draw; a plain name means the map.

    Raises:
        RequestError: no such allocator, or a name that says no figure.
    """
    name, given, path = text.partition("=")
    if not given or not re.fullmatch(r"[a-z0-9-]+", name):
        name, path = "", text
    if name:
        allocator(name)
    if name and path.endswith(".html"):
        raise RequestError(f"--draw {text}: the page holds the answers of all allocators, so it takes no name")
    return name, path, suffix_of(path, "Drawing", page=True)


def answer_drawing(path: str, source: ProblemSource, placements: Mapping[str, Placement], name: str) -> Drawing:
    """What figures show of one allocator's placement, which the title names.

    Raises:
        RequestError: the allocator refused the problem.
    """
    from modelplan.answers import drawing

    if name not in placements:
        raise RequestError(f"--draw {name}: it refused the problem, there is nothing to draw")
    placement = placements[name]
    if source.plan is not None:
        shown = drawing.of_plan(replace(source.plan, placement=placement, allocator=name))
    else:
        shown = replace(drawing.of_problem(Path(path).stem, source.problem, placement), banks=source.banks)
    note = stand_in(placement.found_by, placement.own_height)
    title = f"{shown.title}: {name}" + (f" ({note})" if note else "")
    return replace(shown, title=title)


def all_answers(compared: Comparison, source: ProblemSource, placements: Mapping[str, Placement]) -> Page:
    """The page of all answers."""
    from modelplan.questions.pages.plan_views import answers_page

    title = Path(compared.title).stem
    return answers_page(title, source.problem, source.plan, placements, field(compared))


def field(compared: Comparison) -> Field:
    """What the chart shows: the answers lowest first, and who refused."""
    from modelplan.primitives.version import __version__

    marks = tuple(Mark(r.allocator, r.kind, r.height or 0, r.microseconds, r.found_by) for r in compared.ranked)
    refused = tuple(row.allocator for row in compared.rows if row.height is None)
    made_by = f"modelplan {__version__}"
    return Field(compared.title, compared.buffers, compared.lower_bound, marks, refused, made_by)
