"""A file is written whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from modelplan import RequestError
from modelplan.cli import files


def test_an_interruption_leaves_the_old_file_and_no_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "plan.json"
    files.write(str(target), "old")

    def interrupt(self: Path, other: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        files.write(str(target), "new")
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_folders_are_made_and_bad_places_named(tmp_path: Path) -> None:
    files.write(str(tmp_path / "a" / "b.txt"), b"x")
    assert (tmp_path / "a" / "b.txt").read_bytes() == b"x"
    with pytest.raises(RequestError, match="cannot write"):
        files.write(str(tmp_path / "a" / "b.txt" / "c"), "x")
