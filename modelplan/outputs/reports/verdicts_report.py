"""Whether a model fits each of several targets, in words and as JSON."""

import json
from collections.abc import Sequence
from itertools import groupby

from modelplan.answers.fit_of_targets import TargetVerdict, TargetVerdicts
from modelplan.outputs.report import Report, Section, Table, folded
from modelplan.primitives.units import brief

#: The version of the JSON document: raised when a field changes its meaning or goes, not when one is added.
SCHEMA = 1
_WORDS = {True: "fits", False: "does not fit", None: "not known"}
_FLASH = "flash too small"
#: Names that a row for several targets lists.
_NAMED = 4


def sections_of(verdicts: TargetVerdicts) -> Report:
    """The table of verdicts; below it, where they were tried, the changes of targets that the model does not fit."""
    lacking = [row for row in verdicts.rows if row.fits is False]
    tried = [changes_section(lacking)] if verdicts.tried and lacking else []
    return [verdicts_section(verdicts), *tried]


def verdicts_section(verdicts: TargetVerdicts) -> Section:
    """A row for each target; one row for those that differ in their names alone."""
    flash = any(row.flash for row in verdicts.rows)
    heads = ("verdict", ">arena", ">memory", ">headroom", *((">flash",) if flash else ()), "kernels", "target")
    alike = groupby(verdicts.rows, key=lambda row: (*_cells(row, flash=flash), _maker(row)))
    rows = tuple((*cells, _names(list(group))) for (*cells, _), group in alike)
    counts = {fits: sum(row.fits is fits for row in verdicts.rows) for fits in _WORDS}
    said = ", ".join(f"{_WORDS[fits]} {count}" for fits, count in counts.items() if count)
    file = f"the file takes {verdicts.rows[0].file_bytes:,} bytes of flash" if verdicts.rows else ""
    reasons = dict.fromkeys(reason for row in verdicts.rows for reason in row.requirement.refusals[:1])
    lines = (f"{verdicts.runtime} on {len(verdicts.rows)} targets: {said}; {file}", *reasons)
    return Section(folded(verdicts.model, 100), lines, Table(heads, rows))


def _cells(row: TargetVerdict, *, flash: bool) -> tuple[str, ...]:
    """What a row says beside the name of its target."""
    budget = row.target.known_budget
    arena = "refused" if row.requirement.refusals else f"{row.requirement.arena:,}"
    share = "" if not row.flash else f"{row.file_bytes / row.flash:.0%}"
    short = row.headroom is not None and row.headroom >= 0 and row.fits is False
    return (
        _FLASH if short else _WORDS[row.fits],
        arena,
        "" if budget is None else f"{budget:,}",
        "" if row.headroom is None else f"{row.headroom:,}",
        *((share,) if flash else ()),
        row.target.device.kernels or "all",
    )


def _maker(row: TargetVerdict) -> str:
    """How the name of a target begins where part numbers follow, of which a list needs the rest alone."""
    return "stm32" if row.target.device.name.startswith("stm32") else ""


def _names(alike: Sequence[TargetVerdict]) -> str:
    names = [row.target.device.name for row in alike]
    begins = _maker(alike[0])
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:1] + [name.removeprefix(begins) for name in names[1:_NAMED]]) + more


def changes_section(rows: Sequence[TargetVerdict]) -> Section:
    """What would make a model fit where it does not: a row for each target, or for those that are alike."""
    heads = ("target", ">memory", ">plain C", "least change that fits")
    alike = groupby(rows, key=lambda row: (row.target.known_budget, row.plain_c, row.change, _maker(row)))
    table = tuple((_names(list(group)), *_changes(*key)) for (*key, _), group in alike)
    kernels = ", ".join(dict.fromkeys(row.target.device.kernels or "all" for row in rows))
    return Section(f"What would make it fit with {kernels}", (), Table(heads, table))


def _changes(budget: int | None, plain_c: int | None, change: object) -> tuple[str, str, str]:
    from modelplan.answers.fit_of_targets import LeastChange

    fits_c = plain_c is not None and budget is not None and plain_c <= budget
    words = "" if plain_c is None else f"{plain_c:,}{'' if fits_c else ' (too much)'}"
    least = f"{change.name}, {change.arena:,}" if isinstance(change, LeastChange) else "none"
    return ("" if budget is None else brief(budget)), words or "none", least


def as_json(verdicts: TargetVerdicts) -> str:
    """The verdicts as JSON: a row for every target."""
    return json.dumps({"schema": SCHEMA, "model": verdicts.model, "runtime": verdicts.runtime,
                       "verdicts": [_fields(row) for row in verdicts.rows]}, indent=1) + "\n"  # fmt: skip


def _fields(row: TargetVerdict) -> dict[str, object]:
    needed, device, known = row.requirement, row.target.device, not row.requirement.refusals
    return {
        "target": device.name,
        "title": device.title,
        "kernels": device.kernels,
        "abi": device.abi,
        "fits": row.fits,
        "arena": needed.arena if known else None,
        "memory": row.target.known_budget,
        "headroom": row.headroom,
        "file_bytes": row.file_bytes,
        "flash": row.flash,
        "refusals": list(needed.refusals),
        "plain_c": row.plain_c,
        "change": None if row.change is None else {"name": row.change.name, "arena": row.change.arena},
    }
