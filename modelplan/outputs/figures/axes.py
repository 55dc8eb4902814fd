"""What all figures share around their plot: head, legend, steps below, bytes beside, levels across, the peak above."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from modelplan.answers.drawing import KINDS, Drawing
from modelplan.outputs.figures import canvas, lettering
from modelplan.outputs.figures.canvas import BODY, FAINT, INK, LINE, MUTED, SMALL, TITLE, WARNING, Margins, Sheet
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.units import brief, counted, human

#: Fill of each kind of buffer: after Okabe and Ito's colour-blind safe set (2008), light enough to write on.
COLOURS = {
    "input": "#6fc9a4",
    "output": "#f0b357",
    "activation": "#a9d0f0",
    "shared": "#cf8abf",
    "state": "#8e8e8e",
    "scratch": "#efe68a",
    "buffer": "#a9d0f0",
}
#: Fills of several models in turn, then of what they hand on and of what is kept.
_OF_MODELS = ("#a9d0f0", "#f0b357", "#6fc9a4", "#efe68a", "#e9a08c", "#b9b3e6", "#c9d89a", "#d9bfa5")
_BEHIND_MODELS = ("#cf8abf", "#8e8e8e")
_MEANINGS = {"shared": "activations sharing a buffer"}

_NARROWEST, _WIDEST = 640.0, 1060.0
_POINTS_PER_STEP = 20.0
_ROW = 14.0
_EDGE = 12.0
_NOTE = 26.0
_LONGEST_OP = 110.0
_BROKEN_ABOVE = 2.0
_MOST_PEAKS = 40


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a legend: what it says and how its swatch is drawn."""

    text: str
    style: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Level:
    """A horizontal line: where it is drawn, what it is called, how it looks."""

    at: float
    text: str
    style: dict[str, Any]


# Vertical scale ------------------------------------------------------------------------------------------------------


def tallest(drawing: Drawing) -> int:
    """The highest address that a figure must show to scale: at least 1."""
    return max(drawing.planned + drawing.kept, drawing.height, drawing.lower_bound, 1)


def is_broken(drawing: Drawing) -> bool:
    """Whether the capacity is so far above what is planned that its line is drawn out of scale."""
    capacity = drawing.problem.capacity
    return capacity is not None and capacity > _BROKEN_ABOVE * tallest(drawing)


def top(drawing: Drawing) -> float:
    """The upper end of the axis of bytes."""
    if is_broken(drawing):
        return 1.16 * tallest(drawing)
    return 1.03 * max(tallest(drawing), drawing.problem.capacity or 0)


def levels(drawing: Drawing) -> list[Level]:
    """The lines for what is planned, lower bound, the arena with what the runtime keeps, and capacity."""
    planned, bound, capacity = drawing.planned, drawing.lower_bound, drawing.problem.capacity
    if planned == bound:
        level_lines = [Level(planned, f"planned = bound\n{brief(planned)}", _line(INK, "-"))]
    else:
        level_lines = [
            Level(planned, f"planned\n{brief(planned)}", _line(INK, "-")),
            Level(bound, f"lower bound\n{brief(bound)}", _line(INK, (0, (4, 3)))),
        ]
    if drawing.kept:
        whole = planned + drawing.kept
        own = " with this plan" if drawing.declared and brief(drawing.declared) != brief(whole) else ""
        level_lines.append(Level(whole, f"arena{own}\n{brief(whole)}", _line(MUTED, "-")))
    if capacity is not None:
        at = 1.11 * tallest(drawing) if is_broken(drawing) else capacity
        scale = "\nnot to scale" if is_broken(drawing) else ""
        level_lines.append(Level(at, f"capacity\n{brief(capacity)}{scale}", _line(WARNING, "-", 1.6)))
    return level_lines


def bank_levels(drawing: Drawing, plot_height: float) -> list[Level]:
    """The lines where banks begin, those to scale; a name where the one below leaves the room."""
    end = tallest(drawing) * 1.03 if is_broken(drawing) else top(drawing)
    apart = LINE * top(drawing) / plot_height
    level_lines: list[Level] = []
    named = -math.inf
    for name, start in drawing.banks:
        at = max(start, 0)
        if at < end:
            text = lettering.drawable(name) if at - named >= apart else ""
            named = at if text else named
            level_lines.append(Level(at, text, _line(MUTED, (0, (1, 2)))))
    return level_lines


