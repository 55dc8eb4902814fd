"""The example of docs/diff.md is what the command prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from documented import ROOT, printed_as_shown

from modelplan.cli import main

PAGE = ROOT / "docs" / "diff.md"
EXAMPLE = re.compile(r"(## Example: same[^\n]*\n\n```sh\nmodelplan ([^\n]*)\n```\n\n```text\n)(.*?)```", re.DOTALL)
COMMANDS = re.compile(r"## Example: a file[^\n]*\n\n```sh\n(.*?)```", re.DOTALL)


def test_the_example_is_what_the_command_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], pytestconfig: pytest.Config
) -> None:
    monkeypatch.chdir(ROOT)
    assert printed_as_shown(PAGE, EXAMPLE, capsys, update=pytestconfig.getoption("--update"))


def test_the_other_example_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    found = COMMANDS.search(PAGE.read_text())
    assert found
    (tmp_path / "models").symlink_to(ROOT / "models")
    monkeypatch.chdir(tmp_path)
    for line in found[1].splitlines():
        assert main(shlex.split(line)[1:]) == 0
    printed = capsys.readouterr().out
    assert "plan as the runtime makes it -> carried by the file" in printed
    assert "Operators that differ" not in printed
