"""Says what two models differ in, or one model in two settings: memory by part, peak, operators, in order of effect.

Operators are matched by structure, so names play no part. What --old and --new say holds for one side, all other
options hold for both. The bytes that stand beside an operator are those that it made of what is alive at the peak, and
those that the runtime keeps for it.
"""

from __future__ import annotations

import argparse
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NoReturn

from modelplan.answers.model_difference import Difference
from modelplan.cli import files, model_options, overlays, terminal
from modelplan.cli.drawn_outputs import Figures, add_draw, figures_asked, write_figures
from modelplan.formats.files import read_bytes
from modelplan.formats.node_keys import node_keys
from modelplan.outputs.exchange import node_data
from modelplan.outputs.figures import difference_chart
from modelplan.outputs.reports import difference_markdown, difference_report
from modelplan.planning import pipeline
from modelplan.primitives.byte_counts import parse_bytes
from modelplan.primitives.errors import RequestError
from modelplan.questions.alternatives import load_file
from modelplan.questions.differences.comparing import difference
from modelplan.questions.differences.sides import Side, side_of

if TYPE_CHECKING:
    from modelplan.targets.choosing import Chosen

#: Options that ask for a plan other than the one by which the runtime runs the file.
_PLANS = ("schedule", "alias", "allocator", "streams", "overlaps")
#: Options that are named among the settings where they differ: how they are called there, and in the arguments.
_NAMED = {"extents": "dim", "shapes": "shape", "alignment": "alignment", "padding": "pad"}


