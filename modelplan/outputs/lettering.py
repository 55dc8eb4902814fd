"""Text that is known to fit before it is drawn: widths in points, names cut to a width, glyphs that the font has."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from modelplan.outputs.report import printable

if TYPE_CHECKING:
    from matplotlib.ft2font import FT2Font

#: The font that matplotlib itself carries, so that a figure looks the same on every machine.
FONT = "DejaVu Sans"
_MISSING = "\N{WHITE VERTICAL RECTANGLE}"
_ELLIPSIS = "…"
_LEAST_KEPT = 5
#: Hinting may widen a line a little against the sum of its advances.
_HINTING = 1.03


def width(text: str, size: float, *, bold: bool = False) -> float:
    """The points that `text` takes at `size` points, never less than what is drawn."""
    weight = "bold" if bold else "normal"
    return sum(_advance(c, weight) for c in text) * size * _HINTING


def line_height(size: float) -> float:
    """The points from one line to the next."""
    return 1.28 * size


def drawable(text: str) -> str:
    """`text` without control characters, with a box for each character that the font lacks."""
    return "".join(c if _has(c) else _MISSING for c in printable(text))


def folded(text: str, room: float, size: float) -> str:
    """`text` cut in the middle to `room` points; "" when too little of it would stay.

    The end stays longer than the beginning: names of tensors differ in their ends.
    """
    if width(text, size) <= room:
        return text
    low, high = 0, len(text) - 1
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if width(_cut(text, middle), size) <= room else (low, middle - 1)
    return _cut(text, low) if low >= _LEAST_KEPT else ""


def short_name(name: str, room: float, size: float) -> str:
    """A tensor's name in at most `room` points: whole, then its last path components, then cut in the middle."""
    name = drawable(name)
    if width(name, size) <= room:
        return name
    first = name.split(";")[0]
    parts = first.strip("/").split("/")
    tails = (first, *("/".join(parts[i:]) for i in range(1, len(parts))))
    fitting = (tail for tail in tails if width(tail, size) <= room)
    return next(fitting, "") or folded(tails[-1], room, size)


def _cut(text: str, kept: int) -> str:
    head = kept * 2 // 5
    return text[:head] + _ELLIPSIS + text[len(text) - (kept - head) :]


@cache
def _font(weight: str) -> FT2Font:
    from matplotlib.font_manager import FontProperties, findfont, get_font

    return get_font(findfont(FontProperties(family=FONT, weight=weight)))


@cache
def _advance(character: str, weight: str) -> float:
    """The width of one character in ems."""
    font = _font(weight)
    font.set_size(100, 72)
    return float(font.load_char(ord(character)).linearHoriAdvance) / 65536 / 100


@cache
def _has(character: str) -> bool:
    return bool(_font("normal").get_char_index(ord(character)))
