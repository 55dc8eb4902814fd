"""Says why a model needs the memory that it needs, and what would lower it, most saved first.

The peak: what is alive there, who made it, which operator keeps it until when and why; the steps near it and those that
follow once it is lower. Then changes, one by one and together: each was made to the model and planned, so its bytes are
those of a plan and not an estimate. Changes of the model itself are sized only; their accuracy is unknown.
"""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING

from modelplan.answers.explanation import Advice, Compression, Explanation
from modelplan.cli import files, model_options, terminal
from modelplan.cli.analyze import options_for, plan_of, stands_of
from modelplan.cli.drawn_outputs import add_draw, figures_asked, write_figures
from modelplan.model import Plan
from modelplan.outputs.report import Section
from modelplan.outputs.reports import explanation_report as explanation
from modelplan.primitives.byte_counts import parse_bytes
from modelplan.primitives.errors import RequestError
from modelplan.questions.alternatives import as_it_stands, load_file
from modelplan.questions.explaining.compressing import compression
from modelplan.questions.explaining.peaks import peak_of
from modelplan.questions.explaining.ranking import advice
from modelplan.questions.explaining.subjects import measured, subject_of

if TYPE_CHECKING:
    from modelplan.answers.page_views import Page
    from modelplan.targets.choosing import Chosen

#: Seconds for the changes, unless the caller says otherwise.
_SECONDS = 60.0


def configure(parser: ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("model", metavar="MODEL", help="a .tflite or .onnx file")
    model_options.add_planning(parser)
    model_options.add_allocator(parser, "the plan that the file carries for TFLM, which is also the default there")
    model_options.add_abi(parser, default=None)
    model_options.add_capacity(parser)
    model_options.add_target(parser)
    parser.add_argument(
        "--seconds",
        type=float,
        default=_SECONDS,
        metavar="S",
        help=f"for trying changes; those without time are named (default: {_SECONDS:g})",
    )
    parser.add_argument(
        "--what-if",
        metavar="compress=FORM",
        action="append",
        default=[],
        help="what a compression would save: weights:int4, weights:palette16, weights:sparse50%% or activations:0.5;"
        " sizes only; repeatable",
    )
    add_draw(parser, "Plan")
    parser.add_argument("--json", metavar="FILE", help="all of it as JSON; - for standard output")


def run(arguments: Namespace) -> int:
    """Runs the command."""
    files.check_outputs([arguments.json, *arguments.draw], [arguments.model])
    drawn = figures_asked(arguments, "Plan")
    if not 0 <= arguments.seconds < float("inf"):
        raise RequestError(f"--seconds is {arguments.seconds:g}, expected 0 or more")
    chosen = model_options.chosen_target(arguments)
    asked = Asked(model_options.with_capacity(arguments, chosen), chosen)
    found = asked.explained()
    if arguments.json != "-":
        about = [Section("", tuple(model_options.target_lines(chosen)))] if chosen else []
        terminal.show([*about, *explanation.sections_of(found)])
    if arguments.json:
        files.write(arguments.json, explanation.as_json(found))
    write_figures(drawn, asked.shown, lambda: asked.page(found))
    return 0


class Asked:
    """A model with the options of the command, and the plans of it."""

    def __init__(self, arguments: Namespace, chosen: Chosen | None = None) -> None:
        self.deadline = time.monotonic() + arguments.seconds
        self.file = load_file(arguments.model, arguments.dim, arguments.shape)
        self.arguments = model_options.on_target(arguments, chosen, self.file.graph)
        self.target = model_options.target_of(self.arguments, self.file.graph)
        self.needed = as_it_stands(self.file, self.target)
        options = options_for(self.arguments, self.file, self.target)
        self.stands = stands_of(self.file, self.target, self.needed)
        self.plan = plan_of(options, self.file, self.needed, self.stands)

    @property
    def shown(self) -> Plan:
        """The plan that was asked for, else the one by which the runtime runs the file as it stands."""
        names = ("allocator", "schedule", "alias", "streams", "overlaps", "contiguous")
        return self.plan if any(getattr(self.arguments, name) for name in names) else self.stands

    def explained(self) -> Explanation:
        """What the file needs, its peak, and what would help."""
        capacity = None if self.arguments.capacity is None else parse_bytes(self.arguments.capacity)
        peak = peak_of(self.shown)
        if self.needed.refusals:
            return Explanation(self.file.path, self.needed, peak, Advice(()), capacity)
        what_if = tuple(self.compressions())
        subject = subject_of(self.file, self.target, self.deadline)
        return Explanation(self.file.path, self.needed, peak, advice(subject, measured(subject)), capacity, what_if)

    def compressions(self) -> Iterator[Compression]:
        """What --what-if asks about.

        Raises:
            RequestError: one that cannot be read.
        """
        for asked in self.arguments.what_if:
            name, _, form = asked.partition("=")
            if name != "compress":
                raise RequestError(f"--what-if {asked[:60]}: expected compress=FORM")
            yield compression(self.file.graph, self.target.runtime, form)

    def page(self, found: Explanation) -> Page:
        """The page of the explained plan, with the suggestions among its figures."""
        from modelplan.questions.pages.plan_views import explained_page

        options = model_options.options_of(self.arguments, self.file.graph)
        return explained_page(options, self.file.graph, self.plan, self.stands, found)
