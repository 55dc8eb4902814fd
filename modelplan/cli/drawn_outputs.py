"""The outputs of commands that write JSON, CSV and one figure, some of them as a page too."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, _ArgumentGroup
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from modelplan.cli import files
from modelplan.primitives.errors import RequestError


def add_outputs(parser: ArgumentParser, rows: str, *, page: bool = False) -> _ArgumentGroup:
    """Adds --json, --csv and --draw; `rows` says what the CSV file has, `page` whether there is an .html page."""
    outputs = parser.add_argument_group("outputs")
    outputs.add_argument("--json", metavar="FILE", help="all of it; - for standard output")
    outputs.add_argument("--csv", metavar="FILE", help=f"{rows}; - for standard output")
    outputs.add_argument(
        "--draw", metavar="|".join(f"FILE{suffix}" for suffix in _suffixes(page=page)), action="append", default=[],
        help="the figure, or a page to zoom; repeatable" if page else "the figure; repeatable",
    )  # fmt: skip
    return outputs


def _suffixes(*, page: bool) -> tuple[str, ...]:
    """What the names of figures end in."""
    return (".svg", ".png", ".html") if page else (".svg", ".png")


def check_outputs(
    arguments: Namespace, models: Sequence[str], others: Sequence[str | None] = (), *, page: bool = False
) -> None:
    """Checks the names of outputs, `others` of the command's own among them, before any work is done.

    Raises:
        RequestError: a folder is missing, an output is the input or a folder, two go to one place, a figure is of no
            known kind.
    """
    written = [arguments.json, arguments.csv, *arguments.draw, *others]
    files.check_outputs(written, models)
    paths = [path for path in written if path is not None and not (Path(path).exists() and not Path(path).is_file())]
    twice = next((path for path in paths if paths.count(path) > 1), None)
    if twice is not None:
        raise RequestError(f"{'standard output' if twice == '-' else twice}: two outputs go there")
    folder = next((path for path in written if path is not None and Path(path).is_dir()), None)
    if folder is not None:
        raise RequestError(f"cannot write {folder}: it is a folder")
    for path in arguments.draw:
        if not path.endswith(_suffixes(page=page)):
            ends = ", ".join(_suffixes(page=page))
            raise RequestError(f"{path}: cannot tell what to draw; the name must end in {ends}")


def write_outputs(
    arguments: Namespace, made: Any, report: str, figure: str, page: Callable[[Any], bytes] | None = None
) -> None:
    """Writes what was asked for, by the modules of `outputs/` that make text and figure, and by what makes a page."""
    texts, drawn = (import_module(f"modelplan.outputs.{name}") for name in (report, figure))
    if arguments.json:
        files.write(arguments.json, texts.as_json(made))
    if arguments.csv:
        files.write(arguments.csv, texts.as_csv(made))
    for path in arguments.draw:
        if page and path.endswith(".html"):
            files.write(path, page(made))
        else:
            files.write(path, drawn.svg(made) if path.endswith(".svg") else drawn.png(made))
