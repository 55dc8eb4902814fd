"""The README's library example runs as it stands, and its table names the commands that exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from commands import run

from modelplan import read
from modelplan.cli.command_table import COMMANDS, MODES

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def test_the_library_example_runs(tmp_path: Path) -> None:
    (tmp_path / "models").symlink_to(ROOT / "models")
    example = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(example) == 1
    done = subprocess.run([sys.executable, "-P", "-c", example[0]], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert [len(line.split(" ", 2)) for line in done.stdout.splitlines()] == [2, 3]
    assert read((tmp_path / "plan.json").read_text()).graph.name == "ds_cnn_kws"


def test_the_page_of_commands_names_every_one() -> None:
    page = (ROOT / "docs" / "commands.md").read_text().partition("What was a command of its own")[0]
    assert set(re.findall(r"modelplan (\w+)(?: [-\w.]|`)", page)) == set(COMMANDS)
    for mode in MODES:
        assert mode.name in (ROOT / "docs" / "commands.md").read_text()


def test_the_answer_in_the_readme_is_the_one_that_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = re.search(r"```\n\$ modelplan (\S+)\n(.*?)```", README, re.DOTALL)
    assert shown
    assert run(shown[1], cwd=ROOT).stdout == shown[2]


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 120


def test_every_link_of_the_readme_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert links
    assert not [link for link in links if not (ROOT / link).exists()]