def configure(parser: ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("old", metavar="OLD", help="a .tflite or .onnx file")
    parser.add_argument("new", metavar="NEW", nargs="?", help="another of the same format (default: the same file)")
    for name in ("old", "new"):
        parser.add_argument(
            f"--{name}",
            dest=f"{name}_options",
            metavar="OPTION=VALUE",
            action="append",
            default=[],
            help=f"an option below for {name.upper()} alone, such as kernels=esp-nn; repeatable",
        )
    _add_shared(parser)
    outputs = parser.add_argument_group("outputs")
    outputs.add_argument("--json", metavar="FILE", help="all of it as JSON; - for standard output")
    outputs.add_argument("--markdown", metavar="FILE", help="the report as Markdown; - for standard output")
    add_draw(outputs, "DifferenceChart")
    overlays.add_overlay(outputs, "delta: live bytes, new minus old, on the operators of NEW")
    outputs.add_argument("--exit-code", action="store_true", help="exit 1 where the sides differ")


def _add_shared(parser: ArgumentParser) -> None:
    """Adds the options that may differ between the sides."""
    model_options.add_planning(parser)
    model_options.add_allocator(parser, "the plan that the file carries for TFLM, which is also the default there")
    model_options.add_abi(parser, default=None)
    model_options.add_capacity(parser)
    model_options.add_target(parser)


def run(arguments: Namespace) -> int:
    """Runs the command."""
    figures = figures_asked(arguments, "DifferenceChart")
    outputs = [arguments.json, arguments.markdown, *arguments.draw]
    files.check_outputs(outputs, [arguments.old, arguments.new or arguments.old])
    overlays.check_overlay(arguments.overlay, [arguments.old, arguments.new or arguments.old])
    if arguments.new is None and not arguments.old_options + arguments.new_options:
        raise RequestError("one model and no --old or --new OPTION=VALUE: there is nothing to compare")
    sides = _of_side(arguments, "old"), _of_side(arguments, "new")
    planned = any(getattr(side, name) is not None for side in sides for name in _PLANS)
    named = zip(("old", "new"), sides, (arguments.old, arguments.new or arguments.old), strict=True)
    old, new = (_compared(name, side, path, planned=planned) for name, side, path in named)
    found = difference(old, new)
    if "-" not in outputs:
        terminal.show(difference_report.sections_of(found))
    _write(arguments, found, old, new, figures)
    if arguments.overlay:
        nodes = node_keys(read_bytes(arguments.new or arguments.old), new.graph)
        overlays.write_overlay(arguments.overlay, node_data.differences_of(found, new.plan.schedule.order, nodes))
    return 1 if arguments.exit_code and not found.empty else 0


def _write(arguments: Namespace, found: Difference, old: Side, new: Side, figures: Figures) -> None:
    """Writes what was asked for."""
    if arguments.json:
        files.write(arguments.json, difference_report.as_json(found))
    if arguments.markdown:
        files.write(arguments.markdown, difference_markdown.render_difference(found))
    if figures:
        from modelplan.questions.pages.plan_views import difference_page

        write_figures(figures, difference_chart.chart_of(found), lambda: difference_page(old, new))


class _SideParser(ArgumentParser):
    """Parses one OPTION=VALUE; what it cannot parse is a RequestError."""

    def error(self, message: str) -> NoReturn:
        """Ends with the message.

        Raises:
            RequestError: always.
        """
        raise RequestError(message)


def _of_side(arguments: Namespace, side: str) -> Namespace:
    """The arguments for one side: what its own options say takes the place of what holds for both.

    Raises:
        RequestError: an option that there is not, or a value that it does not take.
    """
    parser = _SideParser(add_help=False, allow_abbrev=False)
    _add_shared(parser)
    known = {action.option_strings[0]: action for action in parser._actions}  # noqa: SLF001
    found, cleared = Namespace(**vars(arguments)), set[str]()
    for text in getattr(arguments, f"{side}_options"):
        name, _, value = text.partition("=")
        action = known.get(f"--{name}")
        if action is None or action.nargs == 0 or not value:
            names = ", ".join(key.removeprefix("--") for key, a in known.items() if a.nargs != 0)
            raise RequestError(f"--{side} {text}: expected OPTION=VALUE with one of the options {names}")
        if action.dest not in cleared:
            cleared.add(action.dest)
            setattr(found, action.dest, action.default)
        _parse(parser, action, value, found, f"--{side} {text}")
    return found


def _parse(parser: ArgumentParser, action: argparse.Action, value: str, found: Namespace, where: str) -> None:
    try:
        parser.parse_args([f"{action.option_strings[0]}={value}"], found)
    except RequestError as problem:
        said = str(problem).rpartition(f"{action.option_strings[0]}: ")[2]
        raise RequestError(f"{where}: {said}") from None


def _compared(name: str, arguments: Namespace, path: str, *, planned: bool) -> Side:
    """One side, `old` or `new` in messages about its options."""
    try:
        return compared(arguments, path, planned=planned)
    except RequestError as problem:
        raise RequestError(f"{name}: {problem}") from None


def compared(arguments: Namespace, path: str, *, planned: bool) -> Side:
    """One side; where one of both asks for a plan, the planned activations are all that counts for both."""
    file = load_file(path, arguments.dim, arguments.shape)
    chosen = model_options.chosen_target(arguments)
    words = model_options.on_target(model_options.with_capacity(arguments, chosen), chosen, file.graph)
    target = model_options.target_of(words, file.graph)
    asked = any(getattr(arguments, name) is not None for name in _PLANS)
    plan = None
    if asked:
        options = model_options.options_of(Namespace(**vars(words) | {"model": path}), file.graph)
        plan = pipeline.plan(file.graph, options)
    capacity = None if words.capacity is None else parse_bytes(words.capacity)
    make = partial(side_of, file, target, plan=plan, settings=_settings(words, chosen), capacity=capacity)
    return make() if asked or not planned else _activations(make())


def _activations(side: Side) -> Side:
    """The side with the planned part as all that it needs."""
    basis = f"the planned activations for {side.plan.runtime.name}"
    choices = tuple(row for row in side.settings if row[0] != "ABI")
    plan = replace(side.plan, requirement=None)
    return replace(side, plan=plan, whole=False, kept=(), needed=replace(side.needed, basis=basis), settings=choices)


def _settings(arguments: Namespace, chosen: Chosen | None) -> Sequence[tuple[str, str]]:
    """The options that are named where they differ."""
    device = [("target", f"{chosen.device.name}, {', '.join(chosen.block.regions)}")] if chosen else []
    given = {name: getattr(arguments, key) for name, key in _NAMED.items()}
    words = {k: ", ".join(v) if isinstance(v, list) else str(v) for k, v in given.items() if v}
    return [*device, *words.items()]
