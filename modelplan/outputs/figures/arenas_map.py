"""TFLM's two arenas and the model file in their memories: a bar for each memory, with what is in it and what is spare.

sram   [persistent | non-persistent arena      | spare ]     A memory of which little is used is not drawn to scale:
psram  [model file |            7.96 MiB spare          ]    what is used has a part of the bar, and the spare the rest.
"""

from collections.abc import Iterator
from typing import Any

from modelplan.answers.region_layout import free_range
from modelplan.answers.region_plan import RegionPlan, TflmArena
from modelplan.outputs.figures import canvas, lettering
from modelplan.outputs.figures.canvas import BODY, FREE, INK, MUTED, SMALL, TITLE, Margins, Sheet
from modelplan.outputs.figures.region_map import COLOURS
from modelplan.outputs.reports.region_report import duration
from modelplan.primitives.errors import RequestError
from modelplan.primitives.units import brief, human
from modelplan.runtimes.tflm.kernels.own_kernels import library_of
from modelplan.runtimes.tflm.planner import ALIGNMENT
from modelplan.targets.device import Region

#: The parts with their colours, as `RegionPlan.arenas` names them; its one arena is the other way to build firmware.
_FILLS = {"persistent": "#c9d3da", "non-persistent": COLOURS["activation"], "model file": COLOURS["weights"]}
_WORDS = {"persistent": "persistent arena", "non-persistent": "non-persistent arena", "model file": "model file"}
_RESERVED: dict[str, Any] = {"facecolor": "white", "edgecolor": MUTED, "linewidth": 0.4, "hatch": "////"}
_EDGE, _ROW, _WIDTH, _BAR, _GAP = 12.0, 14.0, 760.0, 44.0, 32.0
#: The part of a bar that what is used has at least.
_LEAST = 0.4

Segment = tuple[str, int, dict[str, Any]]


def segments(region_plan: RegionPlan, number: int) -> list[Segment]:
    """What a region holds, from its lower end: words, bytes and style; the bytes are those of the region in all."""
    region = region_plan.problem.regions[number]
    low, high = free_range(region, ALIGNMENT)
    given = [(_WORDS[part.name], part) for part in _parts(region_plan) if part.region == number]
    rows: list[Segment] = [("reserved", low, _RESERVED)]
    for words, part in given:
        rows.append((words, part.nbytes, {"facecolor": _FILLS[part.name], "edgecolor": MUTED, "linewidth": 0.4}))
    spare = high - sum(size for _, size, _ in rows)
    rows.append(("spare", spare, {"facecolor": FREE, "edgecolor": MUTED, "linewidth": 0.4}))
    rows.append(("reserved", region.size - high, _RESERVED))
    return [row for row in rows if row[1]]


def widths(rows: list[Segment]) -> tuple[list[float], bool]:
    """The share of the bar that each segment has, and whether they are to scale."""
    whole = sum(size for _, size, _ in rows)
    spare = sum(size for words, size, _ in rows if words == "spare")
    used = whole - spare
    to_scale = not used or used >= _LEAST * whole
    if to_scale:
        return [size / whole for _, size, _ in rows], True
    scales = {True: (1 - _LEAST) / spare, False: _LEAST / used}
    return [size * scales[words == "spare"] for words, size, _ in rows], False


def draw(plan: RegionPlan) -> Sheet:
    """The bars of the regions that hold one of TFLM's arenas or the model file; must run inside `canvas.style()`.

    Raises:
        RequestError: there are no arenas, or one of them fits in no region.
    """
    parts = _parts(plan)
    numbers = sorted({part.region for part in parts})
    height = len(numbers) * (_BAR + _GAP)
    above = _EDGE + TITLE + (len(parts) + 1) * _ROW + 10
    sheet = canvas.sheet(Margins(_EDGE, _EDGE, above, _EDGE), _WIDTH, height, 1.0, height)
    sheet.axes.spines[["left", "bottom"]].set_visible(False)
    _draw_head(sheet, plan, parts)
    for place, number in enumerate(numbers):
        _draw_bar(sheet, plan.problem.regions[number], segments(plan, number), height - place * (_BAR + _GAP))
    return sheet


def _parts(region_plan: RegionPlan) -> list[TflmArena]:
    parts = [part for part in region_plan.arenas if part.name in _FILLS]
    if not parts:
        raise RequestError("TFLM's arenas are drawn for one .tflite model that TFLM runs")
    missing = [f"{_WORDS[part.name]} ({human(part.nbytes)})" for part in parts if part.region < 0]
    if missing:
        raise RequestError(f"no choice of regions holds all of TFLM's parts: {', '.join(missing)}")
    return parts


def _draw_head(sheet: Sheet, region_plan: RegionPlan, parts: list[TflmArena]) -> None:
    kernels = region_plan.plans[0].runtime.kernels
    words = f"   TFLM with two arenas (MicroAllocator::Create), {library_of(kernels)} kernels"
    y = sheet.head(region_plan.title, words, "", 0.5)[0] - 4
    for part in parts:
        y -= _ROW
        sheet.swatch(_EDGE, y - 1, facecolor=_FILLS[part.name], edgecolor=MUTED, linewidth=0.4)
        time = f"; {duration(part.seconds)} of memory time a run" if part.seconds else ""
        text = f"{_WORDS[part.name]}   {human(part.nbytes)}: {part.holds}{time}"
        sheet.write(_EDGE + 14, y, lettering.folded(text, _WIDTH - 14, SMALL), SMALL, va="baseline")


def _draw_bar(sheet: Sheet, region: Region, rows: list[Segment], top: float) -> None:
    """A memory: a line of figures, and below it the bar with names and bytes where they have room."""
    shares, to_scale = widths(rows)
    spare = sum(size for words, size, _ in rows if words == "spare")
    name = lettering.drawable(region.name)
    y = sheet.y(top) - 18
    scale = "" if to_scale else "  ·  the spare part is not to scale"
    facts = f"  {region.kind}, {brief(region.size)}  ·  {brief(region.size - spare)} taken, {brief(spare)} spare{scale}"
    sheet.write(_EDGE, y, name, BODY, weight="bold", va="baseline")
    sheet.write(_EDGE + lettering.width(name, BODY, bold=True), y, facts, SMALL, color=INK, va="baseline")
    floor, at = top - 24 - _BAR, 0.0
    for (words, size, style), share in zip(rows, shares, strict=True):
        sheet.boxes([(at, floor, at + share, floor + _BAR)], **style, zorder=2, clip_on=False)
        middle = sheet.x(at + share / 2)
        for row, text in enumerate(_lines(words, size, share * _WIDTH - 6)):
            sheet.write(middle, sheet.y(floor + _BAR / 2) + 6 - 12 * row, text, SMALL, ha="center", va="center")
        at += share


def _lines(words: str, size: int, room: float) -> Iterator[str]:
    """The name and the bytes of a segment, as far as they have room."""
    for text in (words, brief(size)):
        if lettering.width(text, SMALL) <= room:
            yield text
