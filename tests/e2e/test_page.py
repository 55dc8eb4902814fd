"""The page in a real browser: each interaction by pointer and by key, on small, large, fitted and hostile models."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import graphs
import numpy as np
import pytest
from browser import Browser, opened_browser, require_browser
from commands import run as modelplan
from layouts import KINDS, two_memories
from striped_files import striped_ladder

from modelplan import Graph, Kind, Op, Options, Tensor
from modelplan.answers import page_views as views
from modelplan.outputs.page import html_file
from modelplan.outputs.page.region_views import layout_view
from modelplan.planning import pipeline
from modelplan.questions.pages.plan_views import ladder_page
from modelplan.rewriting.striped_tflite.rungs import Goal

HOSTILE = {
    "markup": "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1>",
    "quotes": "a\"b'c`d${window.hacked=1}",
    "control": "tab\tnul\x00bell\x07\u202ereversed\u2028line",
    "long": "n" * 1_000_000,
}


def layered(ops: int, width: int = 64) -> Graph:
    """A model of `ops` operators, each of which reads the one before and one further back."""
    tensors = [Tensor("input", (1, width), "int8")]
    made = []
    for i in range(ops):
        tensors.append(Tensor(f"block_{i // 8}/layer_{i}/out", (1, width * (1 + (i * 7) % 13)), "int8"))
        made.append(Op(f"layer_{i}", ("CONV_2D", "ADD", "MUL")[i % 3], (i, max(i - 9, 0)), (i + 1,)))
    return Graph(f"layered_{ops}", "tflite", tuple(tensors), tuple(made), (0,), (ops,))


def page_file(path: Path, *graphs_of: Graph, names: tuple[str, ...] = ("one", "two")) -> Path:
    """A page with a plan of each graph, in the order of the file."""
    quick = Options(runtime="generic", schedule="file", allocator="first-fit-size")
    plans = [pipeline.plan(graph, quick) for graph in graphs_of]
    shown = tuple(views.view_of(plan, name, "") for plan, name in zip(plans, names, strict=False))
    path.write_bytes(html_file.html(views.Page(graphs_of[0].name, "", shown, "modelplan")))
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the pages."""
    require_browser()
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def browser(files: Path) -> Iterator[Browser]:
    """One browser for all tests of this module."""
    with opened_browser() as opened:
        opened.prefer(prefers_color_scheme="light", prefers_reduced_motion="reduce")
        yield opened


@pytest.fixture(scope="module")
def person(files: Path, corpus: Path) -> Path:
    """The page of `analyze` for person_detect."""
    path = files / "person.html"
    model = corpus / "tflite/person_detect.tflite"
    options = ("--capacity", "64KiB", "--kernels", "reference", "--json", path.with_suffix(".json"))
    done = modelplan("analyze", model, *options, "--draw", path)
    assert done.returncode == 0, done.stderr
    return path


@pytest.fixture(scope="module")
def wide(files: Path) -> Path:
    """The page of a model of 400 operators."""
    return page_file(files / "wide.html", layered(400))


@pytest.fixture(scope="module")
def huge(files: Path) -> Path:
    """The page of a model of 12,000 operators."""
    return page_file(files / "huge.html", layered(12_000))


@pytest.fixture(scope="module")
def fitted(files: Path) -> Path:
    """The page of `fit`."""
    path = files / "fitted.html"
    model = Path(__file__).resolve().parents[2] / "models" / "ds_cnn_kws.tflite"
    options = ("--least", "--without", "fold,gather,split", "--kernels", "reference")
    done = modelplan("fit", model, *options, "-o", files / "fitted.tflite", "--draw", path)
    assert done.returncode == 0, done.stderr
    return path


@pytest.fixture(scope="module")
def stripes(files: Path) -> Path:
    """The page of a model that was made to fit by a loop over stripes."""
    path = files / "stripes.html"
    path.write_bytes(html_file.html(ladder_page("three.tflite", striped_ladder(files), Goal(objective="head"))))
    return path


@pytest.fixture(autouse=True)
def clean_console(browser: Browser) -> Iterator[None]:
    """No test may leave an error, a warning or a violation of the Content-Security-Policy in the console."""
    browser.complaints()
    yield
    assert browser.complaints() == []


def place(browser: Browser, buffer: int) -> tuple[float, float]:
    """The middle of the part of a buffer that is in sight, in pixels of the page."""
    x, y = browser.run(
        "const p = plan(), f = chart.frame, w = chart.window, i = arguments[0];"
        "const u = ((Math.max(p.start[i], w.x0) + Math.min(p.end[i], w.x1)) / 2 - w.x0) / (w.x1 - w.x0);"
        "const v = (w.y1 - (p.low[i] + p.high[i]) / 2) / (w.y1 - w.y0);"
        "return [f.left + u * f.width, f.top + v * f.height]",
        buffer,
    )
    return x, y


def window(browser: Browser) -> tuple[float, float, float, float]:
    """The part of time and addresses in sight."""
    w = browser.run("return chart.window")
    return w["x0"], w["x1"], w["y0"], w["y1"]


@pytest.mark.slow
def test_the_page_opens_at_the_peak_with_its_live_set(browser: Browser, person: Path) -> None:
    browser.open(person)
    assert browser.text("h1") == "person_detect"
    assert "peak 1 of 6" in browser.text("#where")
    rows = browser.texts("#live tbody tr")
    assert len(rows) == 2
    assert "36,864" in rows[0]
    assert browser.texts("#live tbody td:nth-child(3)") == ["66.7%", "33.3%"]
    summary = browser.text("#summary")
    assert "55,296 B" in summary
    assert "The second-highest peak is step 1" in summary or "second-highest" in summary


