"""Measures the page in a real browser: size, time to open, and frames while zooming, by the number of buffers.

Needs chromium and its driver from the distribution (`apt-get install chromium chromium-driver`). The browser draws
without a graphics card, so the figures are the most that the page can cost. CPU seconds suffer less
from what else runs here than frames by the clock, but repeated runs still differ by a quarter.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import reporting

from modelplan import Buffer, Problem, Solution
from modelplan.outputs import render
from modelplan.planning.allocators import place

sys.path.insert(0, str(reporting.ROOT / "tests" / "support"))
from browser import Browser, opened_browser

_COUNTS = (1_000, 12_000, 60_000, 100_000)
_FRAMES = 60
_ZOOM = """
const done = arguments[arguments.length - 1], most = arguments[0], w = chart.whole(plan()), c = plan().steps / 2;
const times = [];
let k = 0;
function frame(now) {
  times.push(now);
  if (k++ < most) {
    const z = Math.pow(0.9, k % 30), half = ((w.x1 - w.x0) / 2) * z;
    chart.look({ x0: c - half, x1: c + half, y0: 0, y1: w.y1 * Math.max(z, 0.2) });
    requestAnimationFrame(frame);
  } else done((1000 * most) / (times[most] - times[0]));
}
requestAnimationFrame(frame);
"""


def problem_of(count: int) -> Problem:
    """Buffers with short lives and some long ones, five for each step."""
    chosen, steps, rows = random.Random(count), max(count // 5, 200), []
    for i in range(count):
        start = chosen.randrange(steps - 1)
        life = chosen.choice((1, 2, 3, 5, 8, 20)) if chosen.random() < 0.99 else steps // 8
        size = chosen.choice((256, 1024, 4096, 16384, 65536))
        rows.append(Buffer(f"model/block_{i % 97}/layer_{i}/output:0", size, start, min(steps, start + life)))
    return Problem.of(rows)


def seconds(browser: Browser) -> float:
    """CPU seconds of the page's main thread until now."""
    found = browser.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return float(next(row["value"] for row in found if row["name"] == "TaskDuration"))


def measured(browser: Browser, count: int, folder: Path) -> tuple[object, ...]:
    """One row of the table."""
    problem = problem_of(count)
    path = folder / f"{count}.html"
    path.write_bytes(cast("bytes", render(Solution(problem, place(problem, "first-fit-size"), str(count)), ".html")))
    browser.driver.get("about:blank")
    browser.driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    before = seconds(browser)
    browser.open(path)
    browser.wait("return !chart.plain")
    opened = seconds(browser)
    frames = browser.driver.execute_async_script(_ZOOM, _FRAMES)
    each = (seconds(browser) - opened) / _FRAMES
    size = f"{path.stat().st_size / 1e6:.2f}"
    return f"{count:,}", size, f"{opened - before:.2f}", f"{1000 * each:.0f}", f"{1 / each:.0f}", f"{frames:.0f}"


def lines(browser: Browser) -> Iterator[str]:
    """The page."""
    headings = (
        "buffers",
        "MB",
        "CPU s to open",
        "CPU ms a frame",
        "frames a CPU second",
        "frames a second by the clock",
    )
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for count in _COUNTS:
            reporting.progress(f"{count:,} buffers")
            rows.append(measured(browser, count, Path(folder)))
    yield f"Zoom on both axes over {_FRAMES} frames at 1280x800, {browser.driver.capabilities['browserVersion']},"
    yield "drawn by the processor. CPU figures are those of the page's main thread, which draws."
    yield ""
    yield from reporting.table(headings, rows)


PARSER = reporting.command_line(__file__, __doc__, "page_speed.md", corpus=False)


def main() -> None:
    """Runs the script."""
    arguments = reporting.parse(PARSER)
    with opened_browser() as browser:
        browser.driver.set_script_timeout(300)
        found = list(lines(browser))
    reporting.save(arguments.output, reporting.made_by(PARSER, arguments), "The page in a browser", found)


if __name__ == "__main__":
    main()
