"""A report as data: headings, lines and tables, so that one text serves a pipe, a terminal and a page."""

import re
import textwrap
from collections.abc import Iterable, Sequence
from itertools import accumulate
from unicodedata import east_asian_width

from modelplan.primitives.lazy_records import dataclass

#: Characters of a line where no terminal says how wide it is.
WIDTH = 120
#: Characters of the name of a tensor in a table.
LONGEST = 48
#: Characters that a column keeps when its cells are folded.
_LEAST = 12
#: What Markdown would take for a mark, HTML, or a mention of somebody.
_MARKS = re.compile(r"([\\`*_{}\[\]~|#!])")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", "@": "&#64;"})


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
    lines = wrapped(section.title, width) if section.title else []
    for line in section.lines:
        lines += [f"  {part}" for part in wrapped(line, width - 2)]
    if section.table:
        lines += [f"  {line}" for line in _aligned(section.table, width - 2)]
    return [*lines, *(f"  {printable(command)}" for command in section.commands)]


def wrapped(line: str, width: int) -> list[str]:
    """The line, and what is too long for it indented below."""
    folds, line = not isinstance(line, Pasted), printable(line)
    if terminal_width(line) <= width or not folds:
        return [line]
    wide = terminal_width(line) - len(line)
    return textwrap.wrap(line, max(width - wide, width // 2), subsequent_indent="    ", break_on_hyphens=False) or [""]


def printable(text: str) -> str:
    """`text` with every control character escaped: a name out of a file must not drive a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def literal(text: str) -> str:
    r"""The text as Markdown shows it literally.

    >>> print(literal("a_b <i>|x @someone"))
    a\_b &lt;i>\|x &#64;someone
    """
    return _MARKS.sub(r"\\\1", printable(text)).translate(_ENTITIES)


def folded(text: str, width: int = LONGEST) -> str:
    """A printable name of at most `width` columns, its middle left out when it is longer.

    >>> folded("一二三四五六", 9)
    '一二…五六'
    """
    text = printable(text)
    if terminal_width(text) <= width:
        return text
    head = (width - 1) // 2
    return f"{_beginning(text, head)}…{_beginning(text[::-1], width - 1 - head)[::-1]}"


def terminal_width(text: str) -> int:
    """The columns of a terminal that a text takes: two for each wide character, as of Chinese or Japanese."""
    return len(text) if text.isascii() else sum(map(_columns_of, text))


def _columns_of(character: str) -> int:
    return 2 if east_asian_width(character) in "WF" else 1


def _beginning(text: str, width: int) -> str:
    """As much of the beginning of a text as has room in so many columns."""
    return text[: sum(end <= width for end in accumulate(map(_columns_of, text)))]


def folded_apart(texts: Sequence[str], width: int = LONGEST) -> list[str]:
    """Names of at most `width` characters; names that `folded` makes the same keep the part where they differ.

    >>> folded_apart(["model/cell_1/gates/kernel_of_the_cell", "model/cell_2/gates/kernel_of_the_cell"], 20)
    ['model/cel…1/gates/…l', 'model/cel…2/gates/…l']
    """
    names = [printable(text) for text in texts]
    shortened = [folded(name, width) for name in names]
    groups: dict[str, set[str]] = {}
    for name, short in zip(names, shortened, strict=True):
        groups.setdefault(short, set()).add(name)
    apart = {name: short for group in groups.values() if len(group) > 1 for name, short in _cut_apart(group, width)}
    return [apart.get(name, short) for name, short in zip(names, shortened, strict=True)]


def _cut_apart(names: set[str], width: int) -> Iterable[tuple[str, str]]:
    """The names with short forms of which as many differ as can: the ellipsis ends where the names begin to differ."""
    low, high = min(names), max(names)
    same = next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), len(low))
    cuts = [[(name, _without(name, head, same, width)) for name in names] for head in range((width - 1) // 2, 0, -1)]
    return max(cuts, key=lambda cut: len({short for _, short in cut}))


def _without(name: str, head: int, same: int, width: int) -> str:
    """The first `head` characters of the name, an ellipsis, and those from `same` on; their last where not all fit."""
    rest, room = name[same:], width - 1 - head
    cut = f"{name[:head]}…{rest if len(rest) <= room else f'{rest[: room - 2]}…{rest[-1]}'}"
    return folded(cut, width)


def _aligned(table: Table, width: int) -> list[str]:
    headings = tuple(h.removeprefix(">") for h in table.headings)
    rows = [headings, *(tuple(map(printable, row)) for row in table.rows)]
    widths = _narrowed([max(map(terminal_width, column)) for column in zip(*rows, strict=True)], width)
    right = [h.startswith(">") for h in table.headings]
    cut = [folded_apart(column, w) for column, w in zip(zip(*rows, strict=True), widths, strict=True)]

    def line(cells: Sequence[str]) -> str:
        rooms = ((c, " " * (w - terminal_width(c)), r) for c, w, r in zip(cells, widths, right, strict=True))
        return "  ".join(room + c if r else c + room for c, room, r in rooms).rstrip()

    first, *others = map(line, zip(*cut, strict=True))
    return [first, line(["-" * w for w in widths]), *others] if any(headings) else others


def _narrowed(widths: Sequence[int], width: int) -> list[int]:
    """The widths of columns with the widest made narrower, one after the other, until a row fits."""
    column_widths = list(widths)
    while sum(column_widths) + 2 * (len(column_widths) - 1) > width and max(column_widths) > _LEAST:
        column_widths[column_widths.index(max(column_widths))] -= 1
    return column_widths
