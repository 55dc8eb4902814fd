"""Questions that somebody asks a page on first sight, answered with the pointer and the keyboard alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser, opened_browser, require_browser
from commands import run as modelplan

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "models" / "ds_cnn_kws.tflite"
REFERENCE = ("--kernels", "reference")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the fitted model, its page, and the page of its difference."""
    require_browser()
    folder = tmp_path_factory.mktemp("questions")
    options = ("--least", "--without", "fold,gather,split", "-o", folder / "fitted.tflite")
    done = modelplan("fit", MODEL, *options, *REFERENCE, "--draw", folder / "fit.html")
    assert done.returncode == 0, done.stderr
    done = modelplan("diff", MODEL, folder / "fitted.tflite", *REFERENCE, "--draw", folder / "diff.html")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def browser(files: Path) -> Iterator[Browser]:
    """A browser of a usual size."""
    with opened_browser() as opened:
        opened.prefer(prefers_color_scheme="light", prefers_reduced_motion="reduce")
        yield opened


@pytest.fixture
def person(files: Path, corpus: Path) -> Path:
    """The page of `analyze` for person_detect."""
    path = files / "person.html"
    if not path.exists():
        done = modelplan("analyze", corpus / "tflite/person_detect.tflite", *REFERENCE, "--draw", path)
        assert done.returncode == 0, done.stderr
    return path


def click(browser: Browser, words: str) -> None:
    """Clicks what shows these words or has them for its placeholder: the first of them."""
    x, y = browser.run(
        "const all = [...document.querySelectorAll('button, input, tr, [role=option]')];"
        "const found = all.filter(e => e.getClientRects().length && `${e.textContent} ${e.placeholder ?? ''}`"
        ".includes(arguments[0]));"
        "const b = found[0].getBoundingClientRect(); return [b.left + b.width / 2, b.top + b.height / 2]",
        words,
    )
    browser.point(x, y, click=True)


def seen(browser: Browser, selector: str) -> list[str]:
    """The texts of the elements that are in sight: nothing lies over them and they are not scrolled away."""
    return list(
        browser.run(
            "return [...document.querySelectorAll(arguments[0])].filter(e => {"
            "  const b = e.getBoundingClientRect();"
            "  const top = document.elementFromPoint(b.left + 4, b.top + b.height / 2);"
            "  return top && (e.contains(top) || top.contains(e)) && b.bottom <= innerHeight"
            "}).map(e => e.textContent)",
            selector,
        )
    )


def test_what_is_alive_at_the_second_highest_peak(browser: Browser, person: Path) -> None:
    browser.open(person)
    click(browser, "Next peak")
    assert "peak 2 of" in browser.text("#where")
    assert "peak 2 of 6 by height" in seen(browser, "#live > p")[0]
    rows = seen(browser, "#live tbody tr")
    step, alive = browser.run("return [state.step, plan().aliveAt(state.step).map(i => plan().shorts[i])]")
    assert step == browser.run("return plan().peaks[1].start")
    assert len(rows) == len(alive) == 2
    assert all(row.startswith(name) for row, name in zip(rows, alive, strict=True))


def test_the_number_on_the_curve_leads_there_too(browser: Browser, person: Path) -> None:
    browser.open(person)
    ranks = browser.run("const r = chart.sources.ranks.data; return [...r.n].map((n, k) => [n, r.x[k], r.y[k]])")
    assert [n for n, *_ in ranks] == ["1", "2", "3", "4", "5", "6"]
    box = browser.run(
        "const b = document.querySelector('#curve').getBoundingClientRect();"
        "return [chart.frame.left, chart.frame.width, b.top + b.height * 0.8]"
    )
    browser.point(box[0] + box[1] * ranks[1][1] / browser.run("return plan().steps"), box[2], click=True)
    assert "peak 2 of 6 by height" in seen(browser, "#live > p")[0]
    chosen = browser.run("return state.step")
    browser.press("p")
    browser.press("n")
    assert browser.run("return state.step") == chosen
    assert "lower neighbours" in browser.run("return document.querySelector('#next').title")


