"""The gallery has every kind of figure, and its pictures show what the commands draw today.

Lines and glyphs differ a little between versions of matplotlib; words do not, so the words of a picture and how many
shapes it has are compared.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

from modelplan.outputs import OUTPUTS, outputs_of

ROOT = Path(__file__).resolve().parents[2]


def script() -> ModuleType:
    """docs/gallery.py."""
    spec = importlib.util.spec_from_file_location("gallery", ROOT / "docs" / "gallery.py")
    assert spec
    assert spec.loader
    module = sys.modules["gallery"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GALLERY = script()


def words(picture: Path, *, timed: bool) -> list[str]:
    """The words of a picture, which matplotlib writes as comments; of measured times only words without digits."""
    found = re.findall(r"<!-- (.*?) -->", picture.read_text())
    return sorted({text for text in found if not re.search(r"\d", text)}) if timed else found


def shapes(picture: Path) -> int:
    """How many shapes that are no letters a picture has."""
    groups = ElementTree.parse(picture).iter("{http://www.w3.org/2000/svg}g")
    return sum(not group.get("id", "").startswith("text_") for group in groups if group.get("id"))


def test_the_gallery_has_every_kind_of_figure_with_its_question() -> None:
    kinds = {(row.of, row.suffix) for row in OUTPUTS if row.figure}
    shown = [tuple(one.kind.partition(".")[::2]) for one in GALLERY.FIGURES]
    assert all("." + suffix + ".svg" in outputs_of(of) for of, suffix in shown)
    as_drawn = {"Plan": "Drawing", "SharedPlan": "Drawing"}
    covered = {(of, f".{suffix}") for of, suffix in shown}
    covered |= {(as_drawn.get(of, of), suffix) for of, suffix in covered}
    assert kinds <= covered
    assert all(one.question.endswith("?") for one in GALLERY.FIGURES)
    assert GALLERY.PAGE.read_text() == GALLERY.page(), "run: python docs/gallery.py"
    stored = {path.name for path in GALLERY.FOLDER.iterdir()}
    assert stored == {f"{one.name}.svg" for one in GALLERY.FIGURES}
    assert sum(path.stat().st_size for path in GALLERY.FOLDER.iterdir()) < 1_600_000


@pytest.mark.slow
@pytest.mark.parametrize("shown", GALLERY.FIGURES, ids=lambda one: one.name)
def test_a_picture_of_the_gallery_is_what_its_command_draws(shown: object, tmp_path: Path) -> None:
    new, old = GALLERY.draw(shown, tmp_path), GALLERY.FOLDER / f"{shown.name}.svg"  # type: ignore[attr-defined]
    timed = shown.timed  # type: ignore[attr-defined]
    assert words(new, timed=timed) == words(old, timed=timed), "run: python docs/gallery.py"
    assert words(old, timed=timed)
    if not timed:
        assert shapes(new) == shapes(old) > 0
