"""`check --layout`: models against a saved layout in several memories."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from modelplan.cli import files, terminal
from modelplan.outputs.report import Section, Table
from modelplan.outputs.reports.region_report import duration
from modelplan.primitives.errors import RequestError

if TYPE_CHECKING:
    from modelplan.answers.moving_layout import Recheck

#: Options of `check` that say what the layout says already.
_STATED = (
    "budget", "config", "baseline", "format", "seconds", "runtime", "kernels", "abi", "target", "reserve", "used",
    "arena_symbol", "define", "include",
)  # fmt: skip


def check_layouts(arguments: Namespace, schema: int) -> int:
    """Plans each model again in the memories of the layout: 0 where all fit and none is worse, else 1.

    Args:
        arguments: those of `check`.
        schema: the version of its JSON document.

    Raises:
        RequestError: no model, an option that the layout states, or a growth in bytes.
    """
    given = [name for name in _STATED if getattr(arguments, name, None)]
    if given:
        raise RequestError(
            f"--{given[0].replace('_', '-')}: --layout {arguments.layout} states what models are planned for"
        )
    if not arguments.models:
        raise RequestError("--layout compares a MODEL that is named")
    from modelplan.formats import load_model
    from modelplan.formats.files import read_text
    from modelplan.questions.budgets.project_budgets import parse_growth
    from modelplan.questions.memories.rechecking import recheck, saved_layout

    growth = parse_growth(arguments.growth or "0%")
    if growth.nbytes:
        raise RequestError(f"--growth {growth.text}: time and traffic grow by a share, such as 5%")
    saved = saved_layout(arguments.layout, read_text(arguments.layout))
    found = [
        recheck(path, load_model(path, arguments.dim, arguments.shape), saved, growth.share)
        for path in arguments.models
    ]
    if arguments.json:
        document = {"schema": schema, "layout": arguments.layout, "models": [as_json(one) for one in found]}
        files.write(arguments.json, json.dumps(document, indent=1) + "\n")
    if arguments.json != "-":
        terminal.show([section_of(one, arguments.layout) for one in found])
    return 1 if any(one.reasons for one in found) else 0


def section_of(found: Recheck, layout: str) -> Section:
    """The verdict, time and traffic beside those of the layout, and how full the memories are."""
    verdict = f"does not keep {layout}" if found.reasons else f"keeps {layout}"
    lines = [
        f"saved     {duration(found.seconds_before)}, {found.traffic_before:,} bytes outside of the fastest memory"
    ]
    if found.seconds is not None:
        lines.append(f"now       {duration(found.seconds)}, {found.traffic:,} bytes")
    lines += [f"worse     {reason}" if found.seconds is not None else reason for reason in found.reasons]
    rows = tuple((name, f"{top:,}", f"{size:,}") for name, top, size in found.room)
    return Section(
        f"{found.model}: {verdict}", tuple(lines), Table(("region", ">used", ">bytes"), rows) if rows else None
    )


def as_json(found: Recheck) -> dict[str, Any]:
    """The verdict as an object."""
    return {
        "model": found.model,
        "fits": not found.reasons,
        "seconds": {"before": found.seconds_before, "after": found.seconds},
        "traffic": {"before": found.traffic_before, "after": found.traffic},
        "regions": [{"name": name, "used": top, "size": size} for name, top, size in found.room],
        "reasons": list(found.reasons),
    }
