"""Outcomes as JSON: one object for each limit, with the keys that size-limit prints and some more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict

from modelplan.answers.check_outcomes import Findings, Judgement, Outcome

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
