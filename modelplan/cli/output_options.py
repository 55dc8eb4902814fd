"""The options by which commands write files of their answers: figures, pages, tables, C++ for firmware, overlays."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, _ArgumentGroup
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from modelplan.cli import files
from modelplan.outputs import PAGE, figure_suffixes, render, suffix_of
from modelplan.primitives.errors import RequestError

if TYPE_CHECKING:
    from modelplan.runtimes.tflm.file import FileModel


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


_SOURCES = (".cc", ".cpp")


def add_c_array(parser: ArgumentParser | _ArgumentGroup) -> None:
    parser.add_argument(
        "--c-array",
        metavar="FILE.cc",
        help="the .tflite as an aligned constant array in C++, and FILE.h with the arena's size and operators",
    )


def outputs_of_c_array(path: str | None) -> list[str]:
    """The two files that --c-array writes, the source first; none without it."""
    if path is None:
        return []
    if Path(path).suffix not in _SOURCES:
        raise RequestError(f"--c-array {path}: expected a name that ends in {' or '.join(_SOURCES)}; .h goes beside it")
    return [path, str(Path(path).with_suffix(".h"))]


def write_c_array(path: str | None, model: FileModel, kernels: str, abi: str, added: Sequence[str] = ()) -> None:
    """The array and its header for a model on an ABI with these kernels; nothing without a path."""
    if path is None:
        return
    from modelplan.outputs.firmware.tflm_sources import model_header, model_source
    from modelplan.runtimes.tflm.arena import arena

    source, header = outputs_of_c_array(path)
    files.write(header, model_header(path, model, arena(model, abi, kernels), kernels, added, abi))
    files.write(source, model_source(path, model))


def add_self_test(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--self-test",
        metavar="FILE.cc",
        help="also a C++ file that runs the model in its arena on your device and compares what comes out",
    )


def write_self_test(
    path: str | None, original: FileModel, model: FileModel, kernels: str, abi: str | None, seed: int = 0
) -> None:
    """The self-test of `model`, which has to compute what `original` does; nothing without a path."""
    if path:
        from modelplan.questions.self_testing import expected_runs

        files.write(path, render(expected_runs(original, model, kernels, abi, seed), "self-test"))


_JSON = ".json"


def add_overlay(parser: ArgumentParser | _ArgumentGroup, figures: str) -> None:
    """Adds the option; `figures` are the words that stand between name and suffix of the files."""
    parser.add_argument(
        "--overlay",
        metavar="NAME.json",
        help=f"node data for Google's Model Explorer, a file for each figure: NAME.FIGURE.json ({figures})",
    )


def check_overlay(overlay: str | None, models: list[str]) -> None:
    """Checks, before any work is done, that the files can be written."""
    if overlay is not None:
        if not overlay.endswith(_JSON):
            raise RequestError(f"--overlay {overlay}: the name must end in {_JSON}")
        files.check_outputs([overlay], models)


def write_overlay(overlay: str, contents: Mapping[str, str]) -> None:
    """Writes one file for each figure: NAME.live.json and so on."""
    for figure, content in contents.items():
        files.write(f"{overlay.removesuffix(_JSON)}.{figure}{_JSON}", content)
