"""The front of recomputation as a figure: bytes that never change, texts that touch neither each other nor a mark."""

from __future__ import annotations

from typing import Any

import pytest

from modelplan.outputs.figures import canvas, front_chart, lettering
from modelplan.outputs.figures.canvas import LINE, SMALL, Sheet
from modelplan.outputs.figures.front_chart import Front, FrontMark

RUNGS = (
    FrontMark(82_304, 0, 31, "as is"),
    FrontMark(82_304, 0, 31, "views"),
    FrontMark(48_112, 990, 28, "split", chosen=True),
)
PLANS = (
    FrontMark(50_000, 200, 58),
    FrontMark(48_112, 990, 28),
)
FRONT = Front("model <&>.tflite", 10_000, RUNGS, PLANS, "modelplan")


@pytest.mark.parametrize(("kind", "first"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_the_same_front_gives_the_same_bytes(kind: str, first: bytes) -> None:
    once, again = (canvas.saved(front_chart.draw, FRONT, [kind]) for _ in range(2))
    assert once == again
    assert once[0].startswith(first)


def written(front: Front, monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, float, str]]:
    """Left side, height and words of the small texts of a chart."""
    found: list[tuple[float, float, str]] = []
    write = Sheet.write

    def note(sheet: Sheet, x: float, y: float, text: str, size: float = SMALL, **style: Any) -> None:
        if size == SMALL and "ha" not in style:
            found.append((x, y, text))
        write(sheet, x, y, text, size, **style)

    monkeypatch.setattr(Sheet, "write", note)
    canvas.saved(front_chart.draw, front, ["png"])
    return found


def test_rungs_have_names_and_plans_their_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = written(FRONT, monkeypatch)
    assert {"as is, views, 31 operators", "split, 28 operators", "58"} <= {text for *_, text in texts}
    line = LINE
    for i, (x, y, text) in enumerate(texts):
        for other_x, other_y, other in texts[:i]:
            beside = x + lettering.width(text, SMALL) <= other_x or other_x + lettering.width(other, SMALL) <= x
            assert beside or abs(y - other_y) >= line - 0.01


def test_a_ladder_without_stripes_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Front("model", 0, RUNGS[:1], (), "modelplan")
    assert [text for *_, text in written(plain, monkeypatch)] == ["as is, 31 operators"]


def test_less_work_than_the_models_stands_left_of_nought(monkeypatch: pytest.MonkeyPatch) -> None:
    less = FrontMark(30_000, -2_600, 75, "split", chosen=True)
    texts = written(Front("model", 10_000, (*RUNGS[:2], less), (less,), "modelplan"), monkeypatch)
    places = {text.partition(",")[0]: x for x, _, text in texts}
    assert places["split"] < places["as is"] - 200


def test_a_front_of_one_plan_says_that_nothing_lowers_it(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    write = Sheet.write

    def note(sheet: Sheet, x: float, y: float, text: str, *more: Any, **style: Any) -> None:
        texts.append(text)
        write(sheet, x, y, text, *more, **style)

    monkeypatch.setattr(Sheet, "write", note)
    front = Front("model", 10, (FrontMark(64, 0, 3, "as it is"),), (FrontMark(64, 0, 3),), "m")
    canvas.saved(front_chart.draw, front, ["png"])
    assert "1 plan  ·  least arena 64 B  ·  no repetition within the limits lowers it" in texts
