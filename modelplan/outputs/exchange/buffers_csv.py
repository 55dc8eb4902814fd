"""Buffers with their offsets as a MiniMalloc CSV: `id,lower,upper,size,offset`, and what else the problem states."""

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from modelplan.answers.placement_answers import Solution
from modelplan.model import IntArray, Placement, Plan, Problem

#: What a spreadsheet takes for a formula when a cell begins with it; such ids are written behind an apostrophe.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def render(plan: Plan) -> str:
    """The buffers of `plan` with their offsets; a name that several tensors have is followed by the tensor's number."""
    counts = Counter(tensor.name for tensor in plan.graph.tensors)
    firsts = [members[0].tensor if members else -1 for members in plan.problem.members] or [-1] * len(plan.problem)
    pairs = zip(plan.problem.names, firsts, strict=True)
    names = tuple(f"{name} (tensor {t})" if t >= 0 and counts[name] > 1 else name for name, t in pairs)
    return write(replace(plan.problem, names=names), plan.placement)


def of_solution(solution: Solution) -> str:
    """The buffers of a solved problem with their offsets."""
    return write(solution.problem, solution.placement)


def write(problem: Problem, placement: Placement | None = None) -> str:
    """One line per buffer, half-open steps, bytes.

    The ids are the buffers' names; of those with a name that came before, with the number of the buffer behind it. A
    column `alignment` appears where a buffer has one, `kind` where one is scratch, `group` and `delta` where there are
    rigid groups, `list` and `position` where there are contiguous lists, `meets` and `apart` where there are meetings
    and conflicts, `offset` where there is a placement. Overlaps have no column.
    """
    columns: dict[str, Sequence[object]] = {
        "id": [cell(name) for name in _distinct(problem.names)],
        "lower": problem.start.tolist(),
        "upper": problem.end.tolist(),
        "size": problem.size.tolist(),
    }
    if (problem.alignment > 1).any():
        columns["alignment"] = problem.alignment.tolist()
    if problem.kinds:
        columns["kind"] = problem.kinds
    if len(problem.groups):
        columns["group"], columns["delta"] = _pair_cells(problem.groups.tolist(), len(problem))
    if problem.contiguous:
        places = [(b, number, at) for number, members in enumerate(problem.contiguous) for at, b in enumerate(members)]
        columns["list"], columns["position"] = _pair_cells(places, len(problem))
    for name, rows in (("meets", problem.meetings), ("apart", problem.conflicts)):
        if len(rows):
            columns[name] = _entry_cells(rows, len(problem))
    if placement is not None:
        columns["offset"] = placement.offsets.tolist()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()


def _pair_cells(rows: Iterable[Sequence[int]], count: int) -> Iterator[list[int | str]]:
    """Two columns with the two numbers of each buffer that has a row (buffer, number, number), empty for the others."""
    cells = {buffer: pair for buffer, *pair in rows}
    return ([cells[i][part] if i in cells else "" for i in range(count)] for part in (0, 1))


def _entry_cells(rows: IntArray, count: int) -> list[str]:
    """For each buffer a list of what `rows` say of it and another, by the row of that."""
    cells: list[list[str]] = [[] for _ in range(count)]
    for buffer, other, *distances in rows.tolist():
        cells[buffer].append(f"{other + 1}@{distances[0]}:{distances[1]}" if distances else str(other + 1))
    return [" ".join(cell) for cell in cells]


def _distinct(names: Sequence[str]) -> Iterator[str]:
    """The names, no two of them equal."""
    taken = set(names)
    seen: set[str] = set()
    for number, name in enumerate(names):
        distinct = name
        while distinct in seen or (distinct != name and distinct in taken):
            distinct = f"{distinct} (buffer {number})"
        seen.add(distinct)
        yield distinct


def cell(name: str) -> str:
    return f"'{name}" if name.lstrip("'").startswith(_FORMULA) else name