def _line(colour: str, dashes: object, width: float = 0.9) -> dict[str, Any]:
    return {"color": colour, "linestyle": dashes, "linewidth": width, "solid_capstyle": "butt"}


def darker(colour: str) -> str:
    """The same hue with four fifths of its light."""
    return "#" + "".join(f"{int(colour[i : i + 2], 16) * 4 // 5:02x}" for i in (1, 3, 5))


# Margins -------------------------------------------------------------------------------------------------------------


def head_height(drawing: Drawing, entries: Sequence[Entry], room: float) -> float:
    """Points above the plot for title, facts, legend and note."""
    rows = len(facts(drawing)) + len(legend_rows(entries, room))
    return _EDGE + TITLE + 6 + rows * _ROW + _NOTE


def foot_height(drawing: Drawing, per_step: float) -> float:
    """Points below the plot for the steps and their operators."""
    ticks = _op_ticks(drawing, per_step) if drawing.ops else []
    if _is_roomy(ticks, per_step):
        return _EDGE + 2 * _ROW
    return _EDGE + _ROW + 4 + max(lettering.width(text, SMALL, bold=True) for _, text in ticks)


# Head ----------------------------------------------------------------------------------------------------------------


def bytes_sheet(drawing: Drawing, entries: Sequence[Entry], plot_height: float, level_lines: Sequence[Level]) -> Sheet:
    """A sheet for bytes over steps, with room for the head, the byte axis, the levels and the step axis."""
    width = min(max(drawing.steps * _POINTS_PER_STEP, _NARROWEST), _WIDEST)
    left = _EDGE + _ROW + 8 + lettering.widest((text for _, text in byte_ticks(top(drawing))[0]), SMALL)
    right = _EDGE + 8 + lettering.widest((line for level in level_lines for line in level.text.split("\n")), SMALL)
    above = head_height(drawing, entries, width + left + right - 24)
    margins = Margins(left, right, above, foot_height(drawing, width / drawing.steps))
    return canvas.sheet(margins, width, plot_height, drawing.steps, top(drawing))


def facts(drawing: Drawing) -> list[tuple[str, str]]:
    """The lines under the title, each with its colour."""
    planned, bound, capacity = drawing.planned, drawing.lower_bound, drawing.problem.capacity
    proof = "proven optimal for this order" if drawing.ops else "proven optimal"
    gap = proof if planned == bound else f"gap {human(planned - bound)}"
    if bound and planned != bound:
        gap += f" = {(planned - bound) / bound:.2%}"
    lines = [(f"{planned_words(drawing)} {human(planned)}  ·  lower bound {human(bound)}  ·  {gap}", INK)]
    if bound > drawing.peak and len(drawing.problem):
        lines.append((f"no placement is as low as the {human(drawing.peak)} that are alive at most", MUTED))
    if drawing.basis:
        lines.append((drawing.basis, INK))
    if drawing.declared:
        lines.append((f"arena {human(drawing.declared)} for the unmodified file", INK))
    if capacity is not None and drawing.room is not None:
        verdict = f"{human(drawing.excess)} too much" if drawing.excess else f"{human(drawing.room - planned)} to spare"
        kept = f", {human(drawing.kept)} of it kept by the runtime" if drawing.kept else ""
        lines.append((f"capacity {human(capacity)}{kept}  ·  {verdict}", WARNING if drawing.excess else INK))
    if drawing.banks:
        lines.append((f"buffers in {held_banks(drawing):,} of {len(drawing.banks):,} banks", INK))
    return lines


def planned_words(drawing: Drawing) -> str:
    """What the bytes of a drawing are: the activations of models, or buffers of a problem without one."""
    return "planned activations" if drawing.ops or drawing.models else "planned"


def held_banks(drawing: Drawing) -> int:
    """How many banks hold a byte of a buffer at some time."""
    low, high = drawing.placement.offsets, drawing.placement.offsets + drawing.problem.size
    ends = [*(start for _, start in drawing.banks[1:]), math.inf]
    return sum(bool(((low < end) & (high > start)).any()) for (_, start), end in zip(drawing.banks, ends, strict=True))


