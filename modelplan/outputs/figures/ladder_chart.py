"""The rungs of a ladder as bars to one scale: what each needs, of which head and tail, and what it costs in work.

as is     |#############........|   82,304 B
overlaps  |#########........|       65,008 B           The bar of the rung that was written is framed. A line stands
split *   |######..........|   :    47,360 B   +9.9 %  where the budget is, another where no plan of stripes can go.
          +-----------------------+-------> bytes
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from modelplan.outputs.figures import axes, canvas, lettering
from modelplan.outputs.figures.canvas import BODY, FAINT, FREE, INK, MUTED, SMALL, TITLE, WARNING, Margins, Sheet
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.units import human
from modelplan.primitives.version import __version__
from modelplan.runtimes.tflm.kernels.own_kernels import library_of

if TYPE_CHECKING:
    from modelplan.rewriting.striped_tflite.ladder import Ladder
    from modelplan.rewriting.striped_tflite.rungs import Goal

_WIDTH, _BAR, _EDGE, _ROW, _BOTTOM = 400.0, 22.0, 12.0, 14.0, 34.0
_HEAD, _TAIL = "#a8cdf0", "#c9c7bd"
#: The share of a row that its bar takes.
_THICK = 0.66


#: Share of an arena from which what lies between head and tail is seen.
_SEEN = 0.02


@dataclass(frozen=True, slots=True)
class RungBar:
    """One rung: arena, head and tail in bytes, and what it costs, in words."""

    name: str
    arena: int
    head: int
    tail: int
    cost: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class LadderChart:
    """The rungs in turn, and the bytes of arena of the budget and of the bound, 0 where there is none.

    `basis` says for which build the bytes hold.
    """

    title: str
    rungs: tuple[RungBar, ...]
    budget: int
    bound: int
    made_by: str
    basis: str = ""


def of_ladder(model: str, ladder: Ladder, goal: Goal) -> LadderChart:
    """The chart of the ladder of a model file; budget and bound are of the arena, or of another objective left out."""
    bars = tuple(
        RungBar(
            name=rung.name,
            arena=rung.arena,
            head=rung.head,
            tail=rung.tail,
            cost=_cost(rung.macs, ladder.macs, rung.time),
            chosen=rung is ladder.chosen,
        )
        for rung in ladder.rungs
    )
    limits = (goal.budget or 0, ladder.bound) if goal.objective == "arena" else (0, 0)
    basis = f"ABI {goal.abi}, {library_of(ladder.kernels)} kernels"
    return LadderChart(Path(model).name, bars, *limits, f"modelplan {__version__}", basis)


def _cost(macs: int, own: int, time: float) -> str:
    if macs == own and f"{time:.2f}" == "1.00":
        return "no extra work"
    return f"{100 * (macs - own) / max(own, 1):+.1f} % MACs, {time:.2f} x the time"


def draw(chart: LadderChart) -> Sheet:
    """The chart of a ladder; must run inside `canvas.style()`."""
    rows = len(chart.rungs)
    most = 1.02 * max([chart.budget, chart.bound, *(bar.arena for bar in chart.rungs)])
    left = _EDGE + lettering.widest([bar.name for bar in chart.rungs], BODY, bold=True) + 8
    right = _EDGE + 8 + lettering.widest([_words(bar) for bar in chart.rungs], SMALL, bold=True)
    margins = Margins(left, right, 2 * _EDGE + TITLE + 4 * _ROW, _BOTTOM)
    sheet = canvas.sheet(margins, _WIDTH, rows * _BAR, most, rows)
    _axis(sheet)
    for row, bar in enumerate(reversed(chart.rungs)):
        _draw_bar(sheet, bar, row)
    lines = ((chart.budget, "budget", WARNING), (chart.bound, "no plan of stripes needs less", INK))
    for place, (size, name, colour) in enumerate((line for line in lines if line[0]), 1):
        x, y = sheet.x(size), sheet.ceiling + 4 + (place - 1) * _ROW
        sheet.line((x, x), (sheet.margins.bottom, y), color=colour, linewidth=1.0, linestyle=(0, (3, 2)))
        words = f"{name}: {human(size)}"
        left_of = sheet.right - x < lettering.width(words, SMALL)
        sheet.write(x - 3 if left_of else x + 3, y, words, SMALL, color=colour, ha="right" if left_of else "left")
    _head(sheet, chart)
    return sheet


def _words(bar: RungBar) -> str:
    return f"{bar.arena:,} B   {bar.cost}"


def _waits(bar: RungBar) -> bool:
    """Whether an arena has bytes between head and tail, of which a share is seen, that serve while it is set up."""
    return bar.arena - bar.tail - bar.head > _SEEN * bar.arena


def _draw_bar(sheet: Sheet, bar: RungBar, row: int) -> None:
    low, high = row + (1 - _THICK) / 2, row + (1 + _THICK) / 2
    if _waits(bar):
        sheet.boxes([(bar.head, low, bar.arena - bar.tail, high)], facecolor=FREE, edgecolor=MUTED, linewidth=0.4)
    for begin, end, colour in ((0, bar.head, _HEAD), (bar.arena - bar.tail, bar.arena, _TAIL)):
        sheet.boxes([(begin, low, end, high)], facecolor=colour, edgecolor=MUTED, linewidth=0.4)
    if bar.chosen:
        sheet.boxes([(0, low, bar.arena, high)], facecolor="none", edgecolor=WARNING, linewidth=1.4, zorder=5)
    weight, colour, middle = "bold" if bar.chosen else "normal", WARNING if bar.chosen else INK, sheet.y(row + 0.5)
    sheet.write(_EDGE, middle, bar.name, BODY, weight=weight, color=colour)
    sheet.write(sheet.right + 8, middle, _words(bar), SMALL, weight=weight, color=colour)


def _axis(sheet: Sheet) -> None:
    ticks, unit = axes.byte_ticks(sheet.steps)
    bottom = sheet.margins.bottom
    for at, text in ticks:
        sheet.axes.axvline(at, color=FAINT, linewidth=0.5, zorder=0)
        sheet.write(sheet.x(at), bottom - 8, text, SMALL, ha="center")
    sheet.write(sheet.x(sheet.steps / 2), _EDGE - 3, f"arena in {unit}", BODY, ha="center", va="baseline", color=MUTED)


def _head(sheet: Sheet, chart: LadderChart) -> None:
    """Title, what is saved, and the legend."""
    y, room = sheet.head(chart.title, "   what each step of fit saves")
    first = chart.rungs[0].arena if chart.rungs else 0
    chosen = next((bar.arena for bar in chart.rungs if bar.chosen), None)
    facts = "nothing fits" if chosen is None else f"arena {human(chosen)} instead of {human(first)}"
    facts += f"  ·  {chart.basis}" if chart.basis else ""
    sheet.write(_EDGE, y - _ROW, lettering.folded(facts, room, BODY), BODY, va="baseline")
    x = _EDGE
    entries = [(_HEAD, "head: activations and scratch"), (_TAIL, "tail: the interpreter's records")]
    if any(map(_waits, chart.rungs)):
        entries.append((FREE, "used only while AllocateTensors runs"))
    for colour, words in entries:
        sheet.swatch(x, y - 2 * _ROW - 5, facecolor=colour, edgecolor=MUTED, linewidth=0.4)
        sheet.write(x + 14, y - 2 * _ROW - 4, words, SMALL, va="baseline")
        x += 30 + lettering.width(words, SMALL)
