"""A layout in several memories as a view: rectangles, bands, arrows."""

from __future__ import annotations

from pathlib import Path

import pytest
from layouts import KINDS, two_memories

from modelplan.answers.page_views import Page
from modelplan.answers.region_layout import Layout, Stay
from modelplan.cli import main
from modelplan.outputs.page.columns import columns_of
from modelplan.outputs.page.region_views import layout_view

MODELS = Path(__file__).parents[3] / "models"


def test_stays_become_rectangles_in_the_bands_of_their_regions() -> None:
    asked, layout = two_memories()
    view = layout_view(asked, layout, KINDS, "fast first", made_by="modelplan")
    assert [band.name for band in view.bands] == ["DTCM", "SDRAM", "FLASH"]
    assert [band.used for band in view.bands] == [3000, 4000, 0]
    low = {band.region: band.base for band in view.bands}
    high = {band.region: band.base + band.height for band in view.bands}
    assert list(low.values()) == [0, *list(high.values())[:-1]]
    offsets = view.drawing.placement.offsets.tolist()
    for stay, offset, size in zip(layout.stays, offsets, view.drawing.problem.size.tolist(), strict=True):
        assert offset == low[stay.region] + stay.offset
        assert offset + size <= high[stay.region]
    assert [view.drawing.labels[kind] for kind in view.drawing.kinds] == [*["activation"] * 3, "weights"]
    assert view.drawing.steps == 6


def test_copies_become_arrows_from_stay_to_stay_and_from_a_home() -> None:
    asked, layout = two_memories()
    view = layout_view(asked, layout, KINDS)
    sram, sdram, flash = view.bands
    spill, weights = view.arrows
    assert (spill.source, spill.target, spill.issued, spill.due, spill.size) == (0, 1, 2, 4, 2000)
    assert (spill.start, spill.end) == (sram.base + 1000, sdram.base + 2000 + 1000)
    assert (weights.source, weights.issued, weights.due, weights.size) == (-1, 0, 1, 1000)
    assert flash.base <= weights.start < flash.base + flash.height
    assert ("copied from DTCM to SDRAM", "1.95 KiB (2,000 B)") in view.facts
    assert ("copied from FLASH to DTCM", "1,000 B") in view.facts
    assert view.about == "4 placements, 2 copies; method: hand"
    found = columns_of(Page("two", "", (view,), "modelplan"))["views"][0]
    assert found["regions"][0] == ["DTCM", 0, 3000, 8192]
    assert found["copies"][0][:4] == [0, 1, 2, 4]


@pytest.mark.parametrize("stays", [(), (Stay(0, 0, 0, 0, 6),)])
def test_a_layout_without_copies_or_without_anything_is_drawn(stays: tuple[Stay, ...]) -> None:
    asked, _ = two_memories()
    view = layout_view(asked, Layout(stays), KINDS)
    assert len(view.bands) == len(stays)
    assert view.arrows == ()
    assert columns_of(Page("few", "", (view,), "modelplan"))["views"][0]["steps"] == 6


@pytest.mark.parametrize("command", ["memories", "spill"])
def test_commands_write_the_page(command: str, tmp_path: Path) -> None:
    model, page = str(MODELS / "unet_small.tflite"), tmp_path / "plan.html"
    regions = ["--region", "sram:256KiB,rate=400MB/s", "--region", "psram:8MiB,read=80MB/s,write=40MB/s"]
    assert main([command, model, *regions, "--draw", str(page)]) == 0
    assert "psram" in page.read_text()
    assert main([command, model, *regions, "--draw", str(tmp_path / "plan.htm")]) == 2
