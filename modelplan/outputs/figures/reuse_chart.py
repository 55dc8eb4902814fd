"""What planning is for: on the left every buffer at an address of its own, on the right the plan, to one scale.

bytes ^  every buffer its own |  the plan
      |            +--+       |
      |       +--+            |
      |   +--+                |              On the left a buffer's bytes are reserved all the time and in use only
      | +--+                  | +--+--+      in its rectangle.
      +-----------------------+-------> step
"""

import numpy as np

from modelplan.answers.drawing import Drawing
from modelplan.model import IntArray
from modelplan.outputs.figures import axes, canvas, lettering
from modelplan.outputs.figures.canvas import BODY, FREE, INK, MUTED, SMALL, TITLE, Boxes, Margins, Sheet
from modelplan.primitives.units import brief, counted, human

_PANEL, _GAP, _PLOT_HEIGHT = 340.0, 26.0, 320.0
_EDGE, _ROW = 12.0, 14.0
_LEFT, _RIGHT, _BOTTOM = 62.0, 24.0, 40.0
_SLIM = 2.0


def stacked_offsets(drawing: Drawing) -> IntArray:
    """Offsets at which no buffer shares a byte with another: one above the other in order of start."""
    problem = drawing.problem
    order = np.lexsort((problem.end, problem.start))
    offsets = np.zeros(len(problem), dtype=np.int64)
    offsets[order] = np.cumsum(problem.size[order]) - problem.size[order]
    return offsets


def draw(drawing: Drawing) -> Sheet:
    """Both ways beside each other; must run inside `canvas.style()`. Cost: O(n log n)."""
    alone = int(drawing.problem.size.sum())
    entries = [axes.kind_entry(drawing, int(k)) for k in np.unique(drawing.kinds)]
    reserved = {"facecolor": FREE, "edgecolor": MUTED, "linewidth": 0.4}
    entries.append(axes.Entry("reserved and not in use", reserved))
    sheet = _sheet(drawing, entries, max(alone, drawing.planned, 1))
    shift = _shift(drawing)
    draw_panel(sheet, drawing, stacked_offsets(drawing), 0.0, alone)
    draw_panel(sheet, drawing, drawing.placement.offsets, shift, drawing.planned)
    _head(sheet, drawing, entries, alone)
    axes.draw_bytes(sheet, "address")
    for begin, size, words in ((0.0, alone, "every buffer its own bytes"), (shift, drawing.planned, "this plan")):
        middle = sheet.x(begin + drawing.steps / 2)
        sheet.write(middle, sheet.margins.bottom - 9, "step", SMALL, ha="center", va="top", color=MUTED)
        sheet.write(middle, sheet.ceiling + 8, f"{words}: {brief(size)}", BODY, ha="center", weight="bold")
    return sheet


def _shift(drawing: Drawing) -> float:
    """Where the right panel begins, in steps."""
    return drawing.steps * (_PANEL + _GAP) / _PANEL


def _sheet(drawing: Drawing, entries: list[axes.Entry], highest: int) -> Sheet:
    width = 2 * _PANEL + _GAP
    above = _EDGE + TITLE + 6 + (1 + len(axes.legend_rows(entries, width))) * _ROW + 34
    margins = Margins(_LEFT, _RIGHT, above, _BOTTOM)
    return canvas.sheet(margins, width, _PLOT_HEIGHT, _shift(drawing) + drawing.steps, 1.03 * highest)


def draw_panel(
    sheet: Sheet, drawing: Drawing, offsets: IntArray, begin: float, height: int, scale: float = 1.0
) -> None:
    """The buffers at these offsets from `begin` of the sheet on, a step `scale` wide, and the line of the height."""
    problem = drawing.problem
    edges = [problem.start * scale + begin, offsets, problem.end * scale + begin, offsets + problem.size]
    boxes: Boxes = np.stack(edges, axis=1).astype(np.float64)
    sheet.boxes([(begin, 0, begin + drawing.steps * scale, height)], facecolor=FREE, linewidth=0, zorder=1)
    dense = len(boxes) > canvas.DENSE
    for kind in np.unique(drawing.kinds):
        chosen = (drawing.kinds == kind) & (problem.size > 0)
        slim = (boxes[:, 3] - boxes[:, 1]) * sheet.per_unit < _SLIM
        colour = axes.fill(drawing, int(kind))
        thin = {"facecolor": colour, "edgecolor": axes.darker(colour), "linewidth": 0.25}
        sheet.boxes(boxes[chosen & slim], rasterized=dense, zorder=2, **thin)
        sheet.boxes(boxes[chosen & ~slim], facecolor=colour, edgecolor=MUTED, linewidth=0.4, zorder=2)
    sheet.axes.plot((begin, begin + drawing.steps * scale), (height, height), color=INK, linewidth=0.9, zorder=4)


def _head(sheet: Sheet, drawing: Drawing, entries: list[axes.Entry], alone: int) -> None:
    """Title, what reuse saves, and the legend."""
    y, room = sheet.head(drawing.title, f"   what reuse saves, {counted(len(drawing.problem), 'buffer')}")
    share = f" = {drawing.planned / alone:.1%} of the bytes of all buffers" if alone else ""
    facts = f"{axes.planned_words(drawing)} {human(drawing.planned)}{share}, {human(alone)}"
    sheet.write(_EDGE, y - _ROW, lettering.folded(facts, room, BODY), BODY, va="baseline")
    axes.draw_legend(sheet, y - (_ROW + 4), axes.legend_rows(entries, room))
