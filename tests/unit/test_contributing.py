"""What CONTRIBUTING.md and the pages about operators name is there: every file, and in a file every name beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from modelplan.cli.command_table import MODULES

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("CONTRIBUTING.md", "docs/aliasing.md", "docs/rows.md", "docs/proof.md")
#: The most words of CONTRIBUTING.md, so that it is read before the first change.
MOST_WORDS = 1900
_PATH = re.compile(r"\.?[\w-]+(/[\w.-]+)*(/|\.(py|pyi|c|cpp|md|yml|txt))|\.ci/\w+|[a-z]+(/[a-z_]+)+")
_NAME = re.compile(r"_?[A-Za-z]\w*")


def blocks(text: str) -> list[str]:
    """The paragraphs, items and rows of a page, without its blocks of code."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return [block for block in re.split(r"\n\s*\n|\n(?=\* |\d\. |\|)", prose) if "`" in block]


def quoted(block: str) -> list[str]:
    """What stands in backticks, each on one line."""
    return [" ".join(token.split()) for token in re.findall(r"`([^`]+)`", block)]


def paths(block: str) -> Iterator[tuple[str, Path | None]]:
    """Each path that a block names with the file or folder that it is: from the root, or beside the one before it."""
    folders: list[Path] = [ROOT, ROOT / "modelplan"]
    for token in quoted(block):
        for word in token.split():
            if not _PATH.fullmatch(word):
                continue
            places = (folder / word for folder in folders)
            file = next((place for place in places if place.exists()), None)
            yield word, file
            if file is not None:
                own = file if file.is_dir() else file.parent
                folders = [ROOT, own, own.parent, *folders[1:]]


@cache
def words_of(place: Path) -> frozenset[str]:
    """The words in a file, in a folder those of all its files."""
    suffixes = {".py", ".pyi", ".c", ".cpp", ".md", ".yml", ".toml", ""}
    files = [place] if place.is_file() else [f for f in place.rglob("*") if f.is_file() and f.suffix in suffixes]
    return frozenset(word for file in files for word in re.findall(r"\w+", file.read_text(errors="ignore")))


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_is_named_is_there(page: str) -> None:
    named = [pair for block in blocks((ROOT / page).read_text()) for pair in paths(block)]
    assert len(named) > 15
    assert [path for path, file in named if file is None] == []


def missing_names(parts: list[str]) -> list[str]:
    """The names in each part of a page that no file has which is named there; without one, that none here has."""
    missing = []
    for part in parts:
        files = {file for _, file in paths(part) if file is not None} or {ROOT / "modelplan", ROOT / "tests"}
        there = frozenset[str]().union(*map(words_of, files))
        names = (token.partition("=")[0] for token in quoted(part) if not _PATH.fullmatch(token))
        missing += [name for name in names if _NAME.fullmatch(name) and name not in there | set(MODULES)]
    return missing


def test_every_name_in_a_list_stands_in_a_file_of_the_same_item() -> None:
    assert missing_names(blocks((ROOT / "CONTRIBUTING.md").read_text())) == []


@pytest.mark.parametrize("page", PAGES[1:])
def test_every_name_on_a_page_stands_in_a_file_that_the_page_names(page: str) -> None:
    assert missing_names(["\n".join(blocks((ROOT / page).read_text()))]) == []


def test_the_rules_find_what_is_missing() -> None:
    block = (
        "in `modelplan/ops/views.py` and `starts.py` beside it, `access/other_extents.py`, `view_start` and `part_of`"
    )
    assert [path for path, file in paths(block) if file is None] == ["starts.py"]
    assert "view_start" in words_of(ROOT / "modelplan/ops/views.py")
    assert "part_of" not in words_of(ROOT / "modelplan/ops/views.py")


def test_contributing_is_short() -> None:
    assert len((ROOT / "CONTRIBUTING.md").read_text().split()) <= MOST_WORDS
