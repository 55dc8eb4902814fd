"""Models against a saved layout in several memories, as text and as JSON."""

from __future__ import annotations

import json

from modelplan.answers.moving_layout import LayoutCheck, Recheck
from modelplan.outputs.report import Section, Table
from modelplan.outputs.reports.region_report import duration


def as_json(check: LayoutCheck, schema: int) -> str:
    """The verdict on each model as a JSON document of `check` with this version."""
    document = {"schema": schema, "layout": check.layout, "models": [_facts(model) for model in check.models]}
    return json.dumps(document, indent=1) + "\n"


def section_of(recheck: Recheck, layout: str) -> Section:
    """The verdict, time and traffic beside those of the layout, and how full the memories are."""
    verdict = f"does not keep {layout}" if recheck.reasons else f"keeps {layout}"
    lines = [
        f"saved     {duration(recheck.seconds_before)}, {recheck.traffic_before:,} bytes outside of the fastest memory"
    ]
    if recheck.seconds is not None:
        lines.append(f"now       {duration(recheck.seconds)}, {recheck.traffic:,} bytes")
    lines += [f"worse     {reason}" if recheck.seconds is not None else reason for reason in recheck.reasons]
    rows = tuple((name, f"{top:,}", f"{size:,}") for name, top, size in recheck.room)
    return Section(
        f"{recheck.model}: {verdict}", tuple(lines), Table(("region", ">used", ">bytes"), rows) if rows else None
    )


def _facts(recheck: Recheck) -> dict[str, object]:
    """The verdict as an object."""
    return {
        "model": recheck.model,
        "fits": not recheck.reasons,
        "seconds": {"before": recheck.seconds_before, "after": recheck.seconds},
        "traffic": {"before": recheck.traffic_before, "after": recheck.traffic},
        "regions": [{"name": name, "used": top, "size": size} for name, top, size in recheck.room],
        "reasons": list(recheck.reasons),
    }
