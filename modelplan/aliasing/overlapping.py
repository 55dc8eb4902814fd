"""Outputs that run into an operand while it is being read: which pairs, and by how much, as facts of the problem.

An operator that works front to back may write its output over what it has read. The output then starts some bytes
before the operand (its *lead*) and may cover the rest of it. The pair meets in that one step: the operand's class
dies there and the output's class is born there, so nothing else can come to harm.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from modelplan.aliasing.classes import Classes
from modelplan.aliasing.legality import World, overlap_refusal
from modelplan.aliasing.rules import overwrites
from modelplan.ops import facts
from modelplan.runtimes.in_place import SHARING
from modelplan.types import Aliases, Graph, IntArray, Kind, Overlap, Problem, Runtime


def overlaps(
    graph: Graph,
    aliases: Aliases,
    order: Sequence[int],
    mode: str,
    runtime: Runtime,
    declared: Sequence[Overlap] = (),
) -> list[Overlap]:
    """The overlaps that `mode` allows in `order` between the classes of `aliases`, and what the caller declared.

    Where the caller speaks of a pair, the tables do not.

    Cost: O(ops), and O(pixels) for each windowed operator.
    """
    position = [0] * len(order)
    for step, index in enumerate(order):
        position[index] = step
    world = World(graph, Classes(graph, aliases.classes), runtime, position)
    told = {(overlap.op, overlap.over) for overlap in declared}
    known = [
        Overlap(index, graph.ops[index].outputs[0], graph.ops[index].inputs[operand], lead, rule)
        for index in order
        for operand, lead, rule in offered(graph, index, mode, runtime)
        if (index, graph.ops[index].inputs[operand]) not in told
    ]
    wide = sorted((*known, *declared), key=lambda overlap: overlap.lead)  # of an operand read twice the larger counts
    found = {(overlap.op, overlap.over): overlap for overlap in wide if not refused(world, overlap)}
    return sorted(found.values(), key=lambda overlap: position[overlap.op])


def refused(world: World, overlap: Overlap) -> str:
    """What forbids the overlap in that world, empty where nothing does."""
    op = world.graph.ops[overlap.op]
    group = facts(world.graph.format, op.kind).group
    return overlap_refusal(world, overlap.op, overlap.over, overlap.tensor, group)


def offered(graph: Graph, index: int, mode: str, runtime: Runtime) -> Iterator[tuple[int, int, str]]:
    """(operand, lead in bytes, rule) of the overlaps that the operator's kernel stands, whatever the order."""
    op = graph.ops[index]
    row, sharing = facts(graph.format, op.kind), SHARING[runtime.name]
    if (
        mode not in ("safe", "max")
        or row.lead is None
        or runtime.kernels != "reference"
        or len(op.writes) != 1
        or op.outputs[0] < 0
    ):
        return
    for operand, t in enumerate(op.inputs):
        if t < 0 or graph.tensors[t].kind is not Kind.ACTIVATION:
            continue
        proved = graph.tensors[t].dtype in sharing.front_to_back.get(op.kind, ())
        meant = mode == "max" and sharing.sequential and row.group != "never"
        lead = row.lead(graph, op, operand) if proved or meant else None
        if lead is not None and lead < graph.tensors[op.outputs[0]].nbytes:
            yield operand, lead, _rule(op.kind, proved=proved)


def _rule(kind: str, *, proved: bool) -> str:
    return f"overlap: {kind} was proved front to back" if proved else f"overlap: {kind} can work front to back"


def chosen(graph: Graph, order: Sequence[int], offsets: Sequence[int], runtime: Runtime) -> Iterator[Overlap]:
    """The overlaps that a ready plan has, to the byte, and that its operators stand.

    Inside an operator that orders its own reads and writes any of its operands, since its compiler chose them;
    elsewhere an output over an operand, where mode `safe` would allow that.
    """
    place = {t: at for t, at in enumerate(offsets) if at >= 0 and t < len(graph.tensors)}
    place = {t: at for t, at in place.items() if graph.tensors[t].kind is Kind.ACTIVATION}
    for index in order:
        op = graph.ops[index]
        if facts(graph.format, op.kind).group == "opaque":
            mine = sorted((t for t in (*op.reads, *op.writes) if t in place), key=place.__getitem__)
            rule = f"overlap: {op.kind} keeps its own order, as compiled"
            pairs = [(below, above, rule) for i, below in enumerate(mine) for above in mine[i + 1 :]]
        else:
            pairs = list(_stood(graph, index, place, runtime))
        for below, above, rule in pairs:
            lead = place[above] - place[below]
            if 0 <= lead < graph.tensors[below].nbytes:
                yield Overlap(index, below, above, lead, rule)


def _stood(graph: Graph, index: int, place: dict[int, int], runtime: Runtime) -> Iterator[tuple[int, int, str]]:
    """(output, operand, rule) where the output lies far enough before the operand, or over a whole one."""
    op = graph.ops[index]
    output = op.outputs[0] if op.outputs else -1
    for operand, lead, rule in offered(graph, index, "safe", runtime):
        if {output, op.inputs[operand]} <= place.keys() and place[op.inputs[operand]] - place[output] >= lead:
            yield output, op.inputs[operand], rule
    for operand, rule in overwrites(graph, index, "safe", runtime):
        if output in place and place.get(op.inputs[operand], -1) == place[output]:
            yield output, op.inputs[operand], rule


def rows(
    graph: Graph, order: Sequence[int], problem: Problem, found: Iterable[Overlap]
) -> tuple[list[Overlap], IntArray]:
    """The overlaps whose buffers meet in the operator's step alone, and their rows for `Problem.overlaps`.

    A row counts from the ends of buffers: members may lie inside theirs, and buffers are padded.
    """
    home = {m.tensor: (i, m.delta) for i, members in enumerate(problem.members) for m in members}
    position = {index: step for step, index in enumerate(order)}
    kept, table = [], []
    for overlap in found:
        if overlap.tensor not in home or overlap.over not in home:
            continue
        (below, inside_below), (above, inside_above) = home[overlap.tensor], home[overlap.over]
        starts, ends = zip(*(_life(graph, problem, i, position) for i in (below, above)), strict=True)
        step = position[overlap.op]
        if below == above or (max(starts), min(ends)) != (step, step + 1):
            continue
        shared = int(problem.size[below]) - max(0, overlap.lead + inside_below - inside_above)
        if shared > 0:
            kept.append(overlap)
            table.append((below, above, shared))
    return kept, np.array(table, dtype=np.int64).reshape(-1, 3)


def _life(graph: Graph, problem: Problem, i: int, position: dict[int, int]) -> tuple[int, int]:
    """Steps [start, end) in which a buffer holds a value; one that is only lent to operators, those in which it is."""
    tensors = [m.tensor for m in problem.members[i]]
    fed = any(graph.producers[t] >= 0 or t in graph.inputs for t in tensors)
    lent = not fed and all(graph.tensors[t].kind is Kind.ACTIVATION and t not in graph.outputs for t in tensors)
    uses = [position[reader] for t in tensors for reader in graph.readers[t]]
    return (min(uses), max(uses) + 1) if lent and uses else (int(problem.start[i]), int(problem.end[i]))
