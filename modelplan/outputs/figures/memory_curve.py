"""The memory curve: the bytes alive at each step, stacked by kind, under the arena, the bound and the capacity."""

import numpy as np

from modelplan.answers.drawing import Drawing, live_by_kind
from modelplan.model import IntArray
from modelplan.outputs.figures import axes
from modelplan.outputs.figures.canvas import MUTED, Sheet

_PLOT_HEIGHT = 260.0
_MOST_POINTS = 4000


def draw(drawing: Drawing) -> Sheet:
    """The memory curve of a drawing; must run inside `canvas.style()`. Cost: O(n log n)."""
    entries = [axes.kind_entry(drawing, int(k)) for k in np.unique(drawing.kinds)]
    levels = axes.levels(drawing)
    sheet = axes.bytes_sheet(drawing, entries, _PLOT_HEIGHT, levels)
    _draw_live(sheet, drawing)
    axes.head(sheet, drawing, "live bytes by step", entries)
    axes.byte_axis(sheet, drawing, "live bytes", grid=True)
    axes.step_axis(sheet, drawing)
    axes.draw_levels(sheet, levels)
    axes.draw_peak(sheet, drawing)
    return sheet


def _draw_live(sheet: Sheet, drawing: Drawing) -> None:
    """Steps, not slopes: a value holds from its time to the next."""
    times, live = envelope(*live_by_kind(drawing), _MOST_POINTS)
    floor = np.zeros(len(times), dtype=np.int64)
    for kind in np.unique(drawing.kinds):
        ceiling = floor + live[kind]
        colour = axes.fill(drawing, int(kind))
        sheet.axes.fill_between(times, floor, ceiling, step="post", facecolor=colour, linewidth=0, zorder=2)
        floor = ceiling
    sheet.axes.step(times, floor, where="post", color=MUTED, linewidth=0.6, zorder=3)


def envelope(times: IntArray, live: IntArray, most: int) -> tuple[IntArray, IntArray]:
    """The curve itself, or where it has more than `most` points the highest one of each of `most` even spans.

    A span is then narrower than a pixel, so the picture shows the same peaks.
    """
    if len(times) <= most:
        return times, live
    span = (times - times[0]) * most // max(int(times[-1] - times[0]) + 1, 1)
    order = np.lexsort((times, -live.sum(axis=0), span))
    _, first = np.unique(span[order], return_index=True)
    kept = np.sort(np.append(order[first], len(times) - 1))
    return times[kept], live[:, kept]
