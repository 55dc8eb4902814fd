"""Outcomes as one comment on a pull request: what failed, what changed since the baseline, what would fit."""

import re
from collections.abc import Iterable, Iterator

from modelplan.answers.check_outcomes import Findings, Outcome
from modelplan.outputs.checks.check_report import (
    ModelChange,
    arena_change,
    change_of,
    headline,
    model_changes,
    outlook,
    remedy_commands,
    unknown_lines,
)
from modelplan.outputs.report import Pasted, literal, printable
from modelplan.primitives.lazy_records import dataclass
from modelplan.primitives.units import counted

#: GitHub refuses a comment with more characters; bytes are never fewer than characters.
MOST = 65_536
#: Bytes that are kept for the line that counts what is left out.
_NOTE = 200
_HEAD = "| | check | limit | bytes | allowed | arena since |\n|---|---|---|---:|---:|---:|\n"
_HEAD_ALONE = "| | check | limit | bytes | allowed |\n|---|---|---|---:|---:|\n"


@dataclass(frozen=True, slots=True)
class _Block:
    """Rows under an opening; of a block whose rows do not all fit the first are kept."""

    opening: str
    rows: tuple[str, ...]
    closing: str = ""


def marker(findings: Findings) -> str:
    """The hidden line by which the comment of an earlier run is found again.

    >>> marker(Findings("modelplan.toml", ()))
    '<!-- modelplan check modelplan.toml -->'
    """
    source = re.sub(r"[^\w./]+", "-", findings.source) or "command-line"
    return f"<!-- modelplan check {source} -->"


def pull_request_comment(findings: Findings) -> str:
    """The comment in Markdown, of at most 64 KiB; what is left out is counted."""
    unknown = "".join(f"\n{literal(line)}\n" for line in unknown_lines(findings))
    opening = f"{marker(findings)}\n### Memory: {literal(headline(findings))}\n{unknown}"
    blocks = [block for block in _blocks(findings) if block.rows]
    pieces, dropped = [opening], 0
    left = MOST - _NOTE - len(opening.encode()) - sum(len((b.opening + b.closing).encode()) for b in blocks)
    for block in blocks:
        kept = list(_fitting(block.rows, left))
        left -= sum(len(row.encode()) for row in kept)
        dropped += len(block.rows) - len(kept)
        pieces += [block.opening, *kept, block.closing]
    if dropped:
        pieces.append(
            f"\n{counted(dropped, 'row')} left out: a comment holds 64 KiB. The formats text and json have all.\n"
        )
    return "".join(pieces)


def _fitting(rows: Iterable[str], size: int) -> Iterator[str]:
    """The first rows that have at most so many bytes together."""
    for row in rows:
        size -= len(row.encode())
        if size < 0:
            return
        yield row


def _blocks(findings: Findings) -> Iterator[_Block]:
    compared = any(outcome.earlier for outcome in findings.outcomes)
    head = _HEAD if compared else _HEAD_ALONE
    listed = [outcome for outcome in findings.outcomes if not outcome.passed or outcome.change]
    quiet = [outcome for outcome in findings.outcomes if outcome.passed and not outcome.change]
    yield _Block(f"\n{head}", tuple(row for outcome in listed for row in _rows(outcome, compared=compared)))
    yield _Block("\n#### What changed\n", tuple(map(_change, model_changes(findings))))
    yield _Block("\n#### What would fit\n", tuple(filter(None, map(_remedy, findings.failed))))
    summary = f"\n<details><summary>{counted(len(quiet), 'check')} passed, as before</summary>\n\n{head}"
    summary = summary if compared else summary.replace(", as before", "")
    yield _Block(
        summary, tuple(row for outcome in quiet for row in _rows(outcome, compared=compared)), "\n</details>\n"
    )


def _rows(outcome: Outcome, *, compared: bool) -> Iterator[str]:
    name = _code(outcome.check.name, cell=True)
    since = f" {change_of(outcome)} |" if compared else ""
    if outcome.refusals:
        yield f"| :x: | {name} | {'not judged' if outcome.problem else 'does not run'} | | |{since}\n"
    for judged in () if outcome.refusals else outcome.judgements:
        sign = ":white_check_mark:" if judged.passed else ":x:"
        if judged.size is not None and judged.limit is not None:
            yield f"| {sign} | {name} | {judged.quantity} | {judged.size:,} | {judged.limit:,} |{since}\n"


def _change(change: ModelChange) -> str:
    """The arenas of a model that changed, and what made them change."""
    arenas = [f"* {literal(arena_change(outcome))}" for outcome in change.outcomes]
    lines = [*arenas, *(f"  * {_code(line)}" for line in change.causes)]
    return f"\n{_code(change.model)}\n\n" + "".join(f"{line}\n" for line in lines)


def _remedy(outcome: Outcome) -> str:
    """What would make a check pass, with the commands in a block to copy; empty where nothing was tried."""
    lines = [*map(_code, outcome.refusals), *map(_said, [] if outcome.refusals else outlook(outcome))]
    if not lines:
        return ""
    session = outcome.fitting_session
    language, commands = ("python", session.code) if session else ("sh", (remedy_commands(outcome),))
    words = "".join(f"* {line}\n" for line in lines)
    pasted = "\n".join(map(printable, commands))
    fence = _fence(pasted, 3)
    pasted = f"\n{fence}{language}\n{pasted}\n{fence}\n" if pasted else ""
    return f"\n{_code(outcome.check.name)}\n\n{words}{pasted}"


def _said(line: str) -> str:
    """A line of words, or a command as code."""
    return _code(line.strip()) if isinstance(line, Pasted) else literal(line.strip())


def _code(text: str, *, cell: bool = False) -> str:
    """The text as code, in as many backticks as it takes; in a cell of a table bars are escaped."""
    text = printable(text)
    fence = _fence(text, 1)
    space = " " if text[:1] == "`" or text[-1:] == "`" else ""
    return f"{fence}{space}{text.replace('|', chr(92) + '|') if cell else text}{space}{fence}"


def _fence(text: str, least: int) -> str:
    """More backticks than stand in a row in the text, at least so many."""
    return "`" * max(least, *(len(run) + 1 for run in re.findall(r"`+", text)), 1)