def head(sheet: Sheet, drawing: Drawing, what: str, entries: Sequence[Entry]) -> None:
    """Title, facts and legend above the plot."""
    suffix = f"   {what}, {counted(len(drawing.problem), 'buffer')}, {counted(drawing.steps, 'step')}"
    y, room = sheet.head(drawing.title, suffix)
    for text, colour in facts(drawing):
        y -= _ROW
        sheet.write(_EDGE, y, lettering.folded(text, room, BODY), BODY, color=colour, va="baseline")
    draw_legend(sheet, y - 4, legend_rows(entries, room))


def kind_entry(drawing: Drawing, kind: int) -> Entry:
    """The legend line of a kind of buffer."""
    label = lettering.folded(lettering.drawable(drawing.labels[kind]), _LONGEST_OP, SMALL)
    text = _MEANINGS.get(label, label) if drawing.labels is KINDS else label
    return Entry(text, {"facecolor": fill(drawing, kind), "edgecolor": MUTED, "linewidth": 0.4})


def fill(drawing: Drawing, kind: int) -> str:
    """The colour of a kind of buffer; of several models each has its own, as long as there are enough."""
    if drawing.labels is KINDS:
        return COLOURS[KINDS[kind]]
    shared = len(drawing.labels) - len(_BEHIND_MODELS)
    return _BEHIND_MODELS[kind - shared] if kind >= shared else _OF_MODELS[kind % len(_OF_MODELS)]


def legend_rows(entries: Sequence[Entry], room: float) -> list[list[tuple[float, Entry]]]:
    """The entries with their x, broken into rows of at most `room` points."""
    rows: list[list[tuple[float, Entry]]] = []
    x = 0.0
    for entry in entries:
        needed = 14 + lettering.width(entry.text, SMALL) + 14
        if not rows or x + needed > room:
            rows.append([])
            x = 0.0
        rows[-1].append((x, entry))
        x += needed
    return rows


def draw_legend(sheet: Sheet, y: float, rows: Sequence[Sequence[tuple[float, Entry]]]) -> None:
    """The rows of a legend below the line at `y`, which `legend_rows` made."""
    for row in rows:
        y -= _ROW
        for x, entry in row:
            sheet.swatch(_EDGE + x, y - 1, **entry.style)
            sheet.write(_EDGE + x + 14, y, entry.text, SMALL, va="baseline")


# Steps ---------------------------------------------------------------------------------------------------------------


def step_axis(sheet: Sheet, drawing: Drawing) -> None:
    """Ticks below the plot: each step with its operator where that fits, else every n-th, the peak always."""
    rotation: dict[str, Any] = {}
    if drawing.ops:  # level where every operator has the room, else upright
        ticks = _op_ticks(drawing, sheet.per_step)
        rotation = {} if _is_roomy(ticks, sheet.per_step) else {"rotation": 90}
    else:
        widest = lettering.width(f"{drawing.steps:,}", SMALL, bold=True) + 12
        ticks = [(step, f"{step:,}") for step in _ticked(drawing, sheet.per_step, widest)]
    for step, text in ticks:
        emphasis = {"color": WARNING, "weight": "bold"} if step == drawing.peak_step else {}
        draw_tick(sheet, step, text, **rotation, **emphasis)
    if drawing.models:
        _draw_models(sheet, drawing)
        return
    sheet.write_below("step and operator" if drawing.ops else "step")


def _draw_models(sheet: Sheet, drawing: Drawing) -> None:
    """A line where each model begins, and its name below its steps."""
    ends = [*(start for start, _ in drawing.models[1:]), drawing.steps]
    for (start, name), end in zip(drawing.models, ends, strict=True):
        if start:
            sheet.axes.axvline(start, color=INK, linewidth=0.8, linestyle=(0, (4, 3)), zorder=3.5)
        room = (end - start) * sheet.per_step - 4
        text = lettering.folded(lettering.drawable(name), room, BODY)
        sheet.write(sheet.x((start + end) / 2), _EDGE, text, BODY, ha="center", weight="bold")


def _is_roomy(ticks: Sequence[tuple[int, str]], per_step: float) -> bool:
    """Whether the label of each step is narrower than the step."""
    return all(lettering.width(text, SMALL, bold=True) + 6 <= per_step for _, text in ticks)


