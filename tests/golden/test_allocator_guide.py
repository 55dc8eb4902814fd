"""The page on allocators is what the command writes today."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from modelplan.cli import main
from modelplan.cli.allocators import KINDS, guide
from modelplan.planning.allocators import ALLOCATORS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "allocators.md"


def test_the_page_is_current(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update"):
        PAGE.write_text(guide())
    assert PAGE.read_text() == guide(), "run: modelplan allocators --markdown docs/allocators.md"


def test_the_command_writes_the_page(tmp_path: Path) -> None:
    assert main(["allocators", "--markdown", str(tmp_path / "page.md")]) == 0
    assert (tmp_path / "page.md").read_text() == guide()


def test_every_row_says_what_it_is() -> None:
    for row in ALLOCATORS.values():
        assert row.kind in KINDS
        assert row.guarantees
        assert row.cost
        assert row.source
        assert (
            re.search(f"\n### (.*, )?{row.name}(,|\n)", guide()) or f"\n* without these faults: `{row.name}`" in guide()
        )