@pytest.mark.parametrize("by_search", [True, False])
def test_who_keeps_a_tensor_alive(browser: Browser, person: Path, *, by_search: bool) -> None:
    browser.open(person)
    if by_search:
        click(browser, "Search tensors")
        browser.press("conv2d_3_depthwise")
        click(browser, "Conv2d_3_depthwise")
    else:
        click(browser, "Next peak")
        click(browser, "Conv2d_3_depthwise")
    answer = dict(zip(seen(browser, "#details dt"), seen(browser, "#details dd"), strict=False))
    assert "its last reader" in answer["kept alive by"]
    last = browser.run("return plan().opLabel(plan().columns.order[plan().end[state.picked] - 1])")
    assert last in answer["kept alive by"]


@pytest.mark.parametrize(("page", "change"), [("fit.html", "22,768 B16,560 B{}6,208 B"), ("diff.html", "{}6,208 B")])
def test_what_changed_is_told_when_the_page_opens(browser: Browser, files: Path, page: str, change: str) -> None:
    browser.open(files / page)
    change = change.format("\N{MINUS SIGN}")
    rows = seen(browser, "#changes table.figures tbody tr")
    assert rows[0] == f"arena{change}" if page == "fit.html" else rows[0].endswith(change)
    assert "buffers before" in seen(browser, "#changes > p")[1]
    verdict = seen(browser, "#verdict")[0]
    assert verdict.endswith("B) after: 6,208 B less")
    arenas = [brief.removesuffix(" KiB") for brief in browser.texts("#switch button small")]
    assert verdict.startswith(f"{arenas[0]} KiB (")
    assert f"before, {arenas[-1]} KiB (" in verdict
    rows = browser.texts("#changes .told [role=button]")
    assert len(rows) == 5
    assert rows[0] == "re_lu_1 (7.81 KiB) moved from address 0 to 1,792."
    assert rows[1].startswith("re_lu_1_2 (7.81 KiB) is now written over 7.44 KiB of re_lu_1")
    browser.run("document.querySelectorAll('#changes .told [role=button]')[1].click()")
    assert browser.run("return plan().shorts[state.picked]") == "re_lu_1_2"
    chosen = browser.text("#changes .told .on")
    assert "moved from 8,000 to 1,408" in chosen
    assert "by op 1 DEPTHWISE_CONV_2D (step 1) while that reads it: 7.44 KiB" in chosen
    assert seen(browser, "#details h2")


def test_a_page_that_is_no_change_tells_what_another_plan_changes(browser: Browser, person: Path) -> None:
    browser.open(person)
    click(browser, "Changes")
    assert "compared with this one" in browser.text("#changes")
    click(browser, "outputs over inputs")
    assert "arena" in seen(browser, "#changes table.figures tbody tr")[0]


def test_renumbered_steps_are_no_change_and_a_buffer_that_is_gone_can_be_shown(browser: Browser, files: Path) -> None:
    browser.open(files / "diff.html")
    names = "const q = plans[1], i = 3, old = new Plan(data, 1);"
    shift = "old.start[i] += 2; old.end[i] += 2; const key = q.opKey.bind(q); old.opKey = (s) => key(s - 2);"
    assert browser.run(f"{names}{shift} return sameLife(old, i, q, i)")
    assert not browser.run(f"{names} old.end[i] += 1; return sameLife(old, i, q, i)")
    gone = "{buffer: -1, gone: 0, name: '', bytes: 1, says: 'is gone', words: ['gone']}"
    told = browser.run(f"return countOf([{gone}], plans[0], plans[1])")
    old, now = browser.run("return [plans[0].n, plans[1].n]")
    assert told == f"{old} buffers before, 1 gone; {now} after: {now} as before."
    browser.run("plans[1].twin = () => -1; plans[0].twin = () => -1; showChanges()")
    within = browser.run("return document.querySelector('#changes').innerText")
    tensors = browser.run("return plans[0].columns.members.filter(row => typeof row !== 'string').length")
    assert f"{tensors} now in the bytes of others; {now} after" in within  # scratch alone is gone
    browser.run("plans[1].holder = () => -1; showChanges()")
    rows = "[...document.querySelectorAll('#changes .told [role=button]')]"
    shown = f"const row = {rows}.find(r => r.textContent.endsWith('is gone.')); row.click(); return row.title"
    name = browser.run(shown).splitlines()[0]
    assert browser.run("return [state.view, plan().label(state.picked)]") == [0, name]


