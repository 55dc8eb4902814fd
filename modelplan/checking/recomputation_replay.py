"""Replays a graph with repeated operators beside the model: reads, results and bytes, by code of its own."""

from collections.abc import Sequence
from itertools import pairwise

from modelplan.model import Graph, Kind, Plan
from modelplan.primitives.errors import BrokenPlanError


def check_repeated(model: Graph, plan: Plan, origins: Sequence[int], height: int) -> None:
    """Returns only if the plan's graph computes what `model` does, in its order, within `height` bytes.

    Every run of an operator has to be that operator, reads values that an earlier run wrote and that are those which
    the operator reads in the model; outputs have to be the model's; no two values that are alive share a byte
    unless they are one buffer, and none ends above `height`.

    Raises:
        BrokenPlanError: names the operator or the buffer.
    """
    graph = plan.graph
    if len(origins) != len(graph.ops) or set(origins) != set(range(len(model.ops))):
        raise BrokenPlanError("the repeated graph does not run every operator of the model")
    stands_for = {t: t for t in range(len(model.tensors))}
    written = set(graph.inputs)
    for step in plan.schedule.order:
        op, own = graph.ops[step], model.ops[origins[step]]
        where = f"run {step} of {model.label(origins[step])}"
        if (op.kind, op.attributes, op.version) != (own.kind, own.attributes, own.version):
            raise BrokenPlanError(f"{where} is {op.kind}, another operator")
        _check_reads(graph, model, op.inputs, [stands_for.get(t, -2) for t in op.inputs], own.inputs, where)
        early = [t for t in op.reads if graph.tensors[t].kind is Kind.ACTIVATION and t not in written]
        if early:
            raise BrokenPlanError(f"{where} reads {graph.tensors[early[0]].name!r} before it is written")
        if len(op.outputs) != len(own.outputs):
            raise BrokenPlanError(f"{where} has other results")
        stands_for |= dict(zip(op.outputs, own.outputs, strict=True))
        written |= set(op.outputs)
    unwritten = [t for t in model.outputs if not any(t in op.outputs for op in model.ops)]
    if graph.outputs != model.outputs or not {*graph.outputs} <= {*written, *unwritten}:
        raise BrokenPlanError("the repeated graph does not give the model's outputs")
    _check_bytes(plan, height)


def _check_reads(
    graph: Graph, model: Graph, read: Sequence[int], values: Sequence[int], expected: Sequence[int], where: str
) -> None:
    """Whether the operands are the values that the operator reads in the model; absent ones are -1 in both."""
    if len(read) != len(expected):
        raise BrokenPlanError(f"{where} has other operands")
    for t, value, own in zip(read, values, expected, strict=True):
        if own < 0 or t < 0 or value != own:
            if own < 0 and t < 0:
                continue
            raise BrokenPlanError(f"{where} reads {graph.tensors[t].name!r}, expected {model.tensors[own].name!r}")


def _check_bytes(plan: Plan, height: int) -> None:
    """Who owns each byte at each step, step by step."""
    graph, order = plan.graph, plan.schedule.order
    home = {m.tensor: b for b, members in enumerate(plan.problem.members) for m in members}
    last: dict[int, int] = {}
    for step, number in enumerate(order):
        last |= {home[t]: step for t in (*graph.ops[number].inputs, *graph.ops[number].outputs) if t in home}
    last |= {home[t]: len(order) for t in graph.outputs if t in home}
    alive = {home[t] for t in graph.inputs if t in home and home[t] in last}
    for step, number in enumerate(order):
        alive |= {home[t] for t in graph.ops[number].outputs if t in home}
        spans = sorted((int(plan.placement.offsets[b]), int(plan.problem.size[b]), b) for b in alive)
        for (low, size, a), (following, _, b) in pairwise(spans):
            if size and plan.problem.size[b] and low + size > following and not len(plan.problem.overlaps):
                names = plan.problem.names
                raise BrokenPlanError(f"step {step}: buffers {names[a]!r} and {names[b]!r} share bytes")
        top = max((low + size for low, size, _ in spans), default=0)
        if top > height:
            raise BrokenPlanError(f"step {step}: bytes up to {top} are in use, {height} were promised")
        alive = {b for b in alive if last.get(b, -1) > step}
