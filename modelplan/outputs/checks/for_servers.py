"""Outcomes as build servers read them: JSON of size-limit, a JUnit report, and workflow commands of GitHub Actions."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from posixpath import join, normpath
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from modelplan.answers.check_outcomes import Findings, Judgement, Outcome
from modelplan.outputs.checks.check_report import (
    arena_change,
    headline,
    model_changes,
    outlook,
    remedy_lines,
    unknown_lines,
)
from modelplan.outputs.report import printable
from modelplan.primitives.units import counted, human

#: The version of the list: raised when a field changes its meaning or goes, not when one is added.
SCHEMA = 1


def json_rows(findings: Findings) -> str:
    """The document: `name`, `passed`, `size` and `sizeLimit` as in size-limit's own, in bytes; null: no such figure."""
    return json.dumps([row for outcome in findings.outcomes for row in _rows(outcome)], indent=1) + "\n"


def limit_name(outcome: Outcome, judged: Judgement) -> str:
    """What a limit is called: as its check, with the quantity where that is not the arena."""
    return outcome.check.name + ("" if judged.quantity == "arena" else f", {judged.quantity}")


def _rows(outcome: Outcome) -> Iterator[dict[str, object]]:
    facts = _facts(outcome)
    if outcome.refusals:
        limit = outcome.check.limits.arena
        yield {"name": outcome.check.name, "passed": False, "size": None, "sizeLimit": limit} | facts
        return
    for judged in outcome.judgements:
        figures = {"size": judged.size, "sizeLimit": judged.limit, "quantity": judged.quantity}
        reason = {"reason": f"n/a: {judged.reason}"} if judged.reason else {}
        yield {"name": limit_name(outcome, judged), "passed": judged.passed} | figures | facts | reason


def _facts(outcome: Outcome) -> dict[str, object]:
    """What holds for all limits of a model."""
    figures = asdict(outcome.figures) if outcome.figures else {}
    setting = {key: value for key, value in asdict(outcome.setting).items() if value} if outcome.setting else {}
    facts: dict[str, object] = {
        "model": outcome.check.model,
        "target": outcome.check.target or None,
        **setting,
        **figures,
    }
    if outcome.refusals:
        facts["reason"] = " ".join(outcome.refusals)
    if outcome.earlier:
        before = asdict(outcome.earlier.figures) if outcome.earlier.figures else None
        reason = {"reason": outcome.earlier.reason} if outcome.earlier.reason else {}
        facts["baseline"] = {"source": outcome.earlier.source, "figures": before, "change": outcome.change, **reason}
        facts["causes"] = outcome.causes
    if not outcome.passed and outcome.remedies:
        first = outcome.remedies[0]
        size = first.requirement.arena if first.requirement else None
        facts["fix"] = {"change": first.change, "commands": first.commands, "size": size}
    return facts


def junit_document(findings: Findings) -> str:
    """One suite with a test case for each limit: too much is a failure, no figure an error, n/a is skipped."""
    suite = Element("testsuite", {"name": "modelplan check"})
    for outcome in findings.outcomes:
        if outcome.refusals:
            kind = "refused" if outcome.needed and not outcome.problem else "not judged"
            attributes = {"type": kind, "message": printable(outcome.refusals[0])}
            error = SubElement(_case(suite, outcome, outcome.check.name), "error", attributes)
            error.text = "\n".join(map(printable, outcome.refusals))
            continue
        for judged in outcome.judgements:
            _add_judgement(suite, outcome, judged)
    counts = {name: len(suite.findall(f"testcase/{tag}")) for name, tag in _COUNTED.items()}
    figures = {name: str(count) for name, count in {"tests": len(suite), **counts}.items()}
    suite.attrib.update(figures)
    suites = Element("testsuites", {"name": "modelplan check"})
    suites.attrib.update({name: figures[name] for name in ("tests", "failures", "errors")})
    suites.append(suite)
    indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(suites, encoding="unicode") + "\n"


#: Attributes of a suite, and the elements that they count.
_COUNTED = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def _add_judgement(suite: Element, outcome: Outcome, judged: Judgement) -> None:
    case = _case(suite, outcome, limit_name(outcome, judged))
    if judged.size is None or judged.limit is None:
        SubElement(case, "skipped", {"message": f"n/a: {printable(judged.reason)}"})
        return
    if judged.passed:
        return
    message = f"{judged.quantity} {human(judged.size)}, allowed {human(judged.limit)}"
    failure = SubElement(case, "failure", {"type": judged.quantity, "message": message})
    lines = [message, *outcome.causes, *outlook(outcome), *remedy_lines(outcome)]
    failure.text = "\n".join(map(printable, lines))


def _case(suite: Element, outcome: Outcome, name: str) -> Element:
    return SubElement(suite, "testcase", {"classname": printable(outcome.check.model), "name": printable(name)})


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
