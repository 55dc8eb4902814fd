"""Outputs that run into an operand while it is being read: which pairs, and by how much, as facts of the problem.

An operator that works front to back may write its output over what it has read. The output then starts some bytes
before the operand (its *lead*) and may cover the rest of it. The pair meets in that one step: the operand's class
dies there and the output's class is born there, so nothing else can come to harm.
"""

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from modelplan.model import Aliases, Graph, IntArray, Kind, Member, Overlap, Problem, Runtime
from modelplan.ops import facts
from modelplan.planning.aliasing import positions
from modelplan.planning.aliasing.classes import Classes
from modelplan.planning.aliasing.legality import SharingContext, overlap_refusal
from modelplan.planning.aliasing.rules import overwrites


def allowed_overlaps(
    graph: Graph, aliases: Aliases, order: Sequence[int], mode: str, runtime: Runtime, declared: Sequence[Overlap] = ()
) -> list[Overlap]:
    """The overlaps that `mode` allows in `order` between the classes of `aliases`, and those that the caller declared.

    What the caller declares for an operator and an operand replaces what the tables say of them.

    Cost: O(ops), and O(pixels) for each windowed operator.
    """
    replaced, kinds = {(overlap.op, overlap.over) for overlap in declared}, kinds_with_overlaps(graph, mode, runtime)
    able = [index for index in order if graph.ops[index].kind in kinds] if kinds else []
    alike = {first: _leads(graph, first, mode, runtime) for first in {graph.first_alike[index] for index in able}}
    known = [_overlap(graph, index, *lead) for index in able for lead in alike[graph.first_alike[index]]]
    if not known and not declared:
        return []
    position = positions(order)
    context = SharingContext(graph, Classes(graph, aliases.classes), runtime, position)
    candidates = [overlap for overlap in known if (overlap.op, overlap.over) not in replaced]
    # Of an operand that is read twice the larger lead counts, so it comes last.
    by_lead = sorted((*candidates, *declared), key=lambda overlap: overlap.lead)
    by_operand = {(overlap.op, overlap.over): overlap for overlap in by_lead if not refused(context, overlap)}
    return sorted(by_operand.values(), key=lambda overlap: position[overlap.op])


def refused(context: SharingContext, overlap: Overlap) -> str:
    """The condition that forbids the overlap; empty where none does."""
    op = context.graph.ops[overlap.op]
    group = facts(context.graph.format, op.kind).group
    return overlap_refusal(context, overlap.op, overlap.over, overlap.tensor, group)


def kinds_with_overlaps(graph: Graph, mode: str, runtime: Runtime) -> set[str]:
    """The kinds of operators among which `kernel_overlaps` finds any in `mode`."""
    if mode not in ("safe", "max") or not runtime.library.sequential:
        return set()
    leads, proved = runtime.library.leads, runtime.sharing.front_to_back
    kinds = {kind for kind in graph.kinds if leads.get(kind, facts(graph.format, kind).lead) is not None}
    return kinds & proved.keys() if mode == "safe" else kinds


def kernel_overlaps(graph: Graph, index: int, mode: str, runtime: Runtime) -> Iterator[tuple[int, Overlap]]:
    """For operands of op `index`, by number, the overlap under which its kernel still computes the right result."""
    for lead in _leads(graph, index, mode, runtime):
        yield lead[0], _overlap(graph, index, *lead)


def _overlap(graph: Graph, index: int, operand: int, lead: int, rule: str) -> Overlap:
    op = graph.ops[index]
    return Overlap(index, op.outputs[0], op.inputs[operand], lead, rule)


def _leads(graph: Graph, index: int, mode: str, runtime: Runtime) -> list[tuple[int, int, str]]:
    """(operand, lead, rule) of the overlaps of op `index`: the same for all ops that are alike."""
    op = graph.ops[index]
    row = facts(graph.format, op.kind)
    alone = len(op.writes) == 1 and op.outputs[0] >= 0
    lead_over = runtime.library.leads.get(op.kind, row.lead)
    if mode not in ("safe", "max") or lead_over is None or not runtime.library.sequential or not alone:
        return []
    leads = []
    for operand, t in enumerate(op.inputs):
        if t < 0 or graph.tensors[t].kind is not Kind.ACTIVATION:
            continue
        proved = graph.tensors[t].dtype in runtime.sharing.front_to_back.get(op.kind, ())
        possible = mode == "max" and row.group != "never"
        lead = lead_over(graph, op, operand) if proved or possible else None
        if lead is not None and lead < graph.sizes[op.outputs[0]]:
            able = "was proved" if proved else "can work"
            leads.append((operand, lead, f"overlap: {op.kind} {able} front to back"))
    return leads