def test_hints_stay_closed_by_the_fragment_and_nothing_is_cut(browser: Browser, files: Path) -> None:
    browser.open(files / "fit.html")
    browser.run("document.querySelector('#details .close').click()")
    browser.wait("return location.hash.includes('hints=off')")
    browser.open(files / "fit.html", "#hints=off")
    assert browser.run("return document.querySelector('#details').hidden")
    cells = "[...document.querySelectorAll('#where, #changes .figures tbody td')]"
    assert browser.run(f"return {cells}.filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent)") == []
    assert "bytes of several buffers at once" in seen(browser, "#legend li")


def test_names_that_are_cut_keep_what_differs(browser: Browser, person: Path) -> None:
    browser.open(person)
    cut = "return ['Conv2d_3_pointwise', 'Conv2d_4_pointwise'].map(n => fitted(n, n, measure('Conv2d_3_p')))"
    three, four = browser.run(cut)
    assert "3" in three
    assert "4" in four
    assert browser.run("return new Set(plan().shorts).size") == browser.run("return plan().n")


def test_changes_are_told_from_the_largest_and_all_are_opened_by_key(browser: Browser, files: Path) -> None:
    browser.open(files / "diff.html", "#tab=changes")
    changes = browser.run("return changedBuffers(plans[0], plan())")
    assert [one["bytes"] for one in changes] == sorted((one["bytes"] for one in changes), reverse=True)
    assert len(changes) > 5
    rows = "return [...document.querySelectorAll('#changes .told [role=button] b')].map(e => e.textContent)"
    names = browser.run(
        "const name = c => (c.gone < 0 ? plan() : plans[0]).shorts[Math.max(c.buffer, c.gone)];"
        "return changedBuffers(plans[0], plan()).map(name)"
    )
    assert browser.run(rows) == names[:5]
    more = "#changes button.more"
    assert browser.text(more) == f"All {len(changes)} changes"
    browser.run(f"document.querySelector('{more}').focus()")
    browser.press("\ue007")
    assert browser.run("return document.activeElement.getAttribute('aria-expanded')") == "true"
    assert browser.run(rows) == names
    browser.run("refresh()")
    assert browser.run(rows) == names
    # Of very many the largest are listed, and the others counted.
    browser.run(
        "const one = changedBuffers;"
        "changedBuffers = (a, b) => Array.from({length: 100}, () => one(a, b)).flat(); showChanges()"
    )
    assert len(browser.run(rows)) == 500
    assert f"and {100 * len(changes) - 500:,} smaller ones" in browser.text("#changes")
    browser.run(f"document.querySelector('{more}').click()")
    assert len(browser.run(rows)) == 5


def test_what_was_so_before_is_no_change(browser: Browser, files: Path) -> None:
    browser.open(files / "diff.html")
    assert browser.run("return changedBuffers(plans[1], plans[1])") == []
    assert browser.run("return writtenOver(plans[1]).length") > 0


@pytest.mark.slow
def test_scratch_is_told_by_its_operator_whatever_number_that_has(browser: Browser, tmp_path: Path) -> None:
    assert modelplan("analyze", MODEL, "--kernels", "esp-nn", "--draw", tmp_path / "x.html").returncode == 0
    browser.open(tmp_path / "x.html")
    keys = browser.run("const p = plan(); return p.keys.filter((_, i) => !p.tensors(i).length)")
    assert keys
    assert [key for key in keys if "scratch of op" in key] == []
    moved = "const old = plan(), p = new Plan(data, 0); p.label = (i) => `another number ${i}`;"
    scratch = "const i = p.keys.findIndex((_, i) => !p.tensors(i).length);"
    assert browser.run(f"{moved} p.graph = {{...old.graph}}; {scratch} return old.twin(p, i) === i")


