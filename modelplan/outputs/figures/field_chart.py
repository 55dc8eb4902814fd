r"""The field: every allocator as a point, height over bound against time, and a list beside the plot, ties in one row.

excess ^            o naive      |  allocator      height/bound  time     Both axes are logarithmic. Height over
       |    o                    |  o ...                                 bound is drawn as the excess in percent;
  1 %  |  o----.                 |  o ...                                 zero has a band of its own below. The
       |........\\........        |                                        line joins those that no other beats in
   0   |         o---- solver    |                                        both; as many names as fit stand in the
       +------------> time       |                                        plot, those on the line first. A hollow
                                                                          point shows another's height.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from modelplan.answers.placement_answers import Field, Mark
from modelplan.outputs.figures import canvas, lettering
from modelplan.outputs.figures.canvas import BODY, FAINT, FREE, INK, LINE, MUTED, SMALL, TITLE, Area, Margins, Sheet
from modelplan.primitives.lazy_records import dataclass

#: One colour for each kind of allocator: after Okabe and Ito's colour-blind safe set (2008).
COLOURS = {
    "portfolio": "#1b1b1b",
    "exact": "#0072b2",
    "search": "#56b4e9",
    "offsets": "#009e73",
    "objects": "#d55e00",
    "online": "#cc79a7",
    "colouring": "#e6c200",
    "baseline": "#8e8e8e",
}
_WIDTH, _LEAST_HEIGHT, _EDGE, _ROW, _GAP = 520.0, 300.0, 12.0, 14.0, 22.0
_BOTTOM = 44.0
_DOT = 5.0
#: Points for the names of a row of the list, and between rows.
_LIST, _BETWEEN = 250.0, 3.0
#: Below this excess, in percent, the axis does not go.
_LEAST_EXCESS = 0.01


@dataclass(frozen=True, slots=True)
class Scales:
    """Where a mark lies on the logarithmic axes of the chart.

    Fields are powers of ten: of microseconds from `fastest` to `slowest`, of excess from `least` to `most`. Marks
    without excess share one band below.
    """

    fastest: int
    slowest: int
    least: int
    most: int

    def x(self, mark: Mark) -> float:
        """Decades of time from the left."""
        return math.log10(max(mark.microseconds, 1)) - self.fastest

    def y(self, excess: float) -> float:
        """Decades of excess above the band of zero."""
        return 0.5 if excess <= 0 else 1 + max(math.log10(excess), self.least) - self.least


def draw(field: Field) -> Sheet:
    """The chart of a field; must run inside `canvas.style()`."""
    field = _drawable(field)
    scales = _scales(field)
    sheet = _sheet(field, scales)
    _axes(sheet, scales)
    _head(sheet, field)
    _list(sheet, field)
    points = {m.name: (sheet.x(scales.x(m)), sheet.y(scales.y(field.excess(m)))) for m in field.marks}
    front = [points[m.name] for m in field.unbeaten()]
    if front:
        xs, ys = zip(*canvas.stairs(front), strict=True)
        sheet.line(xs, ys, color=MUTED, linewidth=0.8, zorder=1)
    for mark in reversed(field.marks):
        _dot(sheet, *points[mark.name], mark.kind, hollow=bool(mark.found_by))
    _names(sheet, field, points)
    return sheet


def _drawable(field: Field) -> Field:
    """The field with names that the font can draw; their widths are measured before they are."""
    marks = tuple(replace(mark, name=lettering.drawable(mark.name)) for mark in field.marks)
    return replace(field, marks=marks, refused=tuple(map(lettering.drawable, field.refused)))


def _scales(field: Field) -> Scales:
    times = [max(m.microseconds, 1) for m in field.marks] or [1]
    above = [max(e, _LEAST_EXCESS) for m in field.marks if (e := field.excess(m)) > 0] or [1.0]
    fastest, least = math.floor(math.log10(min(times))), math.floor(math.log10(min(above)))
    slowest, most = math.floor(math.log10(max(times))) + 1, math.floor(math.log10(max(above))) + 1
    return Scales(fastest, slowest, least, most)


def _sheet(field: Field, scales: Scales) -> Sheet:
    by_height = ties(field)
    rows = sum(len(tie.lines) for tie in by_height) + len(field.refused) + 2
    height = max(_LEAST_HEIGHT, LINE * rows + _BETWEEN * len(by_height))
    widest = max(lettering.width(_percent(decade), SMALL) for decade in (scales.least, scales.most))
    margins = Margins(
        _EDGE + _ROW + 8 + widest, _GAP + sum(_columns(field)) + 4 * _EDGE, 2 * _EDGE + TITLE + 2 * _ROW, _BOTTOM
    )
    decades = scales.most - scales.least + 1
    return canvas.sheet(margins, _WIDTH, height, scales.slowest - scales.fastest, decades)


def _axes(sheet: Sheet, scales: Scales) -> None:
    left, bottom = sheet.margins.left, sheet.margins.bottom
    sheet.axes.axhspan(0, 1, color=FREE, zorder=0, linewidth=0)
    sheet.write(left - 5, sheet.y(0.5), "0", SMALL, ha="right")
    for decade in range(scales.least, scales.most + 1):
        y = sheet.y(1 + decade - scales.least)
        sheet.axes.axhline(1 + decade - scales.least, color=FAINT, linewidth=0.5, zorder=0)
        sheet.write(left - 5, y, _percent(decade), SMALL, ha="right")
    for decade in range(scales.slowest - scales.fastest + 1):
        sheet.axes.axvline(decade, color=FAINT, linewidth=0.5, zorder=0)
        sheet.write(sheet.x(decade), bottom - 11, _time(10 ** (scales.fastest + decade)), SMALL, ha="center")
    sheet.write_below("time", va="baseline")
    sheet.write_beside("height above the lower bound")


def _percent(decade: int) -> str:
    return f"{10**decade:,} %" if decade >= 0 else f"{10.0**decade:g} %"


def _head(sheet: Sheet, field: Field) -> None:
    y, _ = sheet.head(field.title, otherwise="problem")
    sheet.write(_EDGE, y - _ROW, field.facts, BODY, va="baseline")
    x = _EDGE
    for kind in dict.fromkeys(m.kind for m in field.marks):
        _dot(sheet, x + 3, y - 2 * _ROW + 3, kind)
        sheet.write(x + 9, y - 2 * _ROW, kind, SMALL, va="baseline")
        x += 9 + lettering.width(kind, SMALL) + _ROW
    line = "none is lower in less time"
    sheet.line((x, x + 12), (y - 2 * _ROW + 3,) * 2, color=MUTED, linewidth=0.8)
    sheet.write(x + 16, y - 2 * _ROW, line, SMALL, va="baseline")
    x += 16 + lettering.width(line, SMALL) + _ROW
    if hollow := next((mark for mark in field.marks if mark.found_by), None):
        _dot(sheet, x + 3, y - 2 * _ROW + 3, hollow.kind, hollow=True)
        sheet.write(x + 9, y - 2 * _ROW, "shows another's height", SMALL, va="baseline")


@dataclass(frozen=True, slots=True)
class Tie:
    """Answers of one height: those of own first, in lines of names, with the shortest and the longest time."""

    lines: tuple[tuple[Mark, ...], ...]
    time: str


def ties(field: Field) -> list[Tie]:
    """The answers by height, lowest first; those that show another's height apart from those of their own."""
    groups: dict[tuple[int, bool], list[Mark]] = {}
    for mark in field.marks:
        groups.setdefault((mark.height, bool(mark.found_by)), []).append(mark)
    return [_tie(marks) for marks in groups.values()]


