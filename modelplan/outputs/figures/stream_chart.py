"""The time of a run against the memory of the device, one line for each rate of the link."""

from modelplan.answers.moving_layout import StreamCurve
from modelplan.outputs.figures import canvas, lettering
from modelplan.outputs.figures.axes import round_numbers
from modelplan.outputs.figures.canvas import BODY, FAINT, INK, MUTED, SMALL, TITLE, Margins, Sheet
from modelplan.outputs.reports.stream_report import rate_text
from modelplan.primitives.units import brief, milliseconds

_WIDTH, _HEIGHT, _EDGE, _ROW = 560.0, 300.0, 12.0, 14.0
_LINES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")


def draw(curve: StreamCurve) -> Sheet:
    """The chart; must run inside `canvas.style()`."""
    points = [point for _, own in curve.curves for point in own]
    memory, time = max(p.memory for p in points) * 1.02, max(p.seconds for p in points) * 1.08
    least = min(p.memory for p in points)
    first = _floor(memory, least if curve.chosen is None else min(least, curve.chosen))
    left = _EDGE + _ROW + 10 + lettering.width(milliseconds(time), SMALL)
    right = 2 * _EDGE + max(lettering.width(rate_text(rate), SMALL) for rate, _ in curve.curves)
    sheet = canvas.sheet(
        Margins(left, right, 2 * _EDGE + TITLE + 2 * _ROW, 46.0), _WIDTH, _HEIGHT, memory - first, time
    )
    _axes(sheet, first, memory, time)
    ring = curve.chosen is not None and curve.chosen <= memory
    _head(sheet, curve, ring=ring)
    base = sheet.y(curve.computing)
    sheet.line((left, sheet.right), (base, base), color=MUTED, linewidth=0.8, linestyle="--")
    for number, (_, own) in enumerate(curve.curves):
        colour = _LINES[number % len(_LINES)]
        xs, ys = [sheet.x(p.memory - first) for p in own], [sheet.y(p.seconds) for p in own]
        sheet.line(xs, ys, color=colour, linewidth=1.3, marker="o", markersize=3)
    _labels(sheet, curve, first)
    if ring and curve.chosen is not None and curve.simulated is not None:
        x, y = sheet.x(curve.chosen - first), sheet.y(curve.simulated.seconds)
        sheet.line((x,), (y,), marker="o", markersize=7, color="white", markeredgecolor=INK, markeredgewidth=1.4)
    return sheet


def _floor(memory: float, least: float) -> float:
    """The tick of an axis up to `memory` bytes where it begins, so that no part below `least` is empty."""
    scale = _unit(memory)[1]
    return max(value * scale for value in round_numbers(0, memory / scale) if value * scale <= least)


def _unit(memory: float) -> tuple[str, int]:
    """The unit of an axis up to so many bytes, with its bytes."""
    return ("GiB", 2**30) if memory >= 2**31 else ("MiB", 2**20) if memory >= 2**21 else ("KiB", 2**10)


def _labels(sheet: Sheet, curve: StreamCurve, least: float) -> None:
    """The rate of each line at its left end, on its upper side."""
    for number, (rate, own) in enumerate(curve.curves):
        first = own[0]
        y = sheet.y(first.seconds) + 8
        sheet.write(sheet.x(first.memory - least) + 6, y, rate_text(rate), SMALL, color=_LINES[number % len(_LINES)])


def _head(sheet: Sheet, curve: StreamCurve, *, ring: bool) -> None:
    """Title, bytes, and the run in the memory that was asked for: a `ring`, or words where it is off the plot."""
    y = sheet.ceiling + sheet.margins.top - _EDGE - TITLE
    sheet.write(_EDGE, y, curve.title, TITLE, weight="bold", va="baseline")
    facts = f"weights {brief(curve.weights)}, activations {brief(curve.activations)}"
    sheet.write(
        _EDGE, y - _ROW, f"{facts}; dashed: all weights kept, {milliseconds(curve.computing)}", BODY, va="baseline"
    )
    shown = "by the time model"
    if curve.chosen is not None and curve.simulated is not None:
        time = f"in {brief(curve.chosen)} {milliseconds(curve.simulated.seconds)}"
        shown = f"{'ring' if ring else time}: a layout with addresses, replayed"
    sheet.write(_EDGE, y - 2 * _ROW, shown, BODY, color=MUTED, va="baseline")


def _axes(sheet: Sheet, least: float, memory: float, time: float) -> None:
    left, bottom = sheet.margins.left, sheet.margins.bottom
    for value in round_numbers(0, time * 1e3):
        y = sheet.y(value / 1e3)
        sheet.line((left, sheet.right), (y, y), color=FAINT, linewidth=0.5)
        sheet.write(left - 5, y, f"{value:,g} ms", SMALL, ha="right")
    unit, scale = _unit(memory)
    for value in (tick for tick in round_numbers(0, memory / scale) if tick * scale >= least):
        sheet.write(sheet.x(value * scale - least), bottom - 12, f"{value:g} {unit}", SMALL, ha="center")
    sheet.write_below("memory of the device", va="baseline")
    sheet.write_beside("one run")
