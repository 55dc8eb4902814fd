"""The front of recomputation: the bytes of each plan against the work it adds, with the values that it recomputes.

bytes ^ o as it is              The line joins the plans, of which none beats another in both, each with the number of
      |   o---.                 values behind it. The first, the chosen and the lowest have a ring and a name.
      |        o------o 30
      +-------------------> extra multiply-accumulates
"""

import itertools
from collections.abc import Iterator

from modelplan.answers.recomputation import Curve
from modelplan.outputs.figures import axes, canvas, lettering
from modelplan.outputs.figures.canvas import BODY, FAINT, INK, LINE, SMALL, TITLE, WARNING, Area, Margins, Sheet
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.units import counted, human

_WIDTH, _HEIGHT, _EDGE, _ROW, _BOTTOM = 520.0, 320.0, 12.0, 14.0, 44.0
_FRONT = "#0072b2"
#: Plans of so many times the dearest rung's work, or of more bytes than the unmodified file, are not shown.
_MOST_WORK = 1.5


Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class FrontMark:
    """One plan: arena in bytes, multiply-accumulates that it adds, operators; a rung has a name."""

    arena: int
    macs: int
    ops: int
    name: str = ""
    chosen: bool = False


@dataclass(frozen=True, slots=True)
class Front:
    """The plans that have a name, and those that no other beats; `macs` are the model's own.

    `counted` says what the bytes are, `basis` for which runtime they hold.
    """

    title: str
    macs: int
    rungs: tuple[FrontMark, ...]
    front: tuple[FrontMark, ...]
    made_by: str
    counted: str = "arena"
    basis: str = ""

    def work(self, mark: FrontMark) -> float:
        """Percent of extra work."""
        return 100 * mark.macs / max(self.macs, 1)


@dataclass(frozen=True, slots=True)
class _Scale:
    """The ends of the axes: percent of extra work, from `least` to `most`, and bytes of the arena."""

    least: float
    most: float
    arena: float


def of_curve(curve: Curve) -> Front:
    """The chart of a curve of recomputation: bytes against work."""
    marks = [FrontMark(point.height, point.work - curve.first.work, len(point.origins)) for point in curve.points]
    named = []
    for i, name in ((0, "as it is"), (curve.chosen, "chosen"), (len(marks) - 1, "lowest")):
        if i >= 0 and (i == 0 or (i != curve.chosen and name == "lowest") or name == "chosen"):
            named.append(FrontMark(marks[i].arena, marks[i].macs, marks[i].ops, name, i == curve.chosen))
    rungs = tuple(
        mark for i, mark in enumerate(named) if (mark.arena, mark.macs) not in {(m.arena, m.macs) for m in named[:i]}
    )
    return Front(curve.title, curve.first.work, rungs, tuple(marks), curve.made_by, curve.counted, curve.basis)


def draw(front: Front) -> Sheet:
    """The chart of a front; must run inside `canvas.style()`."""
    scale = _scale(front)
    left = _EDGE + _ROW + 8 + lettering.width(human(int(scale.arena)).partition(" (")[0], SMALL)
    margins = Margins(left, 3 * _EDGE, 2 * _EDGE + TITLE + 2 * _ROW, _BOTTOM)
    sheet = canvas.sheet(margins, _WIDTH, _HEIGHT, scale.most - scale.least, scale.arena)
    _axes(sheet, scale, front.counted)
    _head(sheet, front)
    best = [mark for mark in front.front if _inside(front, scale, mark)]
    line = canvas.stairs([_at(sheet, front, scale, mark) for mark in sorted(best, key=lambda mark: mark.macs)])
    if line:
        xs, ys = zip(*line, strict=True)
        sheet.line(xs, ys, color=_FRONT, linewidth=0.9)
    for mark in best:
        _dot(sheet, _at(sheet, front, scale, mark), _FRONT)
    for mark in front.rungs:
        _dot(sheet, _at(sheet, front, scale, mark), WARNING if mark.chosen else INK, ring=True)
    dots = [_around(*_at(sheet, front, scale, mark), 2.5) for mark in best]
    _names(sheet, front, scale, [*dots, *_thin(line)])
    return sheet


def _scale(front: Front) -> _Scale:
    rungs = [front.work(mark) for mark in front.rungs]
    least = min([0.0, *rungs, *(front.work(mark) for mark in front.front)])
    most = max([10.0, *(_MOST_WORK * w for w in rungs)])
    return _Scale(1.04 * least, most, 1.08 * max((mark.arena for mark in front.rungs), default=1))


def _inside(front: Front, scale: _Scale, mark: FrontMark) -> bool:
    return scale.least <= front.work(mark) <= scale.most and mark.arena <= scale.arena