def _tie(marks: Sequence[Mark]) -> Tie:
    lines: list[list[Mark]] = []
    room = 0.0
    for mark in marks:
        needed = _entry_width(mark)
        if not lines or needed > room:
            lines.append([])
            room = _LIST
        lines[-1].append(mark)
        room -= needed
    times = sorted(mark.microseconds for mark in marks)
    first, last = _time(times[0]), _time(times[-1])
    return Tie(tuple(map(tuple, lines)), first if first == last else f"{first} to {last}")


def _entry_width(mark: Mark) -> float:
    """Points that a name in the list takes with its dot."""
    return 9 + lettering.width(_listed(mark), SMALL) + 8


def _columns(field: Field) -> tuple[float, float, float]:
    """Points for names, ratios and times of the list."""
    by_height = ties(field)
    lines = [sum(map(_entry_width, line)) for tie in by_height for line in tie.lines]
    names = max([*lines, *(9 + lettering.width(name, SMALL) for name in field.refused)], default=0.0)
    ratios = ["height/bound", *(_ratio(field, tie.lines[0][0]) for tie in by_height)]
    times = ["refused", *(tie.time for tie in by_height)]
    return names + 4, lettering.widest(ratios, SMALL) + 6, lettering.widest(times, SMALL) + 10


def _ratio(field: Field, mark: Mark) -> str:
    """Four digits, and more where four would hide what is above the bound."""
    excess = field.excess(mark) / 100
    digits = max(4, -math.floor(math.log10(excess))) if excess > 0 else 4
    return f"{1 + excess:.{digits}f}"


