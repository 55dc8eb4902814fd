"""Joins written in place and splits read in place: parts that lie side by side inside one block.

Where parts keep their own lifetimes, the whole and its parts are rigid groups.
"""

from collections.abc import Sequence
from itertools import accumulate
from math import prod

import numpy as np

from modelplan.model import Graph, IntArray, Kind, Merge, Problem, Runtime
from modelplan.ops import facts
from modelplan.planning.aliasing.classes import Classes
from modelplan.planning.aliasing.rules import part_of
from modelplan.primitives.lazy_records import dataclass


@dataclass(frozen=True, slots=True)
class Site:
    """One join, split or slice: its parts with their places in bytes inside the whole."""

    graph: Graph
    op: int
    whole: int
    parts: tuple[tuple[int, int], ...]
    is_join: bool

    @property
    def tensors(self) -> tuple[int, ...]:
        """The whole and its parts."""
        return self.whole, *(part for part, _ in self.parts)

    def merged(self, classes: Classes, runtime: Runtime) -> list[Merge]:
        """Joins the classes of the parts with that of the whole; returns no merge where a part may not move."""
        if self.whole not in classes or classes.span(self.whole) != self.graph.tensors[self.whole].nbytes:
            return []
        if any(not self._may_move(classes, part, delta, runtime) for part, delta in self.parts):
            return []
        homes = [classes.home[part] for part, _ in self.parts if part in classes]
        if len(set(homes)) != len(homes):
            return []  # one part is a view of another: the bytes cannot lie in two places
        rule = f"{'join' if self.is_join else 'split'}: {self.graph.ops[self.op].kind} with its parts side by side"
        if len(self.parts) == 1:
            rule = f"slice: {self.graph.ops[self.op].kind} takes a run of bytes as they are"
        merges = []
        for part, delta in self.parts:
            if part in classes:
                classes.join(part, self.whole, delta)
                merges.append(Merge(part, self.whole, self.op, rule, self.graph.tensors[part].nbytes))
        return merges

    def _may_move(self, classes: Classes, part: int, delta: int, runtime: Runtime) -> bool:
        tensor = self.graph.tensors[part]
        if tensor.kind is not Kind.ACTIVATION or part in self.graph.inputs or delta % runtime.alignment:
            return False
        if part not in classes:
            return tensor.nbytes == 0
        alone = classes.span(part) == tensor.nbytes and classes.delta[part] == 0
        fed = any(t in self.graph.inputs or self.graph.tensors[t].kind is not Kind.ACTIVATION for t in classes.of(part))
        return alone and not fed and self.graph.producers[part] >= 0 and not classes.together(part, self.whole)


def sites(graph: Graph) -> list[Site]:
    """The joins, splits and slices whose parts are contiguous, the largest first."""
    contiguous_sites = [
        site for index in range(len(graph.ops)) if (site := _site(graph, index) or _slice(graph, index))
    ]
    return sorted(contiguous_sites, key=lambda site: -graph.tensors[site.whole].nbytes)


def _site(graph: Graph, index: int) -> Site | None:
    op = graph.ops[index]
    row = facts(graph.format, op.kind)
    if row.parts is None or (axis := row.parts(graph, op)) is None:
        return None
    is_join = row.group == "join"
    if is_join:
        whole, parts = op.outputs[0] if op.outputs else -1, op.inputs
    else:
        whole, parts = op.inputs[row.whole] if row.whole < len(op.inputs) else -1, op.outputs
    if whole < 0 or min(parts, default=-1) < 0 or len(set(parts)) != len(parts) or len(parts) < 2:
        return None
    tensors = [graph.tensors[t] for t in parts]
    shape, rank = graph.tensors[whole].shape, max(len(graph.tensors[whole].shape), 1)
    same = all(t.dtype == graph.tensors[whole].dtype for t in tensors)
    sizes = [t.nbytes for t in tensors]
    if not same or prod(shape[: axis % rank]) != 1 or sum(sizes) != graph.tensors[whole].nbytes:
        return None
    starts = list(accumulate([0, *sizes[:-1]]))
    return Site(graph, index, whole, tuple(zip(parts, starts, strict=True)), is_join)


def _slice(graph: Graph, index: int) -> Site | None:
    view = part_of(graph, index)
    return Site(graph, index, view.source, ((view.tensor, view.delta),), is_join=False) if view else None


def side_by_side_rows(graph: Graph, order: Sequence[int], problem: Problem) -> tuple[IntArray, IntArray]:
    """Groups and meetings in which the parts of each join or split stand where they are in the whole.

    The whole and its parts then share bytes while both are alive, and the operator has nothing to copy. In contrast to
    a merge (alias mode max) a part takes its bytes only while it is alive itself. A site is left out where a part is a
    graph input, no multiple of the alignment from the start, or where something could be written over a value that is
    read later.

    Returns:
        Rows for `Problem.groups` and `Problem.meetings`.

    Cost: O(tensors).
    """
    home = {
        m.tensor: b
        for b, members in enumerate(problem.members)
        for m in members
        if m.delta == 0 and int(problem.size[b]) >= graph.tensors[m.tensor].nbytes
    }
    position = {op: step for step, op in enumerate(order)}
    groups, meetings = list[tuple[int, int, int]](), list[tuple[int, int, int, int]]()
    taken: set[int] = set()
    for number, site in enumerate(sites(graph)):
        buffers = [home.get(t, -1) for t in site.tensors]
        if len(site.parts) < 2 or min(buffers) < 0 or len(set(buffers)) < len(buffers) or taken & set(buffers):
            continue
        if not _is_safe(graph, problem, site, home, position[site.op] + 1):
            continue
        taken |= set(buffers)
        whole = home[site.whole]
        groups.append((whole, number, 0))
        for part, delta in site.parts:
            groups.append((home[part], number, delta))
            meetings.append((home[part], whole, delta, delta))
    return np.array(groups, dtype=np.int64).reshape(-1, 3), np.array(meetings, dtype=np.int64).reshape(-1, 4)


def _is_safe(graph: Graph, problem: Problem, site: Site, home: dict[int, int], after: int) -> bool:
    """Whether the whole and its parts hold equal bytes whenever both are alive; `after` is the step behind the site."""
    for part, delta in site.parts:
        sources = (part,) if site.is_join else (site.whole,)
        fed = any(t in graph.inputs or graph.tensors[t].kind is not Kind.ACTIVATION for t in sources)
        b, whole = home[part], home[site.whole]
        exact = (
            int(problem.size[b]) == graph.tensors[part].nbytes or delta + int(problem.size[b]) >= problem.size[whole]
        )
        if fed or delta % int(problem.alignment[b]) or not exact:
            return False
        dies = int(problem.end[b if site.is_join else whole]) <= after
        if not dies and (len(problem.members[b]) > 1 or len(problem.members[whole]) > 1):
            return False
    return True
