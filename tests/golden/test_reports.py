"""Every report names the command that makes it, and so does the table of reports/README.md."""

from __future__ import annotations

import argparse
import re
import shlex
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
REPORTS = ROOT / "reports"
#: Report: the words of its command behind `python`, as the table has them.
ROWS = {
    name: command
    for names, command in re.findall(r"^\| (`[^|]+) \| `python ([^`]+)` \|", (REPORTS / "README.md").read_text(), re.M)
    for name in re.findall(r"`([^`]+)`", names)
}


def parser_of(command: str) -> argparse.ArgumentParser:
    """The command line of the script that a command runs."""
    parser = import_module(Path(command.split()[0]).stem).PARSER
    assert isinstance(parser, argparse.ArgumentParser)
    return parser


def test_the_table_lists_every_report_and_every_script() -> None:
    assert {path.name for path in REPORTS.iterdir() if path.suffix in (".md", ".csv")} == {*ROWS, "README.md"}
    scripts = {path.name for path in (ROOT / "benchmarks").glob("*.py") if "\nPARSER = " in path.read_text()}
    assert {Path(command.split()[0]).name for command in ROWS.values()} == scripts


@pytest.mark.parametrize("name", [name for name in ROWS if name.endswith(".md")])
def test_a_report_is_made_by_its_command(name: str) -> None:
    first, empty, title = (REPORTS / name).read_text().splitlines()[:3]
    assert first.startswith(f"Made by `python {ROWS[name]}`")
    assert (empty, title[:2]) == ("", "# ")
    parser = parser_of(ROWS[name])
    arguments = parser.parse_args(shlex.split(ROWS[name])[1:])
    assert arguments.output == REPORTS / name


def test_a_page_names_the_options_that_are_not_the_default(tmp_path: Path) -> None:
    import reporting

    parser = reporting.command_line("benchmarks/some.py", "Shows how.", "some.md")
    parser.add_argument("--most", type=int, default=7)
    parser.add_argument("--binary", type=Path)
    parser.add_argument("--long", action="store_true")
    words = ["--corpus", str(tmp_path), "--output", str(tmp_path / "page.md"), "--binary", "/a/b", "--long"]
    first = reporting.made_by(parser, parser.parse_args(words), "; one thread")
    assert first == "Made by `python benchmarks/some.py --binary PATH --long`; one thread."
    reporting.save(tmp_path / "page.md", first, "Some", reporting.table(("a", "b"), [("x", 1)]))
    assert (tmp_path / "page.md").read_text() == f"{first}\n\n# Some\n\n| a | b |\n|---|---:|\n| x | 1 |\n"
