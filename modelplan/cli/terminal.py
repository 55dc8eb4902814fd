"""Showing a report: with rich on a terminal, plain everywhere else."""

from __future__ import annotations

import os
import sys

from modelplan.outputs.report import Report, Section, plain


def show(report: Report) -> None:
    """Prints the report; colours only on a terminal and without NO_COLOR."""
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        _rich(report)
    else:
        sys.stdout.write(plain(report))


def _rich(report: Report) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for section in report:
        if section.title:
            console.print(Text(section.title, style="bold cyan"))
        for line in section.lines:
            console.print(Text(f"  {line}"))
        if section.table:
            console.print(_table(section))
        console.print()


def _table(section: Section) -> object:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    assert section.table is not None
    table = Table(box=box.SIMPLE_HEAD, pad_edge=True)
    for heading in section.table.headings:
        table.add_column(Text(heading.removeprefix(">")), justify="right" if heading[0] == ">" else "left")
    for row in section.table.rows:
        table.add_row(*map(Text, row))
    return table
