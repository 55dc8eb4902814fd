"""Every report names the command that makes it, and so does the table of reports/README.md."""

from __future__ import annotations

import argparse
import re
import shlex
from importlib import import_module
from pathlib import Path

import pytest
import reporting

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
    if "sweep" in command and "onnx_sweep" not in command:
        pytest.importorskip("pyarrow")
    parser = import_module(Path(command.split()[0]).stem).PARSER
    assert isinstance(parser, argparse.ArgumentParser)
    return parser


#: Reports that nobody has made anew since models/ or the allocators changed; a line goes when its report is new.
OLDER = {
    ("agreement.md", "models"),
    ("field.md", "allocators"),
    ("networks.md", "allocators"),
    ("properties.md", "allocators"),
    ("value_replay.md", "models"),
    ("verdicts.md", "models"),
}


@pytest.mark.parametrize(("name", "subject", "then"), reporting.measured())
def test_a_report_is_of_the_models_and_allocators_that_there_are(name: str, subject: str, then: str) -> None:
    newest = reporting.digest(subject) == then
    assert newest != ((name, subject) in OLDER), f"run `python {ROWS[name]}` for the present {subject}, or mend OLDER"


def test_what_a_report_has_measured_is_noted() -> None:
    noted = {
        (name, subject)
        for name, command in ROWS.items()
        for subject in reporting.subjects(ROOT / command.split()[0])
        if name.endswith(".md")
    }
    assert {(name, subject) for name, subject, _ in reporting.measured()} == noted


def test_the_table_lists_every_report_and_every_script() -> None:
    found = {path.name for path in REPORTS.iterdir() if path.suffix in (".md", ".csv")}
    assert found == {*ROWS, "README.md", "long.csv", "measured.csv"}
    scripts = {path.name for path in (ROOT / "benchmarks").glob("*.py") if "\nPARSER = " in path.read_text()}
    assert {Path(command.split()[0]).name for command in ROWS.values()} == scripts


def test_the_figures_of_the_first_page_stand_in_the_reports() -> None:
    for name, says in re.findall(
        r"^\| `([^`]+)`[^|]* \| [^|]+ \| ([^|]+) \|", (REPORTS / "README.md").read_text(), re.M
    ):
        report = (REPORTS / name).read_text()
        assert [figure for figure in re.findall(r"\d+[,.]\d[\d,.]*\d|\d{3,}", says) if figure not in report] == [], name


@pytest.mark.parametrize("name", [name for name in ROWS if name.endswith(".md")])
def test_a_report_is_made_by_its_command(name: str) -> None:
    first, empty, title = (REPORTS / name).read_text().splitlines()[:3]
    assert first.startswith(f"Made by `python {ROWS[name]}`")
    assert (empty, title[:2]) == ("", "# ")
    parser = parser_of(ROWS[name])
    arguments = parser.parse_args(shlex.split(ROWS[name])[1:])
    assert arguments.output == REPORTS / name


def test_a_page_names_the_options_that_are_not_the_default(tmp_path: Path) -> None:
    parser = reporting.command_line("benchmarks/some.py", "Shows how.", "some.md")
    parser.add_argument("--most", type=int, default=7)
    parser.add_argument("--binary", type=Path)
    parser.add_argument("--long", action="store_true")
    words = ["--corpus", str(tmp_path), "--output", str(tmp_path / "page.md"), "--binary", "/a/b", "--long"]
    first = reporting.made_by(parser, parser.parse_args(words), "; one thread")
    assert first == "Made by `python benchmarks/some.py --binary PATH --long`; one thread."
    reporting.save(tmp_path / "page.md", first, "Some", reporting.table(("a", "b"), [("x", 1)]))
    assert (tmp_path / "page.md").read_text() == f"{first}\n\n# Some\n\n| a | b |\n|---|---:|\n| x | 1 |\n"
