"""Steps and addresses that are read off a picture, by its ticks, are those of the JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from browser import opened_browser, require_browser
from commands import run
from matplotlib.lines import Line2D

from modelplan.answers.drawing import of_plan, of_shared
from modelplan.answers.region_layout import region_heights
from modelplan.outputs.figures import (
    canvas,
    field_chart,
    lifetime_chart,
    memory_curve,
    memory_map,
    moves_map,
    order_chart,
    region_map,
    reuse_chart,
)
from modelplan.outputs.figures.canvas import Sheet
from modelplan.outputs.reports import comparison_report
from modelplan.primitives.units import human
from modelplan.questions.analyzing import AnalyzeRequest, analyze
from modelplan.questions.comparing_allocators import CompareRequest, compare
from modelplan.questions.memories.region_requests import MemoriesRequest, SpillRequest, place_in_memories, spill
from modelplan.questions.model_request import ModelRequest
from modelplan.questions.together.parts import ShareRequest
from modelplan.questions.together.shared_memory import share_memory
from modelplan.targets.stated_regions import parse_region

#: Models that nothing was tuned for.
MODELS = ["tflite/str_ww_ref_model", "tflite/mcu/kws_micronet_l", "tflite/vww_96_int8", "camera/fomo_face_detection"]
MOST = 10
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}

Rows = npt.NDArray[np.float64]


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest, corpus: Path) -> Path:
    return corpus / f"{request.param}.tflite"


def rectangles(sheet: Sheet) -> Rows:
    """All rectangles of the plot as (left, bottom, right, top), in points of the sheet."""
    rows = [
        np.asarray(patch.get_path().vertices).reshape(-1, 5, 2)[:, [0, 2]].reshape(-1, 4)
        for patch in sheet.axes.patches
    ]
    found = np.concatenate(rows)
    scale, shift = [sheet.per_step, sheet.per_unit] * 2, [sheet.margins.left, sheet.margins.bottom] * 2
    return np.asarray(found * scale + shift, dtype=np.float64)


def texts(sheet: Sheet) -> Iterator[tuple[float, float, str]]:
    """What is written where, in points of the sheet."""
    for text in sheet.figure.texts:
        yield (*text.get_position(), text.get_text())


def lines(sheet: Sheet) -> list[Line2D]:
    """The lines that are drawn in points of the sheet."""
    return [one for one in sheet.figure.get_children() if isinstance(one, Line2D)]


def address_of(sheet: Sheet, height: float) -> float:
    """The address at a height, between the nearest ticks of an axis of round numbers."""
    unit = next(UNITS[word] for _, _, text in texts(sheet) if (word := text.rpartition(" in ")[2]) in UNITS)
    left = sheet.margins.left
    ticks = sorted((y, float(text.replace(",", "")) * unit) for x, y, text in texts(sheet)
                   if left - 8 < x < left and re.fullmatch(r"[\d,.]+", text))  # fmt: skip
    (y0, a0), (y1, a1) = ticks[0], ticks[-1]
    return a0 + (height - y0) * (a1 - a0) / (y1 - y0)


def check_read(sheet: Sheet, buffers: Sequence[tuple[int, int, int, int]]) -> None:
    """Checks that the largest of the buffers (start, end, offset, size) can be read off a map."""
    boxes, pixel = rectangles(sheet), 1 / sheet.per_unit
    for start, end, offset, size in sorted(buffers, key=lambda row: -row[3])[:MOST]:
        here = boxes[np.isclose(boxes[:, 0], sheet.x(start)) & np.isclose(boxes[:, 2], sheet.x(end))]
        read = [(address_of(sheet, low), address_of(sheet, high)) for _, low, _, high in here]
        near = [abs(low - offset) + abs(high - offset - size) for low, high in read]
        assert min(near, default=np.inf) <= pixel, (start, end, offset, size)


def plan_rows(document: dict[str, Any]) -> list[tuple[int, int, int, int]]:
    problem, offsets = document["plan"]["problem"], document["plan"]["placement"]["offsets"]
    return list(zip(problem["start"], problem["end"], offsets, problem["size"], strict=True))


@pytest.mark.slow
def test_the_map_and_the_lifetimes_of_a_plan(model: Path) -> None:
    document = json.loads(run("analyze", model, "--json", "-").stdout)
    drawing = of_plan(analyze(AnalyzeRequest(str(model))).plan)
    with canvas.style():
        check_read(memory_map.draw(drawing), plan_rows(document))
        sheet = lifetime_chart.draw(drawing)
        spans = {(round(a, 3), round(b, 3)) for a, _, b, _ in rectangles(sheet)}
    for start, end, _, size in sorted(plan_rows(document), key=lambda row: -row[3])[:MOST]:
        assert (round(sheet.x(start), 3), round(sheet.x(end), 3)) in spans, size


@pytest.mark.slow
def test_the_map_of_several_models(corpus: Path) -> None:
    paths = {Path(name).name: str(corpus / f"{name}.tflite") for name in MODELS[:3]}
    words = [*paths.values(), "--in-turn", ",".join([*paths][:2]), "--json", "-"]
    document = json.loads(run("together", *words).stdout)
    rows = [
        (one["first_step"] + b["start"], one["first_step"] + b["end"], b["offset"], b["size"])
        for one in document["models"]
        for b in one["buffers"]
    ]
    plan = share_memory(ShareRequest(paths, in_turn=[[*paths][:2]]))
    with canvas.style():
        check_read(memory_map.draw(of_shared(plan)), rows)


REGIONS = ("sram:192KiB@0x20000000", "psram:8MiB@0x3c000000,read=80MB/s,write=40MB/s",
           "flash:4MiB@0x08000000,read=50MB/s")  # fmt: skip


@pytest.mark.slow
def test_the_map_of_several_memories(model: Path) -> None:
    words = [word for region in REGIONS for word in ("--region", region)]
    document = json.loads(run("memories", model, *words, "--json", "-").stdout)
    plan = place_in_memories(MemoriesRequest((ModelRequest(str(model)),), tuple(map(parse_region, REGIONS))))
    with canvas.style():
        sheet = region_map.draw(plan)
    boxes = rectangles(sheet)
    ticks = sorted((y, int(text, 16)) for x, y, text in texts(sheet) if text.startswith("0x"))
    bases = [region["base"] for region in document["regions"]]
    for stay in sorted(document["stays"], key=lambda one: -one["size"])[:MOST]:
        address = bases[stay["region"]] + stay["offset"]
        (y0, a0), (y1, a1) = next(
            ends for ends in pairwise(ticks) if ends[0][1] <= address and address + stay["size"] <= ends[1][1]
        )
        per_byte = (y1 - y0) / (a1 - a0)
        low, high = (y0 + (a - a0) * per_byte for a in (address, address + stay["size"]))
        there = np.abs(boxes[:, 1] - low) + np.abs(boxes[:, 3] - high) <= 1
        there &= np.isclose(boxes[:, 0], sheet.x(stay["start"])) & np.isclose(boxes[:, 2], sheet.x(stay["end"]))
        assert there.any(), stay


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS[:2])
def test_the_map_of_contents_that_move(name: str, corpus: Path) -> None:
    path = corpus / f"{name}.tflite"
    regions = "sram:128KiB,rate=400MB/s", "psram:8MiB,read=80MB/s,write=40MB/s", "flash:4MiB,read=50MB/s"
    words = [word for region in regions for word in ("--region", region)]
    document = json.loads(run("spill", path, *words, "--json", "-").stdout)
    plan = spill(SpillRequest(str(path), regions=tuple(map(parse_region, regions))))
    with canvas.style():
        sheet = moves_map.draw(plan)
    boxes = rectangles(sheet)
    marks = sorted((y, text) for x, y, text in texts(sheet) if x > sheet.right)
    scales = [(low, high, size_of(text)) for (low, zero), (high, text) in pairwise(marks) if zero == "0"][::-1]
    drawn = [number for number, height in enumerate(region_heights(plan.problem, plan.layout)) if height]
    sizes = plan.problem.problem.size.tolist()
    for stay in sorted(document["stays"], key=lambda one: -sizes[one["buffer"]])[:MOST]:
        low, high, top = scales[drawn.index(stay["region"])]
        ends = (low + at * (high - low) / top for at in (stay["offset"], stay["offset"] + sizes[stay["buffer"]]))
        bottom, ceiling = ends
        there = np.abs(boxes[:, 1] - bottom) + np.abs(boxes[:, 3] - ceiling) <= 2
        there &= np.isclose(boxes[:, 0], sheet.x(stay["start"])) & np.isclose(boxes[:, 2], sheet.x(stay["end"]))
        assert there.any(), stay


def live_bytes(document: dict[str, Any]) -> list[int]:
    """The bytes alive at each step."""
    rows = plan_rows(document)
    return [sum(size for start, end, _, size in rows if start <= step < end)
            for step in range(max(end for _, end, *_ in rows))]  # fmt: skip


def heights_at(line: Rows, steps: Sequence[int]) -> list[float]:
    """How high a curve of steps, of (left, height), is in the middle of each step."""
    return [float(line[np.searchsorted(line[:, 0], step + 0.5, side="right") - 1, 1]) for step in steps]


def highest(live: Sequence[int]) -> list[int]:
    """The steps at which most is alive."""
    return sorted(range(len(live)), key=lambda step: -live[step])[:MOST]


def on_sheet(sheet: Sheet, values: Any) -> Rows:
    """Points of the plot, as matplotlib puts them, in points of the sheet."""
    found = sheet.axes.transData.transform(np.asarray(values, dtype=np.float64)) * 72 / sheet.figure.dpi
    return np.asarray(found, dtype=np.float64)


@pytest.mark.slow
def test_the_memory_curve(model: Path) -> None:
    document = json.loads(run("analyze", model, "--json", "-").stdout)
    drawing = of_plan(analyze(AnalyzeRequest(str(model))).plan)
    with canvas.style():
        sheet = memory_curve.draw(drawing)
    line = next(one for one in sheet.axes.lines if one.get_drawstyle() == "steps-post")
    points, live = on_sheet(sheet, line.get_xydata()), live_bytes(document)
    lefts = points.copy()
    lefts[:, 0] = np.asarray(line.get_xdata())
    for step, height in zip(highest(live), heights_at(lefts, highest(live)), strict=True):
        assert abs(address_of(sheet, height) - live[step]) <= 1 / sheet.per_unit, step
        named = [
            text for x, y, text in texts(sheet) if near(x, sheet.x(step + 0.5)) and near(y, sheet.margins.bottom - 6)
        ]
        assert all(re.search(rf"(^|\D){step:,}(\D|$)", text) for text in named), (step, named)


def near(a: float, b: float) -> bool:
    """Whether two places are the same."""
    return bool(np.isclose(a, b))


@pytest.mark.slow
def test_the_order_chart(corpus: Path) -> None:
    """The curve of this order, and from which step of the file each operator comes."""
    for name in ("tflite/person_detect", "tflite/mcu/kws_micronet_l"):
        path = corpus / f"{name}.tflite"
        document = json.loads(run("analyze", path, "--json", "-").stdout)
        plan = analyze(AnalyzeRequest(str(path))).plan
        with canvas.style():
            sheet = order_chart.draw(order_chart.of_plan(plan))
        live, order = live_bytes(document), document["plan"]["schedule"]["order"]
        _, after, _ = (patch for patch in sheet.axes.patches if hasattr(patch, "get_data"))
        for step in highest(live):
            ((x, y),) = on_sheet(sheet, [(step + 0.5, after.get_data().values[step])])
            assert np.isclose(x, sheet.x(step + 0.5), atol=0.01)
            assert abs(address_of(sheet, y) - live[step]) <= 1 / sheet.per_unit, step
        drawn = [(np.asarray(line.get_xdata()), np.asarray(line.get_ydata())) for line in lines(sheet)]
        ends = {(round(x[0], 3), round(x[1], 3)) for x, y in drawn if len(x) == 2 and y[0] - y[1] > 100}
        if order == sorted(order):
            assert any("no operator moved" in text for _, _, text in texts(sheet))
            continue
        for step, op in list(enumerate(order))[:: max(len(order) // MOST, 1)]:
            assert (round(sheet.x(op + 0.5), 3), round(sheet.x(step + 0.5), 3)) in ends, step


@pytest.mark.slow
def test_every_buffer_alone_and_the_plan(model: Path) -> None:
    document = json.loads(run("analyze", model, "--json", "-").stdout)
    drawing = of_plan(analyze(AnalyzeRequest(str(model))).plan)
    with canvas.style():
        sheet = reuse_chart.draw(drawing)
    boxes, rows, pixel = rectangles(sheet), plan_rows(document), 1 / sheet.per_unit
    middles = sorted(x for x, _, text in texts(sheet) if text == "step")
    shift = (middles[1] - middles[0]) / sheet.per_step
    for start, end, offset, size in sorted(rows, key=lambda row: -row[3])[:MOST]:
        right = np.isclose(boxes[:, 0], sheet.x(start + shift)) & np.isclose(boxes[:, 2], sheet.x(end + shift))
        read = [(address_of(sheet, low), address_of(sheet, high)) for _, low, _, high in boxes[right]]
        assert min(abs(low - offset) + abs(high - offset - size) for low, high in read) <= pixel, size
        left = np.isclose(boxes[:, 0], sheet.x(start)) & np.isclose(boxes[:, 2], sheet.x(end))
        heights = [address_of(sheet, high) - address_of(sheet, low) for _, low, _, high in boxes[left]]
        assert min(abs(height - size) for height in heights) <= pixel, size
    whole = sum(row[3] for row in rows)
    assert max(address_of(sheet, high) for *_, high in boxes) == pytest.approx(whole, abs=pixel)


@pytest.mark.slow
def test_the_chart_of_allocators(model: Path) -> None:
    answers = compare(CompareRequest(str(model), seconds=0.2))
    document = json.loads(comparison_report.as_json(answers))
    with canvas.style():
        sheet = field_chart.draw(answers.comparison.field)
    times = sorted((x, microseconds(text)) for x, y, text in texts(sheet) if np.isclose(y, sheet.margins.bottom - 11))
    shares = sorted((y, float(text.replace(",", "").rstrip(" %"))) for x, y, text in texts(sheet)
                    if np.isclose(x, sheet.margins.left - 5) and text.endswith("%"))  # fmt: skip
    (zero,) = (y for x, y, text in texts(sheet) if np.isclose(x, sheet.margins.left - 5) and text == "0")
    drawn = [(np.asarray(line.get_xdata()), np.asarray(line.get_ydata())) for line in lines(sheet)
             if line.get_marker() == "o"]  # fmt: skip
    dots = [(float(x[0]), float(y[0])) for x, y in drawn]
    placed = [row for row in document["rows"] if row["height"] is not None]
    for row in placed[:: max(len(placed) // MOST, 1)]:
        excess = 100 * (row["height"] / document["lower_bound"] - 1)
        x = between(times, max(row["microseconds"], 1))
        y = zero if excess <= 0 else between(shares, max(excess, shares[0][1]))
        assert any(abs(a - x) + abs(b - y) < 0.5 for a, b in dots), row


def between(ticks: Sequence[tuple[float, float]], value: float) -> float:
    """Where a value stands on a logarithmic axis, by its first and its last tick."""
    (a, low), (b, high) = ticks[0], ticks[-1]
    return float(a + (b - a) * np.log(value / low) / np.log(high / low)) if high > low else a


def microseconds(text: str) -> float:
    """A time such as 10 ms."""
    number, unit = text.split()
    return float(number.replace(",", "")) * {"s": 1e6, "ms": 1e3, "us": 1.0, "µs": 1.0}[unit]


@pytest.mark.slow
def test_the_page(model: Path, tmp_path: Path) -> None:
    """A click where a buffer is, by the JSON, tells its bytes, its addresses and its steps."""
    require_browser()
    path = tmp_path / "page.html"
    done = run("analyze", model, "--draw", path, "--json", tmp_path / "plan.json")
    assert done.returncode == 0, done.stderr
    rows = plan_rows(json.loads((tmp_path / "plan.json").read_text()))
    with opened_browser() as browser:
        browser.open(path)
        browser.run("chart.fit ? chart.fit() : null")
        read = 0
        for start, end, offset, size in sorted(rows, key=lambda row: -row[3])[:MOST]:
            others = [row for row in rows if row != (start, end, offset, size)]
            middle = offset + size // 2
            covered = {step for a, b, low, length in others if low <= middle < low + length for step in range(a, b)}
            alone = [step for step in range(start, end) if step not in covered]
            if not alone:
                continue
            x, y = browser.run(
                "const f = chart.frame, w = chart.window;"
                "return [f.left + (arguments[0] - w.x0) / (w.x1 - w.x0) * f.width,"
                " f.top + (w.y1 - arguments[1]) / (w.y1 - w.y0) * f.height]",
                alone[len(alone) // 2] + 0.5, offset + size / 2,
            )  # fmt: skip
            browser.point(x, y, click=True)
            told = dict(zip(browser.texts("#details dt"), browser.texts("#details dd"), strict=True))
            assert human(size) == told["bytes"]
            assert told["address"] == f"{offset:,} to {offset + size:,}"
            assert told["alive"] == f"steps {start:,} to {end - 1:,}"
            read += 1
        assert read >= min(MOST, len(rows)) // 2
        assert browser.complaints() == []


def size_of(text: str) -> float:
    """The bytes of a rounded figure."""
    number, unit = text.split()
    return float(number.replace(",", "")) * UNITS[unit]
