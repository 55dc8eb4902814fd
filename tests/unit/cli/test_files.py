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


def test_folders_are_made_on_request_only(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"cannot write .*b.txt: No such file"):
        files.write(str(tmp_path / "a" / "b.txt"), b"x")
    with pytest.raises(RequestError, match="there is no folder"):
        files.check_outputs([str(tmp_path / "a" / "b.txt")], [])
    files.make_folder(tmp_path / "a")
    files.write(str(tmp_path / "a" / "b.txt"), b"x")
    assert (tmp_path / "a" / "b.txt").read_bytes() == b"x"
    with pytest.raises(RequestError, match="cannot make the folder"):
        files.make_folder(tmp_path / "a" / "b.txt" / "c")
    with pytest.raises(RequestError, match="cannot write"):
        files.write(str(tmp_path / "a" / "b.txt" / "c"), "x")


def test_an_output_is_no_input_unless_forced(tmp_path: Path) -> None:
    source, link = tmp_path / "model.tflite", tmp_path / "link.tflite"
    source.write_bytes(b"x")
    link.symlink_to(source)
    for output in (source, link):
        with pytest.raises(RequestError, match="is the input; --force replaces it"):
            files.check_outputs([str(output)], [str(source)], force=False)
        with pytest.raises(RequestError, match=r"is the input$"):
            files.check_outputs([str(output)], [str(source)])
        files.check_outputs([str(output), None, "-"], [str(source)], force=True)
    files.write(str(link), b"new")
    assert link.is_symlink()
    assert source.read_bytes() == b"new"


def test_a_device_is_written_to_and_stays_one() -> None:
    with pytest.raises(RequestError, match="cannot write /dev/full: No space left on device"):
        files.write("/dev/full", b"x")
    assert Path("/dev/full").is_char_device()
