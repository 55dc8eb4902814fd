"""A report as data: headings, lines and tables, so that one text serves a pipe, a terminal and a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under headings; a column whose heading starts with `>` is aligned to the right."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Section:
    """A title, then lines, then at most one table."""

    title: str
    lines: tuple[str, ...] = ()
    table: Table | None = None


Report = Sequence[Section]


def plain(report: Report) -> str:
    """The report as text without escape codes, ending in a newline."""
    blocks = []
    for section in report:
        lines = [section.title] if section.title else []
        lines += [f"  {line}" for line in section.lines]
        if section.table:
            lines += [f"  {line}" for line in _aligned(section.table)]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n"


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


def _aligned(table: Table) -> list[str]:
    headings = tuple(h.removeprefix(">") for h in table.headings)
    widths = [max(map(len, column)) for column in zip(headings, *table.rows, strict=True)]
    right = [h.startswith(">") for h in table.headings]

    def line(cells: Sequence[str]) -> str:
        padded = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(cells, widths, right, strict=True))
        return "  ".join(padded).rstrip()

    return [line(headings), line(["-" * w for w in widths]), *(line(row) for row in table.rows)]
