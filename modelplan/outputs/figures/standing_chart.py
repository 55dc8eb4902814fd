"""How high each allocator ends, as bars to one scale with the maps of two: ours, and the one that the runtime has.

bytes ^       |~| |~|   | modelplan     | tflm-greedy
      |   |#| | | | |   |               |     +--+
  ----|-|#|#|-| |-| |---|-+--+--+-------|--+--+--+---    The dashed line is the lower bound. A bar stands for all that
      | |#|#| | | | |   | |  |  |       |  |     |       end at one height; those above the scale are cut.
      +-----------------+---------------+-----------> step
"""

from collections.abc import Sequence

import numpy as np

from modelplan.answers.drawing import Drawing
from modelplan.answers.placement_answers import Field, Mark
from modelplan.outputs.figures import axes, canvas, lettering
from modelplan.outputs.figures.canvas import BODY, FREE, INK, MUTED, SMALL, TITLE, WARNING, Margins, Sheet
from modelplan.outputs.figures.field_chart import COLOURS
from modelplan.outputs.figures.reuse_chart import draw_panel
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.units import brief

_BAR, _PANEL, _GAP, _HEIGHT = 15.0, 270.0, 22.0, 300.0
_EDGE, _ROW, _LEFT, _RIGHT, _NAMES = 12.0, 14.0, 62.0, 24.0, 150.0
#: Multiples of the highest map above which bars are cut, and of the highest bar where the scale ends if none is.
_CUT, _ABOVE = 1.35, 1.03


@dataclass(frozen=True, slots=True)
class Standing:
    """The heights of all allocators on one problem, and the drawings of two of their answers by name."""

    field: Field
    maps: tuple[tuple[str, Drawing], ...]

    @property
    def title(self) -> str:
        """The name of the problem."""
        return self.field.title

    @property
    def made_by(self) -> str:
        """The program and its version."""
        return self.field.made_by


def draw(standing: Standing) -> Sheet:
    """The chart; must run inside `canvas.style()`. Cost: O(n log n) in the buffers."""
    field = standing.field
    groups = _groups(field.marks)
    highest = max([field.lower_bound, 1, *(drawing.height for _, drawing in standing.maps)])
    top = min(_CUT * highest, _ABOVE * max([highest, *(mark.height for mark in field.marks)]))
    bars = _BAR * len(groups)
    width = bars + len(standing.maps) * (_GAP + _PANEL)
    below = max(6 + lettering.widest(map(_name, groups), SMALL), 2 * _ROW) + _EDGE
    margins = Margins(_LEFT, _RIGHT, 2 * _EDGE + TITLE + 5 * _ROW, below)
    sheet = canvas.sheet(margins, width, _HEIGHT, width, top)
    for place, marks in enumerate(groups):
        _draw_bar(sheet, marks, place)
    sheet.axes.plot((0, width), (field.lower_bound,) * 2, color=INK, linewidth=0.9, linestyle=(0, (4, 3)), zorder=5)
    for place, (name, drawing) in enumerate(standing.maps):
        begin = bars + _GAP + place * (_PANEL + _GAP)
        draw_panel(sheet, drawing, drawing.placement.offsets, begin, drawing.height, _PANEL / drawing.steps)
        middle = sheet.x(begin + _PANEL / 2)
        sheet.write(middle, sheet.ceiling + 6, f"{name}: {brief(drawing.height)}", BODY, ha="center", weight="bold")
        sheet.write(middle, margins.bottom - 9, "step", SMALL, ha="center", va="top", color=MUTED)
    axes.draw_bytes(sheet, "address")
    _head(sheet, standing, [marks[0] for marks in groups])
    return sheet


def _groups(marks: Sequence[Mark]) -> list[list[Mark]]:
    """Those that end at one height, lowest first; ours in front, then by name, since times differ from run to run."""
    groups: dict[int, list[Mark]] = {}
    for mark in marks:
        groups.setdefault(mark.height, []).append(mark)
    return [sorted(groups[height], key=lambda mark: (mark.name != "modelplan", mark.name)) for height in sorted(groups)]


def _draw_bar(sheet: Sheet, marks: Sequence[Mark], place: int) -> None:
    """One bar with its names below; where it is cut, its height stands in it."""
    first, is_cut = marks[0], marks[0].height > sheet.top
    left, right = place * _BAR + 2, (place + 1) * _BAR - 2
    colour = WARNING if first.name == "modelplan" else COLOURS[first.kind]
    sheet.boxes([(left, 0, right, min(first.height, sheet.top))], facecolor=colour, linewidth=0, alpha=0.75)
    middle = sheet.x((left + right) / 2)
    if is_cut:
        style = {"rotation": 90, "ha": "center", "va": "top", "weight": "bold"}
        sheet.write(middle, sheet.ceiling - 4, f"{brief(first.height)}  ↑", SMALL, **style)
    sheet.write(middle, sheet.margins.bottom - 6, _name(marks), SMALL, rotation=90, ha="center", va="top")


def _name(marks: Sequence[Mark]) -> str:
    """The first of those that share a bar, and how many more there are."""
    more = f" and {len(marks) - 1} more" if len(marks) > 1 else ""
    return lettering.folded(marks[0].name, _NAMES - 10 - lettering.width(more, SMALL), SMALL) + more


def _head(sheet: Sheet, standing: Standing, named: Sequence[Mark]) -> None:
    field = standing.field
    y, room = sheet.head(field.title, otherwise="problem")
    sheet.write(_EDGE, y - _ROW, lettering.folded(field.facts, room, BODY), BODY, va="baseline")
    y -= 2 * _ROW + 4
    kinds = dict.fromkeys(mark.kind for mark in named if mark.name != "modelplan")
    colours = [("modelplan", WARNING), *((kind, COLOURS[kind]) for kind in kinds)]
    x = _legend(sheet, y, "bars", [axes.Entry(k, {"facecolor": c, "alpha": 0.75, "linewidth": 0}) for k, c in colours])
    sheet.line((x, x + 16), (y + 4, y + 4), color=INK, linewidth=0.9, linestyle=(0, (4, 3)))
    sheet.write(x + 20, y + 1, "lower bound", SMALL, va="baseline")
    free = axes.Entry("free", {"facecolor": FREE, "edgecolor": MUTED, "linewidth": 0.4})
    for _, drawing in standing.maps[:1]:
        present = [axes.kind_entry(drawing, int(kind)) for kind in np.unique(drawing.kinds)]
        _legend(sheet, y - _ROW, "maps", [*present, free])


def _legend(sheet: Sheet, y: float, words: str, entries: Sequence[axes.Entry]) -> float:
    """A row of the legend after what it is of; returns where the row ends."""
    sheet.write(_EDGE, y + 1, words, SMALL, va="baseline", color=MUTED)
    x = _LEFT - 24
    for entry in entries:
        sheet.swatch(x, y, **entry.style)
        sheet.write(x + 14, y + 1, entry.text, SMALL, va="baseline")
        x += 26 + lettering.width(entry.text, SMALL)
    return x
