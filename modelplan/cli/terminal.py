"""Showing a report, with rich on a terminal, plain everywhere else; and there how far a search has come."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from modelplan.outputs.report import WIDTH, Report, Section, plain, printable, wrapped
from modelplan.primitives.errors import ModelPlanError
from modelplan.primitives.units import human

if TYPE_CHECKING:
    from rich.text import Text

    from modelplan.model import Progress


#: Characters of a line below which COLUMNS is not followed.
_NARROWEST = 40


def show(report: Report, *, more: bool = False) -> None:
    """Prints the report; colours only on a terminal and without NO_COLOR. `more`: it goes on with an earlier one."""
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        _rich(report)
    elif report:
        sys.stdout.write("\n" * more + plain(report, pipe_width()))


def pipe_width() -> int:
    """Characters of a line where standard output is no terminal: COLUMNS of the environment, at least 40."""
    asked = os.environ.get("COLUMNS", "")
    return max(int(asked), _NARROWEST) if asked.isdecimal() else WIDTH


@contextmanager
def shown_in_parts(*, wait: bool) -> Iterator[Callable[[Report], None]]:
    """A function that shows a report part by part: whoever reads standard output gets each part at once.

    With `wait` all parts but the first are shown at the end of the block: a reader that leaves before keeps nothing in
    the block from being done.
    """
    shown, waiting = False, list[Section]()

    def show_part(report: Report) -> None:
        nonlocal shown
        if shown and wait:
            waiting.extend(report)
            return
        show(report, more=shown)
        sys.stdout.flush()
        shown = shown or bool(report)

    try:
        yield show_part
    finally:
        show(waiting, more=True)


def _rich(report: Report) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for section in report:
        if section.title:
            console.print(Text(printable(section.title), style="bold cyan"))
        for line in section.lines:
            for part in wrapped(line, console.width - 2):
                console.print(_verdict(f"  {part}"), soft_wrap=True)
        if section.table:
            console.print(_table(section))
        for command in section.commands:
            console.print(Text(f"  {printable(command)}"), soft_wrap=True)
        console.print()


def _table(section: Section) -> object:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    assert section.table is not None
    table = Table(box=box.SIMPLE_HEAD, pad_edge=True, show_header=any(h.strip(">") for h in section.table.headings))
    for heading in section.table.headings:
        table.add_column(Text(heading.removeprefix(">")), justify="right" if heading.startswith(">") else "left")
    for row in section.table.rows:
        table.add_row(*(_verdict(printable(cell)) for cell in row))
    return table


#: Words of a verdict, each with its colour.
_VERDICTS = {r"\b(does not fit|flash too small|FAIL\w*|too much|refused)\b": "bold red", r"\b(fits)\b": "green"}


def _verdict(text: str) -> Text:
    """A text whose words of a verdict have a colour."""
    from rich.text import Text

    shown = Text(text)
    for words, style in _VERDICTS.items():
        shown.highlight_regex(words, style)
    return shown


def each(models: Sequence[str], run: Callable[[str], int]) -> int:
    """Runs `run` for every model, also after one cannot be read; returns the highest exit code."""
    codes = []
    for model in models:
        try:
            codes.append(run(model))
        except ModelPlanError as problem:
            if len(models) == 1:
                raise
            sys.stdout.flush()
            sys.stderr.write(f"modelplan: {printable(str(problem))}\n")
            codes.append(problem.exit_code)
    return max(codes)


SHORT = 0.5
"""Seconds before the line appears: most searches are over by then."""
_WIDEST = 100


def show_line(text: str) -> None:
    """Rewrites a line of a search on a terminal; an empty text takes it away, one with a line break stays."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text.rstrip()[:_WIDEST]}" + "\n" * text.endswith("\n"))
        sys.stderr.flush()


class ProgressLine:
    """Height, bound and gap of the best so far, rewritten in place; `clear` takes the line away."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._shown = False

    def show(self, progress: Progress) -> None:
        """Rewrites the line, once the search has taken longer than most."""
        if time.monotonic() - self._began < SHORT:
            return
        gap = (progress.height - progress.lower_bound) / max(progress.lower_bound, 1)
        text = f"height {human(progress.height)}, bound {human(progress.lower_bound)}, gap {gap:.2%}"
        sys.stderr.write(f"\r\x1b[K{text}, {progress.steps:,} steps; Ctrl-C keeps the best")
        sys.stderr.flush()
        self._shown = True

    def clear(self) -> None:
        """Leaves the terminal as it was."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    @property
    def listener(self) -> Callable[[Progress], None] | None:
        """What a budget takes as its `progress`."""
        return self.show if sys.stderr.isatty() else None
