"""A real browser for tests of HTML files: Debian's chromium, driven by Selenium; missing is a visible skip."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

BROWSER, DRIVER = Path("/usr/bin/chromium"), Path("/usr/bin/chromedriver")
_SECONDS = 60.0


def require_browser() -> None:
    """Skips where there is no browser, but under CI, where it is a failure."""
    missing = [str(path) for path in (BROWSER, DRIVER) if not path.exists()]
    if missing and os.environ.get("CI"):
        pytest.fail(f"no {', '.join(missing)}: apt-get install chromium chromium-driver")
    if missing:
        pytest.skip(f"no {', '.join(missing)}")
    pytest.importorskip("selenium")


@contextmanager
def opened_browser(width: int = 1280, height: int = 800) -> Iterator[Browser]:
    """A browser without a window; nothing is downloaded."""
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = str(BROWSER)
    for word in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars", "--disable-gpu"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    driver.set_page_load_timeout(_SECONDS)
    try:
        browser = Browser(driver)
        browser.resize(width, height)
        yield browser
    finally:
        driver.quit()


class Browser:
    """What tests do with a page: open, run, wait, press, click, look."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        self.opened = 0

    def resize(self, width: int, height: int) -> None:
        """Makes the page so large, in pixels."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def prefer(self, **features: str) -> None:
        """What the user prefers: `prefers_color_scheme="dark"`."""
        words = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": words})

    def open(self, path: Path, fragment: str = "") -> None:
        """Opens a file from the beginning, and waits until it is ready."""
        self.opened += 1  # another address each time, so that the same file is loaded anew
        self.driver.get(f"{path.as_uri()}?{self.opened}{fragment}")
        self.wait("return document.documentElement.dataset.ready === 'true'")

    def run(self, script: str, *arguments: Any) -> Any:
        """What a script returns."""
        return self.driver.execute_script(script, *arguments)

    def wait(self, script: str) -> None:
        """Waits until a script returns something true."""
        deadline = time.monotonic() + _SECONDS
        while not self.run(script):
            if time.monotonic() > deadline:
                raise AssertionError(f"after {_SECONDS:g} s still not: {script}")
            time.sleep(0.02)

    def text(self, selector: str) -> str:
        """The text of an element."""
        return str(self.run("return document.querySelector(arguments[0]).textContent", selector))

    def texts(self, selector: str) -> list[str]:
        """The texts of all elements."""
        return list(self.run("return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)", selector))

    def press(self, *keys: str) -> None:
        """Presses keys where the focus is."""
        from selenium.webdriver.common.action_chains import ActionChains

        for key in keys:
            ActionChains(self.driver, duration=0).send_keys(key).perform()

    def point(self, x: float, y: float, *, click: bool = False) -> None:
        """Moves the pointer to a place of the page, and clicks there."""
        self._mouse("mouseMoved", x, y)
        if click:
            self._mouse("mousePressed", x, y, button="left", clickCount=1)
            self._mouse("mouseReleased", x, y, button="left", clickCount=1)

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Drags from one place to another."""
        self._mouse("mouseMoved", *start)
        self._mouse("mousePressed", *start, button="left", clickCount=1)
        for share in (0.25, 0.5, 0.75, 1.0):
            place = (a + (b - a) * share for a, b in zip(start, end, strict=True))
            self._mouse("mouseMoved", *place, button="left")
        self._mouse("mouseReleased", *end, button="left", clickCount=1)

    def turn_wheel(self, x: float, y: float, by: float) -> None:
        """Turns the wheel at a place; negative is towards the page."""
        self._mouse("mouseWheel", x, y, deltaX=0, deltaY=by)

    def _mouse(self, what: str, x: float, y: float, **more: Any) -> None:
        self.driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": what, "x": x, "y": y, **more})

    def complaints(self) -> list[str]:
        """What the console says of errors, violations and warnings since the last call."""
        rows = self.driver.get_log("browser")
        return [row["message"] for row in rows if row["level"] in ("SEVERE", "WARNING")]

    def pixels(self) -> npt.NDArray[np.uint8]:
        """What is seen: rows of pixels with red, green and blue."""
        from PIL import Image

        with Image.open(io.BytesIO(self.driver.get_screenshot_as_png())) as image:
            return np.array(image.convert("RGB"))
