"""Buffers with their offsets as a MiniMalloc CSV: `id,lower,upper,size,offset`, and `kind` where there is scratch."""

from __future__ import annotations

import csv
import io

from modelplan.types import Placement, Plan, Problem


def render(plan: Plan) -> str:
    """The buffers of `plan` with their offsets."""
    return write(plan.problem, plan.placement)


def write(problem: Problem, placement: Placement | None = None) -> str:
    """One line per buffer, half-open steps, bytes.

    A column `alignment` appears where a buffer has one, `kind` where one is scratch, `offset` where there is a
    placement.
    """
    headings = ["id", "lower", "upper", "size"]
    columns = [problem.names, problem.start.tolist(), problem.end.tolist(), problem.size.tolist()]
    if (problem.alignment > 1).any():
        headings.append("alignment")
        columns.append(problem.alignment.tolist())
    if problem.kinds:
        headings.append("kind")
        columns.append(problem.kinds)
    if placement is not None:
        headings.append("offset")
        columns.append(placement.offsets.tolist())
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(headings)
    writer.writerows(zip(*columns, strict=True))
    return text.getvalue()
