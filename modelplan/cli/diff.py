"""Compares two models, or one model in two settings: memory by part, peak, operators, largest effect first.

Operators are matched by structure, so names play no part. What --old and --new say holds for one side, all other
options hold for both. The bytes that stand beside an operator are those that it made of what is alive at the peak, and
those that the runtime keeps for it.
"""

import argparse
from argparse import ArgumentParser, Namespace
from copy import copy
from typing import NoReturn

from modelplan.answers.model_difference import Difference
from modelplan.cli import files, model_options, output_options, terminal
from modelplan.cli.output_options import Figures, add_draw, figures_asked, write_figures
from modelplan.formats.node_keys import node_keys
from modelplan.formats.whole_files import read_model
from modelplan.outputs.exchange import node_data
from modelplan.outputs.figures import difference_chart
from modelplan.outputs.reports import difference_report
from modelplan.primitives.errors import RequestError
from modelplan.questions.differences.models import compared_sides, named_side
from modelplan.questions.differences.side_difference import difference
from modelplan.questions.differences.sides import Side
from modelplan.questions.model_request import ModelRequest


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("old", metavar="OLD", help="a .tflite or .onnx file")
    parser.add_argument("new", metavar="NEW", nargs="?", help="another of the same format (default: the same file)")
    for name in ("old", "new"):
        model_options.add_repeated(
            parser,
            f"--{name}",
            "OPTION=VALUE",
            f"an option below for {name.upper()} alone, such as kernels=esp-nn; repeatable",
            dest=f"{name}_options",
        )
    model_options.add_sizing(parser)
    outputs = parser.add_argument_group("outputs")
    outputs.add_argument("--json", metavar="FILE", help="all of it as JSON; - for standard output")
    outputs.add_argument("--markdown", metavar="FILE", help="the report as Markdown; - for standard output")
    add_draw(outputs, "DifferenceChart")
    output_options.add_overlay(outputs, "delta: live bytes, new minus old, on the operators of NEW")
    outputs.add_argument("--exit-code", action="store_true", help="exit 1 where the sides differ")


def run(arguments: Namespace) -> int:
    figures = figures_asked(arguments, "DifferenceChart")
    outputs = [arguments.json, arguments.markdown, *arguments.draw]
    files.check_outputs(outputs, [arguments.old, arguments.new or arguments.old])
    output_options.check_overlay(arguments.overlay, [arguments.old, arguments.new or arguments.old])
    if arguments.new is None and not arguments.old_options + arguments.new_options:
        raise RequestError("one model and no --old or --new OPTION=VALUE: there is nothing to compare")
    sides = {name: _of_side(arguments, name) for name in ("old", "new")}
    requests = (_request(name, side, getattr(arguments, name) or arguments.old) for name, side in sides.items())
    old, new = compared_sides(*requests)
    comparison = difference(old, new)
    if "-" not in outputs:
        terminal.show(difference_report.sections_of(comparison))
    _write(arguments, comparison, old, new, figures)
    if arguments.overlay:
        nodes = node_keys(read_model(arguments.new or arguments.old), new.graph)
        output_options.write_overlay(
            arguments.overlay, node_data.differences_of(comparison, new.plan.schedule.order, nodes)
        )
    return 1 if arguments.exit_code and not comparison.empty else 0


def _request(name: str, arguments: Namespace, path: str) -> ModelRequest:
    with named_side(name):
        return model_options.request_of(ModelRequest, arguments, path, model_options.chosen_target(arguments))


def _write(arguments: Namespace, comparison: Difference, old: Side, new: Side, figures: Figures) -> None:
    if arguments.json:
        files.write(arguments.json, difference_report.as_json(comparison))
    if arguments.markdown:
        files.write(arguments.markdown, difference_report.render_difference(comparison))
    if figures:
        from modelplan.questions.pages.plan_views import difference_page

        write_figures(figures, difference_chart.chart_of(comparison), lambda: difference_page(old, new))


class _SideParser(ArgumentParser):
    """Parses one OPTION=VALUE; what it cannot parse is a RequestError."""

    def error(self, message: str) -> NoReturn:
        raise RequestError(message)


def _of_side(arguments: Namespace, side: str) -> Namespace:
    """The arguments of one side: its own options replace the common ones."""
    parser = _SideParser(add_help=False, allow_abbrev=False)
    model_options.add_sizing(parser)
    known = {action.option_strings[0]: action for action in parser._actions}  # noqa: SLF001
    side_arguments, cleared = copy(arguments), set[str]()
    for text in getattr(arguments, f"{side}_options"):
        name, _, value = text.partition("=")
        action = known.get(f"--{name}")
        if action is None or action.nargs == 0 or not value:
            names = ", ".join(key.removeprefix("--") for key, a in known.items() if a.nargs != 0)
            raise RequestError(f"--{side} {text}: expected OPTION=VALUE with one of the options {names}")
        if action.dest not in cleared:
            cleared.add(action.dest)
            setattr(side_arguments, action.dest, action.default)
        _parse(parser, action, value, side_arguments, f"--{side} {text}")
    return side_arguments


def _parse(parser: ArgumentParser, action: argparse.Action, value: str, namespace: Namespace, where: str) -> None:
    try:
        parser.parse_args([f"{action.option_strings[0]}={value}"], namespace)
    except RequestError as problem:
        said = str(problem).rpartition(f"{action.option_strings[0]}: ")[2]
        raise RequestError(f"{where}: {said}") from None