def _axes(sheet: Sheet, scale: _Scale, counted_bytes: str) -> None:
    left, bottom = sheet.margins.left, sheet.margins.bottom
    for value in axes.round_numbers(0, scale.arena / 1024):
        y = sheet.y(value * 1024)
        sheet.axes.axhline(value * 1024, color=FAINT, linewidth=0.5, zorder=0)
        sheet.write(left - 5, y, f"{value:,.10g} KiB", SMALL, ha="right")
    for value in axes.round_numbers(scale.least, scale.most):
        sheet.axes.axvline(value - scale.least, color=FAINT, linewidth=0.5, zorder=0)
        sheet.write(sheet.x(value - scale.least), bottom - 11, f"{value:g} %", SMALL, ha="center")
    sheet.write_below("extra multiply-accumulates", va="baseline")
    sheet.write_beside(counted_bytes)


def _head(sheet: Sheet, front: Front) -> None:
    y, _ = sheet.head(front.title)
    least = min((mark.arena for mark in (*front.rungs, *front.front)), default=0)
    facts = f"{counted(len(front.front), 'plan')}  ·  least {front.counted} {human(least)}"
    facts += f"  ·  {front.basis}" if front.basis else ""
    if len({(mark.arena, mark.macs) for mark in (*front.front, *front.rungs)}) == 1:
        facts += "  ·  no repetition within the limits lowers it"
    sheet.write(_EDGE, y - _ROW, facts, BODY, va="baseline")


def _at(sheet: Sheet, front: Front, scale: _Scale, mark: FrontMark) -> Point:
    return sheet.x(front.work(mark) - scale.least), sheet.y(mark.arena)


def _dot(sheet: Sheet, at: Point, colour: str, *, ring: bool = False) -> None:
    x, y = at
    face, edge, width = ("white", colour, 1.4) if ring else (colour, "white", 0.3)
    size = 6.0 if ring else 4.0
    sheet.line((x,), (y,), marker="o", markersize=size, color=face, markeredgecolor=edge, markeredgewidth=width)


def _around(x: float, y: float, reach: float) -> Area:
    return x - reach, y - reach, x + reach, y + reach


def _thin(line: list[Point]) -> Iterator[Area]:
    """The pieces of a line whose points lie right of or below one another."""
    for (x, y), (right, low) in itertools.pairwise(line):
        yield x, low - 0.5, right, y + 0.5


def _names(sheet: Sheet, front: Front, scale: _Scale, drawn: list[Area]) -> None:
    """Rungs by name, plans of the front by operators, where the text touches neither a named mark nor another text.

    Places that touch nothing that is `drawn` come first.
    """
    named = list(_named_rungs(front.rungs))
    rungs = {(mark.arena, mark.macs) for mark in front.rungs}
    plans = [mark for mark in front.front if _inside(front, scale, mark) and (mark.arena, mark.macs) not in rungs]
    named += [(mark, f"{mark.ops}") for mark in plans]
    on_line = {(mark.arena, mark.macs) for mark in front.front}
    taken = [_around(*_at(sheet, front, scale, mark), 4) for mark, _ in named]
    edges = (sheet.margins.left + 1, sheet.margins.bottom + 1, sheet.right - 1, sheet.ceiling - 1)
    for mark, text in named:
        width, rung = lettering.width(text, SMALL) + 2, (mark.arena, mark.macs) not in on_line
        spots = [
            box
            for box in _spots(*_at(sheet, front, scale, mark), width, rung=rung)
            if canvas.within(box, edges) and not any(canvas.touch(box, other) for other in taken)
        ]
        clear = (box for box in spots if not any(canvas.touch(box, other) for other in drawn))
        box = next(clear, spots[0] if spots else None)
        if box is not None:
            taken.append(box)
            colour = WARNING if mark.chosen else INK if mark.name else _FRONT
            sheet.write(box[0] + 1, (box[1] + box[3]) / 2, text, SMALL, color=colour)


def _named_rungs(rungs: tuple[FrontMark, ...]) -> Iterator[tuple[FrontMark, str]]:
    """A text for each place where rungs stand: those of one place have one ring, and one text names them all."""
    places: dict[tuple[int, int], list[FrontMark]] = {}
    for mark in rungs:
        places.setdefault((mark.arena, mark.macs), []).append(mark)
    for marks in places.values():
        ops = sorted({mark.ops for mark in marks})
        counts = counted(ops[0], "operator") if len(ops) == 1 else f"{ops[0]} to {counted(ops[-1], 'operator')}"
        shown = next((mark for mark in marks if mark.chosen), marks[0])
        yield shown, f"{', '.join(mark.name for mark in marks)}, {counts}"


def _spots(x: float, y: float, width: float, *, rung: bool) -> Iterator[Area]:
    """Where a text may stand: a rung's beside its mark, that of another plan off the line that leads right and down."""
    half, gap = LINE / 2, 5.5
    sides = ((x + gap, y), (x - gap - width, y), (x + gap, y + 3.4 * half))
    above = ((x + gap, y + 1.6 * half), (x - width / 2, y + half + gap))
    below = ((x - gap - width, y - half), (x - width / 2, y - half - gap), (x + gap, y - 1.6 * half))
    for left, centre in (*sides, *above, *below) if rung else (*above, *below):
        yield left, centre - half, left + width, centre + half