def _list(sheet: Sheet, field: Field) -> None:
    left = sheet.right + _GAP
    ratios, times = left + sum(_columns(field)[:2]), left + sum(_columns(field))
    y = sheet.ceiling
    sheet.write(ratios, y, "height/bound", SMALL, ha="right", color=MUTED)
    sheet.write(times, y, "time", SMALL, ha="right", color=MUTED)
    for tie in ties(field):
        sheet.write(ratios, y - LINE, _ratio(field, tie.lines[0][0]), SMALL, ha="right")
        sheet.write(times, y - LINE, tie.time, SMALL, ha="right")
        for line in tie.lines:
            y -= LINE
            x = left
            for mark in line:
                _dot(sheet, x + 3, y, mark.kind, hollow=bool(mark.found_by))
                sheet.write(x + 9, y, _listed(mark), SMALL)
                x += _entry_width(mark)
        y -= _BETWEEN
    for name in field.refused:
        y -= LINE
        sheet.write(left + 9, y, name, SMALL, color=MUTED)
        sheet.write(times, y, "refused", SMALL, ha="right", color=MUTED)


def _listed(mark: Mark) -> str:
    """The name in the list, with whose height it is where that is another's."""
    return f"{mark.name} ({mark.found_by}'s height)" if mark.found_by else mark.name


def _dot(sheet: Sheet, x: float, y: float, kind: str, *, hollow: bool = False) -> None:
    face, edge, width = ("white", COLOURS[kind], 1.0) if hollow else (COLOURS[kind], "white", 0.4)
    sheet.line((x,), (y,), marker="o", markersize=_DOT, color=face, markeredgecolor=edge, markeredgewidth=width)


def _time(microseconds: float) -> str:
    for scale, unit in ((1e6, "s"), (1e3, "ms")):
        if microseconds >= scale:
            return f"{microseconds / scale:.3g} {unit}"
    return f"{microseconds:g} us"


# Names in the plot ---------------------------------------------------------------------------------------------------


def _names(sheet: Sheet, field: Field, points: dict[str, tuple[float, float]]) -> None:
    """Writes each name beside its point where it touches no point and no other name, else leaves it to the list."""
    reach = _DOT / 2 + 0.5
    taken: list[Area] = [(x - reach, y - reach, x + reach, y + reach) for x, y in points.values()]
    inside = (sheet.margins.left + 2, sheet.margins.bottom + 2, sheet.right - 2, sheet.ceiling - 2)
    for mark in [*field.unbeaten(), *(m for m in field.marks if m not in field.unbeaten())]:
        for box in _spots(*points[mark.name], lettering.width(mark.name, SMALL) + 2):
            if canvas.within(box, inside) and not any(canvas.touch(box, other) for other in taken):
                taken.append(box)
                sheet.write(box[0] + 1, (box[1] + box[3]) / 2, mark.name, SMALL, color=INK)
                break


def _spots(x: float, y: float, width: float) -> Iterator[Area]:
    """Where a name may stand: right, left, above, below, then the corners."""
    half, gap = LINE / 2, _DOT / 2 + 1.5
    for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1)):
        left = x + gap if dx > 0 else x - gap - width if dx < 0 else x - width / 2
        centre = y + dy * (half + gap - (1 if dx else 0))
        yield left, centre - half, left + width, centre + half