def draw_tick(sheet: Sheet, step: int, text: str, **style: Any) -> None:
    """A mark below the middle of a step, with its text."""
    x, y = sheet.x(step + 0.5), sheet.margins.bottom
    sheet.line((x, x), (y - 3, y), color=MUTED, linewidth=0.5)
    sheet.write(x, y - 6, text, SMALL, ha="center", va="top", **style)


def _ticked(drawing: Drawing, per_step: float, apart: float) -> list[int]:
    """Round steps at least `apart` points from each other, and the peak in place of those too close to it."""
    peak = drawing.peak_step
    steps = range(0, drawing.steps, stride(per_step, apart))
    return sorted({peak, *(s for s in steps if abs(s - peak) * per_step >= apart)})


def _op_ticks(drawing: Drawing, per_step: float) -> list[tuple[int, str]]:
    """Steps with the words under them, far enough apart for upright lines."""
    steps = [step for step in _ticked(drawing, per_step, LINE) if step < len(drawing.ops)]
    words = [lettering.drawable(f"{drawing.ops[step]}  {step}") for step in steps]
    return [(step, lettering.folded(text, _LONGEST_OP, SMALL)) for step, text in zip(steps, words, strict=True)]


def stride(pitch: float, apart: float) -> int:
    """The least of 1, 2, 5, 10, 20, 50, ... whose multiples of `pitch` are `apart` or more."""
    scale = 1
    while True:
        for factor in (1, 2, 5):
            if factor * scale * pitch >= apart:
                return factor * scale
        scale *= 10


def round_numbers(least: float, most: float) -> Iterator[float]:
    """Round numbers from `least`, which is at most 0, to `most`, four to ten of them."""
    span = most - least
    step = 10.0 ** math.floor(math.log10(span))
    step = next(step * part for part in (1, 0.5, 0.25, 0.1) if span / (step * part) >= 4)
    return (step * i for i in range(math.ceil(least / step), int(most / step) + 1))


# Bytes ---------------------------------------------------------------------------------------------------------------


def byte_ticks(top: float) -> tuple[list[tuple[int, str]], str]:
    """At most nine round addresses below `top`, a power of two apart, in whole units; and the unit."""
    spacing = 1
    while top / spacing > 9:
        spacing *= 2
    unit, scale = next((u, s) for u, s in _UNITS if spacing >= s)
    return [(at, f"{at // scale:,}") for at in range(0, int(top) + 1, spacing)], unit


def draw_bytes(sheet: Sheet, name: str, end: float = math.inf) -> list[int]:
    """Round addresses up to `end` left of the plot, and what they count; returns the addresses."""
    ticks, unit = byte_ticks(sheet.top)
    shown = [(at, text) for at, text in ticks if at <= end]
    for at, text in shown:
        y, left = sheet.y(at), sheet.margins.left
        sheet.line((left - 3, left), (y, y), color=MUTED, linewidth=0.5)
        sheet.write(left - 5, y, text, SMALL, ha="right")
    sheet.write_beside(f"{name} in {unit}")
    return [at for at, _ in shown]


def draw_live_bytes(sheet: Sheet) -> None:
    """The scale of a memory curve with faint lines across."""
    for at in draw_bytes(sheet, "live bytes"):
        sheet.axes.axhline(at, color=FAINT, linewidth=0.5, zorder=0.2)


_UNITS = (("MiB", 1024**2), ("KiB", 1024), ("B", 1))


def byte_axis(sheet: Sheet, drawing: Drawing, name: str, *, grid: bool = False) -> None:
    """Round addresses left of the plot; nothing above a break of the axis."""
    shown = draw_bytes(sheet, name, tallest(drawing) * 1.03 if is_broken(drawing) else math.inf)
    for at in shown[1:] if grid else ():
        sheet.axes.axhline(at, color=FAINT, linewidth=0.5, zorder=0)
    if is_broken(drawing):
        draw_break(sheet, sheet.margins.left, sheet.y(1.06 * tallest(drawing)))


def draw_break(sheet: Sheet, x: float, y: float) -> None:
    """Two slanted strokes across a vertical line where its scale breaks; both in points."""
    sheet.line((x, x), (y - 2, y + 2), color="white", linewidth=2, zorder=6)
    for shift in (-2, 2):
        sheet.line((x - 4, x + 4), (y + shift - 2, y + shift + 2), color=MUTED, linewidth=0.8, zorder=7)


