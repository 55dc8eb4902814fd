"""Models against a saved layout in several memories, as text and as JSON."""

from __future__ import annotations

import json
from typing import Any

from modelplan.answers.moving_layout import LayoutCheck, Recheck
from modelplan.outputs.report import Section, Table
from modelplan.outputs.reports.region_report import duration


def as_json(check: LayoutCheck, schema: int) -> str:
    """The verdict on each model as a JSON document of `check` with this version."""
    document = {"schema": schema, "layout": check.layout, "models": [_facts(model) for model in check.models]}
    return json.dumps(document, indent=1) + "\n"


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


def _facts(found: Recheck) -> dict[str, Any]:
    """The verdict as an object."""
    return {
        "model": found.model,
        "fits": not found.reasons,
        "seconds": {"before": found.seconds_before, "after": found.seconds},
        "traffic": {"before": found.traffic_before, "after": found.traffic},
        "regions": [{"name": name, "used": top, "size": size} for name, top, size in found.room],
        "reasons": list(found.reasons),
    }
