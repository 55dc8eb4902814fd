"""Outcomes as a JUnit report, which build servers show as tests."""

from __future__ import annotations

from xml.etree.ElementTree import Element, SubElement, indent, tostring

from modelplan.answers.check_outcomes import Findings, Judgement, Outcome
from modelplan.outputs.checks.report import outlook, remedy_lines
from modelplan.outputs.checks.size_limit import limit_name
from modelplan.outputs.report import printable
from modelplan.primitives.units import human


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
