"""The choices of a plan as data in a comment of its C source, from which all of its steps follow."""

import json
import re
from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any
from urllib.parse import quote, unquote

from modelplan.model.c_program import CProgram, PlanChoices, Repeat, StageChoice, TileChain

_TITLE = "The plan, for `modelplan verify`:"
_DATA = re.compile(rf"/\* {re.escape(_TITLE)}\n(.*?)\*/", re.DOTALL)


class UnreadPlanError(Exception):
    """A source states no plan, or not as this release does: says what is wrong."""


def plan_comment(program: CProgram, asked: Mapping[str, Any] | None = None) -> str:
    """The choices of a plan as a comment, with what its network was `asked` for; empty where it was made from none."""
    if program.choices is None:
        return ""
    choices = program.choices
    data: dict[str, Any] = {
        "bytes": program.nbytes,
        "pushed": int(program.pushed),
        "stages": [[s.first, s.end, s.parts, int(s.backward)] for s in choices.stages],
        "chains": [[list(chain.operators), chain.width] for chain in choices.chains],
        "bases": list(choices.bases),
        "spare": [list(place) for place in choices.spare],
    }
    if choices.order:
        data["order"] = list(choices.order)
    if choices.repeats:
        data["again"] = [[list(repeat.operators), repeat.reader] for repeat in choices.repeats]
    if asked:
        data["network"] = {name: _quoted(value) for name, value in asked.items()}
    text = wrap(json.dumps(data), 110, break_on_hyphens=False, break_long_words=False)
    return "\n".join([f"/* {_TITLE}", *(f" * {line}" for line in text), " */"])


def _quoted(value: str | Sequence[str]) -> str | list[str]:
    """Texts without blanks, at which lines end, and asterisks, which end comments."""
    return quote(value, "=,") if isinstance(value, str) else [quote(text, "=,") for text in value]


def stated_choices(source: str) -> tuple[PlanChoices, int, bool]:
    """The choices that a source states, the bytes of its buffer, and whether rows are handed over.

    Raises:
        UnreadPlanError: it states none, or what it states is no such data.
    """
    block = _DATA.search(source)
    if block is None:
        raise UnreadPlanError("it states no plan")
    try:
        data = json.loads(block[1].replace("*", " "))
        stages = tuple(
            StageChoice(_count(first), _count(end), _count(parts), backward=bool(_count(turned)))
            for first, end, parts, turned in data["stages"]
        )
        chains = tuple(TileChain(tuple(map(_count, operators)), _count(width)) for operators, width in data["chains"])
        spare = tuple((_count(operator), _count(at)) for operator, at in data["spare"])
        again = data.get("again", [])
        repeats = tuple(Repeat(tuple(map(_count, operators)), _count(reader)) for operators, reader in again)
        bases, order = (tuple(map(_count, numbers)) for numbers in (data["bases"], data.get("order", [])))
        choices = PlanChoices(stages, chains, bases, spare, repeats, order)
        return choices, _count(data["bytes"]), bool(_count(data["pushed"]))
    except (ValueError, TypeError, LookupError, RecursionError) as problem:
        raise UnreadPlanError(f"its plan cannot be read: {problem}") from problem


def stated_request(source: str) -> dict[str, Any]:
    """What the network of a source was asked for, by name; empty where it states nothing, or nothing that is text.

    Texts and lists of texts are taken, nothing else.
    """
    block = _DATA.search(source)
    try:
        asked = json.loads(block[1].replace("*", " ")).get("network", {}) if block else {}
    except (ValueError, AttributeError, RecursionError):
        return {}
    lists = {k: tuple(map(unquote, v)) for k, v in asked.items() if isinstance(v, list) and _texts(v)}
    return {**{k: unquote(v) for k, v in asked.items() if isinstance(v, str)}, **lists}


def _texts(values: list[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _count(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is no number from 0 on")
    return value
