"""The options by which commands write figures, pages, JSON and CSV of their answers, by the table of `outputs/`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, _ArgumentGroup
from collections.abc import Callable, Sequence

from modelplan.cli import files
from modelplan.outputs import PAGE, figure_suffixes, render, suffix_of

#: Files with what is drawn into them: path and suffix.
Figures = list[tuple[str, str]]


def add_draw(parser: ArgumentParser | _ArgumentGroup, kind: str, more: str = "", *, page: bool = True) -> None:
    """Adds the choice of figures of answers of the class `kind`; `more` tells of other files that are drawn."""
    figures = dict.fromkeys(suffix.rpartition(".")[0] for suffix in figure_suffixes(kind))
    endings = ", ".join(f"x{figure}.svg" for figure in figures)
    parser.add_argument(
        "--draw",
        metavar="FILE",
        action="append",
        default=[],
        help=f"a figure, told by the file's name: {endings}, or .png or .pdf"
        + ("; x.html is a page to zoom and click" if page else "")
        + f"{more}; repeatable",
    )


def figures_asked(arguments: Namespace, kind: str, *, page: bool = True, more: Sequence[str] = ()) -> Figures:
    """Each file of --draw with the suffix that says which figure of such an answer it is."""
    return [(path, suffix_of(path, kind, page=page, more=more)) for path in arguments.draw]


def write_figures(figures: Figures, answer: object, page: Callable[[], object] | None = None) -> None:
    """Writes the figures of an answer; `page` makes the page, where it is another than that of the table."""
    for path, suffix in figures:
        files.write(path, render(page() if page and suffix == PAGE else answer, suffix))


def add_outputs(parser: ArgumentParser, kind: str, rows: str, *, page: bool = False) -> _ArgumentGroup:
    """Adds --json, --csv and --draw; `rows` says what the CSV file has, `page` whether there is an .html page."""
    outputs = parser.add_argument_group("outputs")
    outputs.add_argument("--json", metavar="FILE", help="all of it; - for standard output")
    outputs.add_argument("--csv", metavar="FILE", help=f"{rows}; - for standard output")
    add_draw(outputs, kind, page=page)
    return outputs


def write_outputs(arguments: Namespace, answer: object, figures: Figures) -> None:
    """Writes what --json, --csv and --draw ask for."""
    for path, suffix in ((arguments.json, ".json"), (arguments.csv, ".csv"), *figures):
        if path:
            files.write(path, render(answer, suffix))
