"""Replays a graph with repeated operators beside the model: reads and results, by code of its own."""

from collections.abc import Sequence

from modelplan.model import Graph, Kind, Plan
from modelplan.primitives.errors import BrokenPlanError


def check_repeated(model: Graph, plan: Plan, origins: Sequence[int]) -> None:
    """Returns only if the plan's graph computes what `model` does, in its order.

    Every run of an operator has to be that operator, reads values that an earlier run wrote and that are those which
    the operator reads in the model; outputs have to be the model's. Bytes are the verifier's, as those of any plan.

    Raises:
        BrokenPlanError: names the operator.
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
