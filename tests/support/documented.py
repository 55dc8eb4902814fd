"""Examples of the documentation: the command on the page, and below it what it prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from modelplan.cli import main

ROOT = Path(__file__).resolve().parents[2]


def printed_as_shown(page: Path, example: re.Pattern[str], capsys: pytest.CaptureFixture[str], *, update: bool) -> bool:
    """Whether the command on a page prints what stands below it; with `update` the page is written anew.

    Args:
        page: the page.
        example: three groups: what stands before the printed text, in it the command without `modelplan`, the text.
        capsys: what catches the output.
        update: write what is printed into the page.
    """
    text = page.read_text()
    found = example.search(text)
    assert found, f"no example in {page.name}"
    assert main(shlex.split(found[2])) == 0
    printed = capsys.readouterr().out
    if update:
        page.write_text(text[: found.start(3)] + printed + text[found.end(3) :])
    return update or found[3] == printed
