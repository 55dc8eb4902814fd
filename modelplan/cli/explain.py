"""Says why a model needs the memory that it needs, and what would lower it, most saved first.

The peak: what is alive there, who made it, which operator keeps it until when and why; the steps near it and those that
follow once it is lower. Then changes, one by one and together: each was made to the model and planned, so its bytes are
those of a plan and not an estimate. Changes of the model itself are sized only; their accuracy is unknown.
"""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from modelplan.byte_counts import parse_bytes
from modelplan.cli import files, model_options, terminal
from modelplan.cli.analyze import plans_of
from modelplan.errors import RequestError
from modelplan.explaining.findings import Advice, Explanation
from modelplan.explaining.peaks import peak_of
from modelplan.explaining.ranking import advice
from modelplan.explaining.subjects import measured, subject_of
from modelplan.outputs import explanation
from modelplan.outputs.report import Section
from modelplan.rewriting.alternatives import as_it_stands, load_file
from modelplan.types import Plan

if TYPE_CHECKING:
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
    parser.add_argument("--json", metavar="FILE", help="all of it as JSON; - for standard output")


def run(arguments: Namespace) -> int:
    """Runs the command."""
    files.check_outputs([arguments.json], [arguments.model])
    if not 0 <= arguments.seconds < float("inf"):
        raise RequestError(f"--seconds is {arguments.seconds:g}, expected 0 or more")
    chosen = model_options.chosen_target(arguments)
    found = explained(model_options.with_capacity(arguments, chosen), chosen)
    if arguments.json != "-":
        about = [Section("", tuple(model_options.target_lines(chosen)))] if chosen else []
        terminal.show([*about, *explanation.sections_of(found)])
    if arguments.json:
        files.write(arguments.json, explanation.as_json(found))
    return 0


def explained(arguments: Namespace, chosen: Chosen | None = None) -> Explanation:
    """What the file needs, its peak, and what would help.

    The peak is that of the plan that was asked for, else of the one by which the runtime runs the file as it stands.
    """
    deadline = time.monotonic() + arguments.seconds
    file = load_file(arguments.model, arguments.dim, arguments.shape)
    arguments = model_options.on_target(arguments, chosen, file.graph)
    capacity = None if arguments.capacity is None else parse_bytes(arguments.capacity)
    target = model_options.target_of(arguments, file.graph)
    needed = as_it_stands(file, target)
    asked = (arguments.allocator, arguments.schedule, arguments.alias, arguments.streams, arguments.overlaps)
    plan: Plan
    plan, stands = plans_of(arguments, file, target, needed)
    peak = peak_of(plan if any(asked) else stands)
    if needed.refusals:
        return Explanation(file.path, needed, peak, Advice(()), capacity)
    subject = subject_of(file, target, deadline)
    return Explanation(file.path, needed, peak, advice(subject, measured(subject)), capacity)
