"""Puts the operators of subgraphs that CALL runs in place of the CALL."""

from dataclasses import replace

from modelplan.formats.limits import FileLimits
from modelplan.model import Kind, Op, Tensor

#: Tensors of which a subgraph has one, however often it is called.
_HELD = frozenset({Kind.CONSTANT, Kind.STATE})


def inlined(tensors: list[Tensor], ops: list[Op], limits: FileLimits) -> tuple[list[Tensor], list[Op]]:
    """The tensors and operators with each CALL replaced by the operators that it runs.

    Tensors of the subgraph come after all others, its constants and state once for all calls. The call stays, with the
    subgraph as its body, where their inputs or outputs differ in number, type or shape, or where the subgraph returns
    a value that it did not compute, or one twice.

    Raises:
        ValueError: more operators or tensors come out than a model may have.
    """
    grown, flat_ops = list(tensors), list[Op]()
    held: dict[tuple[int, int], int] = {}  # (subgraph, its tensor): its number now
    for op in ops:
        if not _fits(tensors, op):
            flat_ops.append(op)
            continue
        body = op.subgraphs[0]
        if len(flat_ops) + len(body.ops) > limits.operators or len(grown) + len(body.tensors) > limits.tensors:
            most = f"{limits.operators:,} operators or {limits.tensors:,} tensors"
            raise ValueError(f"called subgraphs grow to more than {most}")
        place = dict(zip((*body.inputs, *body.outputs), (*op.inputs, *op.outputs), strict=True))
        for t, tensor in enumerate(body.tensors):
            key = (id(body), t)
            if t in place:
                continue
            if tensor.kind in _HELD and key in held:
                place[t] = held[key]
                continue
            place[t] = held[key] = len(grown)
            grown.append(tensor)
        flat_ops += (_renumber(inner, place) for inner in body.ops)
    return grown, flat_ops


def _renumber(op: Op, place: dict[int, int]) -> Op:
    inputs, outputs = (tuple(place[t] if t >= 0 else -1 for t in side) for side in (op.inputs, op.outputs))
    return replace(op, inputs=inputs, outputs=outputs)


def _fits(tensors: list[Tensor], op: Op) -> bool:
    if op.kind != "CALL" or len(op.subgraphs) != 1:
        return False
    body = op.subgraphs[0]
    given, taken = (*op.inputs, *op.outputs), (*body.inputs, *body.outputs)
    return (
        (len(op.inputs), len(op.outputs)) == (len(body.inputs), len(body.outputs))
        and len(set(taken)) == len(taken)
        and all(t >= 0 and _alike(tensors[t], body.tensors[u]) for t, u in zip(given, taken, strict=True))
        and all(body.producers[t] >= 0 for t in body.outputs)
    )


def _alike(a: Tensor, b: Tensor) -> bool:
    return (a.dtype, a.shape) == (b.dtype, b.shape)
