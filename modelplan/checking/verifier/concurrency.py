"""The check of a plan for several streams: buffers that share bytes are used one after the other at any speed."""

from itertools import pairwise

from modelplan.model import BufferKind, Kind, Plan
from modelplan.primitives.errors import BrokenPlanError


def check_streams(plan: Plan) -> None:
    """Returns only if no speed of the streams lets two operators use shared bytes for two buffers at the same time.

    Between two buffers that share bytes a chain of waits has to lead from every operator that uses the one to every
    operator that uses the other: an operator waits for those that write what it reads, and for the one before it on
    its stream. What the run begins with is never preceded; what it ends with is never followed. A plan without
    streams is not looked at.

    Raises:
        BrokenPlanError: names the buffers and the operators.

    Cost: O(pairs of buffers x operators / 64) time.
    """
    if not plan.streams:
        return
    if len(plan.streams) != len(plan.graph.ops):
        raise BrokenPlanError(f"{len(plan.streams)} streams given for {len(plan.graph.ops)} operators")
    after, users = _followers(plan), _users(plan)
    spans = sorted(
        (int(plan.placement.offsets[b]), int(plan.placement.offsets[b] + size), b)
        for b, size in enumerate(plan.problem.size.tolist())
        if size
    )
    open_until: list[tuple[int, int]] = []
    for low, high, b in spans:
        open_until = [(end, a) for end, a in open_until if end > low]
        for _, a in open_until:
            _check_pair(plan, after, users, a, b)
        open_until.append((high, b))


def _followers(plan: Plan) -> list[int]:
    """For each operator those that begin only after it has ended, as bits."""
    graph, order = plan.graph, plan.schedule.order
    written = {t: i for i, op in enumerate(graph.ops) for t in op.writes}
    next_of: list[set[int]] = [set() for _ in graph.ops]
    for i, op in enumerate(graph.ops):
        for t in op.reads:
            if t in written:
                next_of[written[t]].add(i)
    for stream in set(plan.streams):
        for a, b in pairwise(op for op in order if plan.streams[op] == stream):
            next_of[a].add(b)
    after = [0] * len(graph.ops)
    for number in reversed(order):
        for following in next_of[number]:
            after[number] |= after[following] | 1 << following
    return after


def _users(plan: Plan) -> list[tuple[set[int], bool, bool]]:
    """For each buffer the operators that use it, whether the run begins with it, whether the run ends with it."""
    graph, order = plan.graph, plan.schedule.order
    users = []
    for number, buffer in enumerate(plan.problem):
        tensors = {m.tensor for m in buffer.members}
        ops = {i for i, op in enumerate(graph.ops) if tensors & {*op.reads, *op.writes}}
        if buffer.kind is BufferKind.SCRATCH:
            ops = {order[int(plan.problem.start[number])]}
        state = any(graph.tensors[t].kind is Kind.STATE for t in tensors)
        first = state or bool(tensors & set(graph.inputs))
        last = state or bool(tensors & set(graph.outputs)) or (first and plan.runtime.inputs == "live")
        users.append((ops, first, last))
    return users


def _check_pair(plan: Plan, after: list[int], users: list[tuple[set[int], bool, bool]], a: int, b: int) -> None:
    (of_a, first_a, last_a), (of_b, first_b, last_b) = users[a], users[b]
    if not (last_a or first_b) and _leads(after, of_a, of_b):
        return
    if not (last_b or first_a) and _leads(after, of_b, of_a):
        return
    names, graph = plan.problem.names, plan.graph
    ops = ", ".join(graph.label(op) for op in sorted(of_a | of_b)[:4])
    raise BrokenPlanError(
        f"buffers {a} {names[a]!r} and {b} {names[b]!r} share bytes, but no chain of waits keeps {ops} apart"
    )


def _leads(after: list[int], firsts: set[int], seconds: set[int]) -> bool:
    """Whether every operator of `seconds` begins after all operators of `firsts` have ended."""
    wanted = sum(1 << op for op in seconds)
    return all(not wanted & ~after[op] for op in firsts)
