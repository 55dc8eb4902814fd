"""A solved problem of placement as text and as JSON: height, bound, peak, and the plan that its file states."""

import json

from modelplan.answers.placement_answers import Solution, planned_words
from modelplan.model import bounds
from modelplan.outputs.report import Section, folded, printable
from modelplan.primitives.units import brief, counted, human, stand_in, steps_words

#: Why a search stopped before the proof.
STOPPED = {"budget": "out of steps", "deadline": "out of time", "cancelled": "interrupted"}
#: How many buffers the line about the peak names.
_NAMED = 3


def sections_of(solution: Solution) -> list[Section]:
    """Height, bound, gap, the answer to the capacity, the peak, and the file's own plan."""
    problem, placement, height = solution.problem, solution.placement, solution.height
    bound = placement.lower_bound
    proof = "proven optimal" if height == bound else f"gap {height - bound:,} B ({(height - bound) / bound:.2%})"
    if placement.ended in STOPPED and height > bound:
        proof += f"; {STOPPED[placement.ended]}"
    lines = [counted(len(problem), "buffer"), f"height      {human(height)}", f"lower bound {human(bound)}, {proof}"]
    if len(problem):
        lines.append(f"peak        {_peak(solution)}")
    if placement.found_by:
        lines.append(stand_in(placement.found_by, placement.own_height))
    if problem.capacity is not None:
        lines.append(f"capacity    {human(problem.capacity)}: {_verdict(problem.capacity, height, bound)}")
    if solution.planned is not None and solution.planned is not placement:
        lines.append(planned_words(solution.planner, solution.planned_height or 0, bound))
    elif solution.planner and solution.flaw:
        lines.append(f"{solution.planner}'s own plan breaks these lifetimes: {solution.flaw}")
    return [Section(printable(solution.source), tuple(lines))]


def _peak(solution: Solution) -> str:
    """The step of most bytes, and the largest buffers that are alive then, with their lifetimes."""
    problem = solution.problem
    step = bounds.peak_step(problem)
    alive = bounds.alive_at(problem, step).tolist()
    named = [
        f"{folded(problem.names[b])} {brief(int(problem.size[b]))}"
        f" (steps {steps_words(int(problem.start[b]), int(problem.end[b]))})"
        for b in alive[:_NAMED]
    ]
    more = [f"{len(alive) - _NAMED:,} more"] if len(alive) > _NAMED else []
    return f"step {step:,}: {', '.join(named + more)}"


def _verdict(capacity: int, height: int, bound: int) -> str:
    if height <= capacity:
        return "fits"
    return "infeasible, proved by the bound" if bound > capacity else "no placement found that fits; not proved"


def as_json(solution: Solution) -> str:
    """The figures, and a row for each buffer with the step and the bytes of its place."""
    problem, placement = solution.problem, solution.placement
    columns = (problem.start, problem.end, problem.size, placement.offsets)
    rows = zip(problem.names, *(column.tolist() for column in columns), strict=True)
    document = {
        "height": solution.height,
        "lower_bound": placement.lower_bound,
        "ended": placement.ended,
        "capacity": problem.capacity,
        "planner": solution.planner,
        "planned_height": solution.planned_height,
        "buffers": [dict(zip(("name", "start", "end", "size", "offset"), row, strict=True)) for row in rows],
    }
    return json.dumps(document, indent=1) + "\n"
