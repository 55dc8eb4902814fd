"""Explains why a model needs its memory, and what would lower it, most saved first.

The peak: what is alive there, who made it, which operator keeps it until when and why; the steps near it and those that
follow once it is lower. Then changes, one by one and together: each was made to the model and planned, so its bytes are
those of a plan and not an estimate. Changes of the model itself are sized only; their accuracy is unknown.
"""

from argparse import ArgumentParser, Namespace

from modelplan.cli import files, model_options, terminal
from modelplan.cli.output_options import add_draw, figures_asked, write_figures
from modelplan.cli.terminal import show_line
from modelplan.outputs.report import Section
from modelplan.outputs.reports import explanation_report
from modelplan.primitives.errors import RequestError
from modelplan.questions.explaining.explanations import (
    ExplainRequest,
    explanation_page,
    explanation_stages,
)


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a .tflite or .onnx file")
    model_options.add_sizing(parser)
    parser.add_argument(
        "--seconds",
        type=float,
        metavar="S",
        help="for trying changes; those without time are named (default: a limit in work, the same on each machine)",
    )
    model_options.add_repeated(
        parser,
        "--what-if",
        "compress=FORM",
        "what a compression would save: weights:int4, weights:palette16, weights:sparse50%% or activations:0.5;"
        " sizes only; repeatable",
    )
    add_draw(parser, "Plan")
    parser.add_argument("--json", metavar="FILE", help="all of it as JSON; - for standard output")


def run(arguments: Namespace) -> int:
    files.check_outputs([arguments.json, *arguments.draw], [arguments.model])
    drawn = figures_asked(arguments, "Plan")
    if arguments.seconds is not None and not 0 <= arguments.seconds < float("inf"):
        raise RequestError(f"--seconds is {arguments.seconds:g}, expected 0 or more")
    chosen = model_options.chosen_target(arguments)
    asked = {"seconds": arguments.seconds, "what_if": tuple(arguments.what_if)}
    request = model_options.request_of(ExplainRequest, arguments, arguments.model, chosen, **asked)
    about = [Section("", tuple(model_options.target_lines(chosen)))] if chosen else []
    with terminal.shown_in_parts(wait=bool(arguments.json or arguments.draw)) as show:
        stages = explanation_stages(request, show_line)
        answer = next(stages)
        if arguments.json != "-":
            show([*about, *explanation_report.need_sections(answer)])
        answer = next(stages, answer)
        show_line("")
        if arguments.json != "-":
            show(explanation_report.change_sections(answer))
    if arguments.json:
        files.write(arguments.json, explanation_report.as_json(answer))
    write_figures(drawn, answer.explained, lambda: explanation_page(request, answer))
    return 1 if answer.needed.refusals else 0
