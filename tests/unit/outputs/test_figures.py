"""What the figures promise: every buffer is drawn once, no text touches another, the same plan gives the same bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib import import_module
from itertools import combinations, groupby, pairwise
from types import ModuleType
from xml.etree import ElementTree

import graphs
import numpy as np
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.transforms import Bbox

from modelplan import Kind, Member, Placement, Plan, Problem, RequestError, Runtime, Schedule, place
from modelplan.answers.drawing import KINDS, Drawing, live_by_kind, lost_areas, of_plan, of_problem
from modelplan.model import Buffer, BufferKind
from modelplan.model.bounds import load_bound
from modelplan.outputs import OUTPUTS, outputs_of, render, suffix_of
from modelplan.outputs.figures import axes, canvas, lettering, lifetime_chart, memory_curve, memory_map, reuse_chart
from modelplan.outputs.figures.canvas import WARNING, Sheet
from modelplan.planning import pipeline
from modelplan.primitives.units import brief

FIGURES = [import_module(row.make.partition(":")[0]) for row in OUTPUTS if row.figure and row.of == "Drawing"]
every_figure = pytest.mark.parametrize("figure", FIGURES, ids=lambda f: f.__name__.split(".")[-1])


def random_problem(count: int, steps: int, capacity: int | None = None) -> Problem:
    random = np.random.default_rng(count)
    start = random.integers(0, steps, count)
    return Problem(
        names=tuple(f"model/block_{i}/conv2d_{i}/Relu6;model/norm_{i}" for i in range(count)),
        size=random.integers(0, 5000, count),
        start=start,
        end=np.minimum(start + random.integers(1, 9, count), steps),
        capacity=capacity,
    )


def drawn(problem: Problem, **change: object) -> Drawing:
    return replace(of_problem("a model", problem, place(problem, "tflm-greedy")), **change)  # type: ignore[arg-type]


def with_ops(count: int, steps: int, **facts: int) -> Drawing:
    ops = tuple(
        ("CONV_2D", "ADD", "DEPTHWISE_CONV_2D", "com.example:AVeryLongCustomOperator")[s % 4] for s in range(steps)
    )
    return drawn(random_problem(count, steps, **facts), ops=ops, kinds=np.arange(count) % len(KINDS))


def overlapping(count: int) -> Drawing:
    """A chain in which each buffer may run into the one that it is made from."""
    chain = [(4000 + 7919 * i % 9000, i, i + 2) for i in range(count)]
    facts = np.array([(i + 1, i, min(chain[i + 1][0], chain[i][0])) for i in range(count - 1)])
    problem = graphs.problem(chain, overlaps=facts)
    return replace(of_problem("a chain", problem, place(problem)), ops=("CONV_2D",) * (count + 1))


DRAWINGS: dict[str, Callable[[], Drawing]] = {
    "empty": lambda: drawn(Problem.of([])),
    "one": lambda: drawn(graphs.problem([(7, 0, 1)])),
    "minimalloc": lambda: drawn(graphs.problem([(4, 0, 3), (4, 3, 9), (4, 0, 9), (4, 9, 21), (4, 0, 21)], capacity=12)),
    "roomy": lambda: with_ops(3, 2),
    "ten": lambda: with_ops(10, 6),
    "hundred": lambda: with_ops(100, 60, capacity=9000),
    "rest of one": lambda: with_ops(127, 60),
    "thousand": lambda: with_ops(1000, 700),
    "overflow": lambda: with_ops(60, 30, capacity=15000),
    "spacious": lambda: with_ops(20, 12, capacity=1 << 30),
    "gap": lambda: replace(
        with_ops(40, 20), planned=60000, placement=Placement(np.arange(40) * 1500, lower_bound=58000)
    ),
    "hostile": lambda: drawn(
        Problem(("$x^2$ \x1b[2J\n</script> 漢字 " * 3,), np.array([9]), np.array([0]), np.array([4])), title="$\\frac"
    ),
    "overlaps": lambda: overlapping(14),
    "long title": lambda: replace(with_ops(8, 5), title="model " * 60),
    "long steps": lambda: drawn(graphs.problem([(8, 0, 10**9), (8, 5, 10**12)])),
}


every_drawing = pytest.mark.parametrize("name", DRAWINGS)


@cache
def drawing_of(name: str) -> Drawing:
    return DRAWINGS[name]()


@cache
def sheet_of(figure: ModuleType, name: str) -> Sheet:
    with canvas.style():
        sheet: Sheet = figure.draw(drawing_of(name))
    return sheet


@cache
def text_boxes(figure: ModuleType, name: str) -> list[tuple[str, Bbox]]:
    """Each text with the pixels it covers, measured by the renderer."""
    sheet = sheet_of(figure, name)
    with canvas.style():
        renderer = FigureCanvasAgg(sheet.figure).get_renderer()  # type: ignore[no-untyped-call]
        return [(t.get_text(), t.get_window_extent(renderer)) for t in sheet.figure.texts if t.get_text()]


@every_figure
@every_drawing
def test_no_text_touches_another_or_leaves_the_sheet(figure: ModuleType, name: str) -> None:
    sheet, found = sheet_of(figure, name), text_boxes(figure, name)
    for (one, a), (other, b) in combinations(found, 2):
        apart = a.x1 <= b.x0 + 1 or b.x1 <= a.x0 + 1 or a.y1 <= b.y0 + 1 or b.y1 <= a.y0 + 1
        assert apart, f"{one!r} and {other!r} overlap"
    for text, box in found:
        inside = box.x0 >= 0 and box.y0 >= 0 and box.x1 <= sheet.figure.bbox.x1 and box.y1 <= sheet.figure.bbox.y1
        assert inside, f"{text!r} leaves the sheet"


@pytest.mark.slow
@every_figure
@pytest.mark.parametrize("suffix", ["svg", "png"])
@pytest.mark.parametrize("name", ["empty", "hundred", "hostile"])
def test_same_drawing_same_bytes(figure: ModuleType, suffix: str, name: str) -> None:
    once, again = (canvas.saved(figure.draw, DRAWINGS[name](), [suffix]) for _ in range(2))
    assert once == again


@every_figure
def test_hostile_names_leave_the_svg_well_formed(figure: ModuleType) -> None:
    root = ElementTree.fromstring(canvas.saved(figure.draw, DRAWINGS["hostile"](), ["svg"])[0])
    assert root.tag.endswith("svg")
    assert not list(root.iter("{http://www.w3.org/2000/svg}script"))


@pytest.mark.slow
def test_the_users_matplotlib_configuration_does_not_matter() -> None:
    import matplotlib as mpl

    expected = canvas.saved(memory_map.draw, with_ops(10, 6), ["svg"])[0]
    with mpl.rc_context({"font.size": 33, "axes.facecolor": "black", "savefig.dpi": 20}):
        assert canvas.saved(memory_map.draw, with_ops(10, 6), ["svg"])[0] == expected


@every_figure
@every_drawing
def test_no_text_is_smaller_than_seven_points(figure: ModuleType, name: str) -> None:
    assert all(float(text.get_fontsize()) >= 7 for text in sheet_of(figure, name).figure.texts)


@every_drawing
def test_the_map_has_one_rectangle_for_each_buffer(name: str) -> None:
    sheet, drawing = sheet_of(memory_map, name), drawing_of(name)
    corners = [np.asarray(p.get_path().vertices).reshape(-1, 5, 2) for p in sheet.axes.patches if p.get_zorder() == 2]
    low = np.concatenate([c[:, 0] for c in corners]) if corners else np.empty((0, 2))
    high = np.concatenate([c[:, 2] for c in corners]) if corners else np.empty((0, 2))
    found = sorted(map(tuple, np.hstack([low, high]).tolist()))
    boxes = memory_map.rectangles(drawing)[drawing.problem.size > 0]
    assert found == sorted(map(tuple, boxes.tolist()))


@every_drawing
def test_labels_stay_inside_their_rectangles(name: str) -> None:
    sheet, drawing, written = sheet_of(memory_map, name), drawing_of(name), text_boxes(memory_map, name)
    labels = memory_map.labels(sheet, drawing)
    points = 72 / sheet.figure.dpi
    boxes = memory_map.rectangles(drawing)
    columns, rows = boxes[:, [0, 2]] * sheet.per_step, boxes[:, [1, 3]] * sheet.per_unit
    x, y = sheet.margins.left + columns, sheet.margins.bottom + rows
    for label in labels:
        holder = (x[:, 0] < label.x) & (label.x < x[:, 1]) & (y[:, 0] < label.y) & (label.y < y[:, 1])
        assert holder.sum() == 1
        i = int(np.argmax(holder))
        at_home = Bbox([[x[i, 0] / points, y[i, 0] / points - 1], [x[i, 1] / points, y[i, 1] / points + 1]])
        assert label.name or label.size
        for line in filter(None, (*label.name, label.size)):
            corners = [b.corners() for text, b in written if text == line]
            assert any(all(at_home.contains(*corner) for corner in four) for four in corners)


def test_large_rectangles_carry_their_name_and_size() -> None:
    labels = memory_map.labels(sheet_of(memory_map, "minimalloc"), drawing_of("minimalloc"))
    assert {(label.name, label.size) for label in labels} == {((f"b{i}",), "4 B") for i in range(5)}


def test_a_long_flat_rectangle_has_its_size_beside_its_name() -> None:
    rows = [(100, 0, 30), (3, 0, 30)]
    drawing = of_problem("flat", graphs.problem(rows), Placement(np.array([3, 0]), 103))
    with canvas.style():
        labels = memory_map.labels(memory_map.draw(drawing), drawing)
    assert [(label.name, label.size) for label in labels] == [(("b0",), "100 B"), (("b1   3 B",), "")]


@pytest.mark.slow
def test_the_name_of_a_file_tells_the_figure() -> None:
    assert suffix_of("reports/net.curve.png", "Drawing") == ".curve.png"
    assert suffix_of("net.png", "Drawing") == ".map.png"
    with pytest.raises(RequestError, match=r"net\.jpg: cannot tell .*\.svg, .*\(\.map, "):
        suffix_of("net.jpg", "Drawing")
    with pytest.raises(RequestError, match=r"net.map.png: there is no figure .map of this, expected one of .ladder"):
        suffix_of("net.map.png", "LadderChart")
    drawing = DRAWINGS["ten"]()
    assert render(drawing, ".curve.svg") == canvas.saved(memory_curve.draw, drawing, ["svg"])[0]
    assert render(drawing, ".lifetimes.png")[:4] == b"\x89PNG"


def test_what_exceeds_the_capacity_is_drawn_and_told() -> None:
    problem = replace(graphs.problem([(40, 0, 2), (30, 1, 3), (5, 3, 4)]), capacity=50)
    drawing = of_problem("p", problem, Placement(np.array([0, 40, 0]), lower_bound=70))
    assert memory_map.overflow(drawing).tolist() == [[1, 50, 3, 70]]
    assert drawing.excess == 20
    assert axes.facts(drawing)[1][0] == "capacity 50 B  ·  20 B too much"
    with canvas.style():
        words = {t.get_text() for t in memory_map.draw(drawing).figure.texts}
    assert {"beyond the capacity", "capacity", "50 B"} <= words


def test_banks_are_drawn_where_they_begin_and_those_with_buffers_counted() -> None:
    drawing = of_problem("p", graphs.problem([(40, 0, 2), (30, 1, 3)]), Placement(np.array([0, 40]), lower_bound=70))
    drawing = replace(drawing, banks=(("low", -8), ("mid", 30), ("tiny", 31), ("high", 70), ("beyond", 500)))
    assert axes.held_banks(drawing) == 3
    assert axes.facts(drawing)[1][0] == "buffers in 3 of 5 banks"
    lines = axes.bank_levels(drawing, 400.0)
    assert [(level.at, level.text) for level in lines] == [(0, "low"), (30, "mid"), (31, ""), (70, "high")]
    with canvas.style():
        words = {t.get_text() for t in memory_map.draw(drawing).figure.texts}
    assert {"low", "mid", "high", "buffers in 3 of 5 banks"} <= words


def test_allowed_overlaps_are_striped_and_told() -> None:
    problem = graphs.problem([(8, 0, 2), (8, 1, 3)], overlaps=np.array([(1, 0, 5)]))
    drawing = of_problem("two", problem, Placement(np.array([3, 0]), lower_bound=11))
    pairs, areas = memory_map.common_areas(drawing)
    assert pairs.tolist() == [[1, 0]]
    assert areas.tolist() == [[1, 3, 2, 8]]
    with canvas.style():
        words = {t.get_text() for t in memory_map.draw(drawing).figure.texts}
    assert "written over what is still read" in words
    apart = replace(drawing, placement=Placement(np.array([8, 0]), lower_bound=11))
    assert not len(memory_map.common_areas(apart)[1])


def test_parts_in_the_bytes_of_the_whole_are_dotted_and_leave_its_name_alone() -> None:
    sizes = [(4000, 0, 20), (4000, 10, 20), (8000, 19, 40)]
    meetings = np.array([(0, 2, 0, 0), (1, 2, 4000, 4000)])
    problem = graphs.problem(sizes, meetings=meetings)
    drawing = of_problem("join", problem, Placement(np.array([0, 4000, 0]), lower_bound=8000))
    pairs, areas = memory_map.joined_areas(drawing)
    assert pairs.tolist() == [[0, 2], [1, 2]]
    assert areas.tolist() == [[19, 0, 20, 4000], [19, 4000, 20, 8000]]
    with canvas.style():
        sheet = memory_map.draw(drawing)
        assert "a part in the bytes of the whole" in {t.get_text() for t in sheet.figure.texts}
        names = memory_map.labels(sheet, drawing)
    assert len(names) == 3
    extents = [box for label in names for box in memory_map._extents(label)]
    assert not any(canvas.touch(a, b) for i, a in enumerate(extents) for b in extents[:i])


def test_a_capacity_far_above_is_drawn_out_of_scale() -> None:
    drawing = DRAWINGS["spacious"]()
    assert axes.is_broken(drawing)
    assert not len(memory_map.overflow(drawing))
    [capacity] = [level for level in axes.levels(drawing) if level.text.startswith("capacity")]
    assert axes.tallest(drawing) < capacity.at < axes.top(drawing)
    assert capacity.text.endswith("not to scale")


def test_kinds_come_from_the_graph() -> None:
    graph = graphs.graph(
        "x s -> a : CONV_2D\na -> b : RESHAPE\nb -> c : CONV_2D\nc -> y : CONV_2D",
        dict.fromkeys("xsabcy", 8),
        inputs="x",
        outputs="y",
        kinds={"s": Kind.STATE},
    )
    members = [(0,), (1,), (2, 3), (4,), (5,), ()]
    rows = [Buffer(f"b{i}", 8, 0, 4, members=tuple(map(Member, group))) for i, group in enumerate(members)]
    rows[-1] = replace(rows[-1], kind=BufferKind.SCRATCH)
    problem = Problem.of(rows)
    runtime = Runtime("generic", 1, "tensor", "arena", "naive", "")
    schedule = Schedule((0, 1, 2, 3), 48, 48, "file")
    plan = Plan(graph, schedule, (), problem, place(problem, "naive"), runtime, "naive", "views", "modelplan 1")
    drawing = of_plan(plan)
    assert [KINDS[k] for k in drawing.kinds] == ["input", "state", "shared", "activation", "output", "scratch"]
    assert drawing.ops == ("CONV_2D", "RESHAPE", "CONV_2D", "CONV_2D")
    assert render(plan, ".map.svg") == canvas.saved(memory_map.draw, drawing, ["svg"])[0]


@pytest.mark.slow
@pytest.mark.parametrize("figure", dict.fromkeys(row.suffix for row in outputs_of("Plan").values() if row.figure))
def test_a_figure_drawn_once_gives_the_same_files(figure: str) -> None:
    plan = pipeline.plan(graphs.graph("x -> a : CONV_2D\na -> y : CONV_2D", dict.fromkeys("xay", 8), "x", "y"))
    suffixes = (f"{figure}.png", f"{figure}.svg")
    assert outputs_of("Plan")[suffixes[0]].pictures(plan, suffixes) == [render(plan, suffix) for suffix in suffixes]


def test_live_bytes_agree_with_a_count_at_every_step() -> None:
    drawing = with_ops(50, 30)
    times, live = live_by_kind(drawing)
    for step in range(30):
        column = int(np.searchsorted(times, step, side="right")) - 1
        alive = (drawing.problem.start <= step) & (step < drawing.problem.end)
        for kind in range(len(KINDS)):
            assert live[kind, column] == drawing.problem.size[alive & (drawing.kinds == kind)].sum()
    assert not live[:, -1].any()


def test_a_long_curve_keeps_its_peaks() -> None:
    random = np.random.default_rng(5)
    times = np.sort(random.choice(10**6, 5000, replace=False))
    live = random.integers(0, 1000, (2, 5000))
    kept_times, kept = memory_curve.envelope(times, live, 100)
    assert len(kept_times) <= 101
    assert kept.sum(axis=0).max() == live.sum(axis=0).max()
    assert set(kept_times.tolist()) <= set(times.tolist())
    assert memory_curve.envelope(times, live, 5000)[0] is times


def test_the_largest_buffers_are_named_and_all_where_there_is_room() -> None:
    for name in ("empty", "ten", "hundred", "thousand"):
        drawing = DRAWINGS[name]()
        order = lifetime_chart.in_order(drawing)
        named = lifetime_chart.named_rows(drawing, order)
        rows = [one.row for one in named]
        size = drawing.problem.size[order]
        apart = lifetime_chart._rows_each(len(order))
        assert rows == (list(range(len(order))) if apart == 1 else sorted(set(rows)))
        assert all(b - a >= apart for a, b in pairwise(rows))
        assert all(one.size == brief(int(size[one.row])) for one in named)
        # Whoever has no name lies beside a larger one that has.
        for row in set(range(len(order))) - set(rows):
            assert any(abs(other - row) < apart and size[other] >= size[row] for other in rows)
    assert 25 < len(named) <= lifetime_chart._MOST_ROWS


@given(strategies.problems(most=10, alignments=(1, 4)), st.integers(0, 1 << 16))
def test_what_is_lost_to_fragmentation_is_every_free_byte_below_the_bound(problem: Problem, seed: int) -> None:
    random = np.random.default_rng(seed)
    offsets, top = np.zeros(len(problem), dtype=np.int64), 0
    for i in random.permutation(len(problem)).tolist():  # each above the last, with holes
        offsets[i] = -(-(top + int(random.integers(0, 9))) // 4) * 4
        top = int(offsets[i] + problem.size[i])
    bound = load_bound(problem)
    drawing = of_problem("p", problem, Placement(offsets, lower_bound=bound))
    least = int(problem.alignment.max(initial=1))
    taken = [{*range(low, low + size)} for low, size in zip(offsets.tolist(), problem.size.tolist(), strict=True)]

    def is_stuck(i: int) -> bool:
        beside = (problem.start < problem.end[i]) & (problem.start[i] < problem.end) & (np.arange(len(problem)) != i)
        used = set().union(*(taken[j] for j in np.flatnonzero(beside)))
        size = int(problem.size[i])
        return not any(used.isdisjoint(range(at, at + size)) for at in range(bound - size + 1))

    above = [i for i in range(len(problem)) if problem.size[i] and offsets[i] + problem.size[i] > bound]
    lacking = [range(problem.start[i], problem.end[i]) for i in above if is_stuck(i)]
    expected = set()
    for step in range(drawing.steps):
        alive = (problem.start <= step) & (step < problem.end) & (problem.size > 0)
        used = set().union(*(taken[i] for i in np.flatnonzero(alive)))
        free = [b not in used for b in range(bound)]
        if any(step in steps for steps in lacking):
            for held, run in groupby(range(bound), key=free.__getitem__):
                found = [*run]
                expected |= {(step, b) for b in found if held and len(found) >= least}
    rows = lost_areas(drawing)
    listed = [(step, b) for start, end, low, high in rows for step in range(start, end) for b in range(low, high)]
    assert len(listed) == len({*listed})
    assert {*listed} == expected


def test_what_is_lost_to_fragmentation_is_hatched_and_told() -> None:
    problem = graphs.problem([(40, 0, 2), (30, 1, 3)])
    drawing = of_problem("p", problem, Placement(np.array([0, 50]), lower_bound=70))
    assert lost_areas(drawing) == []  # it could lie at 40
    problem = graphs.problem([(40, 0, 2), (30, 1, 3), (20, 2, 4)])
    drawing = of_problem("p", problem, Placement(np.array([0, 60, 40]), lower_bound=70))
    assert lost_areas(drawing) == [(1, 2, 40, 60), (2, 3, 0, 40)]
    for offsets, words in (([0, 60, 40], True), ([0, 40, 10], False)):
        with canvas.style():
            sheet = memory_map.draw(replace(drawing, placement=Placement(np.array(offsets), lower_bound=70)))
        assert any("lost to fragmentation" in text.get_text() for text in sheet.figure.texts) is words


@pytest.mark.slow
def test_all_ties_of_the_peak_are_marked_and_their_buffers_outlined() -> None:
    rows = [(8, 0, 1), (2, 1, 2), (5, 2, 3), (3, 2, 3), (8, 4, 7), (1, 0, 7)]
    problem = graphs.problem(rows)
    drawing = of_problem("ties", problem, place(problem))
    assert drawing.peak == 9
    assert drawing.peak_spans == ((0, 1), (2, 3), (4, 7))
    assert axes.peak_marks(drawing) == [0, 2, 4]
    assert drawing.at_peak.tolist() == [True, False, True, True, True, True]
    for figure in (memory_map, lifetime_chart, memory_curve):
        with canvas.style():
            sheet: Sheet = figure.draw(drawing)
        assert any("and at 4 other steps" in t.get_text() for t in sheet.figure.texts)
        assert sorted({float(np.asarray(line.get_xdata())[0]) for line in sheet.axes.lines} & {0.5, 2.5, 4.5}) == [
            0.5,
            2.5,
            4.5,
        ]
    with canvas.style():
        found = [p for p in memory_map.draw(drawing).axes.patches if p.get_zorder() == 3.2]
    assert [len(np.asarray(p.get_path().vertices)) for p in found] == [5 * 5]


def test_a_sliver_that_is_the_peak_gets_a_name_with_a_leader() -> None:
    """One buffer of a single step among a thousand is most of the arena: too narrow for its name."""
    rows = [(10, step, step + 2) for step in range(998)] + [(1000, 500, 501)]
    problem = graphs.problem(rows)
    drawing = of_problem("sliver", problem, place(problem))
    with canvas.style():
        sheet = memory_map.draw(drawing)
        found = memory_map.leaders(sheet, drawing, memory_map.labels(sheet, drawing))
    assert [leader.text for leader in found] == ["b998  1,000 B"]
    assert found[0].to[0] == pytest.approx(sheet.x(500.5))
    assert "b998  1,000 B" in {t.get_text() for t in sheet.figure.texts}


def test_names_stay_where_the_capacity_is_exceeded() -> None:
    problem = replace(graphs.problem([(40, 0, 2), (30, 0, 2), (30, 0, 2)]), capacity=50)
    drawing = of_problem("p", problem, Placement(np.array([0, 40, 70]), lower_bound=100))
    with canvas.style():
        sheet = memory_map.draw(drawing)
        found = memory_map.labels(sheet, drawing)
        texts = {t.get_text(): t for t in sheet.figure.texts}
    assert {label.name for label in found} == {("b0",), ("b1",), ("b2",)}
    assert all(abs(label.y - sheet.y(50)) > 5 for label in found)
    assert [texts[f"b{i}"].get_bbox_patch() is not None for i in range(3)] == [False, True, True]


def test_without_reuse_no_two_buffers_share_a_byte() -> None:
    drawing = with_ops(30, 12)
    offsets = reuse_chart.stacked_offsets(drawing)
    ends = sorted(zip(offsets.tolist(), (offsets + drawing.problem.size).tolist(), strict=True))
    assert all(one[1] <= other[0] for one, other in pairwise(ends))
    assert ends[-1][1] == drawing.problem.size.sum()
    with canvas.style():
        texts = [t.get_text() for t in reuse_chart.draw(drawing).figure.texts]
    assert any(text.startswith("this plan: ") for text in texts)


@pytest.mark.parametrize("top", [1, 12, 1000, 55296, 3 << 20, 5 << 40])
def test_byte_ticks_are_whole_units(top: int) -> None:
    ticks, unit = axes.byte_ticks(top)
    scale = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[unit]
    assert 2 <= len(ticks) <= 10
    assert all(at == int(text.replace(",", "")) * scale for at, text in ticks)


def test_spread_boxes_do_not_touch_and_stay_close() -> None:
    assert axes.spread([10, 50], [8, 8]) == [10, 50]
    assert axes.spread([10, 10], [8, 8]) == [6, 14]
    centres = axes.spread([0, 1, 2, 40], [10, 10, 10, 10])
    assert all(b - a >= 10 for a, b in pairwise(centres))
    assert centres[1] == 1
    assert centres[3] == 40


def test_names_shorten_to_what_tells_them_apart() -> None:
    names = ["net/stage_1/conv/Relu6;net/norm", "net/stage_2/conv/Relu6", "net/stage_2/pool/Relu6", "$x", "/a/b/c"]
    assert lettering.forms(names) == [
        ("net/stage_1/conv/Relu6;net/norm", "net/stage_1/conv/Relu6", "stage_1/conv/Relu6", "stage_1"),
        ("net/stage_2/conv/Relu6", "stage_2/conv/Relu6", "stage_2/conv"),
        ("net/stage_2/pool/Relu6", "stage_2/pool/Relu6", "pool/Relu6", "pool"),
        ("$x",),
        ("/a/b/c", "a/b/c", "b/c", "c"),
    ]
    assert lettering.forms(["same", "same", ""]) == [("same",), ("same",), ("",)]


def test_names_fit_their_room() -> None:
    forms = ("net/stage_1/conv", "stage_1/conv", "stage_1")
    wide = lettering.width("stage_1/conv", 8)
    assert lettering.fitting(forms, 10_000, 8) == "net/stage_1/conv"
    assert lettering.fitting(forms, wide, 8) == "stage_1/conv"
    assert lettering.fitting(forms, wide - 1, 8) == "stage_1"
    assert lettering.folded("abcdefghijklmnop", lettering.width("abc…lmnop", 8), 8) == "abc…lmnop"
    assert lettering.folded("abcdefghijklmnop", 12, 8) == ""


def test_names_wrap_at_their_joints() -> None:
    room = lettering.width("Conv2d_5_", 8)
    assert lettering.wrapped("Conv2d_5_pointwise_x", room, 8) == ("Conv2d_5_", "pointwise_", "x")
    assert lettering.wrapped("pointwiselyindeed", room, 8) == ()
    assert lettering.wrapped("", room, 8) == ()


def linear(colour: str) -> np.ndarray:
    """Linear red, green and blue of an sRGB colour."""
    parts = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


@pytest.mark.parametrize("kind", KINDS)
def test_text_is_readable_on_every_colour(kind: str) -> None:
    """Contrast of at least 4.5 (WCAG 2.1) between the names and what they stand on."""
    weights = np.array([0.2126, 0.7152, 0.0722])
    ground = weights @ linear(axes.COLOURS[kind]) + 0.05
    assert ground / (weights @ linear(canvas.INK) + 0.05) >= 4.5


#: What people without one kind of cone see: Machado, Oliveira and Fernandes, A Physiologically-based Model for
#: Simulation of Color Vision Deficiency, IEEE TVCG 2009, severity 1.
EYES = {
    "all cones": np.eye(3),
    "no L": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "no M": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "no S": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}


def lab(linear_rgb: np.ndarray) -> np.ndarray:
    """CIE L*a*b* under D65."""
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ linear_rgb
    x, y, z = np.cbrt(np.maximum(xyz / np.array([0.9505, 1, 1.089]), 0.008856))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("eye", EYES)
def test_colours_differ_for_every_eye(eye: str) -> None:
    kinds = [axes.COLOURS[kind] for kind in KINDS if kind != "buffer"] + [canvas.FREE]
    seen = {c: lab(np.clip(np.array(EYES[eye]) @ linear(c), 0, 1)) for c in kinds}
    assert min(np.linalg.norm(seen[a] - seen[b]) for a, b in combinations(kinds, 2)) >= 12


def test_what_the_runtime_keeps_is_no_room_for_the_plan() -> None:
    given = graphs.problem([(40, 0, 2), (24, 1, 3)], capacity=100)
    whole = of_problem("two", given, place(given))
    assert (whole.room, whole.excess) == (100, 0)
    less = replace(whole, kept=50)
    assert (less.room, less.excess) == (50, 14)
    assert ("capacity 100 B, 50 B of it kept by the runtime  ·  14 B too much", WARNING) in axes.facts(less)
    assert memory_map.kept_area(less).tolist() == [[0.0, 64.0, 3.0, 114.0]]
    assert memory_map.overflow(less).tolist() == [[0.0, 100.0, 3.0, 114.0]]
    at = {level.text.partition("\n")[0]: level.at for level in axes.levels(less)}
    assert (at["capacity"], at["arena"]) == (100, 114)  # where the page has them too
    assert replace(whole, kept=200).room == 0


def test_a_value_in_many_runs_bears_its_name_once_and_no_leader_lies_over_a_buffer() -> None:
    start, size = np.arange(6) * 20, np.full(6, 4096)
    problem = Problem(("conv",) * 6, size, start, start + 20)
    kinds = np.full(6, KINDS.index("activation"))
    drawing = Drawing("x", problem, Placement(np.zeros(6, dtype=np.int64), 4096), 4096, kinds, (), "a test")
    with canvas.style():
        sheet = memory_map.draw(drawing)
        labels = memory_map.labels(sheet, drawing)
        leaders = memory_map.leaders(sheet, drawing, [])
    assert [label.name for label in labels] == [("conv",)]
    assert leaders == []  # there is no place beside a buffer that is free
