"""The page on devices is what the command writes today."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from modelplan.cli import main
from modelplan.cli.targets import guide
from modelplan.targets.table import DEVICES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "devices.md"


def test_the_page_is_current(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update"):
        PAGE.write_text(guide())
    assert PAGE.read_text() == guide(), "run: modelplan targets --markdown docs/devices.md"


def test_the_command_writes_the_page(tmp_path: Path) -> None:
    assert main(["targets", "--markdown", str(tmp_path / "page.md")]) == 0
    assert (tmp_path / "page.md").read_text() == guide()


def test_the_page_names_every_device_with_its_source() -> None:
    for device in DEVICES.values():
        assert f"| {device.name} |" in guide()
        assert re.search(f"\n### (.*, )?{device.name}(,|\n)", guide())
        assert device.source in guide()
