"""Every allocator's height beside two maps: bars as high as said, what is above the scale cut and named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from modelplan import Buffer, Placement, Problem
from modelplan.answers import drawing
from modelplan.answers.allocator_field import Field, Mark
from modelplan.outputs.figures import canvas, standing_chart
from modelplan.outputs.figures.canvas import Boxes, Sheet
from modelplan.outputs.figures.standing_chart import Standing

PROBLEM = Problem.of([Buffer("a", 64, 0, 3), Buffer("b", 32, 2, 5), Buffer("c", 64, 4, 8)])
MARKS = (
    Mark("best-fit-size", "offsets", 96, 20),
    Mark("modelplan", "exact", 96, 900),
    Mark("tflm-greedy", "offsets", 128, 10),
    Mark("naive", "baseline", 4096, 5),
)
FIELD = Field("net.tflite", 3, 96, MARKS, (), "modelplan", "3 buffers")
MAPS = tuple(
    (name, drawing.of_problem("net", PROBLEM, Placement(np.array(offsets), lower_bound=96)))
    for name, offsets in (("modelplan", (0, 64, 0)), ("tflm-greedy", (0, 96, 0)))
)


def drawn(monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], list[tuple[float, ...]]]:
    texts: list[str] = []
    bars: list[tuple[float, ...]] = []
    write, boxes = Sheet.write, Sheet.boxes

    def note_text(sheet: Sheet, x: float, y: float, text: str, *size: float, **style: Any) -> None:
        texts.append(text)
        write(sheet, x, y, text, *size, **style)

    def note_boxes(sheet: Sheet, rectangles: Boxes, **style: Any) -> None:
        bars.extend(tuple(map(float, row)) for row in rectangles)
        boxes(sheet, rectangles, **style)

    monkeypatch.setattr(Sheet, "write", note_text)
    monkeypatch.setattr(Sheet, "boxes", note_boxes)
    assert canvas.png(standing_chart.draw, Standing(FIELD, MAPS)).startswith(b"\x89PNG")
    return texts, bars


def test_bars_and_maps_have_one_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    texts, boxes = drawn(monkeypatch)
    top = 1.35 * 128
    assert [box[3] for box in boxes[:3]] == [96, 128, top]
    assert {"modelplan and 1 more", "tflm-greedy", "4.00 KiB  ↑"} <= set(texts)
    assert {"modelplan: 96 B", "tflm-greedy: 128 B"} <= set(texts)
    in_maps = {(low, high) for left, low, right, high in boxes[3:] if right - left > 11}
    assert {(0, 64), (64, 96), (96, 128)} <= in_maps


def test_the_legend_names_what_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    texts, _ = drawn(monkeypatch)
    assert {"modelplan", "offsets", "baseline", "lower bound"} <= set(texts)
    assert "exact" not in texts