@pytest.fixture(scope="module")
def skips(files: Path) -> Path:
    """The page of `analyze` for a model with skips, and beside it that of its fitted file, `skips_fit.html`."""
    path, model = files / "skips.html", ROOT / "models" / "resnet8.tflite"
    assert modelplan("analyze", model, *REFERENCE, "--draw", path).returncode == 0
    options = ("--least", "--without", "fold,gather,split", "-o", files / "skips.tflite")
    assert modelplan("fit", model, *options, *REFERENCE, "--draw", files / "skips_fit.html").returncode == 0
    return path


def tap(browser: Browser, selector: str) -> None:
    """Scrolls to the first element of a selector and clicks its middle, which nothing may lie over."""
    x, y, hit = browser.run(
        "const e = document.querySelector(arguments[0]); e.scrollIntoView({block: 'center'});"
        "const b = e.getBoundingClientRect(), x = b.left + b.width / 2, y = b.top + b.height / 2;"
        "return [x, y, e.contains(document.elementFromPoint(x, y))]",
        selector,
    )
    assert hit, selector
    browser.point(x, y, click=True)


@pytest.mark.slow
@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_five_questions_take_two_clicks_at_most(browser: Browser, skips: Path, width: int, height: int) -> None:
    browser.resize(width, height)
    try:
        browser.open(skips)
        # The operator of the peak: it stands above the map when the page opens.
        peak = browser.run("return plan().stepName(plan().peaks[0].start)")
        assert peak in seen(browser, "#where")[0]
        # The buffers to shrink: the live set of the peak, largest first, is open.
        sizes = [int(text.replace(",", "")) for text in browser.texts("#live tbody td:nth-child(2)")]
        assert sizes == sorted(sizes, reverse=True)
        assert len(sizes) >= min(5, browser.run("return plan().aliveAt(state.step).length"))
        # Who keeps a skip alive: its name, one click.
        skip = browser.run(
            "const p = plan(), far = i => p.readersOf(i).length > 1 && p.end[i] - p.start[i] > 2;"
            "return p.label([...p.byArea].find(far))"
        )
        tap(browser, "#search")
        browser.press(skip)
        tap(browser, "#found [role=option]")
        answer = dict(zip(browser.texts("#details dt"), browser.texts("#details dd"), strict=False))
        assert "its last reader" in answer["kept alive by"]
        # The five largest changes: they are open on the page of a fit.
        browser.open(skips.with_name("skips_fit.html"))
        changes = browser.run("return changedBuffers(plans[0], plan()).length")
        assert len(browser.texts("#changes .told [role=button]")) == min(changes, 5)
        # Where bytes are lost to fragmentation: the legend says it, and a click goes there.
        lost = browser.run("return plan().columns.lost.length")
        if lost:
            tap(browser, "#legend button")
            assert browser.run("return state.step") == browser.run("return mostLost(plan()).step")
        else:
            assert "nothing is lost to fragmentation" in browser.text("#legend")
    finally:
        browser.resize(1280, 800)


def test_steps_are_numbered_in_round_numbers_that_do_not_touch(browser: Browser, tmp_path: Path) -> None:
    table, page = tmp_path / "long.csv", tmp_path / "long.html"
    table.write_text("id,lower,upper,size\na,0,700000,16\nb,300000,1048576,32\n")
    assert modelplan("solve", table, "--draw", page).returncode == 0
    for width, most in ((1280, 14), (390, 5)):
        browser.resize(width, 900)
        browser.open(page)
        labels = browser.run("return [...chart.lower.below[0].major_label_overrides.values()]")
        assert labels[0] == "0"
        assert all(int(label.replace(",", "")) % 100_000 == 0 for label in labels)
        assert 2 <= len(labels) <= most
    browser.resize(1280, 900)
