"""The order chart shows both curves, every operator once, and the same bytes for the same plan."""

from __future__ import annotations

from itertools import combinations

import graphs
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.lines import Line2D

from modelplan import Options, Plan, plan
from modelplan.outputs import render
from modelplan.outputs.figures import canvas, order_chart
from modelplan.outputs.figures.canvas import WARNING


def planned(schedule: str = "best") -> Plan:
    return plan(graphs.fork(), Options(runtime="generic", schedule=schedule))


def test_the_figures_come_from_the_plan_alone() -> None:
    drawing = order_chart.of_plan(planned())
    assert (drawing.peak_before, drawing.peak_after, drawing.lower_bound) == (336, 192, 192)
    assert len(drawing.moved) == 1
    assert drawing.before.tolist() == [176, 336, 336, 192, 48]


def test_file_order_moves_nothing() -> None:
    drawing = order_chart.of_plan(planned("file"))
    assert drawing.moved == frozenset()
    assert drawing.before.tolist() == drawing.after.tolist()


def test_every_operator_is_a_line_and_no_text_touches_another() -> None:
    with canvas.style():
        sheet = order_chart.draw(order_chart.of_plan(planned()))
        renderer = FigureCanvasAgg(sheet.figure).get_renderer()  # type: ignore[no-untyped-call]
        boxes = [text.get_window_extent(renderer) for text in sheet.figure.texts if text.get_text()]
        lines = [artist for artist in sheet.figure.artists if isinstance(artist, Line2D)]
    colours = [line.get_color() for line in lines]
    assert (colours.count(WARNING), colours.count("#b9b9b9")) == (1, 4)
    assert {"0", "1", "2", "3", "4", "step"} <= {text.get_text() for text in sheet.figure.texts}
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))


def test_the_same_plan_gives_the_same_bytes() -> None:
    made = planned()
    for suffix in (".order.svg", ".order.png"):
        assert render(made, suffix) == render(planned(), suffix)