# Levels and peak -----------------------------------------------------------------------------------------------------


def draw_levels(sheet: Sheet, level_lines: Sequence[Level], zorder: float = 4, apart: float = 0) -> None:
    """Lines across the plot, named at the right without touching each other: `apart` points between two names."""
    for level in level_lines:
        sheet.axes.axhline(level.at, zorder=zorder, **level.style)
    ordered = sorted((level for level in level_lines if level.text), key=lambda level: level.at)
    heights = [LINE * len(level.text.split("\n")) + apart for level in ordered]
    centres = spread([sheet.y(level.at) for level in ordered], heights)
    for level, centre in zip(ordered, centres, strict=True):
        x, y = sheet.right, sheet.y(level.at)
        sheet.line((x, x + 6), (y, centre), color=level.style["color"], linewidth=0.6)
        lines = level.text.split("\n")
        for row, text in enumerate(lines):
            shift = ((len(lines) - 1) / 2 - row) * LINE
            sheet.write(x + 8, centre + shift, text, SMALL, va="center_baseline", color=level.style["color"])


def spread(wanted: Sequence[float], heights: Sequence[float]) -> list[float]:
    """Centres close to the `wanted` ascending ones such that boxes of these heights do not touch.

    Boxes that would touch form a block that is centred on what its boxes wanted.
    """
    blocks: list[tuple[list[int], float]] = []
    for i in range(len(wanted)):
        members, bottom = [i], wanted[i] - heights[i] / 2
        while blocks and blocks[-1][1] + sum(heights[k] for k in blocks[-1][0]) > bottom:
            members = blocks.pop()[0] + members
            bottom = _resting(members, wanted, heights)
        blocks.append((members, bottom))
    centres = [0.0] * len(wanted)
    for members, bottom in blocks:
        for i in members:
            centres[i] = bottom + heights[i] / 2
            bottom += heights[i]
    return centres


def _resting(members: Sequence[int], wanted: Sequence[float], heights: Sequence[float]) -> float:
    """The bottom of a stack whose boxes are on the whole as far above as below where they want to be."""
    below, drift = 0.0, 0.0
    for i in members:
        drift += wanted[i] - (below + heights[i] / 2)
        below += heights[i]
    return drift / len(members)


def peak_marks(drawing: Drawing) -> list[int]:
    """The steps marked as peaks: every tie, of a run of ties the first step, always the peak step."""
    firsts = [first for first, _ in drawing.peak_spans if first != drawing.peak_step]
    return sorted([drawing.peak_step, *firsts[: _MOST_PEAKS - 1]])


def draw_peak(sheet: Sheet, drawing: Drawing) -> None:
    """A line at each step of the peak, and a pointer to it above the plot with the step, its operator and the bytes."""
    if not len(drawing.problem):
        return
    step = drawing.peak_step
    op = f", {drawing.ops[step]}" if step < len(drawing.ops) else ""
    room = sheet.right + sheet.margins.right - 2 * _EDGE
    others = sum(last - first for first, last in drawing.peak_spans) - 1
    ties = f", and at {counted(others, 'other step')}" if others > 0 else ""
    words = f"peak: step {step:,}{op}, {human(drawing.peak)} alive{ties}"
    text = lettering.folded(lettering.drawable(words), room, SMALL)
    half = lettering.width(text, SMALL, bold=True) / 2
    x, y = sheet.x(step + 0.5), sheet.ceiling
    centre = min(max(x, _EDGE + half), _EDGE + room - half)
    sheet.write(centre, y + 11, text, SMALL, ha="center", va="baseline", color=WARNING, weight="bold")
    for at in peak_marks(drawing):
        sheet.axes.axvline(at + 0.5, color=WARNING, linewidth=0.7, linestyle=(0, (1, 2)), zorder=3.5)
        sheet.line((sheet.x(at + 0.5),), (y + 4,), marker="v", markersize=5, color=WARNING, markeredgewidth=0)
    long = [(first, 0, last, sheet.top) for first, last in drawing.peak_spans[:_MOST_PEAKS] if last - first > 1]
    sheet.boxes(long, facecolor=WARNING, alpha=0.07, linewidth=0, zorder=3.4)
