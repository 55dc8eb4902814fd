"""Text that is known to fit before it is drawn: widths in points, names cut to a width, glyphs that the font has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from modelplan.outputs.report import printable
from modelplan.primitives.tensor_names import name_forms

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


def widest(texts: Iterable[str], size: float, *, bold: bool = False) -> float:
    """The points that the widest of some texts takes, 0 without any."""
    return max((width(text, size, bold=bold) for text in texts), default=0.0)


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


def wrapped(text: str, room: float, size: float) -> tuple[str, ...]:
    """`text` in lines of at most `room` points, broken after `_`, `/`, `.`, `:` and `;`; () when a piece is longer."""
    lines = [""]
    for piece in re.findall(r"[^_/.:;]*[_/.:;]|[^_/.:;]+", text):
        if width(lines[-1] + piece, size) <= room:
            lines[-1] += piece
        else:
            lines.append(piece)
    lines = [line for line in lines if line]
    return tuple(lines) if all(width(line, size) <= room for line in lines) else ()


def forms(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Ways to write each name, from whole to short, of characters that can be drawn."""
    return name_forms([drawable(name) for name in names])


def fitting(forms: Sequence[str], room: float, size: float) -> str:
    """The first of `forms` that fits into `room` points, else the last one cut in the middle, or nothing."""
    whole = (form for form in forms if width(form, size) <= room)
    return next(whole, "") or folded(forms[-1], room, size)


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
