"""The chart of the field: no text touches another, every allocator is listed, the same field gives the same bytes."""

from __future__ import annotations

import random
from itertools import combinations
from xml.etree import ElementTree

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from sheets import texts_and_boxes

from modelplan.answers.placement_answers import Field, Mark
from modelplan.outputs.figures import canvas, field_chart
from modelplan.outputs.figures.field_chart import COLOURS


def crowd(count: int) -> Field:
    """Many answers close to each other, some equal in height and time."""
    draw = random.Random(count)
    marks = [
        Mark(f"allocator-{i}", draw.choice(list(COLOURS)), draw.choice([1000, 1007, 1300, 5000]), draw.randint(90, 120))
        for i in range(count)
    ]
    ranked = tuple(sorted(marks, key=lambda mark: (mark.height, mark.microseconds)))
    return Field("crowd.csv", 12, 1000, ranked, ("cp-sat",), "modelplan")


FIELDS = {
    "forty": crowd(40),
    "seventy": crowd(70),
    "one": crowd(1),
    "none": Field("empty.csv", 0, 0, (), ("glow",), "modelplan"),
    "bound 0": Field("nothing.csv", 2, 0, (Mark("naive", "baseline", 0, 0),), (), "modelplan"),
    "hostile": Field(
        "$x_1$ </title><script>\x07.csv", 1, 8, (Mark("\u4e2d$&<", "exact", 10**15, 10**9),), (), "modelplan"
    ),
}


@pytest.mark.parametrize("name", FIELDS)
def test_no_text_touches_another_or_leaves_the_sheet(name: str) -> None:
    with canvas.style():
        sheet = field_chart.draw(FIELDS[name])
        renderer = FigureCanvasAgg(sheet.figure).get_renderer()  # type: ignore[no-untyped-call]
        boxes = [(t.get_text(), t.get_window_extent(renderer)) for t in sheet.figure.texts if t.get_text()]
    for (one, a), (other, b) in combinations(boxes, 2):
        apart = a.x1 <= b.x0 + 1 or b.x1 <= a.x0 + 1 or a.y1 <= b.y0 + 1 or b.y1 <= a.y0 + 1
        assert apart, f"{one!r} and {other!r} overlap"
    for text, box in boxes:
        assert box.x0 >= 0, text
        assert box.y0 >= 0, text
        assert box.x1 <= sheet.figure.bbox.x1, text
        assert box.y1 <= sheet.figure.bbox.y1, text


@pytest.mark.slow
@pytest.mark.parametrize("name", FIELDS)
def test_every_allocator_is_listed_and_the_bytes_repeat(name: str) -> None:
    field = FIELDS[name]
    first = canvas.saved(field_chart.draw, field, ["svg"])[0]
    assert first == canvas.saved(field_chart.draw, field, ["svg"])[0]
    assert ElementTree.fromstring(first).tag.endswith("svg")
    with canvas.style():
        texts = [t.get_text() for t in field_chart.draw(field).figure.texts]
    assert texts.count("refused") == len(field.refused)
    assert {t for t in texts if t.startswith("allocator-")} == {m.name for m in field.marks if m.name.startswith("all")}


def test_ties_share_a_row_and_borrowed_heights_stand_apart() -> None:
    marks = (
        Mark("a", "exact", 10, 900), Mark("b", "search", 10, 5), Mark("c", "search", 10, 7, found_by="b"),
        Mark("d", "offsets", 20, 5),
    )  # fmt: skip
    found = field_chart.ties(Field("", 1, 10, marks, (), ""))
    assert [[m.name for line in tie.lines for m in line] for tie in found] == [["a", "b"], ["c"], ["d"]]
    assert [tie.time for tie in found] == ["5 us to 900 us", "7 us", "5 us"]
    with canvas.style():
        texts = [t.get_text() for t in field_chart.draw(crowd(40)).figure.texts]
    assert sum(text[1:2] == "." and len(text) == 6 for text in texts) == len(field_chart.ties(crowd(40)))


def test_the_unbeaten_fall_from_fast_to_low() -> None:
    marks = (
        Mark("low", "exact", 10, 900), Mark("even", "search", 10, 950), Mark("fast", "offsets", 20, 5),
        Mark("slow", "offsets", 20, 6), Mark("bad", "baseline", 30, 7),
    )  # fmt: skip
    assert [m.name for m in Field("", 1, 10, marks, (), "").unbeaten()] == ["fast", "low"]


def test_a_height_a_little_above_the_bound_does_not_read_as_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    heights = (3_030_937_746, 3_030_940_307, 3_031_089_086, 3_100_000_000)
    marks = tuple(Mark(f"a{i}", "offsets", height, 10) for i, height in enumerate(heights))
    texts, _ = texts_and_boxes(field_chart.draw, Field("G.csv", 816, heights[0], marks, (), "modelplan"), monkeypatch)
    assert [text for text in texts if text.startswith("1.0")] == ["1.0000", "1.0000008", "1.00005", "1.0228"]
