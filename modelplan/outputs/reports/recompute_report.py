"""The curve of recomputation as text and JSON."""

import json
from collections import Counter

from modelplan.answers.recomputation import Curve, Repeated
from modelplan.outputs.report import Section, Table
from modelplan.primitives.units import human

#: The version of the JSON document.
SCHEMA = 1


def sections_of(curve: Curve) -> list[Section]:
    """The curve as a table, and what the chosen point runs again."""
    lines = (
        *curve.remarks,
        f"{curve.counted}: the planned activations on {curve.basis}; what it keeps besides does not change",
        "work: multiply-accumulates, and one for each element that another operator writes",
        "needed: extra work that is proved to be needed within the bytes for which the sequence was sought",
    )
    headings = ("", f">{curve.counted}", ">less", ">work", ">extra", ">again", "found by", ">needed")
    rows = tuple(_row(curve, i, point) for i, point in enumerate(curve.points))
    report = [Section(f"{curve.title}: bytes against work", lines, Table(headings, rows))]
    if curve.chosen < 0:
        return [*report, Section("", (f"no point keeps to the {curve.budget or 0:,} bytes that there are",))]
    if curve.chosen == 0:
        why = "no repetition within the limits lowers the plan"
        if curve.budget is not None:
            why = f"the plan as it is keeps to the {curve.budget:,} bytes that there are"
        return [*report, Section("", (f"nothing to repeat: {why}",))]
    point = curve.points[curve.chosen]
    names = Counter(point.origins)
    again = [f"{curve.first.plan.graph.label(op)}: {count - 1}" for op, count in sorted(names.items()) if count > 1]
    title = f"Chosen: {human(point.height)} for {curve.extra_work(point):+.2%} work"
    return [
        *report,
        Section(title, ("replayed: every value is written before it is read", "runs again: " + ", ".join(again))),
    ]


def _row(curve: Curve, number: int, point: Repeated) -> tuple[str, ...]:
    return (
        "*" if number == curve.chosen else "",
        f"{point.height:,}",
        f"{1 - point.height / max(curve.first.height, 1):.1%}",
        f"{point.work:,}",
        f"{curve.extra_work(point):+.2%}",
        f"{point.again:,}",
        point.method,
        f"{max(point.bound / max(curve.first.work, 1) - 1, 0.0):+.2%}",
    )


def as_json(curve: Curve) -> str:
    """The curve as JSON: bytes, work, and the operators of the model in the order in which each point runs them."""
    points = [
        {
            "height": point.height,
            "peak": point.plan.schedule.peak,
            "work": point.work,
            "extra": curve.extra_work(point),
            "again": point.again,
            "method": point.method,
            "work_bound": point.bound,
            "order": list(point.origins),
        }
        for point in curve.points
    ]
    header = {"schema": SCHEMA, "model": curve.title, "made_by": curve.made_by, "chosen": curve.chosen}
    return json.dumps(header | {"remarks": list(curve.remarks), "points": points}, indent=1) + "\n"
