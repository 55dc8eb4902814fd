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
from commands import run

from modelplan.answers.drawing import of_plan, of_shared
from modelplan.outputs.figures import canvas, lifetime_chart, memory_map, moves_map, region_map
from modelplan.outputs.figures.canvas import Sheet
from modelplan.outputs.reports.moves_report import region_heights
from modelplan.questions.analyzing import AnalyzeRequest, analyze
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


def address_of(sheet: Sheet, height: float) -> float:
    """The address at a height, between the nearest ticks of an axis of round numbers."""
    unit = next(
        UNITS[text.rpartition(" in ")[2]] for _, _, text in texts(sheet) if " in " in text and "KiB" not in text[:3]
    )
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
    drawn = [number for number, height in enumerate(region_heights(plan)) if height]
    sizes = plan.problem.problem.size.tolist()
    for stay in sorted(document["stays"], key=lambda one: -sizes[one["buffer"]])[:MOST]:
        low, high, top = scales[drawn.index(stay["region"])]
        ends = (low + at * (high - low) / top for at in (stay["offset"], stay["offset"] + sizes[stay["buffer"]]))
        bottom, ceiling = ends
        there = np.abs(boxes[:, 1] - bottom) + np.abs(boxes[:, 3] - ceiling) <= 2
        there &= np.isclose(boxes[:, 0], sheet.x(stay["start"])) & np.isclose(boxes[:, 2], sheet.x(stay["end"]))
        assert there.any(), stay


def size_of(text: str) -> float:
    """The bytes of a rounded figure."""
    number, unit = text.split()
    return float(number.replace(",", "")) * UNITS[unit]
