"""A report as data: headings, lines and tables, so that one text serves a pipe, a terminal and a page."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

#: Characters of a line where no terminal says how wide it is.
WIDTH = 120
#: Characters that a column keeps when its cells are folded.
_LEAST = 12


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under headings; a column whose heading starts with `>` is aligned to the right."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Section:
    """A title, then lines, then at most one table, then lines to paste, which are never folded."""

    title: str
    lines: tuple[str, ...] = ()
    table: Table | None = None
    commands: tuple[str, ...] = ()


Report = Sequence[Section]


def plain(report: Report, width: int = WIDTH) -> str:
    """The report as text without escape codes, ending in a newline, in lines of at most `width` characters."""
    return "\n\n".join("\n".join(_lines(section, width)) for section in report) + "\n"


def _lines(section: Section, width: int) -> list[str]:
    lines = _wrapped(section.title, width) if section.title else []
    for line in section.lines:
        lines += [f"  {part}" for part in _wrapped(line, width - 2)]
    if section.table:
        lines += [f"  {line}" for line in _aligned(section.table, width - 2)]
    return [*lines, *(f"  {printable(command)}" for command in section.commands)]


def _wrapped(line: str, width: int) -> list[str]:
    """The line, and what is too long for it indented below."""
    line = printable(line)
    if len(line) <= width:
        return [line]
    return textwrap.wrap(line, width, subsequent_indent="    ", break_on_hyphens=False) or [""]


def printable(text: str) -> str:
    """`text` with every control character escaped: a name out of a file must not drive a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def folded(text: str, width: int = 48) -> str:
    """A printable name of at most `width` characters, its middle left out when it is longer."""
    text = printable(text)
    if len(text) <= width:
        return text
    head = (width - 1) // 2
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"


def _aligned(table: Table, width: int) -> list[str]:
    headings = tuple(h.removeprefix(">") for h in table.headings)
    rows = [headings, *(tuple(map(printable, row)) for row in table.rows)]
    widths = _narrowed([max(map(len, column)) for column in zip(*rows, strict=True)], width)
    right = [h.startswith(">") for h in table.headings]

    def line(cells: Sequence[str]) -> str:
        fitted = (folded(c, w) for c, w in zip(cells, widths, strict=True))
        padded = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(fitted, widths, right, strict=True))
        return "  ".join(padded).rstrip()

    return [line(headings), line(["-" * w for w in widths]), *map(line, rows[1:])]


def _narrowed(widths: Sequence[int], width: int) -> list[int]:
    """The widths of columns with the widest made narrower, one after the other, until a row fits."""
    found = list(widths)
    while sum(found) + 2 * (len(found) - 1) > width and max(found) > _LEAST:
        found[found.index(max(found))] -= 1
    return found
