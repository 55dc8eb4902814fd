"""Outcomes as JSON: one object for each limit, with the keys that size-limit prints and some more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from modelplan.answers.check_outcomes import Findings, Judgement, Outcome

#: The version of the list: raised when a field changes its meaning or goes, not when one is added.
SCHEMA = 1


def json_rows(findings: Findings) -> str:
    """The document: `name`, `passed`, `size` and `sizeLimit` as in size-limit's own, in bytes; null: no such figure."""
    return json.dumps([row for one in findings.outcomes for row in _rows(one)], indent=1) + "\n"


def limit_name(one: Outcome, judged: Judgement) -> str:
    """What a limit is called: as its check, with the quantity where that is not the arena."""
    return one.check.name + ("" if judged.quantity == "arena" else f", {judged.quantity}")


def _rows(one: Outcome) -> Iterator[dict[str, Any]]:
    facts = _facts(one)
    if one.refusals:
        yield {"name": one.check.name, "passed": False, "size": None, "sizeLimit": one.check.limits.arena} | facts
        return
    for judged in one.judgements:
        figures = {"size": judged.size, "sizeLimit": judged.limit, "quantity": judged.quantity}
        reason = {"reason": f"n/a: {judged.reason}"} if judged.reason else {}
        yield {"name": limit_name(one, judged), "passed": judged.passed} | figures | facts | reason


def _facts(one: Outcome) -> dict[str, Any]:
    """What holds for all limits of a model."""
    figures = asdict(one.figures) if one.figures else {}
    setting = {key: value for key, value in asdict(one.setting).items() if value} if one.setting else {}
    found: dict[str, Any] = {"model": one.check.model, "target": one.check.target or None, **setting, **figures}
    if one.refusals:
        found["reason"] = " ".join(one.refusals)
    if one.earlier:
        before = asdict(one.earlier.figures) if one.earlier.figures else None
        reason = {"reason": one.earlier.reason} if one.earlier.reason else {}
        found["baseline"] = {"source": one.earlier.source, "figures": before, "change": one.change, **reason}
        found["causes"] = one.causes
    if not one.passed and one.remedies:
        first = one.remedies[0]
        size = first.requirement.arena if first.requirement else None
        found["fix"] = {"change": first.change, "commands": first.commands, "size": size}
    return found
