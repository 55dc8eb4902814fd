"""The lifetime chart: one bar for each buffer, in order of start, its colour the share of the peak that it takes.

conv1      24 KiB  |####|
conv2      12 KiB  |   ####|        Where rows are too many to name all of them,
add        12 KiB  |      ##|       the largest have their names, as many as there is room for.
                   +---------> step

Where operators run on several streams, a lane for each stream above the bars shows at which steps it runs one.
"""

import numpy as np

from modelplan.answers.drawing import Drawing
from modelplan.model import IntArray
from modelplan.outputs.figures import axes, canvas, lettering
from modelplan.outputs.figures.canvas import LINE, MUTED, SMALL, Margins, Sheet
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.units import brief

#: Shares of the peak from which a bar gets its colour, one hue from light to dark, and what the legend says.
CLASSES = (
    (0.0, "#d3e2f0", "under 0.1% of the peak"),
    (0.001, "#a9cae6", "0.1% to 1%"),
    (0.01, "#74a9d8", "1% to 5%"),
    (0.05, "#3a7fb8", "5% to 20%"),
    (0.2, "#12446f", "20% and more"),
)

_NARROWEST, _WIDEST = 480.0, 860.0
_POINTS_PER_STEP = 14.0
_ROW = 11.0
#: As many names can be read on a slide.
_MOST_ROWS = 44
_LONGEST_NAME = 190.0
_THINNEST = 0.6
#: Points of the lane of a stream, and the room below the lanes.
_LANE, _GAP = 11.0, 8.0
_LANE_COLOURS = ("#4d7f17", "#b3590b", "#6a4c93", "#0072b2", "#8c2d3f", "#5c5c5c")


@dataclass(frozen=True, slots=True)
class NamedRow:
    """A row, counted from the top, with the name and the size of its buffer, which stand beside it."""

    row: int
    name: str
    size: str


def draw(drawing: Drawing) -> Sheet:
    """The lifetime chart of a drawing; must run inside `canvas.style()`.

    Cost: O(n log n), with at most 44 labels however many buffers there are.
    """
    order = in_order(drawing)
    row_labels = named_rows(drawing, order)
    entries = [axes.Entry(text, {"facecolor": colour, "linewidth": 0}) for _, colour, text in CLASSES]
    entries.append(axes.Entry("alive at the peak", {"facecolor": "none", **canvas.AT_PEAK}))
    sheet = _sheet(drawing, row_labels, entries)
    _draw_guides(sheet, drawing, row_labels, order)
    _draw_bars(sheet, drawing, order)
    _write_names(sheet, row_labels, len(order))
    _draw_lanes(sheet, drawing)
    axes.head(sheet, drawing, "lifetimes", entries)
    axes.step_axis(sheet, drawing)
    axes.draw_peak(sheet, drawing)
    return sheet


def in_order(drawing: Drawing) -> IntArray:
    """The buffers from top to bottom: by start, then the longer-lived, then by index."""
    problem = drawing.problem
    return np.lexsort((np.arange(len(problem)), -problem.end, problem.start))


def named_rows(drawing: Drawing, order: IntArray) -> list[NamedRow]:
    """The rows that have names, from the top: all where there is room, else those of the largest buffers."""
    apart = _rows_each(len(order))
    size = drawing.problem.size[order]
    taken = np.zeros(len(order), dtype=bool)
    chosen: list[int] = []
    for row in np.argsort(-size, kind="stable").tolist():
        if not taken[row]:
            chosen.append(row)
            taken[max(row - apart + 1, 0) : row + apart] = True
    forms = lettering.forms(drawing.problem.names)
    names = (lettering.fitting(forms[order[row]], _LONGEST_NAME, SMALL) for row in sorted(chosen))
    return [NamedRow(row, name, brief(int(size[row]))) for row, name in zip(sorted(chosen), names, strict=True)]


