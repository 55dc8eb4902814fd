"""Outcomes as workflow commands of GitHub Actions, which show them beside the files of a pull request."""

from __future__ import annotations

from collections.abc import Iterator
from posixpath import join, normpath

from modelplan.answers.check_outcomes import Findings, Outcome
from modelplan.outputs.checks.report import arena_change, headline, model_changes, outlook, remedy_lines, unknown_lines
from modelplan.outputs.report import printable
from modelplan.primitives.units import counted, human

#: GitHub shows so many annotations of one step and drops the rest in silence.
MOST = 10


def workflow_commands(findings: Findings) -> str:
    """One error for each check that failed, at most ten commands; the last counts what is left out."""
    failed = findings.failed
    if not failed:
        summary = "\n".join([headline(findings), *unknown_lines(findings), *_changes(findings)])
        return _command("notice", {"title": "modelplan"}, summary)
    shown = failed if len(failed) <= MOST else failed[: MOST - 1]
    # From the root of the repository.
    paths = [normpath(join(findings.folder, outcome.check.model)) for outcome in shown]
    lines = [
        _command("error", {"file": path, "title": _title(outcome)}, "\n".join(_lines(outcome)))
        for path, outcome in zip(paths, shown, strict=True)
    ]
    if rest := failed[len(shown) :]:
        names = "\n".join(outcome.check.name for outcome in rest)
        lines.append(_command("error", {"title": f"{counted(len(rest), 'more check')} failed"}, names))
    return "".join(lines)


def _changes(findings: Findings) -> Iterator[str]:
    """The models that changed although every limit is kept, and what changed them."""
    for change in model_changes(findings):
        yield from (f"{change.model}: {arena_change(outcome)}" for outcome in change.outcomes)
        yield from change.causes


def _title(outcome: Outcome) -> str:
    if outcome.refusals:
        return f"{outcome.check.name}: {'not judged' if outcome.problem else 'does not run'}"
    first = next(judged for judged in outcome.judgements if not judged.passed)
    return f"{outcome.check.name}: {first.quantity} {human(first.excess)} too much"


def _lines(outcome: Outcome) -> Iterator[str]:
    yield from outcome.refusals
    for judged in outcome.judgements:
        if not judged.passed and judged.size is not None and judged.limit is not None:
            yield f"{judged.quantity} {human(judged.size)}, allowed {human(judged.limit)}"
    if outcome.change and outcome.earlier:
        yield f"{outcome.change:+,} bytes of arena since {outcome.earlier.source}"
    yield from outcome.causes
    if not outcome.refusals:
        yield from outlook(outcome)
        yield from remedy_lines(outcome)


def _command(name: str, properties: dict[str, str], message: str) -> str:
    r"""A workflow command in one line; what would end a property or the command is escaped.

    >>> _command("error", {"file": "a,b.tflite"}, "50% more")
    '::error file=a%2Cb.tflite::50%25 more\n'
    """
    given = ",".join(f"{key}={_escaped(printable(value), ':,')}" for key, value in properties.items())
    text = "\n".join(printable(line) for line in message.splitlines())
    return f"::{name} {given}::{_escaped(text)}\n"


def _escaped(text: str, more: str = "") -> str:
    for character in ("%", "\r", "\n", *more):  # the percent sign first, since the others become one
        text = text.replace(character, f"%{ord(character):02X}")
    return text
