"""The page for a screen reader, and for eyes that see fewer colours: chromium's accessibility tree, and pixels."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import graphs
import numpy as np
import numpy.typing as npt
import pytest
from browser import Browser, opened_browser, require_browser

from modelplan import Buffer, Options, Placement, Problem
from modelplan.answers import page_views as views
from modelplan.answers.drawing import KINDS, Drawing
from modelplan.outputs.page import html_file
from modelplan.planning import pipeline

#: Kinds that a plan of a model can have.
SEEN = KINDS[:-1]
EYES = ("none", "deuteranopia", "protanopia", "tritanopia", "achromatopsia")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser of its own."""
    require_browser()
    with opened_browser() as opened:
        yield opened


def tree(browser: Browser) -> list[dict[str, Any]]:
    """What chromium tells a screen reader: a row for each node with role, name and properties."""
    browser.driver.execute_cdp_cmd("Accessibility.enable", {})
    nodes = browser.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    rows = []
    for node in nodes:
        if not node.get("ignored"):
            values = {p["name"]: p["value"].get("value") for p in node.get("properties", [])}
            told = {key: node.get(key, {}).get("value", "") for key in ("role", "name", "description")}
            rows.append(told | {"properties": values})
    return rows


def test_a_screen_reader_is_told_what_can_be_focused_and_what_changes(browser: Browser, tmp_path: Path) -> None:
    plan = pipeline.plan(graphs.chain(), Options(capacity=1 << 20))
    none = pipeline.plan(graphs.chain(), Options(capacity=1 << 20, alias="none"))
    shown = (views.view_of(plan, "one", "first"), views.view_of(none, "two", "second"))
    path = tmp_path / "page.html"
    path.write_bytes(html_file.html(views.Page("chain", "", shown, "modelplan", change=True)))
    browser.open(path)
    for tab in ("live", "all", "changes", "ops", "facts"):
        browser.run("choose(arguments[0]); pick(0)", tab)
        rows = tree(browser)
        focusable = [row for row in rows if row["properties"].get("focusable") and row["role"] != "RootWebArea"]
        assert len(focusable) > 10
        assert [row for row in focusable if not row["name"] or row["role"] == "generic"] == []
    application = next(row for row in rows if row["role"] == "application")
    assert application["name"] == "Memory map of chain, plan two"
    assert "buffers over" in application["description"]
    assert "It fits the capacity of 1.00 MiB" in application["description"]
    assert {row["role"] for row in rows if row["properties"].get("live") == "polite"} == {"region", "status"}
    assert "written by" in browser.text("#details[aria-live]")
    browser.press("g", "\ue014")
    assert "alive at step" in browser.text("#where[aria-live]")


def kinds_page(path: Path) -> Path:
    """A page with a large rectangle of each kind."""
    n = len(SEEN)
    problem = Problem.of([Buffer(kind, 1000, i, i + 1) for i, kind in enumerate(SEEN)])
    drawn = Drawing("kinds", problem, Placement(np.zeros(n, dtype=np.int64)), 1000, np.arange(n), (), "modelplan")
    path.write_bytes(html_file.html(views.Page("kinds", "", (views.View("kinds", "", drawn),), "modelplan")))
    return path


def light(colours: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """CIE L*a*b* of sRGB colours from 0 to 255."""
    c = colours / 255
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    xyz = linear @ np.array([[0.4124, 0.2126, 0.0193], [0.3576, 0.7152, 0.1192], [0.1805, 0.0722, 0.9505]])
    f = np.cbrt(np.maximum(xyz / [0.9505, 1, 1.089], 1e-6))
    return np.stack([116 * f[..., 1] - 16, 500 * (f[..., 0] - f[..., 1]), 200 * (f[..., 1] - f[..., 2])], axis=-1)


def patches(browser: Browser) -> list[npt.NDArray[np.float64]]:
    """For each kind the pixels of a square inside its rectangle, beside its name."""
    browser.run("return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    f = browser.run("return chart.frame")
    whole = browser.pixels()
    w = browser.run("return chart.window")
    found = []
    for i in range(len(SEEN)):
        x = f["left"] + f["width"] * (i + 0.2 - w["x0"]) / (w["x1"] - w["x0"])
        y = f["top"] + f["height"] * (w["y1"] - 250) / (w["y1"] - w["y0"])
        found.append(light(whole[int(y) : int(y) + 48, int(x) : int(x) + 48]))
    return found


def motif(patch: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The pattern of a patch whatever its colour and place: how strong each spatial frequency of its lightness is."""
    lightness = patch[..., 0] - patch[..., 0].mean()
    return np.asarray(np.abs(np.fft.fft2(lightness)) / lightness.size)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_kinds_differ_for_every_eye(browser: Browser, tmp_path: Path, theme: str) -> None:
    """By colour, or by a pattern that is seen: none is told by a hue alone that some eyes do not see."""
    browser.prefer(prefers_color_scheme=theme, prefers_reduced_motion="reduce")
    path = kinds_page(tmp_path / "kinds.html")
    seen = {}
    for eye in EYES:
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedVisionDeficiency", {"type": eye})
        browser.open(path)
        browser.run("state.step = -1; refresh()")
        found = patches(browser)
        seen[eye] = np.array([np.median(patch.reshape(-1, 3), axis=0) for patch in found])
        for a, b in combinations(range(len(SEEN)), 2):
            colours = float(np.linalg.norm(seen[eye][a] - seen[eye][b]))
            pattern = float(np.abs(motif(found[a]) - motif(found[b])).max())
            assert colours >= 10 or pattern >= 1, (eye, SEEN[a], SEEN[b], colours, pattern)
            if eye != "achromatopsia":
                assert colours >= 5, (eye, SEEN[a], SEEN[b], colours)
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedVisionDeficiency", {"type": "none"})
    assert all(np.abs(seen[eye] - seen["none"]).max() > 5 for eye in EYES[1:])  # the eye was simulated
