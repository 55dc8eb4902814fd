"""The ladder of `fit` as a figure: bars of the right lengths, lines at budget and bound, the chosen rung marked."""

from __future__ import annotations

import pytest
from sheets import texts_and_boxes

from modelplan.outputs.figures import canvas, ladder_chart
from modelplan.outputs.figures.ladder_chart import LadderChart, RungBar

BARS = (
    RungBar("as is", 82_304, 55_296, 26_996, "no extra work", chosen=False),
    RungBar("split", 47_360, 15_680, 31_680, "+9.9 % MACs, 1.08 x the time", chosen=True),
)
CHART = LadderChart("model <&>.tflite", BARS, 48_000, 40_000, "modelplan")


@pytest.mark.parametrize(("kind", "first"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_the_same_ladder_gives_the_same_bytes(kind: str, first: bytes) -> None:
    once, again = (canvas.saved(ladder_chart.draw, CHART, [kind]) for _ in range(2))
    assert once == again
    assert once[0].startswith(first)


def test_each_rung_has_its_head_its_tail_and_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    texts, bars = texts_and_boxes(ladder_chart.draw, CHART, monkeypatch)
    spans = [(left, right) for left, _, right, _ in bars]
    assert {(0, 55_296), (82_304 - 26_996, 82_304), (0, 15_680), (47_360 - 31_680, 47_360), (0, 47_360)} == set(spans)
    assert {"as is", "split", "82,304 B   no extra work", "47,360 B   +9.9 % MACs, 1.08 x the time"} <= set(texts)
    assert "arena 46.25 KiB (47,360 B) instead of 80.38 KiB (82,304 B)" in texts
    assert {"budget: 46.88 KiB (48,000 B)", "no plan of stripes needs less: 39.06 KiB (40,000 B)"} <= set(texts)


def test_where_nothing_fits_the_chart_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    texts, bars = texts_and_boxes(ladder_chart.draw, LadderChart("m", BARS[:1], 1024, 0, "modelplan"), monkeypatch)
    assert "nothing fits" in texts
    assert len(bars) == 2
    assert not any("no plan of stripes" in text for text in texts)
