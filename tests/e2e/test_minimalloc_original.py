"""The side-by-side with MiniMalloc's program, here with a program of ours that has its options."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import minimalloc_original
import pytest
from minimalloc_original import Answer, Row

from modelplan import Problem, load


@pytest.fixture
def binary(tmp_path: Path) -> Path:
    """Takes --input, --output, --capacity and --timeout; puts everything at 0 below a capacity of 5."""
    program = tmp_path / "original"
    program.write_text(
        f"#!{sys.executable} -P\n"
        "import sys\n"
        "from modelplan.cli import main\n"
        "words = dict(word[2:].split('=', 1) for word in sys.argv[1:])\n"
        "lines = open(words['input']).read().split()\n"
        "if int(words['capacity']) < 5:\n"
        "    open(words['output'], 'w').write('\\n'.join([lines[0] + ',offset', *(l + ',0' for l in lines[1:])]))\n"
        "    sys.exit(0)\n"
        "sys.exit(main(['solve', *(f'--{key}={words[key]}' for key in ('input', 'output', 'capacity'))]))\n"
    )
    program.chmod(0o755)
    return program


def test_the_answers_of_the_three_agree(binary: Path, corpus: Path) -> None:
    path = corpus / "problems" / "minimalloc" / "input.12.csv"
    problem = load(str(path))
    assert isinstance(problem, Problem)
    problem = replace(problem, capacity=None)
    for capacity, verdict in ((12, "fits"), (11, "never")):
        assert minimalloc_original.ask_original(binary, path, problem, capacity, 10).verdict == verdict
        assert minimalloc_original.ask_ours(problem, capacity, 10).verdict == verdict
        assert minimalloc_original.ask_solver(problem, capacity, 10).verdict == verdict
    with pytest.raises(Exception, match="share bytes"):
        minimalloc_original.ask_original(binary, path, problem, 4, 10)


def test_the_report_counts_contradictions_and_compares_seconds() -> None:
    fits, never, late = Answer("fits", 2.0), Answer("never", 1.0), Answer("open", 9.0)
    rows = [Row("A", 9, 100, 100, fits, Answer("fits", 1.0), never), Row("B", 9, 100, 99, fits, late, fits)]
    assert [row.contradiction for row in rows] == [True, False]
    assert [row.ratio for row in rows] == [0.5, None]
    page = "\n".join(minimalloc_original.report(rows, 10))
    assert "our seconds are 0.50 of its in the median" in page
    assert "Contradictions among the three: 1." in page
    assert "left open by `minimalloc`: 1." in page
