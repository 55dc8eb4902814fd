"""The option `--overlay`: figures of operators as files for Google's Model Explorer."""

from __future__ import annotations

from argparse import ArgumentParser, _ArgumentGroup
from collections.abc import Mapping

from modelplan.cli import files
from modelplan.primitives.errors import RequestError

_SUFFIX = ".json"


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
        if not overlay.endswith(_SUFFIX):
            raise RequestError(f"--overlay {overlay}: the name must end in {_SUFFIX}")
        files.check_outputs([overlay], models)


def write_overlay(overlay: str, contents: Mapping[str, str]) -> None:
    """Writes one file for each figure: NAME.live.json and so on."""
    for figure, content in contents.items():
        files.write(f"{overlay.removesuffix(_SUFFIX)}.{figure}{_SUFFIX}", content)
