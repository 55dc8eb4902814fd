"""A page as columns of numbers and words, small enough to stand in an HTML file.

Tensors, operators and rules are told once and named by number. A name is written so that it can be shown as it is:
characters that do not print are escaped, and one that is too long is cut in the middle.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from modelplan.answers.drawing import lost_areas
from modelplan.answers.page_views import Page, View
from modelplan.model import Graph, Tensor, bounds
from modelplan.outputs.report import printable

#: The longest name that the page carries, in characters, and how many of them are the end.
_LONGEST, _END = 240, 80


class Words:
    """Words with a number each, in the order in which they were first asked for."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, word: str) -> int:
        return self._numbers.setdefault(word, len(self._numbers))

    @property
    def listed(self) -> list[str]:
        """The words, each at its number."""
        return list(self._numbers)


def columns_of(page: Page) -> dict[str, Any]:
    """The page as JSON has it."""
    graphs: list[Graph] = []
    for view in page.views:
        if view.graph is not None and not any(view.graph is known for known in graphs):
            graphs.append(view.graph)
    numbers = {id(graph): number for number, graph in enumerate(graphs)}
    planned = [_planned(page.views, graph) for graph in graphs]
    return {
        "title": shown(page.title),
        "subtitle": page.subtitle,
        "made_by": page.made_by,
        "graphs": [_graph(graph, tensors) for graph, tensors in zip(graphs, planned, strict=True)],
        "views": [_view(view, -1 if view.graph is None else numbers[id(view.graph)], planned) for view in page.views],
        "change": page.change,
        "field": _field(page),
    }


def shown(name: str) -> str:
    r"""A name as the page shows it: printable.

    >>> print(shown(chr(0x202E) + "b"), len(shown("x" * 1_000_000)))
    \u202eb 268
    """
    if len(name) > _LONGEST:
        cut = f" … ({len(name):,} characters) … "
        name = name[: _LONGEST - _END] + cut + name[-_END:]
    return printable(name)


def _planned(views: Iterable[View], graph: Graph) -> dict[int, int]:
    """The tensors of a graph that have memory in one of the views, numbered from 0."""
    tensors = {
        member.tensor
        for view in views
        if view.graph is graph
        for members in view.drawing.problem.members
        for member in members
    }
    return {tensor: number for number, tensor in enumerate(sorted(tensors))}


def _graph(graph: Graph, tensors: dict[int, int]) -> dict[str, object]:
    """Tensors with memory and operators of a graph; of what an operator reads besides there are the types."""
    types, kinds = Words(), Words()
    rows = [graph.tensors[t] for t in tensors]
    others = [[types.number(_type(graph.tensors[t])) for t in op.reads if t not in tensors] for op in graph.ops]
    return {
        "tensors": [shown(t.name) for t in rows],
        "type": [types.number(_type(t)) for t in rows],
        "types": types.listed,
        "bytes": [t.nbytes for t in rows],
        "op_kind": [kinds.number(shown(op.kind)) for op in graph.ops],
        "op_name": [shown(op.name) for op in graph.ops],
        "reads": [[tensors[t] for t in op.reads if t in tensors] for op in graph.ops],
        "writes": [[tensors[t] for t in op.writes if t in tensors] for op in graph.ops],
        "others": others,
        "kinds": kinds.listed,
        "inputs": [tensors[t] for t in graph.inputs if t in tensors],
        "outputs": [tensors[t] for t in graph.outputs if t in tensors],
    }


def _type(tensor: Tensor) -> str:
    return f"{tensor.dtype}[{', '.join(map(str, tensor.shape))}]"


def _view(view: View, number: int, planned: Sequence[dict[int, int]]) -> dict[str, object]:
    drawing = view.drawing
    problem = drawing.problem
    tensors = planned[number] if number >= 0 else {}
    rules = Words()
    members = problem.members or ((),) * len(problem)
    has_tensors = [bool(row) and number >= 0 for row in members]
    merges = [m for m in view.merges if m.tensor in tensors and m.into in tensors]
    return {
        "name": view.name,
        "model": [shown(line) for line in view.model],
        "about": view.about,
        "twins": view.twins,
        "facts": view.facts,
        "graph": number,
        "order": view.order,
        "ops": [] if view.order else [shown(op) for op in drawing.ops],
        "op_callers": view.op_callers,
        "op_labels": [shown(label) for label in view.op_labels],
        "steps": drawing.steps,
        "start": problem.start.tolist(),
        "end": problem.end.tolist(),
        "size": problem.size.tolist(),
        "offset": drawing.placement.offsets.tolist(),
        "kind": drawing.kinds.tolist(),
        "labels": [shown(label) for label in drawing.labels],
        "members": [
            [x for m in row for x in (tensors[m.tensor], m.delta)] if known else shown(name)
            for row, known, name in zip(members, has_tensors, problem.names, strict=True)
        ],
        "pinned": [i for i, pin in enumerate(problem.pin.tolist()) if pin >= 0],
        "merges": [[tensors[m.tensor], tensors[m.into], m.op, rules.number(m.rule), m.saved] for m in merges],
        "rules": rules.listed,
        "overlaps": np.concatenate([problem.overlaps[:, :2], problem.meetings[:, :2]]).tolist(),
        "conflicts": len(problem.conflicts),
        "capacity": problem.capacity,
        **_needs(view),
    }


def _needs(view: View) -> dict[str, object]:
    """What a plan needs against what there is, and what is drawn beside its buffers."""
    drawing = view.drawing
    return {
        "bound": drawing.lower_bound,
        "height": drawing.height,
        "planned": drawing.planned,
        "tail": drawing.kept,
        "parts": view.parts,
        "given": view.given,
        "fits": drawing.problem.capacity is None or (not view.refused and not drawing.excess),
        "peak": bounds.load_bound(drawing.problem),
        "banks": [[shown(name), base] for name, base in drawing.banks],
        "regions": [[shown(band.name), band.base, band.used, band.size] for band in view.bands],
        "copies": [[a.source, a.target, a.issued, a.due, a.start, a.end, a.size] for a in view.arrows],
        "lost": lost_areas(drawing),
        "claimed": [list(row) for row in drawing.claimed],
        "models": [[step, shown(name)] for step, name in drawing.models],
    }


def _field(page: Page) -> dict[str, object] | None:
    """The answers of all allocators, lowest first."""
    if page.field is None:
        return None
    marks = page.field.marks
    return {
        "bound": page.field.lower_bound,
        "rows": [[m.name, m.kind, m.height, m.found_by] for m in marks],
        "refused": page.field.refused,
    }
