"""Every allocator's height beside two maps: bars as high as said, what is above the scale cut and named."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from sheets import texts_and_boxes

from modelplan import Buffer, Placement, Problem
from modelplan.answers import drawing
from modelplan.answers.placement_answers import Field, Mark
from modelplan.outputs.figures import canvas, standing_chart
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


def test_bars_and_maps_have_one_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    texts, boxes = texts_and_boxes(standing_chart.draw, Standing(FIELD, MAPS), monkeypatch)
    top = 1.35 * 128
    assert [box[3] for box in boxes[:3]] == [96, 128, top]
    assert {"modelplan and 1 more", "tflm-greedy", "4.00 KiB  ↑"} <= set(texts)
    assert {"modelplan: 96 B", "tflm-greedy: 128 B"} <= set(texts)
    in_maps = {(low, high) for left, low, right, high in boxes[3:] if right - left > 11}
    assert {(0, 64), (64, 96), (96, 128)} <= in_maps


def test_the_legend_names_what_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    texts, _ = texts_and_boxes(standing_chart.draw, Standing(FIELD, MAPS), monkeypatch)
    assert {"bars", "modelplan", "offsets", "baseline", "lower bound"} <= set(texts)
    assert {"maps", "buffer", "free"} <= set(texts)
    assert "exact" not in texts


def test_the_scale_ends_at_the_highest_bar_where_none_is_cut() -> None:
    with canvas.style():
        sheet = standing_chart.draw(Standing(replace(FIELD, marks=MARKS[:3]), MAPS))
    assert sheet.top == pytest.approx(1.03 * 128)
    names = [text for text in sheet.figure.texts if text.get_text() == "modelplan and 1 more"]
    renderer = FigureCanvasAgg(sheet.figure).get_renderer()  # type: ignore[no-untyped-call]
    assert 0 < names[0].get_window_extent(renderer).y0 < 2 * 24
