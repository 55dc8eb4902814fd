"""The program of a TFLite model with some stretches in stripes, unrolled or as loops."""

from collections.abc import Iterator, Sequence

from modelplan.model import Graph, Kind
from modelplan.ops.op_facts import TFLITE_RESHAPES
from modelplan.rewriting.striped_tflite.carrying_loops import append_carrying_loop
from modelplan.rewriting.striped_tflite.channel_blocks import append_channel_blocks, block_layers
from modelplan.rewriting.striped_tflite.joining import joined_parts
from modelplan.rewriting.striped_tflite.layers import stretch_layers
from modelplan.rewriting.striped_tflite.loops import append_loop
from modelplan.rewriting.striped_tflite.steps import GroupOffset, TfliteProgram, TfliteStep
from modelplan.rewriting.striped_tflite.unrolled import append_stripes
from modelplan.rewriting.stripes.stretches import (
    CarryingLoop,
    ChannelBlocks,
    LoopedStripes,
    StripedStretch,
    UnrolledStripes,
)

#: A stretch in stripes, or the steps of operators that stay whole.
Part = StripedStretch | range


def striped_program(
    graph: Graph, order: Sequence[int], stretches: Sequence[StripedStretch], file_ops: Sequence[int] = ()
) -> TfliteProgram:
    """The program that runs `graph` in `order` with `stretches` (apart, ascending) in stripes.

    `file_ops` are the operators of the file behind those of the graph, by default the same ones.

    Raises:
        IllegalStripeError: a stretch has no stripes of this form.
    """
    program = program_before(graph, file_ops)
    for part in parts_of(len(order), stretches):
        append_part(program, order, part)
    return program


def program_before(graph: Graph, file_ops: Sequence[int] = ()) -> TfliteProgram:
    """The program before its first step: where inputs lie, and parts of joins that are made in their places."""
    program = TfliteProgram(graph, file_ops=tuple(file_ops) or tuple(range(len(graph.ops))))
    for t in graph.inputs:
        _give_memory(program, t)
    for t, part in joined_parts(graph).items():
        program.group_offsets[t] = GroupOffset(program.place(part.whole).group, part.byte)
    return program


def parts_of(count: int, stretches: Sequence[StripedStretch]) -> Iterator[Part]:
    """The stretches and the runs of steps between them, in the order in which they run, for so many operators."""
    at = 0
    for stretch in stretches:
        if at < stretch.first:
            yield range(at, stretch.first)
        yield stretch
        at = stretch.last + 1
    if at < count:
        yield range(at, count)


def append_part(program: TfliteProgram, order: Sequence[int], part: Part) -> None:
    """Appends a stretch, or whole operators, to a program.

    Raises:
        IllegalStripeError: the stretch has no stripes of this form.
    """
    if isinstance(part, range):
        for step in part:
            _append_whole(program, order[step])
    elif isinstance(part, LoopedStripes):
        append_loop(program, stretch_layers(program.graph, order, part))
    elif isinstance(part, CarryingLoop):
        append_carrying_loop(program, stretch_layers(program.graph, order, part))
    elif isinstance(part, ChannelBlocks):
        append_channel_blocks(program, block_layers(program.graph, order, part))
    elif isinstance(part, UnrolledStripes):
        append_stripes(program, stretch_layers(program.graph, order, part))


def _append_whole(program: TfliteProgram, index: int) -> None:
    """Appends an operator that is not split."""
    op = program.graph.ops[index]
    for t in op.writes:
        if op.kind in TFLITE_RESHAPES and op.inputs[0] in program.group_offsets and t not in program.group_offsets:
            program.group_offsets[t] = program.group_offsets[op.inputs[0]]
        _give_memory(program, t)
    program.steps.append(TfliteStep(op.kind, op.inputs, op.outputs, index))


def _give_memory(program: TfliteProgram, t: int) -> None:
    """Puts an activation into a group of its own, unless it lies in one."""
    tensor = program.graph.tensors[t]
    if tensor.kind is Kind.ACTIVATION and tensor.nbytes:
        program.place(t)