def test_pixels_have_the_colour_of_the_kind(browser: Browser, person: Path) -> None:
    browser.open(person)
    browser.run("document.querySelector('#patterns').click()")
    largest = browser.run("return plan().byArea[0]")
    x, y, width = *place(browser, largest), 12
    browser.run(
        "chart.light(-1, {writers: [], readers: [], cursor: -1}, []); chart.labels = () => empty('xyna'); chart.draw()"
    )
    browser.run("return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    seen = browser.pixels()[int(y) - 3 : int(y) + 3, int(x) - width : int(x) + width]
    expected = browser.run("return lookOf(plan(), plan().columns.kind[arguments[0]]).colour.light", largest)
    wanted = [int(expected[i : i + 2], 16) for i in (1, 3, 5)]
    assert np.abs(np.median(seen.reshape(-1, 3), axis=0) - wanted).max() <= 2


def test_page_and_json_give_the_verdict_of_the_whole_arena(browser: Browser, person: Path) -> None:
    document = json.loads(person.with_suffix(".json").read_text())
    figures, capacity = document["summary"], 64 * 1024
    assert figures["planned"] < capacity < figures["planned"] + figures["kept"] == document["requirement"]["arena"]
    assert figures["fits"] is False
    browser.open(person)
    missing = (document["requirement"]["arena"] - capacity) / 1024
    assert f"{missing:.2f} KiB too much" in browser.text("#figures .over")
    assert "It does not fit the capacity of 64.00 KiB" in browser.text("#summary")
    aliased = browser.texts("#switch button span").index("outputs over inputs")
    browser.run("turnTo(arguments[0])", aliased)
    assert "to spare" in browser.text("#figures")
    assert browser.run("return document.querySelector('#figures .over')") is None


def test_a_click_on_a_buffer_lights_who_writes_and_reads_it(browser: Browser, person: Path) -> None:
    browser.open(person)
    browser.run("choose('ops')")
    browser.point(*place(browser, browser.run("return plan().byArea[0]")), click=True)
    details = browser.text("#details")
    assert "Conv2d_1_pointwise" in details
    assert "int8[1, 48, 48, 16]" in details
    assert "op 2 CONV_2D (step 2)" in details
    assert "its last reader" in details
    assert "why here" in details
    assert browser.texts("#ops .writer .step") == ["2"]
    assert browser.texts("#ops .reader .step") == ["3"]
    assert list(browser.run("return chart.sources.bands.data.l"))[:2] == [2, 3]
    browser.press("\ue00c")  # Escape
    assert browser.run("return state.picked") == -1
    assert browser.run("return chart.sources.picked.data.l.length") == 0


def test_hovering_tells_what_lies_there(browser: Browser, person: Path) -> None:
    browser.open(person)
    browser.point(*place(browser, browser.run("return plan().byArea[0]")))
    tip = browser.text("#tip")
    assert "36,864 B" in tip
    assert "steps 2 to 3 · address 0 to 36,864" in tip
    assert "written by" not in tip  # that is in the panel, which a click opens
    # Nothing lies over the map or moves it, wherever the pointer is; one line is enough on a desktop.
    where = "const b = document.querySelector(arguments[0]).getBoundingClientRect(); return [b.top, b.bottom]"
    still = browser.run(where, "#map")
    for i in browser.run("return [...plan().byArea]"):
        x, y = place(browser, i)
        browser.point(x, y)
        assert browser.run("return document.querySelector('#tip').dataset.buffer") == f"0-{i}"
        assert browser.run("return document.elementFromPoint(...arguments).closest('#map') !== null", x, y)
        assert browser.run(where, "#map") == still
        assert browser.run(where, "#tip")[1] <= still[0] + 1
        line = "const e = document.querySelector('#tip'); return [e.scrollWidth, e.clientWidth]"
        assert browser.run(line)[0] <= browser.run(line)[1]
    browser.point(5, 5)
    assert "to read here what it is" in browser.text("#tip")


def test_a_click_on_a_step_of_the_curve_shows_its_live_set(browser: Browser, wide: Path) -> None:
    browser.open(wide)
    left, middle, width = browser.run(
        "const b = document.querySelector('#curve').getBoundingClientRect();"
        "return [chart.frame.left, b.top + b.height / 2, chart.frame.width]"
    )
    browser.point(left + width * 100.5 / 400, middle, click=True)
    assert browser.run("return state.step") == 100
    alive = browser.run("return plan().aliveAt(100).length")
    assert len(browser.texts("#live tbody tr")) == alive
    shares = [float(text.rstrip("%")) for text in browser.texts("#live tbody td:nth-child(3)")]
    assert abs(sum(shares) - 100) < 0.1 * len(shares)


def test_the_live_set_is_sorted_by_each_column(browser: Browser, wide: Path) -> None:
    browser.open(wide)
    bytes_of = "#live tbody td:nth-child(2)"

    def sizes() -> list[int]:
        return [int(text.replace(",", "")) for text in browser.texts(bytes_of)]

    assert sizes() == sorted(sizes(), reverse=True)
    browser.run("document.querySelectorAll('#live th button')[1].click()")
    assert sizes() == sorted(sizes())
    assert browser.run("return document.querySelector('#live th[aria-sort]').getAttribute('aria-sort')") == "ascending"
    browser.run("document.querySelectorAll('#live th button')[0].click()")
    names = browser.texts("#live tbody td:first-child")
    assert len(names) == len(sizes()) > 3
    full = browser.run("return [...document.querySelectorAll('#live tbody td:first-child')].map(e => e.title)")
    assert full == sorted(full)


def test_peaks_are_visited_from_the_highest(browser: Browser, wide: Path) -> None:
    browser.open(wide)
    ranked = browser.run("return plan().peaks.map(k => [k.start, k.bytes])")
    assert [b for _, b in ranked] == sorted((b for _, b in ranked), reverse=True)
    for step, _ in ranked[1:3]:
        browser.run("document.querySelector('#next').click()")
        assert browser.run("return state.step") == step
    browser.run("document.querySelector('#peak').click()")
    assert browser.run("return state.step") == ranked[0][0]


def test_wheel_and_drag_move_both_axes_or_one(browser: Browser, wide: Path) -> None:
    browser.open(wide)
    f = browser.run("return chart.frame")
    x, y = f["left"] + f["width"] / 2, f["top"] + f["height"] / 2
    whole = window(browser)
    browser.turn_wheel(x, y, -120)
    browser.wait(f"return chart.window.x1 < {whole[1]}")
    inner = window(browser)
    assert inner[0] > whole[0]
    assert inner[3] < whole[3]
    assert browser.run("return chart.upper.x_range === chart.lower.x_range")
    browser.turn_wheel(x, f["top"] + f["height"] + 12, -120)  # over the time axis
    browser.wait(f"return chart.window.x1 < {inner[1]}")
    assert window(browser)[2:] == inner[2:]
    before = window(browser)
    browser.drag((x, y), (x - 100, y))
    browser.wait(f"return chart.window.x0 > {before[0]}")
    browser.run("document.querySelector('#whole').click()")
    assert window(browser) == whole


def test_search_finds_names_and_kinds(browser: Browser, wide: Path) -> None:
    browser.open(wide)
    browser.press("/", "layer_77/")
    browser.wait("return !document.querySelector('#found').hidden")
    assert browser.texts("#found [role=option] span:first-child") == ["block_9/layer_77/out"]
    browser.press("\ue007")  # Enter
    assert "block_9/layer_77/out" in browser.text("#details")
    browser.open(wide)
    browser.press("/", "add layer_1", "\ue015")
    assert browser.run("return document.activeElement.id") == "search"
    assert "ADD layer_1" in browser.text("#found [aria-selected=true]")
    browser.open(wide)
    browser.press("/", "no such thing")
    assert "nothing of that name" in browser.text("#found")


def test_the_fragment_restores_the_view(browser: Browser, person: Path) -> None:
    browser.open(person)
    browser.run(
        "turnTo(1); goto(7); pick(plan().aliveAt(7)[0]);chart.look({x0: 3, x1: 12, y0: 1000, y1: 40000}); choose('ops')"
    )
    browser.run("document.querySelector('#theme').click()")
    browser.wait("return location.hash.includes('theme=dark') && location.hash.includes('tab=ops')")
    seen = browser.run("return [state.view, state.step, state.picked, state.tab, state.theme, chart.window]")
    fragment = browser.run("return location.hash")
    browser.open(person, fragment)
    assert browser.run("return [state.view, state.step, state.picked, state.tab, state.theme, chart.window]") == seen
    browser.open(person, "#plan=99&step=-4&buffer=x&time=9,1&bytes=a,b&tab=nothing&theme=pink&sort=77")
    assert browser.run("return [state.view, state.picked, state.tab]") == [0, -1, "live"]


def test_plans_are_switched_and_rectangles_move(browser: Browser, person: Path) -> None:
    browser.prefer(prefers_color_scheme="light", prefers_reduced_motion="no-preference")
    browser.open(person)
    names = browser.texts("#switch button span")
    assert names[:2] == ["this plan", "tflm by itself"]
    assert "outputs over inputs" in names
    browser.run(
        "window.seen = []; const real = chart.between.bind(chart);"
        "chart.between = (a, b, s) => { real(a, b, s); seen.push([s, [...chart.sources.boxes.data.b]]); }"
    )
    safe = names.index("outputs over inputs")
    browser.run("document.querySelectorAll('#switch button')[arguments[0]].click()", safe)
    browser.wait("return seen.length > 1 && seen[seen.length - 1][0] === 1")
    first, last = browser.run("return [seen[0], seen[seen.length - 1]]")
    assert first[1] != last[1]
    browser.wait("return moving === 0")
    assert (
        browser.run("return document.querySelector('#switch [aria-checked=true] span').textContent")
        == "outputs over inputs"
    )
    assert "36,880" in browser.text("#figures")
    assert browser.run("return chart.sources.common.data.l.length") > 0
    browser.prefer(prefers_color_scheme="light", prefers_reduced_motion="reduce")


def test_everything_goes_by_key(browser: Browser, person: Path) -> None:
    browser.open(person)
    browser.press("g")
    assert browser.run("return document.activeElement.id") == "map"
    browser.press("\ue011")  # Home
    assert browser.run("return state.step") == 0
    browser.press("\ue014", "\ue014")  # right
    assert browser.run("return state.step") == 2
    browser.press("\ue013")  # up: the lowest of those alive
    lowest = browser.run("return plan().aliveAt(2).sort((a, b) => plan().low[a] - plan().low[b])[0]")
    assert browser.run("return state.picked") == lowest
    whole = window(browser)
    browser.press("+")
    assert window(browser)[1] - window(browser)[0] < whole[1] - whole[0]
    browser.press("x")
    browser.press("0")
    assert window(browser) == whole
    browser.press("n")
    assert browser.run("return state.rank") == 1
    browser.press("2")
    assert browser.run("return state.view") == 1
    browser.press("o")
    assert browser.run("return state.tab") == "ops"
    browser.press("t")
    assert browser.run("return document.documentElement.dataset.theme") == "dark"
    browser.press("?")
    assert browser.run("return document.querySelector('#keys').open")
    browser.press("\ue00c")
    assert not browser.run("return document.querySelector('#keys').open")
    browser.press("\ue004")  # Tab moves the focus on, out of the map
    assert browser.run("return document.activeElement.id") != "map"


def test_dark_and_light_differ_and_follow_the_system(browser: Browser, person: Path) -> None:
    browser.open(person)
    light = browser.pixels()
    assert light[-2, 5].min() > 240
    browser.prefer(prefers_color_scheme="dark", prefers_reduced_motion="reduce")
    browser.wait("return document.documentElement.dataset.theme === 'dark'")
    browser.run("return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    dark = browser.pixels()
    assert dark[-2, 5].max() < 60
    assert (light != dark).any(axis=2).mean() > 0.9
    browser.prefer(prefers_color_scheme="light", prefers_reduced_motion="reduce")


def test_the_page_is_printed_in_light_with_its_map(browser: Browser, person: Path) -> None:
    browser.open(person, "#theme=dark")
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    browser.run("dispatchEvent(new Event('beforeprint'))")
    browser.wait("return chart.frame.height > 200")
    assert browser.run("return document.documentElement.dataset.theme") == "light"
    assert browser.run("return document.querySelector('.tools').getBoundingClientRect().height") == 0
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    browser.run("dispatchEvent(new Event('afterprint'))")
    assert browser.run("return document.documentElement.dataset.theme") == "dark"
    browser.prefer(prefers_color_scheme="light", prefers_reduced_motion="reduce")


def test_nothing_overlaps_or_leaves_the_page(browser: Browser, person: Path) -> None:
    browser.open(person)
    for width, height in ((1280, 800), (1920, 1080), (1000, 700)):
        browser.resize(width, height)
        browser.run("return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert browser.run("return [document.documentElement.scrollWidth, document.documentElement.scrollHeight]") == [
            width,
            height,
        ]
        boxes = browser.run(
            "return ['header', '#switch', '#about', '#bar', '#curve', '#map', '#legend', 'footer'].map(q => {"
            "const b = document.querySelector(q).getBoundingClientRect(); return [b.top, b.bottom] })"
        )
        for (_, bottom), (top, _) in pairwise(boxes):
            assert bottom <= top + 0.5
    browser.resize(1280, 800)


@pytest.mark.slow
def test_a_fitted_model_shows_before_and_after(browser: Browser, fitted: Path) -> None:
    browser.open(fitted)
    names = browser.texts("#switch button span")
    assert names[0] == "before"
    assert names[-1].startswith("after: ")
    after = browser.run("return plan().columns.planned")
    browser.press("1")
    assert browser.run("return plan().columns.planned") > after
    browser.run("choose('facts')")
    assert "arena" in browser.text("#facts")


@pytest.mark.slow
def test_twelve_thousand_operators_are_drawn_and_listed(browser: Browser, huge: Path) -> None:
    browser.open(huge)
    browser.wait("return !chart.plain")
    drawn, inside, visible = browser.run("return [chart.drawn, chart.inside, chart.image.visible]")
    assert inside > 12_000
    assert drawn <= 1000
    assert visible
    browser.run("choose('ops')")
    assert len(browser.texts("#ops .row")) < 100
    browser.run("goto(11999)")
    assert "11,999" in browser.texts("#ops .row .step")
    browser.run("chart.look({x0: 5990, x1: 6010, y0: 0, y1: plan().top})")
    browser.wait("return !chart.image.visible && chart.sources.labels.data.n.length > 0")
    moving = browser.run(
        "chart.look({x0: 0, x1: 6000, y0: 0, y1: plan().top});"
        "return Promise.resolve().then(() => [chart.plain, chart.sources.labels.data.n.length])"
    )
    assert moving == [True, 0]
    browser.wait("return !chart.plain && chart.image.visible")
    painted = (
        "const p = plan(), d = chart.sources.image.data, m = d.image[0], [rows, wide] = m.shape, found = [0, 0];"
        "const [x, y, w, h] = [d.x[0], d.y[0], d.w[0], d.h[0]];"
        "for (let i = 0; i < p.n; i++) {"
        "  if (p.start[i] < x || p.end[i] > x + w || p.low[i] < y || p.high[i] > y + h) continue;"
        "  const column = Math.floor((wide * (p.start[i] - x)) / w), row = Math.floor((rows * (p.low[i] - y)) / h);"
        "  found[0]++; if (m[row * wide + column]) found[1]++;"
        "}"
        "return [...found, x, x + w]"
    )
    inside, seen, x0, x1 = browser.run(painted)
    assert inside == seen > 5000  # each has a pixel, however thin it is
    assert (x0, x1) == (0, 6000)
    kept = browser.run(
        "chart.look({x0: 1000, x1: 5000, y0: 0, y1: plan().top}); const rows = [];"
        "const turn = (k) => Promise.resolve().then(() => Promise.resolve()).then(() => {"
        "  rows.push(chart.sources.boxes.data, chart.window.x0); chart.look({...chart.window, x0: 1000 + 50 * k});"
        "  return k < 4 ? turn(k + 1) : rows });"
        "return turn(1).then((r) => [r[0] === r[2] && r[2] === r[4], r.filter((_, k) => k % 2)])"
    )
    assert kept == [True, [1000, 1050, 1100, 1150]]  # frames of a move choose no rectangles anew
    browser.wait("return !chart.plain")
    browser.press("/", "layer_6000/")
    browser.press("\ue007")
    assert "layer_6000" in browser.text("#details")


def test_hostile_names_are_text(browser: Browser, files: Path) -> None:
    names = list(HOSTILE.values())
    sizes = dict(zip([*names, "out"], (400, 300, 200, 100, 50), strict=True))
    tensors = tuple(Tensor(name, (size,), "int8", Kind.ACTIVATION) for name, size in sizes.items())
    ops = tuple(Op(names[i % 4], "CONV_2D", (i,), (i + 1,)) for i in range(4))
    graph = Graph(HOSTILE["markup"], "tflite", tensors, ops, (0,), (4,))
    path = page_file(files / "hostile.html", graph)
    assert path.stat().st_size < 2_000_000
    browser.open(path)
    assert browser.text("h1") == HOSTILE["markup"]
    for buffer in range(5):
        browser.run("pick(arguments[0])", buffer)
        browser.point(*place(browser, buffer))
    browser.run("choose('ops')")
    browser.press("/", "script")
    assert browser.run("return window.hacked") is None
    assert browser.run("return document.querySelectorAll('img, script[src]').length") == 0
    words = browser.run("return data.graphs[0].tensors")
    assert words[1] == HOSTILE["quotes"]
    assert words[2] == "tab\\tnul\\x00bell\\x07\\u202ereversed\\u2028line"
    assert "(1,000,000 characters)" in words[3]


def test_answers_of_allocators_are_switched_in_the_table(browser: Browser, files: Path) -> None:
    problem = files / "problem.csv"
    rows = [f"b{i},{i % 5},{i % 5 + 1 + i % 3},{100 * (1 + i % 4)}" for i in range(12)]
    problem.write_text("\n".join(["id,lower,upper,size", *rows]) + "\n")
    path = files / "compare.html"
    done = modelplan("compare", problem, "--draw", path)
    assert done.returncode == 0, done.stderr
    browser.open(path)
    allocators = browser.texts("#field tr td:first-child")
    assert {*allocators[:2]} == {"best", "modelplan"}
    heights = [int(text.replace(",", "")) for text in browser.texts("#field tr td:nth-child(2)")]
    bars = browser.run("return [...document.querySelectorAll('#field .bar')].map(e => e.getBoundingClientRect().width)")
    assert heights[2:] == sorted(heights[2:])
    assert len(set(heights)) > 3
    assert bars[2:] == sorted(bars[2:])
    zero = browser.run("return [...document.querySelectorAll('#field .zero')].map(e => e.getBoundingClientRect().left)")
    assert max(zero) - min(zero) < 1
    browser.run("document.querySelector('#field').scrollTop = 1e6")
    top = browser.run(
        "const b = document.querySelector('#field .ours').getBoundingClientRect(); return [b.left, b.top]"
    )
    browser.point(top[0] + 20, top[1] + 8, click=True)  # ours stay in sight
    assert browser.run("return plan().name") == allocators[0]
    browser.run("document.querySelectorAll('#field tbody tr')[2].click()")
    assert browser.run("return plan().name") == allocators[4]
    assert browser.text("#field tr.on td") == allocators[4]


def test_regions_are_stacked_with_copies_as_arrows(browser: Browser, files: Path) -> None:
    path = files / "regions.html"
    view = layout_view(*two_memories(), KINDS, "fast first")
    path.write_bytes(html_file.html(views.Page("two memories", "", (view,), "modelplan")))
    browser.open(path)
    assert browser.texts("#figures dt") == ["DTCM", "SDRAM", "FLASH"]
    arrows = "const a = chart.sources.arrows.data; return [[...a.x], [...a.X], [...a.y], [...a.Y]]"
    assert browser.run(arrows)[:2] == [[2, 0], [4, 1]]
    frames = "return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    browser.run(frames)
    x, y = browser.run(
        "const f = chart.frame, w = chart.window, a = chart.sources.arrows.data;"
        "const at = (p, q) => p + (q - p) * 0.75;"
        "return [f.left + f.width * (at(a.x[0], a.X[0]) - w.x0) / (w.x1 - w.x0),"
        " f.top + f.height * (w.y1 - at(a.y[0], a.Y[0])) / (w.y1 - w.y0)]"
    )
    assert browser.pixels()[int(y) - 4 : int(y) + 4, int(x) - 4 : int(x) + 4].min() < 80  # the arrow's line
    browser.point(*place(browser, 1), click=True)
    details = dict(zip(browser.texts("#details dt"), browser.texts("#details dd"), strict=True))
    assert details["address"] == "2,000 to 4,000 in SDRAM"
    assert details["copied"] == "from DTCM, 2,000 B, during steps 2 to 3"
    assert browser.run(arrows)[0] == [2]  # only those of the buffer that is picked
    assert "early in SDRAM" in browser.texts("#live tbody td:first-child")
    assert "DTCM: 2.93 KiB (3,000 B) of 8.00 KiB" in browser.text("#summary")


def test_graphs_of_the_helpers_open_too(browser: Browser, files: Path) -> None:
    browser.open(page_file(files / "chain.html", graphs.chain()))
    assert browser.run("return plan().n") > 0


@pytest.mark.parametrize("model", ["person", "wide", "huge", "stripes"])
def test_each_interaction_on_a_small_a_large_a_huge_and_a_striped_model(
    browser: Browser, request: pytest.FixtureRequest, model: str
) -> None:
    browser.open(request.getfixturevalue(model))
    plan = "const p = plan();"
    # The peaks: button and key, live set with its shares.
    peaks = browser.run(f"{plan} return p.peaks.slice(0, 2).map(k => k.start)")
    browser.run("document.querySelector('#peak').click()")
    assert browser.run("return state.step") == peaks[0]
    browser.press("n")
    assert browser.run("return state.step") == peaks[1]
    alive = browser.run(f"{plan} return p.aliveAt(state.step).length")
    assert len(browser.texts("#live tbody tr")) == alive
    shares = [float(text.rstrip("%")) for text in browser.texts("#live tbody td:nth-child(3)")]
    assert abs(sum(shares) - 100) < 0.1 * len(shares)
    # Sorting, by a click on a heading.
    browser.run("document.querySelectorAll('#live th button')[3].click()")
    addresses = [int(text.replace(",", "")) for text in browser.texts("#live tbody td:nth-child(4)")]
    assert addresses == sorted(addresses, reverse=True)
    # A click on the curve chooses the step; the operators scroll there.
    browser.run("choose('ops')")
    left, middle, width, steps = browser.run(
        "const b = document.querySelector('#curve').getBoundingClientRect();"
        "return [chart.frame.left, b.top + b.height / 2, chart.frame.width, plan().steps]"
    )
    browser.point(left + width * 0.5, middle, click=True)
    step = browser.run("return state.step")
    assert abs(step - steps // 2) <= max(1, steps / width)
    assert browser.run("return document.querySelector('#ops .row.on .step').textContent") == f"{step:,}"
    # Hover, then a click, on the buffer whose middle is in sight: what wrote and reads it lights up.
    buffer = browser.run(
        f"{plan} const whole = i => p.writersOf(i).length && p.readersOf(i).length;"
        "const alone = i => p.at((p.start[i] + p.end[i]) / 2, (p.low[i] + p.high[i]) / 2) === i;"
        "return [...p.byArea].find(i => whole(i) && alone(i))"
    )
    if model == "huge":
        browser.run(
            "const p = plan(), i = arguments[0], w = chart.whole(p); "
            "chart.look({...w, x0: p.start[i] - 5, x1: p.end[i] + 5})",
            buffer,
        )
    browser.point(*place(browser, buffer))
    label = browser.run("return plan().label(arguments[0])", buffer)
    assert browser.run("return cutMiddle(plan().shorts[arguments[0]], 38)", buffer) in browser.text("#tip")
    browser.point(*place(browser, buffer), click=True)
    assert browser.run("return state.picked") == buffer
    assert label in browser.text("#details h2")
    lit, wanted = browser.run(
        f"{plan} const i = arguments[0], at = ops => ops.map(op => p.stepOf.get(op));"
        "return [[...chart.sources.bands.data.l].slice(0, -1), [...at(p.writersOf(i)), ...at(p.readersOf(i))]]",
        buffer,
    )
    assert lit == wanted
    assert all(browser.run(f"{plan} return [p.start[arguments[0]], p.end[arguments[0]]]", buffer)[0] <= s for s in lit)
    # Zoom about the pointer, pan, and both charts stay in step; the key shows everything again.
    browser.press("0")
    whole = window(browser)
    f = browser.run("return chart.frame")
    x, y = f["left"] + f["width"] / 2, f["top"] + f["height"] / 2
    browser.turn_wheel(x, y, -120)
    browser.wait(f"return chart.window.x1 < {whole[1]} && chart.window.y1 < {whole[3]}")
    inner = window(browser)
    browser.drag((x, y), (x - 60, y + 30))
    browser.wait(f"return chart.window.x0 > {inner[0]}")
    assert browser.run("return chart.upper.x_range.start === chart.lower.x_range.start")
    # The address restores it all, without another load.
    browser.wait("return location.hash.includes(`time=${Number(chart.window.x0.toPrecision(7))}%2C`)")
    seen = browser.run("return [location.hash, state.step, state.picked, chart.window]")
    browser.run("pick(-1); goto(0); chart.look(chart.whole(plan()))")
    browser.wait("return !location.hash.includes('time=') && location.hash.includes('step=0')")
    browser.run("location.hash = arguments[0]", seen[0])
    browser.wait(f"return state.picked === {buffer}")
    assert browser.run("return [state.step, state.picked]") == seen[1:3]
    assert browser.run("return chart.window.x0") == pytest.approx(seen[3]["x0"], rel=1e-4, abs=1e-4)
    # Search by name and by kind of operator.
    browser.press("0", "\ue00c", "/", label)
    assert browser.run("return matches.length") >= 1
    browser.press("\ue007")
    assert browser.run("return state.picked === matches[0] && matches.includes(arguments[0])", buffer)
    kind = browser.run(f"{plan} return p.graph.kinds[p.graph.op_kind[p.columns.order[p.steps - 1]]]")
    browser.run("search(arguments[0])", kind.lower())
    assert any(kind in text for text in browser.texts("#found [role=option]"))
    # Another plan where there is one, the theme, the keys' list.
    if browser.run("return plans.length") > 1:
        before = browser.run("return state.view")
        browser.run("document.querySelector('#map').focus(); search('')")
        browser.press("s")
        assert browser.run("return state.view") != before
        assert browser.text("#switch [aria-checked=true] span") == browser.run("return plan().name")
    theme = browser.run("return document.documentElement.dataset.theme")
    browser.run("document.querySelector('#theme').click()")
    assert browser.run("return document.documentElement.dataset.theme") != theme
    browser.run("document.querySelector('#help').click()")
    assert "From the step that writes a buffer" in browser.text("#keys")
    browser.run("document.querySelector('#keys').close()")


@pytest.mark.slow
def test_all_buffers_are_listed_filtered_sorted_and_chosen_in_both_directions(browser: Browser, huge: Path) -> None:
    browser.open(huge, "#tab=all")
    total = browser.run("return plan().n")
    assert total > 12_000
    assert f"All {total:,} buffers" in browser.text("#all-count")
    assert 5 < len(browser.texts("#all-rows [role=row]")) < 100  # of all rows only those in sight exist
    assert browser.run("return document.querySelector('#all-grid').getAttribute('aria-rowcount')") == str(total + 1)
    # By each heading, up and down.
    keys = ("p.label(i)", "p.size[i]", "p.start[i]", "p.end[i] - p.start[i]", "p.low[i]")
    for column, key in enumerate(keys):
        for _ in range(2):
            browser.run("document.querySelectorAll('#all-head button')[arguments[0]].click()", column)
            order = browser.run(
                "return document.querySelectorAll('#all-head > span')[arguments[0]].getAttribute('aria-sort')", column
            )
            found = browser.run(f"const p = plan(); return [...buffers.rows].map(i => {key})")
            if column == 0:  # numbers in names count as such
                found = [
                    [int(part) for part in name.split("_")[1:2] if part.isdigit()] for name in found if "/" not in name
                ]
            assert order in ("ascending", "descending")
            assert found == sorted(found, reverse=order == "descending")
    # By name and by step, by key.
    browser.run("document.querySelector('#all-name').focus()")
    browser.press("block_11/")
    wanted = browser.run("return [...buffers.rows].every(i => plan().label(i).startsWith('block_11/'))")
    assert wanted
    assert browser.run("return buffers.rows.length") == 8
    browser.run("document.querySelector('#all-step').focus()")
    browser.press("90")
    alive = browser.run("return plan().aliveAt(90).filter(i => plan().label(i).startsWith('block_11/')).length")
    assert 0 < alive < 8
    assert browser.run("return buffers.rows.length") == alive
    browser.wait("return location.hash.includes('name=block_11') && location.hash.includes('at=90')")
    # With the keys of a grid the map follows.
    browser.press("\ue007", "\ue010")  # Enter leaves the field; End
    row = browser.run("return [document.activeElement.id, state.picked, buffers.rows[buffers.rows.length - 1]]")
    assert row == ["all-grid", row[2], row[2]]
    assert browser.run("return chart.sources.picked.data.l.length") == 1
    active = browser.run("return document.querySelector('#all-grid').getAttribute('aria-activedescendant')")
    assert browser.run("return document.getElementById(arguments[0]).ariaSelected", active) == "true"
    # A click on a row chooses it; what is chosen on the map comes into sight in the list.
    first = browser.run("const row = document.querySelector('#all-rows [role=row]'); row.click(); return state.picked")
    assert first == browser.run("return buffers.rows[0]")
    browser.run("buffers.set({name: '', step: null, column: 2, down: false}); pick(plan().n - 5)")
    assert browser.run("return document.querySelector('#all-rows .on').dataset.buffer") == str(total - 5)
    browser.run("buffers.ask({name: 'block_11/'})")
    assert "The chosen buffer is not among them" in browser.text("#all-count")


@pytest.mark.parametrize("model", ["person", "fitted", "huge", "stripes"])
def test_a_phone_shows_all_of_it_without_sideways_scrolling(
    browser: Browser, request: pytest.FixtureRequest, model: str
) -> None:
    path = request.getfixturevalue(model)
    browser.resize(390, 844)
    try:
        browser.open(path)
        tabs = browser.run("return TABS.filter(name => !get(`tab-${name}`).hidden)")
        assert {"live", "all", "graph", "ops", "facts"} <= {*tabs}
        for tab in tabs:
            browser.run("choose(arguments[0]); pick(0)", tab)
            assert browser.run("return document.documentElement.scrollWidth") == 390
            beyond = browser.run(
                "return [...document.querySelectorAll('button, input, dd, td, #where, #tip, .card, #map, #curve')]"
                ".filter(e => e.getClientRects().length && e.getBoundingClientRect().right > 390).map(e => e.outerHTML)"
            )
            assert beyond == []
        assert browser.run("return document.querySelector('#where').getBoundingClientRect().width") > 300
        assert browser.run("return chart.frame.width") > 280
        # A tap on the map tells, without scrolling, what lies there.
        browser.run("pick(-1); gotoPeak(0); scrollTo(0, 0)")
        buffer = browser.run("return plan().aliveAt(state.step)[0]")
        browser.point(*place(browser, buffer), click=True)
        assert browser.run("return plan().shorts[state.picked]") in browser.text("#tip")
        assert browser.run("return document.querySelector('#tip').getBoundingClientRect().bottom") < 844
    finally:
        browser.resize(1280, 800)


def test_the_graph_is_walked_by_click_and_by_key(browser: Browser, wide: Path) -> None:
    browser.open(wide)
    browser.press("r")
    browser.run("goto(100)")
    own = browser.text("#graph .own")
    assert own.startswith(browser.run("return plan().opLabel(100)"))
    cards = "#graph .rank[aria-label='{}'] .card b"
    g = browser.run("const g = plan().graph; return {reads: g.reads[100], writes: g.writes[100], tensors: g.tensors}")
    assert browser.texts(cards.format("reads")) == [g["tensors"][t] for t in g["reads"]]
    assert browser.texts(cards.format("writes")) == [g["tensors"][t] for t in g["writes"]]
    writers = browser.run("return plan().graph.reads[100].map(t => plan().opLabel(plan().writer.get(t)))")
    readers = browser.run("return plan().readers.get(plan().graph.writes[100][0]).map(op => plan().opLabel(op))")
    assert browser.texts(cards.format("written by")) == writers
    assert browser.texts(cards.format("read by")) == readers
    # A line for each pair, from card to card.
    edges = browser.run("return document.querySelectorAll('#graph path').length")
    assert edges == 2 * len(g["reads"]) + len(g["writes"]) + len(readers)
    assert "int8[1, " in browser.text("#graph .rank[aria-label='reads'] small")
    # An operator is gone to, a tensor is chosen, and the graph stays at the operator that reads it.
    browser.run("document.querySelectorAll(\"#graph .rank[aria-label='read by'] .card\")[1].click()")
    assert browser.text("#graph .own b") == readers[1]
    assert browser.run("return plan().opLabel(plan().columns.order[state.step])") == readers[1]
    step = browser.run("return state.step")
    browser.run("document.querySelector(\"#graph .rank[aria-label='reads'] .card\").click()")
    assert browser.run("return state.picked") >= 0
    assert browser.run("return state.step") == step
    assert browser.texts("#graph .card.on b") == [browser.run("return plan().label(state.picked)")]
    browser.run("goto(0)")
    assert browser.texts(cards.format("written by")) == []
    assert browser.text("#graph .caller") == "input of the model"


def test_the_table_of_buffers_is_copied_as_it_is_sorted_and_filtered(browser: Browser, wide: Path) -> None:
    browser.open(wide, "#tab=all")
    browser.run("navigator.clipboard.writeText = async (text) => { window.pasted = text }")
    browser.run("buffers.set({name: 'block_11/', step: null, column: 4, down: false})")
    browser.run("document.querySelector('#all-copy').click()")
    browser.wait("return document.querySelector('#all-copy').textContent === 'Copied'")
    lines = browser.run("return pasted").splitlines()
    head, *rows = (line.split("\t") for line in lines)
    assert head[:4] == ["buffer", "kind", "type", "bytes"]
    assert {len(row) for row in rows} == {len(head)}
    wanted = browser.run("const p = plan(); return [...buffers.rows].map(i => [p.label(i), p.size[i], p.low[i]])")
    assert [[row[0], int(row[3]), int(row[6])] for row in rows] == wanted
    assert len(rows) == 8
    writers = browser.run("const p = plan(); return p.writersOf(buffers.rows[0]).map(op => p.opLabel(op))")
    assert rows[0][8] == ", ".join(writers) != ""
    browser.run("navigator.clipboard.writeText = async () => { throw new Error('no') }")
    browser.run("document.querySelector('#all-copy').click()")
    browser.wait("return document.querySelector('#all-copy').textContent === 'Not allowed'")


def test_models_have_tabs_of_their_own(browser: Browser, files: Path) -> None:
    path = files / "models.html"
    root = Path(__file__).resolve().parents[2] / "models"
    models = tuple(sorted(root.glob("*.tflite"))[:2])
    done = modelplan("analyze", *models, "--kernels", "reference", "--draw", path)
    assert done.returncode == 0, done.stderr
    assert all(model.name in done.stdout for model in models)
    browser.open(path)
    names = [model.stem for model in models]
    assert browser.texts("#models button span") == names
    for name in names:
        button = "[...document.querySelectorAll('#models button')].find(b => b.title === arguments[0])"
        browser.run(f"{button}.click()", name)
        assert browser.text("h1") == name
        assert browser.text("#models [aria-checked=true] span") == name
        assert "tflite" in browser.text("#subtitle")
        shown = browser.run("return [...document.querySelectorAll('#switch button')].filter(b => !b.hidden).length")
        assert shown == browser.run("return siblings(plan()).length") > 1
        assert browser.run("return state.step === plan().peaks[0].start && state.picked === -1")
        # Another plan is compared with the first of its own model.
        browser.run("choose('changes'); turnTo(plans.indexOf(siblings(plan())[1]))")
        first = browser.run("return siblings(plan())[0].name")
        assert f'against "{first}"' in browser.text("#changes")
        assert browser.text("h1") == name
    browser.run("document.querySelector('#models [aria-checked=true]').focus()")
    browser.press("\ue012")  # left
    assert browser.text("h1") == names[0]
    assert browser.run("return document.activeElement.title") == names[0]
    one = modelplan("analyze", *models, "--draw", files / "models.svg")
    assert one.returncode == 2
    assert "is a page of all" in one.stderr


def test_what_is_lost_to_fragmentation_is_hatched_and_gone_to(browser: Browser, fitted: Path, person: Path) -> None:
    browser.open(fitted)
    rows = browser.run("return plan().columns.lost")
    assert rows
    assert browser.run("return chart.sources.lost.data.l.length") == len(rows)
    bound = browser.run("return plan().columns.bound")
    for start, end, low, high in rows:  # nothing lies there, and something above the bound does
        alive = browser.run(
            "const [from, to] = arguments, p = plan(); const found = [];"
            "for (let s = from; s < to; s++) found.push(p.aliveAt(s).map(i => [p.low[i], p.high[i]])); return found",
            start,
            end,
        )
        assert 0 <= low < high <= bound
        assert all(max(top for _, top in step) > bound for step in alive)
        assert not any(a < high and low < b for step in alive for a, b in step)
    browser.run("goto(9); document.querySelector('#legend button').click()")
    most = browser.run("return mostLost(plan())")
    assert browser.run("return state.step") == most["step"]
    assert "lost to fragmentation" in browser.text("#legend")
    assert "Lost to fragmentation" in browser.text("#summary")
    browser.open(person)
    assert browser.run("return plan().columns.lost") == []
    assert "nothing is lost to fragmentation" in browser.text("#legend")
