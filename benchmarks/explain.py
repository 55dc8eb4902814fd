"""Carries out every suggestion of `modelplan explain` that is a command, and compares the result with what was said.

Each .tflite model of the corpus and of models/: the file that the commands write is sized as `analyze` does, and run on
TFLM where tflite-micro is installed and nothing but the file has changed.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import reporting

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from suggestions import carried_out, predicted

from modelplan.answers.explanation import Advice, Suggestion
from modelplan.cli import main
from modelplan.model.model_file import ModelFile, Target
from modelplan.primitives.errors import ModelError
from modelplan.questions.alternatives import load_file, unmodified_requirement
from modelplan.questions.explaining.ranking import advice, class_of
from modelplan.questions.explaining.subjects import measured, subject_of
from modelplan.runtimes import RUNTIMES
from modelplan.runtimes.tflm.runner import RefusalError, installed, run_tflm

PARSER = reporting.command_line(__file__, __doc__, "explain.md")
PARSER.add_argument("--seconds", type=float, default=60.0, help="for the changes of one model")
TARGET = Target(RUNTIMES["tflm"], "32")


@dataclass(frozen=True)
class Row:
    """One model: what was suggested, how many suggestions were carried out, how many need less than was said, and how
    many TFLM ran; what needs more, or has another head on TFLM than it was written for, is wrong.
    """

    name: str
    arena: int
    advice: Advice
    carried_out: int
    lower: int
    wrong: tuple[str, ...]
    executed: int

    def best(self, number: int) -> str:
        """The arena of the best suggestion of a class; empty where there is none."""
        found = [one.arena for one in self.advice.suggestions if class_of(one.needs) == number and one.arena]
        return f"{min(found):,}" if found else ""


def rows(folder: Path, seconds: float) -> Iterator[Row]:
    """A row for each model that TFLM runs."""
    for path in [*sorted((folder / "tflite").rglob("*.tflite")), *sorted((reporting.ROOT / "models").glob("*.tflite"))]:
        try:
            file = load_file(str(path))
        except ModelError:
            continue
        needed = unmodified_requirement(file, TARGET)
        if needed.refusals:
            continue
        sys.stderr.write(f"{path.name}\n")
        yield _row(file, path, seconds)


def _row(file: ModelFile, path: Path, seconds: float) -> Row:
    subject = subject_of(file, TARGET, time.monotonic() + seconds)
    start = measured(subject)
    found = advice(subject, start)
    tried, lower, wrong, executed = 0, 0, list[str](), 0
    for one in found.suggestions:
        if one.todo or not one.commands:
            continue
        tried += 1
        with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
            needed, said = carried_out(one, Path(name), TARGET, _run), predicted(one)
            more = needed[1] - said[1] if None in (needed[0], said[0]) else (needed[0] or 0) - (said[0] or 0)
            lower += more < 0
            if more > 0:
                wrong.append(f"{one.name}: {more:,} bytes more")
            executed += _runs_so(one, Path(name), needed[1], wrong)
    return Row(path.name, start.arena, found, tried, lower, tuple(wrong), executed)


def _run(words: list[str]) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as said:
        code = main(words)
    if code:
        raise SystemExit(f"modelplan {' '.join(words)}: exit {code}")
    return said.getvalue()


def _runs_so(one: Suggestion, folder: Path, needed: int, wrong: list[str]) -> bool:
    """Whether TFLM ran the written file; another head than it needs is wrong."""
    written = [path for path in (folder / "fitted.tflite", folder / "packed.tflite") if path.exists()]
    if not written or not installed() or "--shim" in one.commands[-1]:
        return False
    try:
        head = run_tflm(written[0].read_bytes(), rounds=1).head
    except RefusalError:
        return False
    if head != needed:
        wrong.append(f"{one.name} on TFLM: {head:,}")
    return True


def write(found: list[Row], path: Path, first: str) -> None:
    """The page."""
    tried, wrong = sum(row.carried_out for row in found), sum(len(row.wrong) for row in found)
    headings = (
        "model",
        "arena",
        "by command",
        "platform",
        "other model",
        "carried out",
        "less",
        "more",
        "on TFLM",
        "late",
    )
    body = [
        (row.name, f"{row.arena:,}", *(row.best(number) for number in range(3)), row.carried_out, row.lower,
         len(row.wrong), row.executed, len(row.advice.untried))
        for row in found
    ]  # fmt: skip
    lines = [
        "Least arena in bytes by what a suggestion asks for: a command, another platform, another model.",
        "Suggestions that are commands were carried out; *less* counts those whose result needs less than was said,",
        "since commands search longer, *more* those that need more, *on TFLM* those that TFLM ran with the head that",
        "the file is written for, *late* the changes for which there was no time.",
        "",
        f"{tried} suggestions carried out, {wrong} need more than was said.",
        "",
        *reporting.table(headings, body),
        *(f"\n{row.name}: {'; '.join(row.wrong)}" for row in found if row.wrong),
    ]
    reporting.save(path, first, "Suggestions of explain, carried out", lines)


if __name__ == "__main__":
    ARGUMENTS = reporting.parse(PARSER)
    os.environ.setdefault("NO_COLOR", "1")
    write(list(rows(ARGUMENTS.corpus, ARGUMENTS.seconds)), ARGUMENTS.output, reporting.made_by(PARSER, ARGUMENTS))
