"""What a figure writes and the boxes that it draws, read as it is drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from modelplan.outputs.figures import canvas
from modelplan.outputs.figures.canvas import Boxes, Sheet


def texts_and_boxes(
    draw: Callable[..., Any], answer: Any, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[str], list[tuple[float, ...]]]:
    """The texts of a figure of `answer`, and its rectangles in the units of its axes."""
    texts: list[str] = []
    rectangles: list[tuple[float, ...]] = []
    write, boxes = Sheet.write, Sheet.boxes

    def note_text(sheet: Sheet, x: float, y: float, text: str, *size: float, **style: Any) -> None:
        texts.append(text)
        write(sheet, x, y, text, *size, **style)

    def note_boxes(sheet: Sheet, some: Boxes, **style: Any) -> None:
        rectangles.extend(tuple(map(float, row)) for row in some)
        boxes(sheet, some, **style)

    monkeypatch.setattr(Sheet, "write", note_text)
    monkeypatch.setattr(Sheet, "boxes", note_boxes)
    canvas.saved(draw, answer, ["png"])
    return texts, rectangles
