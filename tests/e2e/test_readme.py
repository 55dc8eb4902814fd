"""The README's library example runs as it stands, and its table names the commands that exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from modelplan import read
from modelplan.cli.command_table import COMMANDS

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


def test_the_readme_names_every_command() -> None:
    assert set(re.findall(r"modelplan (\w+)(?: [-\w.]|`)", README)) == set(COMMANDS)


def test_every_link_of_the_readme_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert links
    assert not [link for link in links if not (ROOT / link).exists()]
