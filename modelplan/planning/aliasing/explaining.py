"""Why a tensor shares memory or not: every rule that was tried on it, and what refused it."""

from modelplan.model import Graph, Member, Overlap, Plan
from modelplan.ops import facts
from modelplan.planning.aliasing import planned, positions
from modelplan.planning.aliasing.classes import Classes
from modelplan.planning.aliasing.legality import SharingContext, refusal
from modelplan.planning.aliasing.overlapping import kernel_overlaps, refused
from modelplan.planning.aliasing.rules import overwrites
from modelplan.primitives.errors import RequestError


def reasons(plan: Plan, name: str) -> tuple[str, ...]:
    """For each tensor called `name`: the merge that it takes part in, or what refused each operand of its operator.

    Raises:
        RequestError: no tensor of that name.
    """
    return tuple(line for t in tensors_called(plan.graph, name) for line in _lines(plan, t))


def tensors_called(graph: Graph, name: str) -> list[int]:
    """The tensors of a name, or the one whose number it is.

    Raises:
        RequestError: there is none.
    """
    matches = [t for t, tensor in enumerate(graph.tensors) if tensor.name == name or str(t) == name]
    if not matches:
        raise RequestError(f"--why-not {name!r}: the model has no tensor of that name")
    return matches


def _lines(plan: Plan, t: int) -> list[str]:
    graph, producer = plan.graph, plan.graph.producers[t]
    into = [_overlap(plan, overlap) for overlap in plan.overlaps if overlap.tensor == t]
    merges = [m for m in plan.merges if t == m.tensor]
    if merges or into:
        return into + [f"shares {graph.tensors[m.into].name!r} since {graph.label(m.op)}: {m.rule}" for m in merges]
    if producer < 0:
        return [f"nothing in the model writes it: it is {graph.tensors[t].kind}, so it replaces no other tensor"]
    op = graph.ops[producer]
    row = facts(graph.format, op.kind)
    ahead = [
        f"running into operand {operand} {graph.tensors[overlap.over].name!r}: condition {why}"
        for operand, overlap in kernel_overlaps(graph, producer, plan.alias, plan.runtime)
        if (why := refused(_context(plan, producer), overlap))
    ]
    if ahead and not row.overwrite:
        return ahead
    if t != op.outputs[0] or not (row.overwrite or row.may_be_view):
        return [f"{graph.label(producer)} ({row.group}) may read an operand after it has begun to write this output"]
    allowed = {operand for operand, _ in overwrites(graph, producer, plan.alias, plan.runtime)}
    return [_line(plan, producer, operand, allowed=operand in allowed) for operand in row.overwrite or (0,)] + ahead


def _overlap(plan: Plan, overlap: Overlap) -> str:
    tensors = plan.graph.tensors
    return (
        f"may run into {tensors[overlap.over].name!r} at {plan.graph.label(overlap.op)} when it starts"
        f" {overlap.lead} bytes before: {overlap.rule}"
    )


def _line(plan: Plan, index: int, operand: int, *, allowed: bool) -> str:
    graph = plan.graph
    op = graph.ops[index]
    if operand >= len(op.inputs) or op.inputs[operand] < 0:
        return f"operand {operand} of {graph.label(index)} is absent"
    over = f"over operand {operand} {graph.tensors[op.inputs[operand]].name!r} of {graph.label(index)}"
    row = facts(graph.format, op.kind)
    if not row.overwrite:
        return f"{over}: {op.kind} leaves the bytes as they are only in cases that this is not"
    if not allowed:
        return f"{over}: mode {plan.alias} of runtime {plan.runtime.name} does not allow it for {op.kind}"
    why = refusal(_context(plan, index), index, operand, row.group)
    return f"{over}: condition {why}" if why else f"{over}: another operand was taken"


def _context(plan: Plan, index: int) -> SharingContext:
    """What the decision about op `index` was based on: overwrites of earlier steps, and merges that need no order."""
    graph, position = plan.graph, positions(plan.schedule.order)
    delta = {m.tensor: m.delta for members in plan.problem.members for m in members}
    classes = Classes(graph, ((Member(t),) for t in planned(graph)))
    for merge in plan.merges:
        if not merge.rule.startswith("overwrite") or position[merge.op] < position[index]:
            classes.join(merge.tensor, merge.into, delta[merge.tensor] - delta[merge.into])
    return SharingContext(graph, classes, plan.runtime, position)
