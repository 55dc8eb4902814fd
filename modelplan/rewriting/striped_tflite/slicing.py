"""SPLITs, UNPACKs, and GATHERs of evenly spaced indices, as slices: operators for each part, which go in stripes."""

from collections.abc import Iterator
from typing import NamedTuple

from modelplan.model import Graph, Op
from modelplan.ops import facts
from modelplan.ops.conditions import number, numbers
from modelplan.rewriting.striped_tflite.layers import SLICED
from modelplan.rewriting.striped_tflite.steps import TfliteProgram, TfliteStep
from modelplan.rewriting.striped_tflite.writing import newer_operators
from modelplan.rewriting.stripes.stripe_program import AddedValue
from modelplan.runtimes.tflm.file import read_tflite


class TakenPart(NamedTuple):
    """Output `y`: the axis along which it is taken, the first index, and how far the next one is."""

    y: int
    axis: int
    first: int
    step: int


def with_slices(model: bytes, graph: Graph) -> TfliteProgram | None:
    """The program of a model with slices in place of SPLITs, UNPACKs and GATHERs; None where there are none.

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
            program.steps += [step for part in parts for step in _slice(program, x, part)]
        else:
            program.steps.append(TfliteStep(op.kind, op.inputs, op.outputs, index))
    return program if any(step.source < 0 for step in program.steps) else None


def _parts(graph: Graph, op: Op, x: int) -> Iterator[TakenPart]:
    """What an operator takes of tensor `x` for each of its outputs; nothing where that is no block of it."""
    row, rank = facts("tflite", op.kind), len(graph.tensors[x].shape)
    drops = op.kind == "UNPACK"
    if not rank or min(op.outputs, default=-1) < 0:
        return
    if any(len(graph.tensors[y].shape) != rank - drops for y in op.outputs):
        return
    axis = row.parts(graph, op) if row.parts is not None else number(op, "axis", 0)
    if axis is None or not -rank <= axis < rank:
        return
    if row.group == "split":
        first = 0
        for y in op.outputs:
            yield TakenPart(y, axis % rank, first, 1)
            first += 1 if drops else graph.tensors[y].shape[axis]
    elif op.kind == "GATHER" and not number(op, "batch_dims", 0) and (at := numbers(op, "operand 1")):
        step = at[1] - at[0] if len(at) > 1 else 1
        if step > 0 and min(at) >= 0 and at == tuple(range(at[0], at[-1] + 1, step)):
            yield TakenPart(op.outputs[0], axis % rank, at[0], step)


def _extents(graph: Graph, x: int, part: TakenPart) -> list[int]:
    """The extents of a part as a block of the tensor, along an axis that an UNPACK drops too."""
    own = list(graph.tensors[part.y].shape)
    return own if len(own) == len(graph.tensors[x].shape) else [*own[: part.axis], 1, *own[part.axis :]]


def _is_block(graph: Graph, x: int, part: TakenPart) -> bool:
    """Whether a part lies in the tensor that it is taken of, which is as large along all other axes."""
    whole, own = list(graph.tensors[x].shape), _extents(graph, x, part)
    last = part.first + (own[part.axis] - 1) * part.step
    whole[part.axis], own[part.axis] = 0, 0
    return whole == own and last < graph.tensors[x].shape[part.axis]


def _slice(program: TfliteProgram, x: int, part: TakenPart) -> Iterator[TfliteStep]:
    """The SLICE, or STRIDED_SLICE, that takes a part, and the RESHAPE behind it where the part has an axis less."""
    y, axis, first, step = part
    size, shape = _extents(program.graph, x, part), program.graph.tensors[y].shape
    begin, steps, ends = [0] * len(size), [1] * len(size), list(size)
    begin[axis], steps[axis], ends[axis] = first, step, first + (size[axis] - 1) * step + 1
    block = y
    if len(size) > len(shape):
        block = program.add(AddedValue(f"{program.graph.tensors[y].name}/block", y, tuple(size)))
    if step == 1:
        yield TfliteStep("SLICE", (x, program.constant(begin), program.constant(size)), (block,))
    else:
        steering = (program.constant(words) for words in (begin, ends, steps))
        yield TfliteStep("STRIDED_SLICE", (x, *steering), (block,))
    if block != y:
        yield TfliteStep("RESHAPE", (block, program.constant(shape)), (y,))
