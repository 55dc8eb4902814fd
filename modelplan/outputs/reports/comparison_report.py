"""All allocators on one problem as a report: ours first, the others lowest first, ties in one line, refusals last."""

import json
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict

from modelplan.answers.placement_answers import OURS, AllocatorAnswers, Comparison, Row
from modelplan.outputs.report import Report, Section, Table, printable
from modelplan.primitives.units import human, stand_in

#: The version of the JSON document: raised when a field changes its meaning or goes, not when one is added.
SCHEMA = 1

HEADINGS = ("allocator", ">height", ">objects", ">height/bound", ">gap", ">time us", "note")
_WIDTH = 100


def sections_of(answers: AllocatorAnswers) -> Report:
    """The table with a row for each height."""
    return sections(answers.comparison)


def sections(comparison: Comparison, top: int | None = None) -> Report:
    """The table with at most `top` heights below ours, who stands behind a line of several, and who refused."""
    ours = [row for name in OURS for row in comparison.ranked if row.allocator == name]
    ties = _ties(row for row in comparison.ranked if row not in ours)
    shown = ties[:top]
    lines = [
        f"{comparison.counted}, lower bound {human(comparison.lower_bound)}",
        *comparison.remarks,
        *([f"{len(shown)} of {len(ties)} heights shown"] if len(shown) < len(ties) else []),
    ]
    cells = tuple(_cells(tie, comparison.lower_bound) for tie in [*((row,) for row in ours), *shown])
    report = [Section(printable(comparison.title), tuple(lines), Table(HEADINGS, cells))]
    if same := [line for tie in shown if len(tie) > 1 for line in _names(tie)]:
        report.append(Section("Same height", tuple(same)))
    if refused := _refusals(row for row in comparison.rows if row.height is None):
        report.append(Section("Refused", tuple(refused)))
    return report


def _refusals(rows: Iterable[Row]) -> list[str]:
    """Why allocators gave no answer, each reason once with all whose reason it is."""
    names: dict[str, list[str]] = {}
    for row in rows:
        names.setdefault(row.why.removeprefix(f"allocator {row.allocator!r} "), []).append(row.allocator)
    return [f"{reason}: {', '.join(who)}" if len(who) > 1 else f"{who[0]}: {reason}" for reason, who in names.items()]


def target_remarks(answers: AllocatorAnswers) -> list[str]:
    """Which target is meant, and how many answers fit its block; nothing without a target."""
    if answers.target is None:
        return []
    from modelplan.outputs.reports.target_report import target_lines

    source = answers.source
    if source.refusals:
        words = f"; the runtime would not run the model: {source.refusals[0]}"
    elif source.kept and source.plan:
        words = f", with the {human(source.kept)} that {source.plan.runtime.name} keeps beside the buffers"
    else:
        words = ", for the buffers alone"
    fits = f"fits      {answers.fitting} of {len(answers.comparison.ranked)} answers{words}"
    return [*target_lines(answers.target), fits]


def as_json(answers: AllocatorAnswers) -> str:
    """The answers as JSON: every row, none folded."""
    comparison, source = answers.comparison, answers.source
    document: dict[str, object] = {
        "schema": SCHEMA,
        "source": comparison.title,
        "lower_bound": comparison.lower_bound,
        "rows": [asdict(row) for row in comparison.rows],
    }
    if source.plan:
        document["kept"] = source.kept
        document["counted"] = "planned activations"
    if source.runtime_plan:
        document["today"] = asdict(source.runtime_plan)
    if answers.target:
        from modelplan.outputs.reports.target_report import target_facts

        document["target"] = target_facts(answers.target)
    return json.dumps(document, indent=1) + "\n"


def _ties(rows: Iterable[Row]) -> list[tuple[Row, ...]]:
    """The rows that stand in one line: of one height and one note, the first of them the fastest."""
    ties: dict[tuple[int | None, int | None, str], list[Row]] = {}
    for row in rows:
        ties.setdefault((row.height, _padded(row), stand_in(row.found_by, row.own_height)), []).append(row)
    return [tuple(tie) for tie in ties.values()]


def _padded(row: Row) -> int | None:
    """The bytes of the shared objects where padding between them makes the height another."""
    return None if row.objects == row.height else row.objects


def _cells(tie: Sequence[Row], bound: int) -> tuple[str, ...]:
    first = tie[0]
    height = first.height or 0
    notes = ["optimal"] if height == bound else []
    notes += [stand_in(first.found_by, first.own_height)] if first.found_by else []
    return (
        first.allocator + (f" +{len(tie) - 1}" if len(tie) > 1 else ""),
        f"{height:,}",
        "" if (objects := _padded(first)) is None else f"{objects:,}",
        f"{height / bound if bound else 1.0:.4f}",
        f"{height - bound:,}",
        f"{first.microseconds:,}",
        "; ".join(notes),
    )


def _names(tie: Sequence[Row]) -> Iterator[str]:
    """The height and the names of a tie, as many to a line as fit."""
    height = f"{tie[0].height:,}  "
    names = ", ".join(row.allocator for row in tie)
    yield from textwrap.wrap(
        names, _WIDTH, initial_indent=height, subsequent_indent=" " * len(height), break_on_hyphens=False
    )
