"""SPLITs, and GATHERs of evenly spaced indices, as slices: an operator for each part, which goes in stripes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from modelplan.model import Graph, Op
from modelplan.ops import facts
from modelplan.ops.conditions import number, numbers
from modelplan.rewriting.striped_tflite.layers import SLICED
from modelplan.rewriting.striped_tflite.steps import TfliteProgram, TfliteStep
from modelplan.rewriting.striped_tflite.writing import newer_operators
from modelplan.runtimes.tflm.file import read_tflite


class TakenPart(NamedTuple):
    """Output `y`: the axis along which it is taken, the first index, and how far the next one is."""

    y: int
    axis: int
    first: int
    step: int


def with_slices(model: bytes, graph: Graph) -> TfliteProgram | None:
    """The program of a model with slices in place of SPLITs and GATHERs; None where there are none.

    `graph` is that of the file `model`.
    """
    codings = [tensor.quantization for tensor in read_tflite(model, graph.name).subgraphs[0].tensors]
    newer = newer_operators(model)
    program = TfliteProgram(graph, file_ops=tuple(range(len(graph.ops))))
    for index, op in enumerate(graph.ops):
        whole = facts("tflite", op.kind).whole
        x = op.inputs[whole] if whole < len(op.inputs) else -1
        parts = list(_parts(graph, op, x)) if x >= 0 and graph.tensors[x].dtype in SLICED else []
        fit = all(_is_block(graph, x, part) and codings[x] == codings[part.y] for part in parts)
        if parts and fit and index not in newer:
            program.steps += [_slice(program, x, part) for part in parts]
        else:
            program.steps.append(TfliteStep(op.kind, op.inputs, op.outputs, index))
    return program if any(step.source < 0 for step in program.steps) else None


def _parts(graph: Graph, op: Op, x: int) -> Iterator[TakenPart]:
    """What an operator takes of tensor `x` for each of its outputs; nothing where that is no block of it."""
    row, rank = facts("tflite", op.kind), len(graph.tensors[x].shape)
    if not rank or min(op.outputs, default=-1) < 0 or any(len(graph.tensors[y].shape) != rank for y in op.outputs):
        return
    axis = row.parts(graph, op) if row.parts is not None else number(op, "axis", 0)
    if axis is None or not -rank <= axis < rank:
        return
    if row.group == "split":
        first = 0
        for y in op.outputs:
            yield TakenPart(y, axis % rank, first, 1)
            first += graph.tensors[y].shape[axis]
    elif op.kind == "GATHER" and not number(op, "batch_dims", 0) and (at := numbers(op, "operand 1")):
        step = at[1] - at[0] if len(at) > 1 else 1
        if step > 0 and min(at) >= 0 and at == tuple(range(at[0], at[-1] + 1, step)):
            yield TakenPart(op.outputs[0], axis % rank, at[0], step)


def _is_block(graph: Graph, x: int, part: TakenPart) -> bool:
    """Whether a part lies in the tensor that it is taken of, which is as large along all other axes."""
    whole, own = list(graph.tensors[x].shape), list(graph.tensors[part.y].shape)
    last = part.first + (own[part.axis] - 1) * part.step
    whole[part.axis], own[part.axis] = 0, 0
    return whole == own and last < graph.tensors[x].shape[part.axis]


def _slice(program: TfliteProgram, x: int, part: TakenPart) -> TfliteStep:
    """The SLICE, or STRIDED_SLICE, that takes a part."""
    y, axis, first, step = part
    size = list(program.graph.tensors[y].shape)
    begin, steps, ends = [0] * len(size), [1] * len(size), list(size)
    begin[axis], steps[axis], ends[axis] = first, step, first + (size[axis] - 1) * step + 1
    if step == 1:
        return TfliteStep("SLICE", (x, program.constant(begin), program.constant(size)), (y,))
    steering = (program.constant(words) for words in (begin, ends, steps))
    return TfliteStep("STRIDED_SLICE", (x, *steering), (y,))
