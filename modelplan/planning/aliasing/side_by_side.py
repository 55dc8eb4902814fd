"""Joins and splits without a copy whose parts keep their own lifetimes: rigid groups of the whole and its parts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from modelplan.model import Graph, IntArray, Kind, Problem
from modelplan.planning.aliasing.parts import Site, sites


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
