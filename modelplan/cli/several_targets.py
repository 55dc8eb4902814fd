"""`analyze --target all`: whether a model fits each of several targets, and with --fit what would make it fit."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from modelplan.cli import files, model_options, terminal
from modelplan.outputs import render
from modelplan.outputs.reports.verdicts_report import changes_section, verdicts_section
from modelplan.primitives.errors import RequestError
from modelplan.questions.analyzing import AnalyzeRequest
from modelplan.questions.sizing_for_targets import target_verdicts, with_changes

if TYPE_CHECKING:
    from modelplan.answers.fit_of_targets import TargetVerdict
    from modelplan.targets.choosing import Chosen

#: What is for one target.
_SINGLE = ("csv", "draw", "overlay", "c_array", "why_not", "verbose", "out", "capacity", "reserve", "used",
           "arena_symbol", "define", "include")  # fmt: skip


def show_verdicts(arguments: Namespace, models: Sequence[str], targets: Sequence[Chosen]) -> int:
    """Shows a table for each model."""
    given = next((name for name in _SINGLE if getattr(arguments, name)), None)
    if given:
        raise RequestError(f"--{given.replace('_', '-')} is for one target; --target {arguments.target} names several")
    if arguments.json and len(models) > 1:
        raise RequestError(f"{len(models)} models, but --json is for one")
    return terminal.each(models, partial(_show, arguments, targets))


def _show(arguments: Namespace, targets: Sequence[Chosen], path: str) -> int:
    request = model_options.request_of(AnalyzeRequest, arguments, path)
    verdicts = target_verdicts(request, targets)
    shows = arguments.json != "-"
    with terminal.shown_in_parts(wait=False) as show:
        if shows:
            show([verdicts_section(verdicts)])
        if arguments.fit:
            changed: list[TargetVerdict] = []
            tried = with_changes(request, verdicts, terminal.show_line)
            for _, rows in groupby(tried, key=lambda row: row.target.device.kernels):
                of_library = list(rows)
                changed += of_library
                terminal.show_line("")
                if shows:
                    show([changes_section(of_library)])
            by_target = {row.target.device.name: row for row in changed}
            kept = tuple(by_target.get(row.target.device.name, row) for row in verdicts.rows)
            verdicts = replace(verdicts, rows=kept, tried=True)
    if arguments.json:
        files.write(arguments.json, str(render(verdicts, ".json")))
    return 1 if all(row.requirement.refusals for row in verdicts.rows) else 0