def _rows_each(rows: int) -> int:
    """How many rows take as much height as a name."""
    return max(-(-rows // _MOST_ROWS), 1)


def _sheet(drawing: Drawing, row_labels: list[NamedRow], entries: list[axes.Entry]) -> Sheet:
    width = min(max(drawing.steps * _POINTS_PER_STEP, _NARROWEST), _WIDEST)
    rows = len(drawing.problem)
    height = max(rows / _rows_each(rows), 3) * _ROW
    lanes = len(_lanes(drawing)) * _LANE + _GAP if drawing.streams else 0.0
    names = [*(row.name for row in row_labels), *(f"stream {stream}" for stream in _lanes(drawing))]
    left = 12 + lettering.widest(names, SMALL) + 10 + lettering.widest((row.size for row in row_labels), SMALL) + 8
    above = axes.head_height(drawing, entries, width + left)
    margins = Margins(left, 24, above, axes.foot_height(drawing, width / drawing.steps))
    top = max(len(drawing.problem), 1)
    return canvas.sheet(margins, width, height + lanes, drawing.steps, top * (1 + lanes / height))


def _draw_guides(sheet: Sheet, drawing: Drawing, row_labels: list[NamedRow], order: IntArray) -> None:
    """A faint ground that leads the eye from every other name to its bar."""
    half = 0.5 if len(row_labels) == len(order) else max(0.5, 0.5 / sheet.per_unit)
    rows = [(len(order) - 0.5 - named.row, drawing.problem.start[order[named.row]]) for named in row_labels[::2]]
    ends = [sheet.steps if len(row_labels) == len(order) else start for _, start in rows]
    guides = [(0, middle - half, end, middle + half) for (middle, _), end in zip(rows, ends, strict=True)]
    sheet.boxes(guides, facecolor="#ededea", linewidth=0, zorder=0)


def _draw_bars(sheet: Sheet, drawing: Drawing, order: IntArray) -> None:
    """Light to dark, so that what matters is never under what does not; no bar too thin to see."""
    problem, rows = drawing.problem, len(order)
    share = problem.size[order] / max(drawing.peak, 1)
    classes = np.searchsorted([least for least, _, _ in CLASSES], share, side="right") - 1
    half = max(0.36 if sheet.per_unit >= 4 else 0.5, _THINNEST / 2 / sheet.per_unit)
    centre = rows - 0.5 - np.arange(rows)
    start = problem.start[order]
    end = np.maximum(problem.end[order], start + _THINNEST / sheet.per_step)
    bars = np.stack([start, centre - half, end, centre + half], axis=1)
    for index, (_, colour, _) in enumerate(CLASSES):
        sheet.boxes(bars[classes == index], facecolor=colour, linewidth=0, rasterized=rows > canvas.DENSE, zorder=2)
    # An outline takes no more than a part of a thin bar, whose colour stays to be seen.
    outline = canvas.AT_PEAK | {"linewidth": min(canvas.AT_PEAK["linewidth"], 0.3 * sheet.per_unit)}
    peak = bars[drawing.at_peak[order]]
    sheet.boxes(peak, facecolor="none", rasterized=rows > canvas.DENSE, zorder=2.5, **outline)


def _write_names(sheet: Sheet, row_labels: list[NamedRow], rows: int) -> None:
    """Beside the middle of each row; names that would touch push each other a little."""
    upwards = row_labels[::-1]
    middles = [sheet.y(rows - 0.5 - named.row) for named in upwards]
    heights = [LINE] * len(upwards)
    for named, y in zip(upwards, axes.spread(middles, heights), strict=True):
        sheet.write(12, y, named.name, SMALL)
        sheet.write(sheet.margins.left - 6, y, named.size, SMALL, ha="right", color=MUTED)


def _lanes(drawing: Drawing) -> list[int]:
    return sorted(set(drawing.streams))


def _draw_lanes(sheet: Sheet, drawing: Drawing) -> None:
    """A box in the lane of a stream at each step that runs an operator on it, the lowest number at the top."""
    stream = np.array(drawing.streams, dtype=np.int64)
    steps = np.arange(len(stream), dtype=np.float64)
    for lane, number in enumerate(_lanes(drawing)):
        high = sheet.top - lane * _LANE / sheet.per_unit
        low = high - _LANE / sheet.per_unit
        middle, half = (low + high) / 2, 0.36 * (high - low)
        at = steps[stream == number]
        boxes = np.stack([at + 0.06, at * 0 + middle - half, at + 0.94, at * 0 + middle + half], axis=1)
        sheet.boxes(boxes, facecolor=_LANE_COLOURS[lane % len(_LANE_COLOURS)], linewidth=0, zorder=2)
        sheet.write(12, sheet.y(middle), f"stream {number}", SMALL)
