"""The peak of a plan: what is alive, who made it, what keeps it alive and why; the steps near it and after it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from modelplan.answers.explanation import LiveBuffer, Peak, StepLoad
from modelplan.answers.summary import op_at
from modelplan.model import Buffer, BufferKind, Kind, Plan, bounds

#: A step is near the peak from this share of it on.
_NEAR = 0.9
#: How many of the peaks that follow are named.
_FOLLOWING = 4


def peak_of(plan: Plan) -> Peak:
    """The peak of a plan. Cost: O(steps log steps + buffers at the peak x tensors in them)."""
    loads = list(_loads(plan))
    top = max(loads, key=lambda load: load.nbytes)
    others = [load for load in loads if load is not top]
    near = tuple(load for load in others if load.nbytes and load.nbytes >= _NEAR * top.nbytes)
    alive = tuple(_live(plan, plan.problem[int(i)], top) for i in bounds.alive_at(plan.problem, top.step))
    height = bounds.height(plan.problem, plan.placement)
    return Peak(top, alive, near, tuple(islice(_following(others), _FOLLOWING)), height)


def _following(others: Sequence[StepLoad]) -> Iterator[StepLoad]:
    """The steps from the highest down, those with the same bytes as one."""
    count = Counter(load.nbytes for load in others)
    for nbytes in sorted(count.keys() - {0}, reverse=True):
        first = next(load for load in others if load.nbytes == nbytes)
        yield replace(first, alike=count[nbytes] - 1)


def _loads(plan: Plan) -> Iterator[StepLoad]:
    """Every step with the bytes alive in it."""
    order = plan.schedule.order
    for step, nbytes in enumerate(bounds.live_bytes(plan.problem, max(len(order), 1)).tolist()):
        yield StepLoad(step, plan.graph.label(order[step]) if order else "no operator", nbytes)


def _live(plan: Plan, buffer: Buffer, top: StepLoad) -> LiveBuffer:
    names = tuple(plan.graph.tensors[m.tensor].name for m in buffer.members) or (buffer.name,)
    until, keeper, why = _keeper(plan, buffer)
    share = buffer.size / top.nbytes if top.nbytes else 0.0
    inside = {m.tensor for m in buffer.members}
    rules = tuple(dict.fromkeys(m.rule for m in plan.merges if m.tensor in inside))
    return LiveBuffer(names, buffer.size, share, _maker(plan, buffer), until, keeper, why, rules)


def _maker(plan: Plan, buffer: Buffer) -> str:
    """Which operator makes the first tensor of a buffer, or where else it comes from."""
    graph = plan.graph
    if buffer.kind is BufferKind.SCRATCH:
        return op_at(plan, buffer.start)
    tensors = [m.tensor for m in buffer.members]
    if any(graph.tensors[t].kind is Kind.STATE for t in tensors):
        return "the run before"
    if any(t in graph.inputs for t in tensors):
        return "the caller"
    if any(graph.producers[t] < 0 for t in tensors):
        return "nothing in the model"
    return op_at(plan, buffer.start)


def _keeper(plan: Plan, buffer: Buffer) -> tuple[int, str, str]:
    """The last step of a buffer or -1, the operator that keeps it until then, and why."""
    graph, last = plan.graph, buffer.end - 1
    if buffer.kind is BufferKind.SCRATCH:
        return last, op_at(plan, last), "works with it"
    tensors = [m.tensor for m in buffer.members]
    if any(graph.tensors[t].kind is Kind.STATE for t in tensors):
        return -1, "the next run", "finds state as this one leaves it"
    if any(t in graph.outputs for t in tensors):
        return -1, "the caller", "takes it as an output of the model"
    if plan.runtime.inputs == "live" and any(t in graph.inputs for t in tensors):
        return -1, plan.runtime.name, "keeps inputs to the end of the run"
    if not plan.schedule.order:
        return last, "no operator", "nothing reads it"
    op = graph.ops[plan.schedule.order[last]]
    read = [t for t in tensors if t in op.inputs]
    if not read:
        return last, op_at(plan, last), "writes it, and nothing reads it"
    first = tensors[0] if len(tensors) == 1 else read[0]
    why = "reads it last" if first == tensors[0] else f"reads {graph.tensors[first].name} last"
    return last, op_at(plan, last), why
