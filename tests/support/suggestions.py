"""Suggestions carried out with the commands that they name, and what the results need."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from modelplan.answers.explanation import Suggestion
from modelplan.cli import main
from modelplan.model.model_file import Target
from modelplan.questions.alternatives import load_file, unmodified_requirement, with_proved_plan

Figures = tuple[int | None, int]
#: Runs a command line (without the program's name) and returns what it prints.
Run = Callable[[list[str]], str]


def predicted(one: Suggestion) -> Figures:
    """Arena and head that a suggestion promises."""
    return one.arena, one.head


def carried_out(one: Suggestion, folder: Path, target: Target, run: Run) -> Figures:
    """Arena and head of what the commands of a suggestion make in `folder`, where they run.

    Of plans that only a header holds, and of other runtimes, the arena is None: the suggestion has none either.
    """
    said = ""
    for command in one.commands:
        program, *words = shlex.split(command)
        assert program == "modelplan"
        said = run(words)
    words = shlex.split(one.commands[-1])[1:]
    if words[0] == "analyze":
        return _analysed(words, folder, run, one)
    if "--runtime" in words and words[0] == "fit":  # plain C, whose buffer is its head
        ram, buffer = (re.findall(rf"^\s*{part} .*?([\d,]+) B\b", said, re.MULTILINE)[0] for part in ("RAM", "buffer"))
        return int(ram.replace(",", "")), int(buffer.replace(",", ""))
    if "--shim" in words:
        (pinned,) = re.findall(r"all pinned .*?([\d,]+) B", said)
        return one.arena, int(pinned.replace(",", ""))
    written = load_file(str(folder / words[words.index("-o") + 1]))
    # `fit` proves its file by rows, which the proof of a plan alone cannot follow.
    needed = with_proved_plan(written, target) if words[0] == "fit" else unmodified_requirement(written, target)
    return needed.arena, needed.head


def _analysed(words: list[str], folder: Path, run: Run, one: Suggestion) -> Figures:
    if "--json" not in words:
        run([*words, "--json", "plan.json"])
    document = json.loads((folder / "plan.json").read_text())
    if "--alias" in words:
        return document["summary"]["planned"], document["summary"]["height"]
    needed = document["requirement"]
    return None if one.arena is None else needed["arena"], needed["head"]


def printed(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs commands in this process."""

    def run(words: list[str]) -> str:
        assert main(words) == 0, words
        return capsys.readouterr().out

    return run
