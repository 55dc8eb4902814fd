"""A report as data: headings, lines and tables, so that one text serves a pipe, a terminal and a page."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

#: Characters of a line where no terminal says how wide it is.
WIDTH = 120
#: Characters of the name of a tensor in a table.
LONGEST = 48
#: Characters that a column keeps when its cells are folded.
_LEAST = 12


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under headings; a column whose heading starts with `>` is aligned to the right.

    Where no heading has a word, the rows stand alone.
    """

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Pasted(str):
    """A line to paste into a shell: it is never folded."""

    __slots__ = ()


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
    folds, line = not isinstance(line, Pasted), printable(line)
    if len(line) <= width or not folds:
        return [line]
    return textwrap.wrap(line, width, subsequent_indent="    ", break_on_hyphens=False) or [""]


def printable(text: str) -> str:
    """`text` with every control character escaped: a name out of a file must not drive a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def folded(text: str, width: int = LONGEST) -> str:
    """A printable name of at most `width` characters, its middle left out when it is longer."""
    text = printable(text)
    if len(text) <= width:
        return text
    head = (width - 1) // 2
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"


def folded_apart(texts: Sequence[str], width: int = LONGEST) -> list[str]:
    """Names of at most `width` characters; names that `folded` makes the same keep the part where they differ.

    >>> folded_apart(["model/cell_1/gates/kernel_of_the_cell", "model/cell_2/gates/kernel_of_the_cell"], 20)
    ['model/cel…1/gates/…l', 'model/cel…2/gates/…l']
    """
    names = [printable(text) for text in texts]
    found = [folded(name, width) for name in names]
    groups: dict[str, set[str]] = {}
    for name, short in zip(names, found, strict=True):
        groups.setdefault(short, set()).add(name)
    apart = {name: short for group in groups.values() if len(group) > 1 for name, short in _cut_apart(group, width)}
    return [apart.get(name, short) for name, short in zip(names, found, strict=True)]


def _cut_apart(names: set[str], width: int) -> Iterable[tuple[str, str]]:
    """The names with short forms of which as many differ as can: the ellipsis ends where the names begin to differ."""
    low, high = min(names), max(names)
    same = next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), len(low))
    cuts = [[(name, _without(name, head, same, width)) for name in names] for head in range((width - 1) // 2, 0, -1)]
    return max(cuts, key=lambda cut: len({short for _, short in cut}))


def _without(name: str, head: int, same: int, width: int) -> str:
    """The first `head` characters of the name, an ellipsis, and those from `same` on; their last where not all fit."""
    rest, room = name[same:], width - 1 - head
    return f"{name[:head]}…{rest if len(rest) <= room else f'{rest[: room - 2]}…{rest[-1]}'}"


def _aligned(table: Table, width: int) -> list[str]:
    headings = tuple(h.removeprefix(">") for h in table.headings)
    rows = [headings, *(tuple(map(printable, row)) for row in table.rows)]
    widths = _narrowed([max(map(len, column)) for column in zip(*rows, strict=True)], width)
    right = [h.startswith(">") for h in table.headings]
    columns = [folded_apart(column, w) for column, w in zip(zip(*rows, strict=True), widths, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(cells, widths, right, strict=True))
        return "  ".join(padded).rstrip()

    first, *others = map(line, zip(*columns, strict=True))
    return [first, line(["-" * w for w in widths]), *others] if any(headings) else others


def _narrowed(widths: Sequence[int], width: int) -> list[int]:
    """The widths of columns with the widest made narrower, one after the other, until a row fits."""
    found = list(widths)
    while sum(found) + 2 * (len(found) - 1) > width and max(found) > _LEAST:
        found[found.index(max(found))] -= 1
    return found