def overlaps_of_offsets(
    graph: Graph, order: Sequence[int], offsets: Sequence[int], runtime: Runtime
) -> Iterator[Overlap]:
    """The overlaps that a finished plan has, to the byte, and that are legal for its operators.

    Inside an operator that orders its own reads and writes any of its operands, since its compiler chose them;
    elsewhere an output over an operand, where mode `safe` would allow that.
    """
    place = {t: at for t, at in enumerate(offsets) if at >= 0 and t < len(graph.tensors)}
    place = {t: at for t, at in place.items() if graph.tensors[t].kind is Kind.ACTIVATION}
    for index in order if place else ():
        for below, above, rule in _legal_pairs(graph, index, place, runtime):
            lead = place[above] - place[below]
            if 0 <= lead < graph.tensors[below].nbytes:
                yield Overlap(index, below, above, lead, rule)


def _legal_pairs(graph: Graph, index: int, place: dict[int, int], runtime: Runtime) -> Iterator[tuple[int, int, str]]:
    """(lower tensor, upper tensor, rule) of the placed tensors of op `index` that may share bytes where they lie."""
    op = graph.ops[index]
    if facts(graph.format, op.kind).group == "opaque":
        placed = sorted((t for t in (*op.reads, *op.writes) if t in place), key=place.__getitem__)
        rule = f"overlap: {op.kind} keeps its own order, as compiled"
        yield from ((below, above, rule) for i, below in enumerate(placed) for above in placed[i + 1 :])
        return
    output = op.outputs[0] if op.outputs else -1
    for _, overlap in kernel_overlaps(graph, index, "safe", runtime):
        if {output, overlap.over} <= place.keys() and place[overlap.over] - place[output] >= overlap.lead:
            yield output, overlap.over, overlap.rule
    for operand, rule in overwrites(graph, index, "safe", runtime):
        if output in place and place.get(op.inputs[operand], -1) == place[output]:
            yield output, op.inputs[operand], rule


def overlap_rows(
    graph: Graph, order: Sequence[int], problem: Problem, candidates: Iterable[Overlap]
) -> tuple[list[Overlap], IntArray]:
    """The overlaps whose buffers are alive together in the operator's step alone, and rows for `Problem.overlaps`.

    A row counts from the ends of buffers: members may lie inside theirs, and buffers are padded.
    """
    kept, table, overlaps = list[Overlap](), list[tuple[int, int, int]](), list(candidates)
    home = {m.tensor: (i, m.delta) for i, members in enumerate(problem.members if overlaps else ()) for m in members}
    position, lives = positions(order), list(zip(problem.start.tolist(), problem.end.tolist(), strict=True))
    for overlap in overlaps:
        if overlap.tensor not in home or overlap.over not in home:
            continue
        (below, inside_below), (above, inside_above) = home[overlap.tensor], home[overlap.over]
        starts, ends = zip(*(_life(graph, problem.members[i], lives[i], position) for i in (below, above)), strict=True)
        step = position[overlap.op]
        if below == above or (max(starts), min(ends)) != (step, step + 1):
            continue
        allowed = int(problem.size[below]) - max(0, overlap.lead + inside_below - inside_above)
        shared = reachable_overlap(problem, below, above, allowed)
        if shared > 0:
            kept.append(overlap)
            table.append((below, above, shared))
    return kept, np.array(table, dtype=np.int64).reshape(-1, 3)


def unread_input_rows(graph: Graph, problem: Problem) -> IntArray:
    """Rows for `Problem.overlaps` by which inputs that nothing reads share bytes with what the first operator fills.

    The caller writes them before the first operator runs, and their bytes are of no use once it does.
    """
    unread = {t for t in graph.inputs if not graph.readers[t] and t not in graph.outputs}
    held = [{m.tensor for m in members} for members in problem.members]
    first = [i for i in range(len(problem)) if problem.start[i] == 0]
    free = [i for i in first if held[i] and held[i] <= unread]
    filled = [i for i in first if all(graph.producers[t] >= 0 for t in held[i])]
    pairs = [(a, b) for i in free for j in filled for a, b in ((i, j), (j, i))]
    return np.array([(a, b, problem.size[a]) for a, b in pairs], dtype=np.int64).reshape(-1, 3)


def reachable_overlap(problem: Problem, below: int, above: int, shared: int) -> int:
    """The most bytes up to `shared` that the end of one buffer can have in common with the start of another.

    Aligned buffers cannot come closer than a multiple of what both are aligned to, so a bound may count on no more.
    """
    unit = math.gcd(int(problem.alignment[below]), int(problem.alignment[above]))
    return shared - (shared - int(problem.size[below])) % unit


def _life(graph: Graph, members: Sequence[Member], life: tuple[int, int], position: Sequence[int]) -> tuple[int, int]:
    """Steps [start, end) in which a buffer holds a value; of one that nothing fills, those in which ops work in it."""
    tensors = [m.tensor for m in members]
    if any(graph.producers[t] >= 0 or t in graph.inputs for t in tensors):
        return life
    working = all(graph.tensors[t].kind is Kind.ACTIVATION and t not in graph.outputs for t in tensors)
    uses = [position[reader] for t in tensors for reader in graph.readers[t]]
    return (min(uses), max(uses) + 1) if working and uses else life
