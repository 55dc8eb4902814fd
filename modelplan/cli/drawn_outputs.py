"""The outputs of commands that write JSON, CSV and one figure."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from importlib import import_module

from modelplan.cli import files
from modelplan.errors import RequestError


def add_outputs(parser: ArgumentParser, rows: str) -> None:
    """Adds --json, --csv and --draw; `rows` says what the CSV file has."""
    outputs = parser.add_argument_group("outputs")
    outputs.add_argument("--json", metavar="FILE", help="all of it; - for standard output")
    outputs.add_argument("--csv", metavar="FILE", help=f"{rows}; - for standard output")
    outputs.add_argument(
        "--draw", metavar="FILE.svg|FILE.png", action="append", default=[], help="the figure; repeatable"
    )


def check_outputs(arguments: Namespace) -> None:
    """Checks the names of outputs before any work is done.

    Raises:
        RequestError: a folder is missing, an output is the input, or a figure is of no known kind.
    """
    files.check_outputs([arguments.json, arguments.csv, *arguments.draw], [arguments.model])
    for path in arguments.draw:
        if not path.endswith((".svg", ".png")):
            raise RequestError(f"{path}: cannot tell what to draw; the name must end in .svg or .png")


def write_outputs(arguments: Namespace, made: object, report: str, figure: str) -> None:
    """Writes what was asked for, by the modules of `outputs/` that make text and figure."""
    texts, drawn = (import_module(f"modelplan.outputs.{name}") for name in (report, figure))
    if arguments.json:
        files.write(arguments.json, texts.as_json(made))
    if arguments.csv:
        files.write(arguments.csv, texts.as_csv(made))
    for path in arguments.draw:
        files.write(path, drawn.svg(made) if path.endswith(".svg") else drawn.png(made))
